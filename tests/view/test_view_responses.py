"""Responses that are several messages: what of them is sent together, in every view."""

import json
from collections import defaultdict
from itertools import groupby

import pytest
from amounts import amount
from folding import fold
from hypothesis import given, settings
from hypothesis import strategies as st
from sessions import Quarter
from shown import Talk
from test_view_properties import PROFILED, Host, budgets

from refold.errors import ViewTooLarge
from refold.testing.wire import (
    SPELLINGS,
    Answered,
    Asked,
    Call,
    Responded,
    Return,
    Thought,
    conversations,
)
from refold.view.policies.pair import INTERRUPTED
from refold.view.profiles import Fold, Keep, Profile, Window
from refold.view.tokens import PLAIN, part_tokens
from refold.wire import OpenAIResponses, Shape

COUNT = amount(few=4, quick=15, ci=40, nightly=400, thorough=12_000)
PLAINLY = Profile(name="plain")
FORMAT = "openai-responses"
HM = Thought("Hm.", signed=True)
RESPONSE = Responded("On it.", (Call("a", "search", {}), Call("b", "read_file", {})), HM)
ANSWER = Answered((Return("a", "search", "found"), Return("b", "read_file", "read")))
COMPUTER = {"type": "computer_call", "call_id": "c", "action": {"type": "click"}}
SEEN = {"type": "computer_call_output", "call_id": "c", "output": {"image_url": "x"}}
REASONING = {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}


def items(said):
    return [json.dumps(one).encode() for one in SPELLINGS[FORMAT].spell(said)]


def talk(*said, profile=PLAINLY):
    made = Talk(profile, format=FORMAT)
    for one in said:
        if isinstance(one, dict):
            made.put(json.dumps(one).encode())
        else:
            made.say(one)
    return made


def sent(made, **how):
    """The items of the next request, by their type, with what they call or answer."""
    request = made.request(**how)
    assert request.wire.problems(request.messages) == []
    items = [json.loads(one) for one in request.messages]
    return [(one.get("type", one.get("role")), one.get("call_id")) for one in items]


def test_the_calls_of_a_response_are_answered_after_its_last_item():
    made = talk(Asked("Go."), RESPONSE, ANSWER, Responded("Done.", thought=HM))
    request = made.request()
    assert list(request.messages) == [one.body for one in made.session.messages()]
    assert made.inputs().steps == [0, 1, 1, 1, 1, 1, 1, 7, 7]


def test_calls_that_nothing_answered_get_stand_ins_behind_the_response():
    half = Answered((Return("b", "read_file", "read"),))
    assert sent(talk(Asked("Go."), RESPONSE, half, Asked("And?"))) == [
        ("user", None),
        ("reasoning", None),
        ("message", None),
        ("function_call", "a"),
        ("function_call", "b"),
        ("function_call_output", "a"),
        ("function_call_output", "b"),
        ("user", None),
    ]


def test_a_stand_in_is_of_the_sort_that_its_call_wants():
    calls = (
        {"type": "custom_tool_call", "call_id": "a", "name": "x", "input": "y"},
        {"type": "shell_call", "call_id": "b", "action": {}},
        {"type": "apply_patch_call", "call_id": "c", "operation": {}},
        {"type": "tool_search_call", "call_id": "d", "arguments": {}},
        {"type": "mcp_approval_request", "id": "e", "name": "x", "arguments": "{}"},
        {"type": "local_shell_call", "call_id": "f", "action": {}},
    )
    made = talk(Asked("Go."), *calls)
    assert [sort for sort, _ in sent(made)[7:]] == [
        "custom_tool_call_output",
        "shell_call_output",
        "apply_patch_call_output",
        "tool_search_output",
        "mcp_approval_response",
        "function_call_output",
    ]
    texts = [one.text for shapes in made.shapes()[7:] for one in shapes]
    assert texts == [INTERRUPTED, INTERRUPTED, INTERRUPTED, "[]", INTERRUPTED, INTERRUPTED]


def test_a_call_that_words_cannot_answer_goes_with_its_reasoning():
    ended = talk(Asked("Go."), REASONING, COMPUTER, Asked("Stop."))
    assert sent(ended) == [("user", None), ("user", None)]
    whole = talk(Asked("Go."), REASONING, COMPUTER, SEEN)
    assert len(sent(whole)) == len(whole.inputs().rows)


def test_reasoning_that_led_nowhere_is_not_sent():
    made = talk(Asked("Go."), REASONING)
    assert sent(made) == [("user", None)]
    made.say(Responded("Done."))  # it did lead somewhere
    assert sent(made) == [("user", None), ("reasoning", None), ("message", None)]
    assert sent(talk(Asked("Go."), REASONING, Asked("Well?"))) == [("user", None), ("user", None)]


def test_a_call_with_the_id_of_another_takes_its_reasoning_with_it():
    call = {"type": "function_call", "call_id": "a", "name": "x", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "a", "output": "x"}
    made = talk(Asked("Go."), REASONING, call, REASONING, call, result)
    assert [one for one, _ in sent(made)] == [
        "user",
        "reasoning",
        "function_call",
        "function_call_output",
    ]
    gone = {one.reason for one in made.request().plan.layout.omissions}
    assert gone == {"parted"}


@pytest.mark.parametrize("scope", ["/", "/a"])
def test_delegated_work_is_told_behind_the_response_that_it_came_into(scope):
    made = Talk(PLAINLY, Asked("Go."), format=FORMAT, scope=scope)
    for nth, payload in enumerate(items(RESPONSE)):
        made.put(payload)
        if nth in {0, 1}:
            made.say(Responded(f"Delegated, {nth}."), scope="/a")
    made.say(ANSWER)
    request = made.request()
    assert request.wire.problems(request.messages) == []
    if scope == "/":
        assert [one for one, _ in sent(made)][-4:] == [
            *["function_call_output"] * 2,
            "user",
            "user",
        ]


def test_nothing_comes_between_a_response_and_its_results_whatever_it_ends_with():
    call = {"type": "function_call", "call_id": "a", "name": "x", "arguments": "{}"}
    made = talk(Asked("Go."), call)
    made.say(Responded("Delegated."), scope="/a")
    made.say(Responded("On it."), Answered((Return("a", "x", "found"),)))
    assert [one for one, _ in sent(made)] == [
        "user",
        "function_call",
        "message",
        "function_call_output",
        "user",
    ]


def test_two_readers_make_no_response_together():
    made = Talk(PLAINLY, Asked("Go."), format=FORMAT, scope="/a")
    made.put(json.dumps(REASONING).encode())
    made.say(Responded("Delegated."), scope="/a")
    assert sent(made) == [("user", None), ("message", None)]


def test_what_a_fold_parts_is_no_response():
    made = talk(Asked("Go."), REASONING, Responded("Omission."), Responded("There."))
    assert made.session.apply(("fold", 2, 0))  # the third entry after the opening
    assert [one for one, _ in sent(made)] == ["user", "user", "message"]


def test_what_a_gap_parts_is_no_response():
    made = talk(Asked("Go."), REASONING, Responded("Omission."), Responded("There."))
    made.session.entries[3] = made.session.entries[3]._replace(body=b"", forgotten=True)
    assert [one for one, _ in sent(made)] == ["user", "message"]


def test_a_reply_reduced_to_text_keeps_its_reasoning():
    profile = Profile(name="few", window=Window(max_tokens=70, text_below=9))
    search = {"type": "web_search_call", "id": "w", "action": {}}
    made = talk(
        Asked("Go."),
        RESPONSE,
        ANSWER,
        REASONING,
        search,
        Responded("Done. " * 20),
        Asked("And?"),
        profile=profile,
    )
    assert [one for one, _ in sent(made)] == [
        "user",
        "reasoning",
        "web_search_call",
        "message",
        "user",
    ]


def test_sealed_content_counts_though_it_is_no_text():
    payload = json.dumps(REASONING | {"encrypted_content": "x" * 400}).encode()
    [shape] = OpenAIResponses().describe(payload).shapes
    assert (shape.text, shape.opaque) == ("", 400)
    counter = Quarter()
    bare = part_tokens(counter, Shape("thought", "", sealed=True), PLAIN)
    assert part_tokens(counter, shape, PLAIN) == bare + 100


def named(payloads):
    """The payloads with a number each; what follows reasoning in its response says which."""
    wire = OpenAIResponses()
    made, number = [], 0
    for answers, run in groupby(payloads, key=lambda one: wire.describe(one).role == "assistant"):
        after, led = None, False
        for payload in run:
            number += 1
            item = json.loads(payload) | {"x_number": number}
            if answers and item.get("type") == "reasoning" and (after is None or led):
                after, led = number, False
            elif item.get("type") != "reasoning":
                led = True
            made.append(json.dumps(item | {"x_after": after}).encode())
    return made


def check_together(messages, logged):
    there = {json.loads(one).get("x_number") for one in messages}
    groups = defaultdict(set)
    for one in map(json.loads, logged):
        groups[one["x_after"]].add(one["x_number"])
    for after, group in groups.items():
        assert after is None or group <= there or not group & there


@settings(max_examples=COUNT)
@given(st.data())
def test_reasoning_and_what_it_led_to_are_sent_both_or_not_at_all(data):
    profile = data.draw(st.sampled_from(PROFILED), "profile")
    budget = data.draw(budgets, "budget")
    host = Host(FORMAT, profile, Quarter())
    drawn = conversations(FORMAT, legal=data.draw(st.booleans()), max_moves=10)
    payloads = named(data.draw(drawn, "conversation"))
    fates = data.draw(st.lists(st.integers(0, 11), min_size=len(payloads), max_size=len(payloads)))
    logged = []
    for at, (payload, fate) in enumerate(zip(payloads, fates, strict=True), 1):
        host.message(payload, "/")
        logged.append(payload)
        over = at == len(payloads) or not _goes_on(payload, payloads[at])
        if over and fate == 0:
            keep = Keep(unit="messages", amount=data.draw(st.integers(0, 6)))
            fold(host.session, Fold(keep=keep))
            host.view.reset(host._input(host.view.inputs))
            host.known = host.session.head
        if over and (fate < 6 or at == len(payloads)):
            try:
                request = host.request(budget)
            except ViewTooLarge:
                return
            assert host.wire.problems(list(request.messages)) == []
            check_together(request.messages, logged)


def _goes_on(payload, live):
    roles = [OpenAIResponses().describe(one).role for one in (payload, live)]
    return roles == ["assistant", "assistant"]
