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
from itertools import count, groupby
from types import MappingProxyType
from typing import Final, NamedTuple

from pydantic import JsonValue

from refold.errors import InvalidMessage
from refold.gateway.dialects.dialect import read_object
from refold.gateway.dialects.events import Event
from refold.wire import Wire, wire_for
from refold.wire.splice import Object, encoded, objects, parsed, str_or_empty

NAMES: Final = frozenset({"recall_search", "recall_read", "recall_history"})
"""The tools whose calls are hidden."""
_BETWEEN: Final = "\n\n"
"""Between the texts of two rounds, in a format that has one text per answer."""
_BEGINNINGS: Final = frozenset({"response.created", "response.in_progress", "response.queued"})
_ENDS: Final = frozenset({"response.completed", "response.incomplete"})
_JOINED: Final = ("content", "reasoning_content", "reasoning")


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


class StreamRewriter(ABC):
    """Makes one stream of the streams of an answer's rounds, without the hidden calls."""

    def __init__(self) -> None:
        self.is_last = False
        """No round may follow: an answer that only calls hidden tools ends here."""
        self._round = 0
        self._hides = False
        """Something of this round was left out."""
        self._calls = False
        """The client has a call in this round."""
        self._counted: Object = {}
        """The usage of the rounds before."""
        self._usage: Object = {}
        """That of this one."""

    def next_round(self, shown: Sequence[bytes]) -> None:  # noqa: ARG002 - some need it
        """Another stream continues the answer; `shown` is what the client has of the last one."""
        self._round += 1
        self._counted = _sum(self._counted, self._usage)
        self._usage, self._hides, self._calls = {}, False, False

    @property
    def _goes_on(self) -> bool:
        """Whether the client waits for another round: there is nothing for it to do."""
        return self._hides and not self._calls

    @abstractmethod
    def show(self, event: Event) -> bytes:
        """What the client is sent of an event; empty for nothing."""

    @abstractmethod
    def error(self, refusal: bytes) -> bytes:
        """An event that ends the stream, of an error as this format has it."""


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


class _ChatRewriter(StreamRewriter):
    def __init__(self) -> None:
        super().__init__()
        self._id: JsonValue = None
        self._created: JsonValue = None
        self._hidden: dict[int, bool] = {}
        """Whether the calls of this round are hidden, by their indexes."""
        self._last = 0
        self._has_text: set[str] = set()
        self._separate: set[str] = set()
        """The texts that a separator must come before."""

    def next_round(self, shown: Sequence[bytes]) -> None:
        super().next_round(shown)
        self._hidden, self._last = {}, 0
        for message in map(parsed, shown):
            self._has_text |= {key for key in _JOINED if message.get(key)}
        self._separate = set(self._has_text)

    def show(self, event: Event) -> bytes:
        data = event.data
        if not self._round and not self._hidden and b'"tool_calls"' not in data:
            if b'"usage"' in data:
                self._count(read_object(data) or {})
            return event.raw
        chunk = None if data.startswith(b"[DONE]") else read_object(data)
        if chunk is None:
            return event.raw
        if not self._round:
            self._id, self._created = chunk.get("id"), chunk.get("created")
        else:
            chunk |= {"id": self._id, "created": self._created}
        left_out = self._edit(chunk)
        counted = self._count(chunk)
        if not self._round and not left_out and not any(self._hidden.values()):
            return event.raw
        choices = objects(chunk.get("choices"))
        if left_out and not counted and not any(map(_says_something, choices)):
            return b""
        return b"data: " + encoded(chunk) + b"\n\n"

    def error(self, refusal: bytes) -> bytes:
        return b"data: " + refusal + b"\n\n"

    def _edit(self, chunk: Object) -> bool:
        """Change a chunk to what the client sees; whether something was left out."""
        left_out = False
        for choice in objects(chunk.get("choices")):
            if self._goes_on and self.is_last and choice.get("finish_reason") == "tool_calls":
                choice["finish_reason"] = "stop"
            delta = choice.get("delta")
            if not isinstance(delta, dict):
                continue
            if self._round:
                left_out = delta.pop("role", None) is not None or left_out
                self._join(delta)
            pieces = objects(delta.get("tool_calls"))
            if pieces:
                kept = [piece for piece in pieces if not self._is_hidden(piece)]
                left_out = left_out or len(kept) < len(pieces)
                self._renumber(kept)
                delta["tool_calls"] = list[JsonValue](kept)
        return left_out

    def _join(self, delta: Object) -> None:
        """Put a separator before the first text of a round, where one came before."""
        for key in self._separate & delta.keys():
            if text := str_or_empty(delta[key]):
                delta[key] = _BETWEEN + text
                self._separate.discard(key)

    def _renumber(self, pieces: Sequence[Object]) -> None:
        for piece in pieces:
            if isinstance(index := piece.get("index"), int):
                before = (at < index and hidden for at, hidden in self._hidden.items())
                piece["index"] = index - sum(before)

    def _is_hidden(self, piece: Object) -> bool:
        """By the name; pieces without one belong to the call of their index, or to the last."""
        index = piece.get("index")
        index = index if isinstance(index, int) else self._last
        function = piece.get("function")
        name = str_or_empty(function.get("name")) if isinstance(function, dict) else ""
        if name:
            if piece.get("index") is None and index in self._hidden:
                index += 1
            self._hidden[index] = name in NAMES
            self._hides = self._hides or name in NAMES
            self._calls = self._calls or name not in NAMES
        self._last = index
        return self._hidden.get(index, False)

    def _count(self, chunk: Object) -> bool:
        usage = chunk.get("usage")
        if not isinstance(usage, dict):
            return False
        self._usage = usage
        if self._counted:
            chunk["usage"] = _sum(self._counted, usage)
        return True


def _says_something(choice: Object) -> bool:
    delta = choice.get("delta")
    return bool(choice.get("finish_reason")) or (isinstance(delta, dict) and any(delta.values()))


class _ChatForm(HiddenForm):
    no_tools = "none"
    rewriter = _ChatRewriter

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
        elif not any(message.get(key) for key in (*_JOINED, "refusal")):
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
            usage = _sum(usage, body.get("usage"))
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
        return encoded(whole | {"usage": usage} if usage else whole)


def _joined_texts(messages: Sequence[Object]) -> Object:
    texts = {
        key: [text for message in messages if (text := str_or_empty(message.get(key)))]
        for key in _JOINED
    }
    return {key: _BETWEEN.join(found) for key, found in texts.items() if found}


def _function_name(call: Object) -> str:
    function = call.get("function")
    return str_or_empty(function.get("name")) if isinstance(function, dict) else ""


# Anthropic's messages.


class _MessagesRewriter(StreamRewriter):
    def __init__(self) -> None:
        super().__init__()
        self._indexes: dict[int, int | None] = {}
        """Where the client has the blocks of this round; None: nowhere."""
        self._next = 0

    def next_round(self, shown: Sequence[bytes]) -> None:
        super().next_round(shown)
        self._indexes = {}

    def show(self, event: Event) -> bytes:
        is_block = event.name in {"content_block_delta", "content_block_stop"}
        if not event.data or (is_block and not self._is_shifted):
            return event.raw
        data = read_object(event.data) or {}
        match str_or_empty(data.get("type")) or event.name:
            case "message_start":
                message = data.get("message")
                self._count(message if isinstance(message, dict) else {})
                return b"" if self._round else event.raw
            case "content_block_start":
                self._place(data)
                return self._shifted(event, data)
            case "content_block_delta" | "content_block_stop":
                return self._shifted(event, data)
            case "message_delta":
                return self._end(event, data)
            case _:
                return event.raw

    def error(self, refusal: bytes) -> bytes:
        return b"event: error\ndata: " + refusal + b"\n\n"

    @property
    def _is_shifted(self) -> bool:
        return self._hides or bool(self._round)

    def _place(self, data: Object) -> None:
        index, block = data.get("index"), data.get("content_block")
        block = block if isinstance(block, dict) else {}
        is_call = block.get("type") == "tool_use"
        hidden = is_call and block.get("name") in NAMES
        self._hides = self._hides or hidden
        self._calls = self._calls or (is_call and not hidden)
        if isinstance(index, int):
            self._indexes[index] = None if hidden else self._next
        self._next += not hidden

    def _shifted(self, event: Event, data: Object) -> bytes:
        index = data.get("index")
        if not isinstance(index, int):
            return event.raw
        place = self._indexes.get(index, index)
        if place is None:
            return b""
        return event.raw if place == index else _named_event(event.name, data | {"index": place})

    def _end(self, event: Event, data: Object) -> bytes:
        self._count(data)
        delta = data.get("delta")
        if self._goes_on and self.is_last and isinstance(delta, dict):
            data["delta"] = delta | {"stop_reason": "end_turn"}
        elif not self._counted:
            return event.raw
        if self._counted:
            data["usage"] = _sum(self._counted, self._usage)
        return _named_event(event.name, data)

    def _count(self, holder: Object) -> None:
        """Later counts of a round replace earlier ones."""
        usage = holder.get("usage")
        if isinstance(usage, dict):
            self._usage |= {key: value for key, value in usage.items() if value is not None}


class _MessagesForm(HiddenForm):
    no_tools = {"type": "none"}  # noqa: RUF012 - it is copied where it is used
    rewriter = _MessagesRewriter

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
            usage = _sum(usage, body.get("usage"))
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


class _ResponsesRewriter(StreamRewriter):
    def __init__(self) -> None:
        super().__init__()
        self._indexes: dict[int, int | None] = {}
        self._next = 0
        self._numbers: count[int] | None = None
        """The numbers of events, once they are no longer the provider's."""
        self._number = 0
        self._items: list[JsonValue] = []
        """What the client has of the rounds before."""
        self._id: JsonValue = None

    def next_round(self, shown: Sequence[bytes]) -> None:
        super().next_round(shown)
        self._indexes = {}
        self._items += map(parsed, shown)

    def show(self, event: Event) -> bytes:
        data = read_object(event.data)
        if data is None:
            return event.raw
        kind = str_or_empty(data.get("type")) or event.name
        if self._round and kind in _BEGINNINGS:
            return b""
        response = data.get("response")
        if isinstance(response, dict):
            self._id = self._id or response.get("id")
            if kind in _ENDS:
                self._end(response)
        if kind in _ENDS and self._goes_on and not self.is_last:
            return b""  # another round follows
        if kind == "response.output_item.added":
            self._place(data)
        if not self._shift(data):
            return b""
        if self._numbers is None and not self._round:
            return event.raw
        if self._numbers is not None and "sequence_number" in data:
            data["sequence_number"] = next(self._numbers)
        return _named_event(event.name, data)

    def _shift(self, data: Object) -> bool:
        """Give an event the place that the client has its item at; False where it has none."""
        index = data.get("output_index")
        if not isinstance(index, int):
            return True
        place = self._indexes.get(index, index)
        number = data.get("sequence_number")
        if place is None and self._numbers is None and isinstance(number, int):
            self._numbers = count(number)
        data["output_index"] = place
        return place is not None

    def error(self, refusal: bytes) -> bytes:
        error = parsed(refusal).get("error")
        about = error if isinstance(error, dict) else {}
        data: Object = {
            "type": "error",
            "code": about.get("code"),
            "message": about.get("message"),
            "param": None,
        }
        if self._numbers is not None:
            data["sequence_number"] = next(self._numbers)
        return _named_event("error", data)

    def _place(self, data: Object) -> None:
        index, item = data.get("output_index"), data.get("item")
        item = item if isinstance(item, dict) else {}
        hidden = _is_hidden_item(item)
        self._hides = self._hides or hidden
        self._calls = self._calls or (not hidden and _is_call(item))
        if isinstance(index, int):
            self._indexes[index] = None if hidden else self._next
        self._next += not hidden

    def _end(self, response: Object) -> None:
        response["id"] = self._id
        usage = response.get("usage")
        self._usage = usage if isinstance(usage, dict) else {}
        output: list[JsonValue] = [
            item for item in objects(response.get("output")) if not _is_hidden_item(item)
        ]
        if output or self._items:
            response["output"] = [*self._items, *output]
        if self._counted:
            response["usage"] = _sum(self._counted, self._usage)


class _ResponsesForm(HiddenForm):
    merges = False
    no_tools = "none"
    rewriter = _ResponsesRewriter

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
        for is_output, run in groupby(items, lambda pair: _is_output(pair[1])):
            own = [*run]
            calls = {str_or_empty(item.get("call_id")) for _, item in own if _is_hidden_item(item)}
            hidden = hidden if is_output else calls
            for index, item in own:
                is_hidden = item.get("call_id") in hidden and (is_output or _is_hidden_item(item))
                payload = None if is_hidden else rows[index]
                said = not is_output and bool(calls) and item.get("role") != "user"
                shown.append(ShownMessage(payload, (index,), plain=not (is_hidden or said)))
        return shown

    def response(self, bodies: Sequence[bytes], *, is_last: bool) -> bytes:  # noqa: ARG002
        rounds = [*map(parsed, bodies)]
        usage: Object = {}
        output: list[JsonValue] = []
        for body in rounds:
            usage = _sum(usage, body.get("usage"))
            output += [item for item in objects(body.get("output")) if not _is_hidden_item(item)]
        whole: Object = {**rounds[-1], "output": output}
        return encoded(whole | {"usage": usage} if usage else whole)


def _is_call(item: Object) -> bool:
    return str_or_empty(item.get("type")).endswith("_call")


def _is_hidden_item(item: Object) -> bool:
    return item.get("type") == "function_call" and item.get("name") in NAMES


def _is_output(item: Object) -> bool:
    return str_or_empty(item.get("type")).endswith("_output")


def _named_event(name: str, data: Object) -> bytes:
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + encoded(data) + b"\n\n"


def _sum(first: JsonValue, second: JsonValue) -> Object:
    """The counts of two usages, added field by field; what is no number is the later one's."""
    before = first if isinstance(first, dict) else {}
    after = second if isinstance(second, dict) else {}
    total: Object = {}
    for key in (*before, *(key for key in after if key not in before)):
        old, new = before.get(key), after.get(key)
        if isinstance(old, dict) or isinstance(new, dict):
            total[key] = _sum(old, new)
        elif _is_number(old) and _is_number(new):
            total[key] = old + new  # type: ignore[operator] - both are numbers
        else:
            total[key] = old if new is None else new
    return total


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


HIDDEN_FORMS: Final[Mapping[str, HiddenForm]] = MappingProxyType(
    {
        "openai-chat": _ChatForm("openai-chat"),
        "openai-responses": _ResponsesForm("openai-responses"),
        "anthropic-messages": _MessagesForm("anthropic-messages"),
    }
)
"""By the name of the wire."""
