"""Calls and returns in pairs: what stands in for what is missing, and what goes."""

import json
from typing import Any

import pytest
from shown import Talk, turn, used

from refold.log import PartRef
from refold.testing.wire import Answered, Asked, Call, Responded, Return, Thought, Told
from refold.view.plan_builder import PlanBuilder
from refold.view.policies.pair import INTERRUPTED, OPENING, UNFINISHED, opening, pair
from refold.view.profiles import Profile
from refold.wire import Drop, Insert

PLAIN = Profile(name="plain")
CHAT = "openai-chat"
ITEMS = "openai-responses"
A, B = Call("a", "search", {}), Call("b", "read_file", {})
A_FOUND, B_READ = Return("a", "search", "found"), Return("b", "read_file", "read")


def build(*said, format=CHAT, scope="/"):  # noqa: A002 - the glossary's word
    talk = Talk(PLAIN, format=format, scope=scope)
    for one in said:
        if isinstance(one, dict):
            talk.put(json.dumps(one).encode(), scope)
        else:
            talk.say(one, scope=scope)
    return PlanBuilder(talk.inputs())


def paired(builder, start=0):
    """What pairing proposes: the reasons by entry, and the inserts."""
    proposals: list[Any] = []
    for proposal in pair(builder, start):  # each sees what came of those before it
        builder.apply([proposal])
        proposals.append(proposal)
    dropped = [(part.seq, one.reason) for part, one in filter(_changes, proposals)]
    return dropped, [one for one in proposals if isinstance(one, Insert)]


def _changes(proposal):
    return not isinstance(proposal, Insert)


def stand_in(before, call, text=INTERRUPTED, *, seq, nth=0):
    source = (PartRef(seq, nth),)
    return Insert(before, "return", text, "unanswered", call.tool, call.id, source)


def test_what_is_whole_is_left_alone():
    said = (Asked("Go."), Responded("Hm.", (A, B)), Answered((A_FOUND, B_READ)), Responded("Done."))
    for format in ("anthropic-messages", CHAT, ITEMS, "pydantic-ai"):  # noqa: A001
        assert list(pair(build(*said, format=format))) == []


def test_calls_that_nothing_answers_get_stand_ins_right_behind_their_response():
    said = (Asked("Go."), Responded(None, (A, B)), Answered((A_FOUND,)), Asked("And?"))
    assert paired(build(*said)) == ([], [stand_in(4, B, seq=3, nth=1)])
    said = (Asked("Go."), Responded(None, (A, B)))
    both = [stand_in(4, A, seq=3), stand_in(4, B, seq=3, nth=1)]
    assert paired(build(*said)) == ([], both)
    assert paired(build(*said, Asked("And?"))) == ([], both)


def test_a_response_closes_the_calls_of_the_one_before_it():
    said = (Asked("Go."), Responded(None, (A,)), Responded(None, (B,)), Answered((B_READ,)))
    assert paired(build(*said)) == ([], [stand_in(4, A, seq=3)])


def test_a_delegate_is_told_that_its_work_is_not_finished():
    builder = build(Asked("Go."), Responded(None, (A,)), scope="/a")
    assert paired(builder) == ([], [stand_in(4, A, UNFINISHED, seq=3)])
    assert (INTERRUPTED, UNFINISHED) == ("Interrupted by user.", "Not finished yet.")


def test_a_return_without_a_call_goes():
    builder = build(Asked("Go."), Answered((A_FOUND,)), Asked("And?"))
    assert paired(builder) == ([(3, "orphan")], [])


def test_a_second_return_to_one_call_goes():
    builder = build(Asked("Go."), Responded(None, (A,)), Answered((A_FOUND,)), Answered((A_FOUND,)))
    assert paired(builder) == ([(5, "orphan")], [])


def late(seq, text, tool="search", call="a"):
    told = f"[Late result of {tool} ({call})]\n{text}"
    return Insert(seq, "prompt", told, "late", sources=(PartRef(seq, 0),))


@pytest.mark.parametrize("format", [CHAT, "anthropic-messages", "pydantic-ai"])
def test_a_return_that_came_too_late_is_told_as_text_where_it_came(format):  # noqa: A002
    said = (Asked("Go."), Responded(None, (A,)), Asked("And?"), Answered((A_FOUND,)))
    builder = build(*said, Responded("Done."), format=format)
    assert paired(builder) == ([(5, "late")], [stand_in(4, A, seq=3), late(5, "found")])


def test_of_a_late_return_the_first_2000_characters_are_told():
    result = Return("a", "search", "x" * 2_001)
    said = (Asked("Go."), Responded(None, (A,)), Asked("And?"), Answered((result,)))
    _, inserts = paired(build(*said))
    assert inserts[-1] == late(5, "x" * 2_000)


def test_a_call_id_that_was_used_before_is_no_second_call_where_ids_are_unique():
    again = (Responded(None, (A,)), Answered((A_FOUND,)))
    builder = build(Asked("Go."), *again, Asked("And?"), *again, format="anthropic-messages")
    assert builder.inputs.wire.unique_calls
    dropped, inserts = paired(builder)
    assert dropped == [(6, "orphan"), (7, "late")]
    assert inserts == [late(7, "found")]
    builder = build(Asked("Go."), *again, Asked("And?"), *again, format=CHAT)
    assert not builder.inputs.wire.unique_calls
    assert paired(builder) == ([], [])


def test_a_call_twice_in_one_response_is_one_call():
    builder = build(Asked("Go."), Responded(None, (A, A)), Answered((A_FOUND,)))
    assert paired(builder) == ([(3, "orphan")], [])
    assert [part.nth for part in builder.visible_parts(builder.inputs.rows[1])] == [0]


def test_only_what_comes_after_the_start_is_repaired():
    open_call = (Responded(None, (A,)), Asked("And?"))
    builder = build(Asked("Go."), *open_call, *open_call)
    assert paired(builder, 3) == ([], [stand_in(6, A, seq=5)])
    assert paired(build(Asked("Go."), *open_call, *open_call), 4) == ([], [])


def test_from_the_start_means_from_the_first_row():
    builder = build(Responded(None, (A,)), Asked("And?"))
    assert [*pair(builder)] == [stand_in(3, A, seq=2)]


def test_what_is_whole_after_the_start_is_left_alone():
    builder = build(Asked("Go."), Responded("Done."), Asked("And?"), *used("a", "search", "found"))
    assert paired(builder, 3) == ([], [])


def test_a_return_answers_only_within_its_step_though_what_came_between_is_gone():
    said = (Asked("Go."), Responded(None, (A,)), Asked("And?"), Answered((A_FOUND,)))
    builder = build(*said)
    builder.apply([(part, Drop("window")) for part in builder.inputs.rows[2].parts])
    assert paired(builder) == ([(5, "late")], [stand_in(4, A, seq=3), late(5, "found")])


def test_words_between_two_returns_close_the_calls_once_the_first_return_is_gone():
    said = (
        Asked("Go."),
        Responded(None, (A, B)),
        Answered((A_FOUND,), "Wait."),
        Answered((B_READ,)),
    )
    builder = build(*said, format="anthropic-messages")
    builder.apply([(builder.inputs.rows[2].parts[0], Drop("window"))])
    both = [stand_in(4, A, seq=3), stand_in(4, B, seq=3, nth=1)]
    told = late(5, "read", "read_file", "b")
    assert paired(builder) == ([(5, "late")], [*both, told])


def test_a_return_whose_call_was_left_out_goes_too():
    builder = build(*turn("Go.", used("a", "search", "found")))
    builder.apply([(part, Drop("window")) for part in builder.inputs.rows[1].parts])
    assert paired(builder) == ([(4, "orphan")], [])


def test_a_call_whose_return_was_left_out_is_answered():
    builder = build(*turn("Go.", used("a", "search", "found")))
    builder.apply([(part, Drop("window")) for part in builder.inputs.rows[2].parts])
    assert paired(builder) == ([], [stand_in(4, A, seq=3)])


# Responses that are several messages.

REASONING = {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
COMPUTER = {"type": "computer_call", "call_id": "c", "action": {"type": "click"}}
HM = Thought("Hm.", signed=True)


def test_reasoning_goes_with_what_it_led_to_when_that_was_left_out():
    builder = build(Asked("Go."), Responded("Done.", thought=HM), Asked("And?"), format=ITEMS)
    builder.apply([(part, Drop("window")) for part in builder.inputs.rows[2].parts])
    assert paired(builder) == ([(3, "parted")], [])


def test_reasoning_that_led_nowhere_goes_from_the_start_on_only():
    said = (Asked("Go."), REASONING, Asked("And?"), REASONING)
    assert paired(build(*said, format=ITEMS)) == ([(3, "parted"), (5, "parted")], [])
    assert paired(build(*said, format=ITEMS), 2) == ([(5, "parted")], [])


def test_a_call_that_words_cannot_answer_goes_and_others_of_its_response_stay():
    said = (Asked("Go."), COMPUTER, Responded("Wait."), Asked("And?"))
    assert paired(build(*said, format=ITEMS)) == ([(3, "parted")], [])


def test_a_whole_group_goes_and_the_group_beside_it_stays():
    first = Responded(None, (A,), HM)
    builder = build(Asked("Go."), first, REASONING, COMPUTER, Asked("Stop."), format=ITEMS)
    dropped, inserts = paired(builder)
    assert dropped == [(5, "parted"), (6, "parted")]
    assert [(one.before, one.call) for one in inserts] == [(5, "a")]


def test_items_of_a_response_with_one_call_id_leave_the_first():
    call = {"type": "function_call", "call_id": "a", "name": "search", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "a", "output": "x"}
    builder = build(Asked("Go."), call, call, result, format=ITEMS)
    assert paired(builder) == ([(4, "parted")], [])


# The opening.


def opened(*said, before=(), **how):
    builder = build(*said, **how)
    builder.apply(before)
    return list(opening(builder))


@pytest.mark.parametrize("first", [(), (Told("Be kind."),)])
def test_where_the_model_would_speak_first_a_line_in_the_users_place_opens(first):
    found = opened(*first, Responded("Hello."), Asked("Hi."))
    assert found == [Insert(2 + len(first), "prompt", OPENING, "opening")]
    assert OPENING == "[The conversation begins here.]"


def test_where_the_user_or_nobody_speaks_first_nothing_opens():
    assert opened(Told("Be kind."), Asked("Hi."), Responded("Hello.")) == []
    assert opened(Told("Be kind.")) == []


@pytest.mark.parametrize(
    ("before", "kind", "opens"),
    [
        (2, "prompt", False),
        (3, "prompt", True),
        (2, "reply", True),
    ],
)
def test_what_is_inserted_before_the_first_word_opens_if_it_is_in_the_users_place(
    before, kind, opens
):
    insert = Insert(before, kind, "Earlier.", "summary")
    assert bool(opened(Responded("Hello."), Asked("Hi."), before=(insert,))) == opens
