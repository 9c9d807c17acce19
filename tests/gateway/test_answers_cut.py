"""Of an answer that is cut off anywhere, only what is whole is taken, and nothing else."""

import json

import pytest
from answer_streams import CHATS, MESSAGES, RESPONSES, events_of
from hypothesis import given
from hypothesis import strategies as st

from refold.gateway.dialects.anthropic_messages import MessagesAssembler
from refold.gateway.dialects.openai_chat import ChatAssembler
from refold.gateway.dialects.openai_responses import ResponsesAssembler
from refold.wire import wire_for

STREAMS = {
    "openai-chat": (ChatAssembler, CHATS),
    "anthropic-messages": (MessagesAssembler, MESSAGES),
    "openai-responses": (ResponsesAssembler, RESPONSES),
}


def words(name, told) -> str:
    """All that a message, or the items, say to the user."""
    if name == "openai-chat":
        return told.get("content") or ""
    blocks = told.get("content") if isinstance(told, dict) else None
    if blocks is None:
        parts = [part for item in told for part in item.get("content", [])]
        return "".join(part.get("text", "") for part in parts)
    return "".join(block.get("text", "") for block in blocks)


def calls(name, told):
    """Its calls with their arguments, as values."""
    if name == "openai-chat":
        made = [call["function"] for call in told.get("tool_calls", [])]
        return [(call["name"], json.loads(call["arguments"])) for call in made]
    if name == "anthropic-messages":
        made = [one for one in told["content"] if one["type"] == "tool_use"]
        return [(call["name"], call["input"]) for call in made]
    made = [item for item in told if item["type"] == "function_call"]
    return [(call["name"], json.loads(call["arguments"])) for call in made]


@pytest.mark.parametrize("name", STREAMS)
@given(data=st.data())
def test_a_cut_answer_is_the_beginning_of_the_whole_one(name, data):
    assembler, streams = STREAMS[name]
    stream = data.draw(streams)
    events = events_of([stream.raw])
    taken = assembler()
    held = [taken.take(event) for event in events].index(True)
    taken = assembler()
    for event in events[: data.draw(st.integers(0, held))]:
        assert not taken.take(event)
    answer = taken.answer()
    assert (answer.complete, taken.failed, answer.finish) == (False, False, "")
    told = [json.loads(payload) for payload in answer.payloads]
    if name != "openai-responses":
        told = told[0] if told else {"content": []}
    assert words(name, stream.told).startswith(words(name, told))
    whole = calls(name, stream.told)
    assert calls(name, told) == whole[: len(calls(name, told))]
    legal(name, answer.payloads)


def legal(name, payloads):
    """Nothing is wrong with the message but that its calls have no results yet."""
    problems = [one for one in wire_for(name).problems(payloads) if "user" not in one.what]
    assert not [one for one in problems if "call" not in one.what.lower()]


@pytest.mark.parametrize("name", STREAMS)
@given(data=st.data())
def test_from_the_held_event_on_the_answer_is_whole(name, data):
    assembler, streams = STREAMS[name]
    stream = data.draw(streams)
    taken = assembler()
    for event in events_of([stream.raw]):
        if taken.take(event):
            break
    answer = taken.answer()
    assert answer.complete
    told = [json.loads(payload) for payload in answer.payloads]
    told = told if name == "openai-responses" else told[0]
    assert words(name, told) == words(name, stream.told)
    assert calls(name, told) == calls(name, stream.told)
