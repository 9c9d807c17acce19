"""Streams without the calls that the gateway answers itself.

The streams of an answer's rounds become one. Events of hidden calls are left out, and what follows
them gets the place that the client has it at. All else passes byte for byte.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import count
from typing import Final

from pydantic import JsonValue

from refold.gateway.dialects.dialect import read_object
from refold.gateway.dialects.events import Event
from refold.wire.splice import Object, encoded, objects, parsed, str_or_empty

NAMES: Final = frozenset({"recall_search", "recall_read", "recall_history"})
"""The tools whose calls are hidden."""
BETWEEN: Final = "\n\n"
"""Between the texts of two rounds, in a format that has one text per answer."""
TEXTS: Final = ("content", "reasoning_content", "reasoning")
"""Where chat completions have texts."""
_BEGINNINGS: Final = frozenset({"response.created", "response.in_progress", "response.queued"})
_ENDS: Final = frozenset({"response.completed", "response.incomplete"})


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
        self._counted = add_counts(self._counted, self._usage)
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


# Chat completions.


class ChatRewriter(StreamRewriter):
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
            self._has_text |= {key for key in TEXTS if message.get(key)}
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
                delta[key] = BETWEEN + text
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
            chunk["usage"] = add_counts(self._counted, usage)
        return True


def _says_something(choice: Object) -> bool:
    delta = choice.get("delta")
    return bool(choice.get("finish_reason")) or (isinstance(delta, dict) and any(delta.values()))


# Anthropic's messages.


class MessagesRewriter(StreamRewriter):
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
            data["usage"] = add_counts(self._counted, self._usage)
        return _named_event(event.name, data)

    def _count(self, holder: Object) -> None:
        """Later counts of a round replace earlier ones."""
        usage = holder.get("usage")
        if isinstance(usage, dict):
            self._usage |= {key: value for key, value in usage.items() if value is not None}


# Responses.


class ResponsesRewriter(StreamRewriter):
    def __init__(self) -> None:
        super().__init__()
        self._indexes: dict[int, int | None] = {}
        self._next = 0
        self._numbers: count[int] | None = None
        """The numbers of events, once they are no longer the provider's."""
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
        hidden = is_hidden_item(item)
        self._hides = self._hides or hidden
        self._calls = self._calls or (not hidden and is_call(item))
        if isinstance(index, int):
            self._indexes[index] = None if hidden else self._next
        self._next += not hidden

    def _end(self, response: Object) -> None:
        response["id"] = self._id
        usage = response.get("usage")
        self._usage = usage if isinstance(usage, dict) else {}
        output: list[JsonValue] = [
            item for item in objects(response.get("output")) if not is_hidden_item(item)
        ]
        if self._items or isinstance(response.get("output"), list):
            response["output"] = [*self._items, *output]
        if self._counted:
            response["usage"] = add_counts(self._counted, self._usage)


def is_call(item: Object) -> bool:
    return str_or_empty(item.get("type")).endswith("_call")


def is_hidden_item(item: Object) -> bool:
    return item.get("type") == "function_call" and item.get("name") in NAMES


def _named_event(name: str, data: Object) -> bytes:
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + encoded(data) + b"\n\n"


def add_counts(first: JsonValue, second: JsonValue) -> Object:
    """The counts of two usages, added field by field; what is no number is the later one's."""
    before = first if isinstance(first, dict) else {}
    after = second if isinstance(second, dict) else {}
    total: Object = {}
    for key in (*before, *(key for key in after if key not in before)):
        old, new = before.get(key), after.get(key)
        if isinstance(old, dict) or isinstance(new, dict):
            total[key] = add_counts(old, new)
        elif _is_number(old) and _is_number(new):
            total[key] = old + new  # type: ignore[operator] - both are numbers
        else:
            total[key] = old if new is None else new
    return total


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
