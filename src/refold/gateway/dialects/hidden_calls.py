"""Calls that the gateway answers itself: how they are told apart, hidden, and put back.

A model's answer may come in several rounds: it calls a tool of the gateway's, gets the result, and
continues. The client is shown one answer, without these calls. The log has all of it, and what the
log has is sent again in the place of what the client saw. So there are two forms of a conversation,
and both can be computed from the log alone:

- the *full* one, as the model answered and was answered;
- the *shown* one, with the rounds of an answer merged, and hidden calls and results left out.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType
from typing import Final, NamedTuple

from pydantic import JsonValue

from refold.errors import InvalidMessage
from refold.gateway.dialects.hidden_streams import (
    BETWEEN,
    NAMES,
    TEXTS,
    ChatRewriter,
    MessagesRewriter,
    ResponsesRewriter,
    StreamRewriter,
    add_counts,
    is_hidden_item,
)
from refold.wire import Wire, wire_for
from refold.wire.splice import Object, encoded, objects, parsed, str_or_empty


class HiddenCall(NamedTuple):
    """A call of a model that the client does not see."""

    id: str
    tool: str
    arguments: str
    """As JSON."""


class ToolText(NamedTuple):
    """A tool as its model reads it."""

    name: str
    description: str
    schema: dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """A message as the client has it, and the full messages that it is made of."""

    payload: bytes | None
    """None: the client has nothing of it."""
    rows: tuple[int, ...]
    """The indexes of the full messages."""
    plain: bool = True
    """The client has the message itself; else it is sent from the log."""
    results: frozenset[str] = frozenset()
    """The hidden calls whose results are with the client's own."""


class HiddenForm(ABC):
    """How one format writes what is hidden."""

    merges = True
    """Whether an answer is one message, however many rounds it took."""
    no_tools: JsonValue
    """The choice of tools by which the model calls none."""
    rewriter: type[StreamRewriter]

    def __init__(self, name: str) -> None:
        self._wire: Wire = wire_for(name)

    # In requests.

    @abstractmethod
    def definition(self, tool: ToolText) -> Object:
        """The tool, as a request defines it."""

    @abstractmethod
    def results(self, results: Iterable[tuple[str, str]]) -> list[bytes]:
        """The messages with the results of calls, by their ids."""

    def with_results(self, message: bytes, results: Sequence[bytes]) -> bytes | None:  # noqa: ARG002
        """The client's message with results put before its own; None where they are apart."""
        return None

    @abstractmethod
    def without(self, payload: bytes, hidden: Collection[str]) -> bytes | None:
        """The message without these calls and their results; None if nothing is left."""

    def merged(self, payloads: Sequence[bytes]) -> bytes:
        """One answer made of those of several rounds."""
        return payloads[-1]

    # In answers.

    def calls(self, payloads: Iterable[bytes]) -> tuple[list[HiddenCall], bool]:
        """The hidden calls of an answer, and whether it has others, for the client."""
        hidden: list[HiddenCall] = []
        others = False
        for payload in payloads:
            for shape in self._wire.describe(payload).shapes:
                if shape.kind != "call":
                    continue
                if shape.tool in NAMES and shape.call:
                    hidden.append(HiddenCall(shape.call, shape.tool, shape.text))
                else:
                    others = True
        return hidden, others

    def newest_answer(self, rows: Sequence[bytes]) -> list[bytes]:
        """The messages at a conversation's end that are the model's."""
        newest: list[bytes] = []
        for row in reversed(rows):
            if self._about(row)[0] != "assistant":
                break
            newest.append(row)
        return newest[::-1]

    def results_in(self, row: bytes, calls: AbstractSet[str]) -> list[tuple[str, str]]:
        """The results of these calls in a message, by the calls' ids."""
        shapes = self._wire.describe(row).shapes
        found = (shape for shape in shapes if shape.kind == "return")
        return [(shape.call, shape.text) for shape in found if shape.call and shape.call in calls]

    @abstractmethod
    def response(self, bodies: Sequence[bytes], *, is_last: bool) -> bytes:
        """One response made of those of all rounds, without the hidden calls."""

    # In conversations.

    def shown(self, rows: Sequence[bytes]) -> list[ShownMessage]:
        """What the client has of a conversation, in order."""
        shown: list[ShownMessage] = []
        hidden: frozenset[str] = frozenset()
        open_ = False  # the last answer waits for its next round
        for index, row in enumerate(rows):
            role, calls, others, returns = self._about(row)
            if role == "assistant":
                hidden = frozenset(call.id for call in calls)
                own = self.without(row, hidden) if hidden else row
                if open_:
                    before = shown.pop()
                    texts = [each for each in (before.payload, own) if each is not None]
                    payload = self.merged(texts) if texts else None
                    shown.append(ShownMessage(payload, (*before.rows, index), plain=False))
                else:
                    shown.append(ShownMessage(own, (index,), plain=not hidden))
                open_ = bool(hidden) and not others
            elif answered := hidden & returns:
                own = self.without(row, answered)
                if own is None and open_:
                    before = shown.pop()
                    shown.append(ShownMessage(before.payload, (*before.rows, index), plain=False))
                elif own is None:
                    shown.append(ShownMessage(None, (index,), plain=False))
                else:
                    shown.append(ShownMessage(own, (index,), plain=False, results=answered))
                    open_ = False
            else:
                shown.append(ShownMessage(row, (index,)))
                open_ = open_ and role == "tool"
        return shown

    def _about(self, row: bytes) -> tuple[str, list[HiddenCall], bool, frozenset[str]]:
        try:
            role, shapes, _ = self._wire.describe(row)
        except InvalidMessage:
            return "", [], False, frozenset()
        calls, others = self.calls([row])
        returns = {shape.call for shape in shapes if shape.kind == "return" and shape.call}
        return role, calls, others, frozenset(returns)


# Chat completions.


class _ChatForm(HiddenForm):
    no_tools = "none"
    rewriter = ChatRewriter

    def definition(self, tool: ToolText) -> Object:
        function: Object = {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.schema,
        }
        return {"type": "function", "function": function}

    def results(self, results: Iterable[tuple[str, str]]) -> list[bytes]:
        return [
            encoded({"role": "tool", "tool_call_id": call, "content": text})
            for call, text in results
        ]

    def without(self, payload: bytes, hidden: Collection[str]) -> bytes | None:
        message = parsed(payload)
        if message.get("role") == "tool":
            return None if message.get("tool_call_id") in hidden else payload
        calls = [
            call for call in objects(message.get("tool_calls")) if call.get("id") not in hidden
        ]
        message = {key: value for key, value in message.items() if key != "tool_calls"}
        if calls:
            message["tool_calls"] = list[JsonValue](calls)
        elif not any(message.get(key) for key in (*TEXTS, "refusal")):
            return None
        return encoded(message)

    def merged(self, payloads: Sequence[bytes]) -> bytes:
        messages = [*map(parsed, payloads)]
        merged: Object = {}
        for message in messages:
            merged |= message
        return encoded(merged | _joined_texts(messages))

    def response(self, bodies: Sequence[bytes], *, is_last: bool) -> bytes:
        rounds = [*map(parsed, bodies)]
        usage: Object = {}
        messages: list[Object] = []
        for body in rounds:
            usage = add_counts(usage, body.get("usage"))
            choice = objects(body.get("choices"))[0]
            message = choice.get("message")
            messages.append(message if isinstance(message, dict) else {})
        last, choice = rounds[-1], objects(rounds[-1].get("choices"))[0]
        message = dict(messages[-1])
        if texts := _joined_texts(messages):
            message |= texts
        calls = objects(message.get("tool_calls"))
        kept = [call for call in calls if _function_name(call) not in NAMES]
        if len(kept) < len(calls):
            message["tool_calls"] = list[JsonValue](kept)
            if not kept:
                del message["tool_calls"]
        finish = choice.get("finish_reason")
        finish = "stop" if is_last and calls and not kept else finish
        choice |= {"message": message, "finish_reason": finish}
        whole: Object = {**last, "choices": [choice]}
        if usage:
            whole["usage"] = usage
        return encoded(whole)


def _joined_texts(messages: Sequence[Object]) -> Object:
    texts = {
        key: [text for message in messages if (text := str_or_empty(message.get(key)))]
        for key in TEXTS
    }
    return {key: BETWEEN.join(found) for key, found in texts.items() if found}


def _function_name(call: Object) -> str:
    function = call.get("function")
    return str_or_empty(function.get("name")) if isinstance(function, dict) else ""


# Anthropic's messages.


class _MessagesForm(HiddenForm):
    no_tools = {"type": "none"}  # noqa: RUF012 - it is copied where it is used
    rewriter = MessagesRewriter

    def definition(self, tool: ToolText) -> Object:
        return {
            "name": tool.name,
            "description": tool.description,
            "input_schema": tool.schema,
        }

    def results(self, results: Iterable[tuple[str, str]]) -> list[bytes]:
        blocks: list[JsonValue] = [
            {"type": "tool_result", "tool_use_id": call, "content": text} for call, text in results
        ]
        return [encoded({"role": "user", "content": blocks})]

    def with_results(self, message: bytes, results: Sequence[bytes]) -> bytes | None:
        own = parsed(message)
        if own.get("role") != "user":
            return None
        blocks: list[JsonValue] = [
            block for result in results for block in _blocks(parsed(result).get("content"))
        ]
        content: list[JsonValue] = [*blocks, *_blocks(own.get("content"))]
        return encoded({**own, "content": content})

    def without(self, payload: bytes, hidden: Collection[str]) -> bytes | None:
        message = parsed(payload)
        blocks: list[JsonValue] = [
            block
            for block in _blocks(message.get("content"))
            if block.get("id") not in hidden and block.get("tool_use_id") not in hidden
        ]
        return encoded({**message, "content": blocks}) if blocks else None

    def merged(self, payloads: Sequence[bytes]) -> bytes:
        messages = [*map(parsed, payloads)]
        blocks: list[JsonValue] = [
            block for message in messages for block in _blocks(message.get("content"))
        ]
        return encoded({**messages[-1], "content": blocks})

    def response(self, bodies: Sequence[bytes], *, is_last: bool) -> bytes:
        rounds = [*map(parsed, bodies)]
        usage: Object = {}
        content: list[JsonValue] = []
        for body in rounds:
            usage = add_counts(usage, body.get("usage"))
            content += [
                block
                for block in _blocks(body.get("content"))
                if block.get("type") != "tool_use" or block.get("name") not in NAMES
            ]
        last = rounds[-1]
        calls = any(block.get("type") == "tool_use" for block in objects(content))
        reason = last.get("stop_reason")
        reason = "end_turn" if is_last and reason == "tool_use" and not calls else reason
        return encoded({**last, "content": content, "stop_reason": reason, "usage": usage})


def _blocks(content: JsonValue) -> list[Object]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return objects(content)


# Responses.


class _ResponsesForm(HiddenForm):
    merges = False
    no_tools = "none"
    rewriter = ResponsesRewriter

    def definition(self, tool: ToolText) -> Object:
        return {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.schema,
            "strict": False,
        }

    def results(self, results: Iterable[tuple[str, str]]) -> list[bytes]:
        return [
            encoded({"type": "function_call_output", "call_id": call, "output": text})
            for call, text in results
        ]

    def without(self, payload: bytes, hidden: Collection[str]) -> bytes | None:
        return None if parsed(payload).get("call_id") in hidden else payload

    def shown(self, rows: Sequence[bytes]) -> list[ShownMessage]:
        """Each message is one item, so nothing is merged.

        What else the model said in a round with a hidden call is sent from the log, whether or not
        the client has it: reasoning must stay with its call.
        """
        shown: list[ShownMessage] = []
        hidden: set[str] = set()
        items = enumerate(map(parsed, rows))
        for side, run in groupby(items, lambda pair: _side(pair[1])):
            own, is_output = [*run], side == "output"
            calls = {str_or_empty(item.get("call_id")) for _, item in own if is_hidden_item(item)}
            hidden = hidden if is_output else calls
            for index, item in own:
                is_hidden = item.get("call_id") in hidden and (is_output or is_hidden_item(item))
                payload = None if is_hidden else rows[index]
                shown.append(ShownMessage(payload, (index,), plain=not (is_hidden or calls)))
        return shown

    def response(self, bodies: Sequence[bytes], *, is_last: bool) -> bytes:  # noqa: ARG002
        rounds = [*map(parsed, bodies)]
        usage: Object = {}
        output: list[JsonValue] = []
        for body in rounds:
            usage = add_counts(usage, body.get("usage"))
            output += [item for item in objects(body.get("output")) if not is_hidden_item(item)]
        whole: Object = {**rounds[-1], "output": output}
        if usage:
            whole["usage"] = usage
        return encoded(whole)


def _side(item: Object) -> str:
    if str_or_empty(item.get("type")).endswith("_output"):
        return "output"
    return "client" if item.get("role") in {"user", "system", "developer"} else "model"


HIDDEN_FORMS: Final[Mapping[str, HiddenForm]] = MappingProxyType(
    {
        "openai-chat": _ChatForm("openai-chat"),
        "openai-responses": _ResponsesForm("openai-responses"),
        "anthropic-messages": _MessagesForm("anthropic-messages"),
    }
)
"""By the name of the wire."""
