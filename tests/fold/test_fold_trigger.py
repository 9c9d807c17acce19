"""When the past is folded: the decision, row by row."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold.fold.debt import Verdict
from refold.fold.economics import Worth
from refold.fold.trigger import Decision, Pressure, Why, decide
from refold.view import Budget, Profile, Thresholds, Trigger, Window, thresholds
from refold.view.budget import GAIN
from refold.view.profiles import PROFILES

COPILOT = PROFILES["copilot"].trigger
MARKS = Thresholds(1_000, soft=800, hard=950)
BELOW, SOFT, HARD = 799, 800, 950


def pressure(tokens=500, **other):
    full = Pressure(tokens, messages=30, turns=5, floor=10, gain=400, foldable=20)
    return full._replace(**other)


def reasons(decision):
    return [one.what for one in decision.why]


@pytest.mark.req("R023")
@pytest.mark.parametrize(("count", "act"), [(39, "continue"), (40, "continue"), (41, "wait")])
def test_co_cli_folds_when_there_are_more_than_forty_messages(count, act):
    trigger = PROFILES["co-cli"].trigger
    marks = thresholds(PROFILES["co-cli"], Budget(window=1_000))
    decision = decide(trigger, marks, pressure(5_000, messages=count, gain=0), inline=True)
    assert decision.act == act
    assert decision.why == ((Why("messages", 41, 40),) if act == "wait" else ())


@pytest.mark.req("R029")
@pytest.mark.parametrize(("count", "act"), [(20, "continue"), (21, "start")])
def test_cowagent_folds_when_there_are_more_than_twenty_turns(count, act):
    assert (
        decide(
            PROFILES["cowagent"].trigger, replace(MARKS, soft=0, hard=0), pressure(turns=count)
        ).act
        == act
    )


@pytest.mark.req("R041", "R042")
@pytest.mark.parametrize(
    ("tokens", "act", "why"),
    [
        (BELOW, "continue", []),
        (SOFT, "start", ["soft"]),
        (HARD - 1, "start", ["soft"]),
        (HARD, "wait", ["hard", "soft"]),
    ],
)
def test_shares_of_the_limit_count_from_the_share_on(tokens, act, why):
    marks = thresholds(PROFILES["copilot"], Budget(window=1_000))
    decision = decide(COPILOT, marks, pressure(tokens))
    assert (decision.act, reasons(decision)) == (act, why)


@pytest.mark.req("R043")
@pytest.mark.parametrize(("messages", "act"), [(3, "continue"), (4, "wait")])
def test_fewer_than_four_messages_are_never_folded_by_themselves(messages, act):
    assert COPILOT.min_messages == 4
    assert COPILOT.min_messages_manual == 2
    decision = decide(COPILOT, MARKS, pressure(HARD, messages=messages))
    assert decision.act == act
    assert ("too few messages" in reasons(decision)) == (act == "continue")


@pytest.mark.req("R044")
@pytest.mark.parametrize(
    ("running", "tokens", "messages", "act"),
    [
        (False, BELOW, 30, "continue"),
        (False, BELOW, 3, "continue"),
        (False, SOFT, 3, "continue"),
        (False, HARD, 3, "continue"),
        (False, SOFT, 30, "start"),
        (False, HARD, 30, "wait"),
        (True, BELOW, 30, "continue"),
        (True, SOFT, 30, "continue"),
        (True, HARD, 30, "wait"),
        (True, HARD, 3, "wait"),
    ],
)
def test_the_decision_flow_of_copilot(running, tokens, messages, act):
    decision = decide(COPILOT, MARKS, pressure(tokens, messages=messages), running=running)
    assert decision.act == act
    assert ("under way" in reasons(decision)) == (running and tokens >= SOFT)


def test_a_request_waits_for_a_fold_of_a_profile_that_folds_inline():
    assert decide(COPILOT, MARKS, pressure(SOFT)).act == "start"
    assert decide(COPILOT, MARKS, pressure(SOFT), inline=True).act == "wait"


@pytest.mark.req("R045")
def test_a_refused_request_forces_a_fold_and_waits_for_it():
    decision = decide(COPILOT, MARKS, pressure(BELOW), forced=True)
    assert (decision.act, decision.forced) == ("wait", True)
    assert decide(COPILOT, MARKS, pressure(BELOW), forced=True, running=True).act == "wait"
    assert not decide(COPILOT, MARKS, pressure(HARD)).forced


@pytest.mark.parametrize("floor", [950, 951, 2_000])
def test_complaint_1_a_floor_above_the_trigger_never_loops(floor):
    """Fixed instructions alone exceed the threshold: folding could not help, so none is begun."""
    for tokens in range(floor, floor + 500, 50):
        decision = decide(COPILOT, MARKS, pressure(tokens, floor=floor, gain=tokens))
        assert decision.act == "continue"
        assert decision.why[-1] == Why("floor", floor, 950)


def test_a_floor_between_the_marks_leaves_the_hard_one_to_be_kept():
    low = decide(COPILOT, MARKS, pressure(900, floor=820, gain=70))
    assert reasons(low) == ["soft", "floor"]
    high = decide(COPILOT, MARKS, pressure(960, floor=820, gain=130))
    assert high.act == "wait"


def test_a_count_of_tokens_is_of_the_conversation_whatever_else_is_sent():
    trigger = Trigger(tokens=100)
    marks = Thresholds(10_000, soft=8_000, hard=9_500, fold=100)
    assert decide(trigger, marks, pressure(400, floor=300)).act == "continue"
    decision = decide(trigger, marks, pressure(401, floor=300))
    assert decision == Decision("start", (Why("tokens", 101, 100),))


@pytest.mark.parametrize(("gain", "act"), [(79, "continue"), (80, "start")])
def test_complaint_1_a_fold_that_would_free_too_little_is_not_begun(gain, act):
    decision = decide(COPILOT, MARKS, pressure(SOFT, gain=gain))
    assert decision.act == act
    if act == "continue":
        assert decision.why[-1] == Why("nothing to gain", 79, 80)


def test_complaint_10_what_failed_is_tried_again_when_there_is_more_to_fold():
    full = [pressure(900, whole=whole, again=1_000) for whole in (900, 999, 1_000)]
    assert [decide(COPILOT, MARKS, one).act for one in full] == ["continue", "continue", "start"]
    assert reasons(decide(COPILOT, MARKS, full[0]))[-1] == "failed before"
    assert decide(COPILOT, MARKS, full[0], forced=True).act == "continue"


def test_nothing_to_fold_is_no_reason_to_begin():
    decision = decide(COPILOT, MARKS, pressure(HARD, foldable=0))
    assert decision.act == "continue"
    assert "too few messages" in reasons(decision)


@pytest.mark.parametrize(
    ("trigger", "what"),
    [
        (Trigger(soft=0, hard=0, messages=29), "messages"),
        (Trigger(soft=0, hard=0, turns=4), "turns"),
        (Trigger(soft=0, hard=0, tokens=400), "tokens"),
        (Trigger(hard=0), "soft"),
        (Trigger(soft=0), "hard"),
    ],
)
def test_any_one_reason_suffices(trigger, what):
    soft, hard = (500 if one else 0 for one in (trigger.soft, trigger.hard))
    marks = Thresholds(600, soft=soft, hard=hard, fold=trigger.tokens)
    decision = decide(trigger, marks, pressure())
    assert decision.act == ("wait" if what == "hard" else "start")
    assert reasons(decision) == [what]


def test_zero_never_folds():
    trigger = Trigger(soft=0, hard=0)
    assert decide(trigger, Thresholds(1), pressure(10**9)) == Decision("continue")


def test_short_sessions_are_left_alone_below_the_hard_mark():
    trigger = Trigger(soft=0.3, at_least=900)
    marks = thresholds(Profile(name="short", trigger=trigger), Budget(window=2_000))
    assert decide(trigger, marks, pressure(899)).why == ()
    assert decide(trigger, marks, pressure(900)).act == "start"
    assert decide(trigger, replace(marks, hard=850), pressure(899)).act == "wait"


@pytest.mark.req("R119", "R150")
def test_a_limit_in_tokens_holds_for_short_sessions_too():
    trigger = Trigger(soft=0.3, at_least=900, tokens=100)
    marks = thresholds(Profile(name="short", trigger=trigger), Budget(window=2_000))
    assert decide(trigger, marks, pressure(110)).why == ()  # its floor is 10
    assert decide(trigger, marks, pressure(111)).act == "start"
    assert decide(trigger, marks, pressure(111), limits=Window(max_tokens=100)).act == "wait"


def test_a_limit_that_somebody_set_holds_whatever_folds_have_cost():
    values = PROFILES["balanced"].model_dump()
    values["trigger"] |= {"tokens": 500}
    own = Profile.model_validate(values)
    assert own.set_limits == {"tokens"}
    assert PROFILES["balanced"].set_limits == frozenset()
    waits = Worth(
        "paid by reading",
        600,
        200,
        1.0,
        1.0,
        0.1,
        verdict=Verdict(allowed=False, why="debt", price=1.0),
    )
    full = pressure(600)
    marks = thresholds(own, Budget(window=2_000))
    held = decide(own.trigger, marks, full, worth=waits, set_limits=own.set_limits)
    assert (held.act, reasons(held)) == ("start", ["tokens"])
    shipped = decide(own.trigger, marks, full, worth=waits)
    assert (shipped.act, reasons(shipped)) == ("continue", ["tokens", "debt"])


def test_a_session_is_not_left_alone_until_it_must_wait():
    """A small window: a floor above its limit would leave no fold for the background."""
    trigger = Trigger(at_least=20_000, tokens=100_000)
    marks = thresholds(Profile(name="small", trigger=trigger), Budget(window=12_000), 0.25)
    assert (marks.soft, marks.hard) == (9_600, 11_400)
    assert decide(trigger, marks, pressure(9_599, gain=2_000)).act == "continue"
    assert decide(trigger, marks, pressure(9_600, gain=2_000)).act == "start"
    assert decide(trigger, marks, pressure(11_400, gain=2_000)).act == "wait"


numbers = st.integers(0, 2_000)


@given(st.builds(Pressure, *[numbers] * 6), st.booleans(), st.booleans(), st.booleans())
def test_no_fold_is_begun_that_would_free_nothing(full, running, inline, forced):
    decision = decide(COPILOT, MARKS, full, running=running, inline=inline, forced=forced)
    if decision.act != "continue" and not running:
        assert full.foldable
        assert forced or full.gain >= GAIN * MARKS.soft
        assert forced or full.floor < MARKS.limit
    if decision.act == "start":
        assert not running
        assert full.tokens >= MARKS.soft
