"""What a fold stands for, by the letter: the cuts that the profiles are known for."""

from typing import Any
from uuid import UUID

import pytest
from folding import fold, session_of, sheet_of, spelled
from sessions import Quarter, Remembering
from shown import turn, used

from refold.fold.material import boundary
from refold.fold.trigger import sized
from refold.log import FoldCompleted, FoldStarted, Message, Span
from refold.log.entry import seqs, subtract
from refold.testing.wire import Answered, Asked, Call, Responded, Return, Told
from refold.view.profiles import PROFILES, Fold, Keep
from refold.wire import WIRES

WIRE: dict[str, Any] = {name: Remembering(wire) for name, wire in WIRES.items()}
CO_CLI = sized(PROFILES["co-cli"], 100_000).keep


def pairs(count):
    return [one for nth in range(count) for one in (Asked(f"Ask {nth}."), Responded("Done."))]


def entries(where):
    return [*seqs(where.spans)]


@pytest.mark.req("R024", "R025", "R027")
def test_co_cli_keeps_the_first_run_and_the_last_twenty():
    session = session_of(*pairs(20), Asked("And now?"))  # 41 messages, in entries 2 to 42
    where = boundary(sheet_of(session), CO_CLI)
    assert entries(where) == [*range(4, 23)]
    assert where.messages == 41 - 2 - 20


@pytest.mark.req("R027")
def test_the_tail_of_co_cli_is_four_messages_at_least():
    keep = CO_CLI.model_copy(update={"amount": 3})
    where = boundary(sheet_of(session_of(*pairs(10))), keep)
    assert entries(where) == [*range(4, 18)]


@pytest.mark.req("R025")
def test_a_first_run_may_have_more_than_four_messages():
    first = turn("Begin.", used("a", "read", "one"), used("b", "read", "two"))
    session = session_of(*first, *pairs(20))
    assert len(first) == 6
    assert entries(boundary(sheet_of(session), CO_CLI)) == [*range(8, 28)]


@pytest.mark.req("R025", "R046")
def test_a_first_run_that_ends_with_words_and_a_call_keeps_the_result():
    first = used("a", "read", "one", text="I look.")
    session = session_of(Asked("Begin."), *first, *pairs(20))
    assert entries(boundary(sheet_of(session), CO_CLI))[0] == 5


@pytest.mark.req("R026")
def test_without_a_text_response_nothing_is_pinned():
    steps = [one for nth in range(15) for one in used(f"c{nth}", "read", "text")]
    session = session_of(Asked("Begin."), *steps, Asked("And now?"))
    assert entries(boundary(sheet_of(session), CO_CLI))[0] == 2


@pytest.mark.req("R026")
def test_a_text_response_that_is_the_first_message_is_pinned():
    session = session_of(Responded("Hello!"), *pairs(20))
    assert entries(boundary(sheet_of(session), CO_CLI))[0] == 3


@pytest.mark.req("R046")
def test_a_tail_that_would_begin_with_a_result_begins_with_its_call():
    step = used("a", "read", "one")
    session = session_of(*pairs(10), Asked("Read."), *step, *pairs(9), Responded("Done."))
    inputs = sheet_of(session)
    at = len(inputs.rows) - 20
    assert inputs.rows[at].has("return")
    assert entries(boundary(inputs, CO_CLI))[-1] == inputs.rows[at].seq - 2


@pytest.mark.req("R029", "R030", "R047")
@pytest.mark.parametrize(("count", "gone"), [(20, 10), (21, 10), (22, 11), (2, 1), (1, 0)])
def test_cowagent_folds_the_oldest_half_of_whole_turns(count, gone):
    said = [
        one for nth in range(count) for one in turn(f"Ask {nth}.", used(f"c{nth}", "read", "text"))
    ]
    inputs = sheet_of(session_of(*said))
    where = boundary(inputs, PROFILES["cowagent"].fold.keep)
    assert where.messages == 4 * gone
    assert entries(where) == [*range(2, 2 + 4 * gone)]


def test_the_head_stays_where_the_answer_that_ended_it_is_folded():
    session = session_of(Asked("Begin."), *used("a", "read", "x"), *pairs(3))
    keep = Keep(head="first run", unit="messages", amount=2)
    fold(session, spans=(Span(5, 9),))
    for payload in spelled("pydantic-ai", Asked("Go on."), *used("b", "read", "y")):
        session.add(Message(payload))
    assert entries(boundary(sheet_of(session), keep))[0] == 5


def test_the_latest_prompt_stays_and_the_step_under_way():
    session = session_of(
        *pairs(3), Asked("Do it."), *used("a", "read", "x"), *used("b", "read", "y")
    )
    inputs = sheet_of(session)
    where = boundary(inputs, PROFILES["copilot"].fold.keep)
    assert entries(where) == [*range(2, 8), 9, 10]  # not 8, the prompt, nor 11 and 12


@pytest.mark.req("R149")
def test_inkeep_folds_everything_before_the_latest_prompt():
    session = session_of(
        *pairs(3), Asked("Do it."), *used("a", "read", "x"), *used("b", "read", "y")
    )
    where = boundary(sheet_of(session), PROFILES["inkeep"].fold.keep)
    assert entries(where) == [*range(2, 8)]


def test_system_content_stays():
    session = session_of(Told("Be kind."), *pairs(6), format="openai-chat")
    where = boundary(sheet_of(session), Keep())
    assert entries(where)[0] == 3


def test_balanced_begins_its_tail_with_a_turn_that_is_near():
    keep = Keep(head="first run", unit="tokens", amount=100, snap="turn")
    long = [one for nth in range(8) for one in turn("Ask." * 20, used(f"c{nth}", "read", "z" * 80))]
    inputs = sheet_of(session_of(*long, Asked("And now?")))
    last = entries(boundary(inputs, keep))[-1]
    assert inputs.rows[inputs.at(last) + 1].has("prompt")


def test_of_a_long_first_run_the_first_prompt_stays():
    first = turn("Begin.", used("a", "read", "x" * 4_000))
    keep = CO_CLI.model_copy(update={"head_tokens": 500})
    assert entries(boundary(sheet_of(session_of(*first, *pairs(20))), keep))[0] == 3


def test_the_first_run_is_not_looked_for_behind_a_fold():
    session = session_of(Asked("Begin."), *used("a", "read", "x"), *pairs(5))
    spans = (Span(3, 4),)
    fold(session, spans=spans)
    keep = Keep(head="first run", unit="messages", amount=2)
    where = boundary(sheet_of(session), keep)
    assert entries(where)[0] == 3
    assert not subtract(spans, where.spans)


def test_a_head_that_would_end_within_a_step_ends_before_it():
    two = Call("a", "read", {}), Call("b", "read", {})
    answers = [Answered((Return(one.id, "read", "text"),)) for one in two]
    session = session_of(Asked("Begin."), Responded(None, two), *answers, *pairs(4))
    fold(session, spans=(Span(4, 4),))  # by hand, one of two results
    keep = Keep(head="first run", unit="messages", amount=2)
    assert entries(boundary(sheet_of(session), keep))[:3] == [3, 4, 5]


def test_a_fold_that_is_later_in_the_log_may_be_the_first_of_the_view():
    session = session_of(*pairs(8))
    fold(session, spans=(Span(10, 12),))
    fold(session, spans=(Span(3, 4),))
    keep = Keep(head="first run", unit="messages", amount=2)
    where = boundary(sheet_of(session), keep)
    assert entries(where)[0] == 3
    assert len(where.earlier) == 2


def test_a_fold_that_reaches_beyond_the_boundary_is_left_as_it_is():
    session = session_of(*pairs(8))
    spans = (Span(4, 8), Span(15, 16))
    session.add(FoldStarted(UUID(int=1), spans, "by hand"))
    session.add(FoldCompleted(UUID(int=1), spans, "By hand."))
    where = boundary(sheet_of(session), Keep(unit="messages", amount=4))
    assert where.earlier == ()
    assert entries(where) == [2, 3, 9, 10, 11]


def test_a_boundary_says_what_it_frees():
    session = session_of(*pairs(10))
    keep = Keep(unit="messages", amount=4)
    inputs = sheet_of(session)
    where = boundary(inputs, keep)
    counter = Quarter()
    going = spelled("pydantic-ai", *pairs(8))
    wire = WIRE["pydantic-ai"]
    own = sum(sum(map(counter.part, wire.describe(one).shapes)) + 4 for one in going)
    assert (where.messages, where.tokens) == (16, own)
    _, summary = fold(session, Fold(keep=keep))
    for payload in spelled("pydantic-ai", *pairs(2)):
        session.add(Message(payload))
    again = boundary(sheet_of(session), keep)
    new = sum(sum(map(counter.part, wire.describe(one).shapes)) + 4 for one in going[:4])
    assert again.tokens == new + counter.text(summary.text) + 4
