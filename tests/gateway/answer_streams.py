"""Streams of answers, in the events of each provider, as values to test with."""

import json
from typing import Any, NamedTuple

from hypothesis import strategies as st

from refold.gateway.dialects.events import Events


class Stream(NamedTuple):
    """A stream and what it tells."""

    raw: bytes
    told: Any
    """The message, or the items."""


TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)
NAMES = st.sampled_from(["look", "write_file", "go"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)
ARGUMENTS = st.dictionaries(TEXTS, VALUES, max_size=3)
COUNTS = st.integers(0, 9_999)


def pieces(draw, text):
    """The text in pieces, one at least."""
    places = sorted(draw(st.sets(st.integers(0, len(text)), max_size=3)))
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


def chunked(raw, draw):
    places = sorted(draw(st.sets(st.integers(0, len(raw)), max_size=6)))
    return [raw[a:b] for a, b in zip([0, *places], [*places, len(raw)], strict=True)]


def framed(draw, events: list[Any], *, named):
    """The events as bytes, with what servers put between them."""
    end = draw(st.sampled_from(["\n", "\r\n"]))
    alive = draw(st.sampled_from(["", f": alive{end}{end}"]))
    escaped = draw(st.booleans())
    lines = []
    for event in events:
        data = event if isinstance(event, str) else json.dumps(event, ensure_ascii=escaped)
        kind = "" if isinstance(event, str) else event.get("type")
        name = f"event: {kind}{end}" if named else ""
        lines.append(f"{name}data: {data}{end}{end}{alive}")
    return "".join(lines).encode()


def events_of(chunks):
    events = Events()
    return [event for chunk in chunks for event in events.feed(chunk)]


def assembled(assembler, chunks):
    for event in events_of(chunks):
        assembler.take(event)
    return assembler.answer()


@st.composite
def chats(draw):
    message: dict[str, Any] = {"role": "assistant"}
    deltas = []
    for key in draw(st.permutations(["content", "refusal", "reasoning_content"])):
        if draw(st.booleans()):
            message[key] = draw(TEXTS)
            deltas += [{key: piece} for piece in pieces(draw, message[key])]
    for index in range(draw(st.integers(0, 3))):
        arguments = json.dumps(draw(ARGUMENTS), ensure_ascii=draw(st.booleans()))
        call = {"id": f"call_{index}", "type": "function"}
        called = {"name": draw(NAMES), "arguments": arguments}
        message.setdefault("tool_calls", []).append({**call, "function": called})
        first, *others = pieces(draw, arguments)
        begun = {**call, "function": {**called, "arguments": first}}
        deltas.append({"tool_calls": [{"index": index, **begun}]})
        for piece in others:
            deltas.append({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    deltas[:0] = [{"role": "assistant", "content": draw(st.sampled_from([None, ""]))}]
    events: list[Any] = [_chat_chunk(delta) for delta in deltas]
    finish = draw(st.sampled_from(["stop", "tool_calls"]))
    events.append(_chat_chunk({}, finish=finish))
    if draw(st.booleans()):
        usage = {"prompt_tokens": draw(COUNTS), "completion_tokens": 1, "total_tokens": 1}
        events.append({**_chat_chunk({}), "choices": [], "usage": usage})
    events += ["[DONE]"] * draw(st.integers(0, 1))
    return Stream(framed(draw, events, named=False), message)


def _chat_chunk(delta, finish=None):
    choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
    told = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return {**told, "choices": [choice], "usage": None}


@st.composite
def messages(draw):
    usage = {"input_tokens": draw(COUNTS), "output_tokens": 1}
    if draw(st.booleans()):
        usage |= {"cache_read_input_tokens": draw(COUNTS), "cache_creation_input_tokens": None}
    begun = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": []}
    begun |= {"stop_reason": None, "stop_sequence": None, "usage": usage}
    events: list[Any] = [{"type": "message_start", "message": begun}, {"type": "ping"}]
    blocks = []
    for index in range(draw(st.integers(0, 4))):
        block, start, deltas = draw(_BLOCKS)
        blocks.append(block)
        at = {"index": index}
        events.append({"type": "content_block_start", **at, "content_block": start})
        events += [{"type": "content_block_delta", **at, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", **at})
    delta = {"stop_reason": draw(st.sampled_from(["end_turn", "tool_use", "max_tokens"]))}
    counted = draw(st.sampled_from([{}, {"input_tokens": 7}, {"cache_read_input_tokens": None}]))
    counted = {"output_tokens": draw(COUNTS), **counted}
    events.append({"type": "message_delta", "delta": delta, "usage": counted})
    events.append({"type": "message_stop"})
    return Stream(framed(draw, events, named=True), {"role": "assistant", "content": blocks})


@st.composite
def _texts(draw):
    text = draw(TEXTS)
    block = {"type": "text", "text": text}
    deltas = [{"type": "text_delta", "text": piece} for piece in pieces(draw, text)]
    if draw(st.booleans()):
        cited = {"type": "char_location", "cited_text": draw(TEXTS), "document_index": 0}
        cited |= {"document_title": None, "start_char_index": 0, "end_char_index": 1}
        deltas.append({"type": "citations_delta", "citation": cited})
        return (
            {**block, "citations": [cited]},
            {"type": "text", "text": "", "citations": []},
            deltas,
        )
    return block, {"type": "text", "text": "", "citations": None}, deltas


@st.composite
def _thoughts(draw):
    if draw(st.booleans()):
        block = {"type": "redacted_thinking", "data": draw(TEXTS)}
        return block, block, []
    block = {"type": "thinking", "thinking": draw(TEXTS), "signature": "signed"}
    said = pieces(draw, block["thinking"])
    deltas = [{"type": "thinking_delta", "thinking": piece} for piece in said]
    deltas.append({"type": "signature_delta", "signature": "signed"})
    return block, {"type": "thinking", "thinking": "", "signature": ""}, deltas


@st.composite
def _uses(draw):
    name = f"toolu_{draw(st.integers(0, 999))}"
    kind = draw(st.sampled_from(["tool_use", "server_tool_use"]))
    block = {"type": kind, "id": name, "name": draw(NAMES), "input": draw(ARGUMENTS)}
    said = pieces(draw, json.dumps(block["input"]))
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ["", *said]]
    return block, {**block, "input": {}}, deltas


_BLOCKS = _texts() | _thoughts() | _uses()


@st.composite
def responses(draw):
    items, events = [], []
    for index in range(draw(st.integers(0, 4))):
        item, told = draw(_ITEMS)
        item, at = {**item, "id": f"{item['id']}_{index}"}, {"output_index": index}
        if "call_id" in item:
            item["call_id"] = f"call_{index}"
        begun = {**item, "status": "in_progress", **_EMPTY[item["type"]]}
        events.append({"type": "response.output_item.added", **at, "item": begun})
        events += [{**event, **at, "item_id": item["id"]} for event in told]
        events.append({"type": "response.output_item.done", **at, "item": item})
        items.append(item)
    response = {"id": "r", "object": "response", "created_at": 1, "model": "m", "output": []}
    response |= {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "error": None}
    usage = {"input_tokens": draw(COUNTS), "output_tokens": draw(COUNTS), "total_tokens": 1}
    usage |= {"input_tokens_details": {"cached_tokens": 1}}
    usage |= {"output_tokens_details": {"reasoning_tokens": 0}}
    begun = {"type": "response.created", "response": {**response, "status": "in_progress"}}
    ended = {**response, "status": "completed", "output": items, "usage": usage}
    last = {"type": "response.completed", "response": ended}
    events = [{**event, "sequence_number": nth} for nth, event in enumerate([begun, *events, last])]
    return Stream(framed(draw, events, named=True), items)


_EMPTY = {
    "message": {"content": []},
    "function_call": {"arguments": ""},
    "reasoning": {"summary": [], "encrypted_content": None},
}


@st.composite
def _said(draw):
    parts, events = [], []
    for nth in range(draw(st.integers(1, 2))):
        at, text = {"content_index": nth}, draw(TEXTS)
        part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        events.append({"type": "response.content_part.added", **at, "part": {**part, "text": ""}})
        for piece in pieces(draw, text):
            delta = {"delta": piece, "logprobs": []}
            events.append({"type": "response.output_text.delta", **at, **delta})
        events.append({"type": "response.content_part.done", **at, "part": part})
        parts.append(part)
    item = {"type": "message", "id": "msg", "role": "assistant", "status": "completed"}
    return {**item, "content": parts}, events


@st.composite
def _called(draw):
    text = json.dumps(draw(ARGUMENTS))
    kind = "response.function_call_arguments"
    events = [{"type": f"{kind}.delta", "delta": piece} for piece in pieces(draw, text)]
    events.append({"type": f"{kind}.done", "arguments": text})
    item = {"type": "function_call", "id": "fc", "call_id": "", "name": draw(NAMES)}
    return {**item, "arguments": text, "status": "completed"}, events


@st.composite
def _thought(draw):
    summary = [{"type": "summary_text", "text": draw(TEXTS)}]
    item = {"type": "reasoning", "id": "rs", "summary": summary, "encrypted_content": "sealed"}
    return {**item, "status": None}, []


_ITEMS = _said() | _called() | _thought()

CHATS, MESSAGES, RESPONSES = chats(), messages(), responses()
