"""Copilot's own scenarios, played through real sessions: folds in the background."""

import asyncio

import pytest
from shown import changed, used
from talks import SAID, WORDS, Talk, Writer, chat, of_500, setup, texts, until, work

from refold.fold.trigger import Decision
from refold.log import FoldFailed, Message
from refold.testing.wire import Answered, Asked, Responded, Return, Told
from refold.view.profiles import COPILOT, PROFILES

COMPLETE = "session.compaction_complete"


# Copilot: background folds, and what a request does while one is made.

LIMIT = 10_000


async def test_the_decision_for_each_state_of_a_background_fold(log):
    write = Writer(slow=True)
    talk = await Talk.open(log, setup(COPILOT, LIMIT), write=write)
    # None pending, below the threshold: continue.
    await talk.go(*of_500(14))
    await talk.say(of_500(15)[-1])
    assert talk.session.decide() == Decision("continue")
    # At 8,000 of 10,000 tokens: start one, and continue the current request.
    await talk.request()
    await talk.answer(Responded(SAID))
    await talk.say(Asked("The seventeenth."))
    assert [one.what for one in talk.session.decide().why] == ["soft"]
    request = await talk.request()
    assert len(request.messages) == 17
    await until(lambda: write.asked)
    # Running, with room: continue; no second one is started.
    await talk.answer(Responded("A short answer."))
    await talk.say(Asked("A short question."))
    assert talk.session.decide().why[-1].what == "under way"
    assert len((await talk.request()).messages) == 19
    # Running, and the buffer exhausted: wait for it, and apply it.
    await talk.answer(Responded(SAID))
    await talk.say(Asked(SAID), Asked(SAID))
    assert {one.what for one in talk.session.decide().why} == {"hard", "soft", "under way"}
    waiting = asyncio.create_task(talk.request())
    for _ in range(20):
        await asyncio.sleep(0)
    assert not waiting.done()
    write.go.set()
    shown = texts(await waiting)
    assert WORDS in shown[0]
    assert shown[1:] == [
        "The seventeenth.",
        "A short answer.",
        "A short question.",
        SAID,
        SAID,
        SAID,
    ]
    assert write.asked == 1
    assert await talk.folds() == (1, 1, 0)
    await talk.all_rebuilt()


async def test_a_completed_background_fold_is_applied_before_a_later_request(log):
    write = Writer(slow=True)
    talk = await Talk.open(log, setup(COPILOT, LIMIT), write=write)
    await talk.go(*of_500(16))
    await talk.say(Asked("The seventeenth."))
    assert len((await talk.request()).messages) == 17
    write.go.set()
    await talk.settled()
    await talk.answer(Responded("Yes."))
    request = await talk.request()
    assert WORDS in texts(request)[0]
    assert texts(request)[1:] == ["The seventeenth.", "Yes."]
    again = await Talk.open(log, setup(COPILOT, LIMIT), format=None, write=Writer())
    assert [*(await again.request()).messages] == [*request.messages]


async def test_after_a_context_limit_error_the_next_try_folds_first_and_waits(log):
    write = Writer(slow=True)
    talk = await Talk.open(log, setup(COPILOT, LIMIT), write=write)
    await talk.go(*of_500(8))
    await talk.say(Asked("The ninth."))
    await talk.request()
    retry = asyncio.create_task(talk.request(forced=True))
    await until(lambda: write.asked)
    for _ in range(20):
        await asyncio.sleep(0)
    assert not retry.done()
    write.go.set()
    shown = texts(await retry)
    assert WORDS in shown[0]
    assert shown[1:] == ["The ninth."]


async def test_the_result_of_a_cancelled_background_fold_is_thrown_away(log):
    write = Writer(slow=True)
    talk = await Talk.open(log, setup(COPILOT, LIMIT), write=write)
    await talk.go(*of_500(16))
    await talk.say(Asked("The seventeenth."))
    before = await talk.request()
    await until(lambda: write.asked)
    assert await talk.session.cancel() is True
    write.go.set()
    await asyncio.sleep(0)
    after = await talk.request()
    assert [*after.messages] == [*before.messages]
    assert [one.reason for one in await talk.values(FoldFailed)] == ["cancelled"]
    assert [one.error for one in talk.events(COMPLETE)] == ["cancelled"]


async def test_an_automatic_fold_needs_four_messages(log):
    write = Writer()
    talk = await Talk.open(log, setup(COPILOT, 2_200), write=write)
    await talk.go(*of_500(2))
    await talk.say(Asked(SAID + SAID))
    decision = talk.session.decide(forced=True)
    assert decision.act == "continue"
    assert decision.why[-1].what == "too few messages"
    await talk.request()
    assert write.asked == 0
    await talk.answer(Responded("Yes."))
    await talk.say(Asked("And now?"))
    await talk.request()
    await talk.settled()
    assert write.asked == 1


async def test_tool_definitions_count_towards_utilisation(log):
    bare = await Talk.open(log, setup(COPILOT, LIMIT), name="bare", write=Writer())
    armed = await Talk.open(log, setup(COPILOT, LIMIT, tools=500), name="armed", write=Writer())
    for talk in (bare, armed):
        await talk.go(*of_500(14))
        await talk.say(of_500(15)[-1])
    assert bare.session.decide().act == "continue"
    started = armed.session.decide()
    assert started.act == "start"
    assert started.why[0] == ("soft", 8_003, 8_000)


async def test_truncation_is_of_one_request_and_is_no_entry(log):
    talk = await Talk.open(log, setup(COPILOT, 4_000))
    await talk.say(Told("You are careful."))
    for one in work(*range(12), size=1_200):
        if isinstance(one, Responded):
            request = await talk.request()
            shown = texts(request)
            assert shown[0] == "You are careful."
            assert any(text.startswith("Please read") for text in shown)
            await talk.answer(one)
        else:
            await talk.say(one)
            latest = one
    await talk.say(Asked("The latest."))
    shown = texts(await talk.request())
    assert latest
    assert shown[0] == "You are careful."
    assert shown[-1] == "The latest."
    assert talk.events("session.truncation")
    kinds = {entry.kind for entry in await log.read("s")}
    assert kinds <= {"session", "message", "request", "usage"}
    whole = await Talk.open(log, setup(COPILOT, 100_000), format=None)
    assert [*(await whole.request()).messages] == [
        one.payload for one in await talk.values(Message)
    ]


async def test_results_without_a_call_are_not_sent_though_they_fit(log):
    talk = await Talk.open(log, setup(COPILOT, LIMIT))
    await talk.go(*chat(1))
    await talk.say(Asked("And?"), Answered((Return("nobody", "read", "An orphan."),)))
    assert texts(await talk.request()) == ["Question 1?", "Answer 1.", "And?"]


@pytest.mark.parametrize("name", [*PROFILES])
async def test_no_fold_leaves_a_result_without_its_call(log, name):
    """Every request is looked at by `Talk.request`; here each has a call under way."""
    profile = changed(
        PROFILES[name],
        reserve=0,
        trigger={"messages": 9, "at_least": 0, "savings": 0, "soft": 0.5, "hard": 0.6},
        fold={"apply": "inline", "keep": {"unit": "messages", "amount": 3}},
    )
    talk = await Talk.open(log, setup(profile, 3_000), write=Writer())
    await talk.say(Asked("Read everything."))
    for nth in range(16):
        _, call, result, reply = work(nth, size=80)
        await talk.request()
        await talk.answer(call)
        await talk.say(result)
        if nth % 5 == 4:
            await talk.request()
            await talk.answer(reply)
            await talk.say(Asked(f"Go on from {nth}."))
    assert (await talk.folds())[1] >= 2
    await talk.all_rebuilt()


async def test_attachments_then_the_fold_then_truncation_and_what_is_said_meanwhile(log):
    write = Writer(slow=True)
    talk = await Talk.open(log, setup(COPILOT, LIMIT), write=write)
    await talk.go(*of_500(14))
    # What is attached is in the log, and counted, before anything is decided.
    before = talk.session.decide()
    await talk.say(Asked("See the picture.", listed=True, media=True))
    for asked, result in (used("a", "read", "y" * 22_000), used("b", "read", "z" * 22_000)):
        await talk.answer(asked)
        await talk.say(result)
    assert (before.act, talk.session.decide().act) == ("continue", "wait")
    waiting = asyncio.create_task(talk.request())
    await until(lambda: write.asked)
    # What is said while a fold is waited for is in the request, and not in the fold.
    await talk.say(Asked("Wait: " + "w" * 20_000), Asked("And now?"))
    write.go.set()
    request = await waiting
    first, *rest = texts(request)
    assert WORDS in first
    assert b"image" in request.messages[1]
    # Truncation takes out what is too much after the fold, here the newest result, and says so.
    assert [one[:5] for one in rest] == ["See t", "[Earl", "Wait:", "And n"]
    names = [one.NAME for one in talk.told if one.NAME in (COMPLETE, "session.truncation")]
    assert names == [COMPLETE, "session.truncation"]
    await talk.all_rebuilt()
