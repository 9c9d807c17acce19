"""OpenAI's chat completions, and servers that speak the same.

What some servers do in their streams and others do not: they repeat ids and names with each piece
of a call, send calls without an index or whole, give each call the index 0, never name a role,
count tokens in each chunk or in fields of their own, end without `[DONE]`. Unknown fields are kept.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from pydantic import JsonValue

from refold.gateway.dialects.dialect import (
    Answer,
    Dialect,
    join_text,
    openai_refusal,
    openai_usage,
    read_object,
    without_nulls,
)
from refold.gateway.dialects.events import Event
from refold.models.catalog import Usage
from refold.wire import wire_for
from refold.wire.fingerprint import FingerprintCache
from refold.wire.splice import Object, encoded, is_object, json_text, objects, str_or_empty

_NAME: Final = "openai-chat"
_END: Final = b"[DONE]"
_CONTENT_FIELDS: Final = ("refusal", "audio", "function_call", "tool_calls")
_INTERRUPTED_FIELDS: Final = ("content", "refusal", "reasoning_content", "reasoning")
"""What is kept of an answer that was cut off, besides calls."""
_DETAIL_TEXTS: Final = ("text", "summary", "data")
_PLAIN_DETAILS: Final = ("reasoning.text", "reasoning.summary")


def answer(body: bytes) -> Answer | None:
    """The answer in a whole response; None if there is none."""
    response = read_object(body)
    choices = objects(response.get("choices")) if response else []
    message = choices[0].get("message") if choices else None
    if response is None or not isinstance(message, dict):
        return None
    payload = encoded(_as_sent_back(message))
    finish = str_or_empty(choices[0].get("finish_reason"))
    return Answer((payload,), _usage(response, choices), finish, complete=True)


class ChatAssembler:
    """Makes one message of a stream's chunks."""

    def __init__(self) -> None:
        self.failed = False
        self._started = False
        self._ended = False
        self._finish = ""
        self._usage: Usage | None = None
        self._content: list[str | Object] = []
        self._texts: dict[str, list[str]] = {}
        self._calls = _Calls()
        self._function: _Call | None = None
        self._details = _ReasoningDetails()
        self._others: Object = {}

    def take(self, event: Event) -> bool:
        """Take one chunk in; from the reason for ending on, they are held back."""
        data = event.data
        if not data:
            return False
        if data.startswith(_END):
            self._ended = True
            return not self.failed
        chunk = read_object(data)
        is_error = chunk and (chunk.get("error") or chunk.get("object") == "error")
        if event.name == "error" or is_error:
            self.failed = True
        if chunk is None or self.failed:
            return False
        choices = objects(chunk.get("choices"))
        usage = _usage(chunk, choices)
        self._usage = usage or self._usage
        if not choices:
            return usage is not None and self._started
        return self._take_choices(choices)

    def answer(self) -> Answer:
        """The message so far, or whole; its reasoning alone is none."""
        complete = bool(self._finish or self._ended) and not self.failed
        message = self._message(complete=complete)
        usable = complete or message.get("content") or any(map(message.get, _CONTENT_FIELDS))
        payloads = (encoded(message),) if usable else ()
        return Answer(payloads, self._usage, self._finish, complete)

    def _take_choices(self, choices: Sequence[Object]) -> bool:
        self._started = True
        ends = False
        for choice in choices:
            if choice.get("index"):
                continue  # somebody asked for several answers: the first stands for them
            delta = choice.get("delta")
            if not isinstance(delta, dict):
                delta = choice.get("message")
            if isinstance(delta, dict):
                for key, value in delta.items():
                    if value is not None and key != "role":
                        self._add(key, value)
            finish = choice.get("finish_reason")
            if finish and isinstance(finish, str):
                self._finish, ends = finish, True
        return ends

    def _add(self, key: str, value: JsonValue) -> None:
        if key == "content":
            self._content += [value] if isinstance(value, str) else objects(value)
        elif key == "tool_calls":
            self._calls.add(objects(value))
        elif isinstance(value, str):
            self._texts.setdefault(key, []).append(value)
        elif key == "function_call" and isinstance(value, dict):
            self._function = self._function or _Call(0)
            self._function.add_function(value)
        elif key == "reasoning_details":
            self._details.add(objects(value))
        else:
            match self._others.get(key), value:
                case (list() as before, list()):
                    before += value
                case (dict() as before, dict()):
                    self._others[key] = {**before, **without_nulls(value)}
                case _:
                    self._others[key] = value

    def _message(self, *, complete: bool) -> Object:
        texts: Object = {key: join_text(pieces) for key, pieces in self._texts.items()}
        message: Object = {"content": _join_content(self._content), **texts}
        if complete:  # whether what is signed or encrypted is whole, only the end tells
            message |= {"reasoning_details": self._details.items(), **self._others}
        else:
            message = {key: message[key] for key in message if key in _INTERRUPTED_FIELDS}
        if self._function and (complete or self._function.is_whole()):
            message["function_call"] = self._function.function()
        message["tool_calls"] = self._calls.items(complete=complete)
        return _as_sent_back(message)


class _Call:
    """A tool call whose pieces come one after the other."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.id = ""
        self.tool = ""
        self._custom = False
        self._pieces: list[str] = []
        self._function_fields: Object = {}
        self._fields: Object = {}

    def add(self, piece: Object) -> None:
        for key, value in piece.items():
            if value is None or key == "index":
                continue
            if key in {"function", "custom"} and isinstance(value, dict):
                self._custom = self._custom or key == "custom"
                self.add_function(value)
            elif key == "id":
                self.id = str(value) or self.id
            else:
                self._fields[key] = value

    def add_function(self, piece: Object) -> None:
        """Take a piece of its function in: the name once, the arguments bit by bit."""
        for key, value in piece.items():
            if value is None:
                continue
            if key == ("input" if self._custom else "arguments"):
                self._pieces.append(value if isinstance(value, str) else json_text(value))
            elif key == "name" and isinstance(value, str):
                self.tool += value if value != self.tool else ""
            else:
                self._function_fields[key] = value

    def is_whole(self) -> bool:
        """Whether nothing more of its arguments can come."""
        return not self._custom and is_object(join_text(self._pieces))

    def function(self) -> Object:
        key = "input" if self._custom else "arguments"
        return {"name": self.tool, key: join_text(self._pieces), **self._function_fields}

    def item(self) -> Object:
        kind = "custom" if self._custom else "function"
        call_id: Object = {"id": self.id} if self.id else {}
        return {**call_id, "type": kind, **without_nulls(self._fields), kind: self.function()}


class _Calls:
    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}

    def add(self, pieces: Sequence[Object]) -> None:
        for piece in pieces:
            self._call_of(piece).add(piece)

    def items(self, *, complete: bool) -> list[JsonValue]:
        """The calls in their order; of a message that was cut off, those that are whole."""
        calls = sorted(self._calls, key=lambda call: call.index)
        return [call.item() for call in calls if complete or call.is_whole()]

    def _call_of(self, piece: Object) -> _Call:
        call_id, index = piece.get("id"), piece.get("index")
        match piece:
            case {"function": {"name": str() as tool}} | {"custom": {"name": str() as tool}}:
                pass
            case _:
                tool = ""
        if type(index) is int:
            call = self._by_index.get(index)
            # With another id and a name, another call begins, whatever its index.
            if call is None or (call_id and call.id and call_id != call.id and tool):
                call = self._by_index[index] = self._new_call(index)
            return call
        if call_id:
            same = (call for call in self._calls if call.id == call_id)
            return next(same, None) or self._new_call(len(self._calls))
        if not self._calls or (tool and self._calls[-1].tool):
            return self._new_call(len(self._calls))
        return self._calls[-1]

    def _new_call(self, index: int) -> _Call:
        call = _Call(index)
        self._calls.append(call)
        return call


_Detail = tuple[Object, dict[str, list[str]]]
"""The fields of an item of reasoning, and the pieces of its texts."""


class _ReasoningDetails:
    """Reasoning that a stream sends as items, whose pieces come one after the other."""

    def __init__(self) -> None:
        self._items: list[_Detail] = []
        self._by_index: dict[tuple[int, str], _Detail] = {}

    def add(self, pieces: Sequence[Object]) -> None:
        """Take pieces in: to the item of the same index, else to the last of the same kind."""
        for piece in pieces:
            fields, texts = self._item_of(piece)
            for key, value in without_nulls(piece).items():
                if key in _DETAIL_TEXTS and isinstance(value, str):
                    texts.setdefault(key, []).append(value)
                fields[key] = value

    def items(self) -> list[JsonValue]:
        return [
            {**fields, **{key: join_text(pieces) for key, pieces in texts.items()}}
            for fields, texts in self._items
        ]

    def _item_of(self, piece: Object) -> _Detail:
        index, kind = piece.get("index"), str(piece.get("type"))
        if isinstance(index, int):
            item = self._by_index.get((index, kind))
        else:
            last = self._items[-1] if self._items else None
            item = last if last and kind in _PLAIN_DETAILS and last[0].get("type") == kind else None
        if item is None:
            item = Object(), dict[str, list[str]]()
            self._items.append(item)
            if isinstance(index, int):
                self._by_index[index, kind] = item
        return item


def _usage(response: Object, choices: Sequence[Object]) -> Usage | None:
    """At the top, or where some servers put it."""
    usage = openai_usage(response.get("usage"))
    if usage is None and isinstance(extra := response.get("x_groq"), dict):
        usage = openai_usage(extra.get("usage"))
    if usage is None and choices:
        usage = openai_usage(choices[0].get("usage"))
    return usage


def _as_sent_back(message: Object) -> Object:
    """The message as a request takes it: nothing that is empty, of audio only its id."""
    empty: tuple[JsonValue, ...] = (None, "", [])
    fields = {key: message[key] for key in message if message[key] not in empty}
    audio = fields.pop("audio", None)
    if isinstance(audio, dict) and audio.get("id"):
        fields["audio"] = {"id": audio["id"]}
    if "tool_calls" in fields:
        fields["tool_calls"] = [
            {key: value for key, value in without_nulls(call).items() if key != "index"}
            for call in objects(fields["tool_calls"])
        ]
    # Some servers refuse a message without content.
    content = fields.pop("content", None if any(map(fields.get, _CONTENT_FIELDS)) else "")
    others = {key: fields[key] for key in fields if key != "role"}
    return {"role": "assistant", "content": content, **others}


def _join_content(pieces: Sequence[str | Object]) -> JsonValue:
    """Text; or items, where a server sends thoughts among the content."""
    if all(isinstance(piece, str) for piece in pieces):
        return join_text(str(piece) for piece in pieces) if pieces else None
    items: list[Object] = [
        {"type": "text", "text": piece} if isinstance(piece, str) else piece for piece in pieces
    ]
    joined: list[JsonValue] = []
    for (kind, listed), group in groupby(items, key=_item_kind):
        run = list(group)
        if kind == "text" and not listed:
            text = join_text(str(item.get("text") or "") for item in run)
            joined.append({**run[0], "text": text})
        elif kind == "thinking" and listed:
            thoughts: list[JsonValue] = [
                thought for item in run for thought in objects(item["thinking"])
            ]
            joined.append({**run[0], "thinking": thoughts})
        else:
            joined += run
    return joined


def _item_kind(item: Object) -> tuple[str, bool]:
    kind = str(item.get("type"))
    return kind, isinstance(item.get(kind), list)


def openai_identifiers(body: Object) -> tuple[JsonValue, ...]:
    """Whom an OpenAI client says it speaks for."""
    return body.get("user"), body.get("safety_identifier")


def _unsupported(body: Object) -> str:
    return "" if body.get("n") in (None, 1) else "it asks for more than one answer"


OPENAI_CHAT: Final = Dialect(
    name=_NAME,
    path="/v1/chat/completions",
    conversation="messages",
    instructions=None,  # the system messages in front
    tools=("tools", "functions"),
    unsupported=_unsupported,
    identifiers=openai_identifiers,
    fingerprint=FingerprintCache(
        wire_for(_NAME), lambda message: message.get("role") == "assistant"
    ),
    answer=answer,
    assembler=ChatAssembler,
    refusal=openai_refusal,
)
