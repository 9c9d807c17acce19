"""OpenAI's chat completions, and servers that speak the same."""

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from pydantic import JsonValue

from refold.gateway.dialects.dialect import (
    Answer,
    Dialect,
    Form,
    joined,
    openai_refusal,
    openai_usage,
    read,
    without_nulls,
)
from refold.gateway.dialects.events import Event
from refold.gateway.dialects.fingerprint import (
    FingerprintCache,
    Told,
    alike,
    arguments,
    contents,
    item,
    named,
    other,
    refused,
)
from refold.models.catalog import Usage
from refold.wire import wire_for
from refold.wire.splice import Object, encoded, is_object, objects, written

# Calls of tools in a chat stream, whose pieces come one after the other.


class Call:
    """One call, as far as it came."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.id = ""
        self._name = ""
        self._custom = False
        self._pieces: list[str] = []
        self._inner: Object = {}
        self._outer: Object = {}

    @property
    def named(self) -> bool:
        """Whether it says which tool is called."""
        return bool(self._name)

    def add(self, piece: Object) -> None:
        """Take a piece of it in."""
        for key, value in piece.items():
            if value is None or key == "index":
                continue
            if key == "function" and isinstance(value, dict):
                self.add_function(value)
            elif key == "custom" and isinstance(value, dict):
                self._custom = True
                self.add_function(value)
            elif key == "id":
                self.id = str(value) or self.id
            else:
                self._outer[key] = value

    def add_function(self, piece: Object) -> None:
        """Take a piece of its function in: the name once, the arguments bit by bit."""
        for key, value in piece.items():
            if value is None:
                continue
            if key == ("input" if self._custom else "arguments"):
                self._pieces.append(value if isinstance(value, str) else written(value))
            elif key == "name" and isinstance(value, str):
                self._name += value if value != self._name else ""
            else:
                self._inner[key] = value

    def whole(self) -> bool:
        """Whether nothing more of its arguments can come."""
        return not self._custom and is_object(joined(self._pieces))

    def function(self) -> Object:
        """What is called, with what."""
        said = "input" if self._custom else "arguments"
        return {"name": self._name, said: joined(self._pieces), **self._inner}

    def item(self) -> Object:
        """The call, as a message has it."""
        kind = "custom" if self._custom else "function"
        named: Object = {"id": self.id} if self.id else {}
        outer = without_nulls(self._outer)
        return {**named, "type": kind, **outer, kind: self.function()}


class Calls:
    """The calls of one message."""

    def __init__(self) -> None:
        self._calls: list[Call] = []
        self._at: dict[int, Call] = {}

    def add(self, pieces: Sequence[Object]) -> None:
        """Take pieces in, each for the call that it belongs to."""
        for piece in pieces:
            index = piece.get("index")
            call = self._of(piece, index if type(index) is int else None)
            call.add(piece)

    def items(self, *, complete: bool) -> list[JsonValue]:
        """The calls in their order; of a message that was cut off, those that are whole."""
        calls = sorted(self._calls, key=lambda call: call.at)
        return [call.item() for call in calls if complete or call.whole()]

    def _of(self, piece: Object, index: int | None) -> Call:
        said = piece.get("id")
        if index is None:
            return self._unnumbered(piece, said)
        call = self._at.get(index)
        # With another id and a name, another call begins, whatever its number.
        if call is None or (said and call.id and said != call.id and _name(piece)):
            return self._begun(index)
        return call

    def _unnumbered(self, piece: Object, said: JsonValue) -> Call:
        last = self._calls[-1] if self._calls else None
        if said:
            known = [call for call in self._calls if call.id == said]
            return known[0] if known else self._begun(None)
        if last is None or (_name(piece) and last.named):
            return self._begun(None)
        return last

    def _begun(self, index: int | None) -> Call:
        call = Call(len(self._calls) if index is None else index)
        self._calls.append(call)
        if index is not None:
            self._at[index] = call
        return call


def _name(piece: Object) -> JsonValue:
    match piece:
        case {"function": {"name": str() as name}} | {"custom": {"name": str() as name}}:
            return name
        case _:
            return None


# Reasoning that a chat stream tells as items, whose pieces come one after the other.

_GROWING: Final = ("text", "summary", "data")
_PLAIN: Final = ("reasoning.text", "reasoning.summary")


class _Item:
    def __init__(self) -> None:
        self.fields: Object = {}
        self._pieces: dict[str, list[str]] = {}

    def add(self, piece: Object) -> None:
        for key, value in without_nulls(piece).items():
            if key in _GROWING and isinstance(value, str):
                self._pieces.setdefault(key, []).append(value)
            self.fields[key] = value

    def item(self) -> Object:
        return {**self.fields, **{key: joined(said) for key, said in self._pieces.items()}}


class Details:
    """The items so far."""

    def __init__(self) -> None:
        self._items: list[_Item] = []
        self._at: dict[tuple[int, str], _Item] = {}

    def add(self, pieces: Sequence[Object]) -> None:
        """Take pieces in: to the item of the same number, else to the last of the same kind."""
        for piece in pieces:
            self._of(piece).add(piece)

    def items(self) -> list[JsonValue]:
        """The items, each with all of its text."""
        return [one.item() for one in self._items]

    def _of(self, piece: Object) -> _Item:
        index, kind = piece.get("index"), str(piece.get("type"))
        if isinstance(index, int):
            found = self._at.get((index, kind))
        else:
            last = self._items[-1] if self._items else None
            same = last is not None and kind in _PLAIN and last.fields.get("type") == kind
            found = last if same else None
        if found is None:
            found = _Item()
            self._items.append(found)
            if isinstance(index, int):
                self._at[index, kind] = found
        return found


# Answers of OpenAI's chat completions, and of servers that differ from it in how they stream.
#
# What servers do that others do not: they repeat ids and names with each piece of a call, send
# calls
# without an index or whole, give each call the index 0, never name a role, count tokens in each
# chunk
# or in fields of their own, end without `[DONE]`. Fields that nobody here knows are kept.

_DONE: Final = b"[DONE]"
_SPOKEN: Final = ("refusal", "audio", "function_call", "tool_calls")
_THOUGHT: Final = ("reasoning_content", "reasoning")


def answer(body: bytes) -> Answer | None:
    """The answer in a whole response; None if there is none."""
    told = read(body)
    choices = objects(told.get("choices")) if told else []
    message = choices[0].get("message") if choices else None
    if told is None or not isinstance(message, dict):
        return None
    finish = choices[0].get("finish_reason")
    payload = encoded(_sent_back(message))
    usage = _usage(told, choices)
    return Answer((payload,), usage, finish if isinstance(finish, str) else "", complete=True)


class AssemblingChat:
    """Makes one message of a stream's chunks."""

    def __init__(self) -> None:
        self.failed = False
        self._begun = False
        self._ended = False
        self._finish = ""
        self._usage: Usage | None = None
        self._content: list[str | Object] = []
        self._texts: dict[str, list[str]] = {}
        self._calls = Calls()
        self._function: Call | None = None
        self._details = Details()
        self._beside: Object = {}

    def take(self, event: Event) -> bool:
        """Take one chunk in; from the reason for ending on, they are held back."""
        data = event.data
        if not data:
            return False
        if data.startswith(_DONE):
            self._ended = True
            return not self.failed
        chunk = read(data)
        if _is_error(event, chunk):
            self.failed = True
        if chunk is None or self.failed:
            return False
        choices = objects(chunk.get("choices"))
        usage = _usage(chunk, choices)
        self._usage = usage or self._usage
        if not choices:
            return usage is not None and self._begun
        return self._choose(choices)

    def answer(self) -> Answer:
        """The message so far, or whole; its reasoning alone is none."""
        complete = bool(self._finish or self._ended) and not self.failed
        message = self._message(complete=complete)
        said = complete or bool(message.get("content")) or any(map(message.get, _SPOKEN))
        payloads = (encoded(message),) if said else ()
        return Answer(payloads, self._usage, self._finish, complete)

    def _choose(self, choices: Sequence[Object]) -> bool:
        self._begun = True
        ends = False
        for choice in choices:
            if choice.get("index"):
                continue  # somebody asked for several answers: the first stands for them
            delta = choice.get("delta")
            if not isinstance(delta, dict):
                delta = choice.get("message")
            if isinstance(delta, dict):
                self._add(delta)
            finish = choice.get("finish_reason")
            if finish and isinstance(finish, str):
                self._finish, ends = finish, True
        return ends

    def _add(self, delta: Object) -> None:
        for key, value in delta.items():
            if value is None or key == "role":
                continue
            if key == "content" and isinstance(value, str):
                self._content.append(value)
            elif key == "tool_calls":
                self._calls.add(objects(value))
            elif isinstance(value, str):
                self._texts.setdefault(key, []).append(value)
            else:
                self._add_other(key, value)

    def _add_other(self, key: str, value: JsonValue) -> None:
        if key == "content":
            self._content += objects(value)
        elif key == "function_call" and isinstance(value, dict):
            self._function = self._function or Call(0)
            self._function.add_function(value)
        elif key == "reasoning_details":
            self._details.add(objects(value))
        else:
            self._beside[key] = _grown(self._beside.get(key), value)

    def _message(self, *, complete: bool) -> Object:
        texts: Object = {key: joined(pieces) for key, pieces in self._texts.items()}
        message: Object = {"content": _content(self._content), **texts}
        if complete:  # whether what is signed or encrypted is whole, only the end tells
            message |= {"reasoning_details": self._details.items(), **self._beside}
        else:
            message = {key: message[key] for key in message if key in _CUT}
        if self._function and (complete or self._function.whole()):
            message["function_call"] = self._function.function()
        message["tool_calls"] = self._calls.items(complete=complete)
        return _sent_back(message)


_CUT: Final = ("content", "refusal", *_THOUGHT)


def _is_error(event: Event, chunk: Object | None) -> bool:
    if event.name == "error":
        return True
    return chunk is not None and bool(chunk.get("error") or chunk.get("object") == "error")


def _usage(told: Object, choices: Sequence[Object]) -> Usage | None:
    """At the top, or where some servers put it."""
    usage = openai_usage(told.get("usage"))
    if usage is None and isinstance(extra := told.get("x_groq"), dict):
        usage = openai_usage(extra.get("usage"))
    if usage is None and choices:
        usage = openai_usage(choices[0].get("usage"))
    return usage


def _sent_back(message: Object) -> Object:
    """The message as a request takes it: nothing that is empty, of audio only its id."""
    empty: tuple[JsonValue, ...] = (None, "", [])
    kept = {key: message[key] for key in message if message[key] not in empty}
    audio = kept.pop("audio", None)
    if isinstance(audio, dict) and audio.get("id"):
        kept["audio"] = {"id": audio["id"]}
    if "tool_calls" in kept:
        kept["tool_calls"] = [_call_chat_answers(one) for one in objects(kept["tool_calls"])]
    # Some servers refuse a message without content.
    content = kept.pop("content", None if any(map(kept.get, _SPOKEN)) else "")
    return {"role": "assistant", "content": content, **{k: kept[k] for k in kept if k != "role"}}


def _call_chat_answers(call: Object) -> Object:
    return {key: value for key, value in without_nulls(call).items() if key != "index"}


def _content(pieces: Sequence[str | Object]) -> JsonValue:
    """Text; or items, where a server sends thoughts among the content."""
    if all(isinstance(piece, str) for piece in pieces):
        return joined(str(piece) for piece in pieces) if pieces else None
    items: list[JsonValue] = []
    for _, run in groupby(map(_item, pieces), key=_kind):
        items += _together(list(run))
    return items


def _item(piece: str | Object) -> Object:
    return {"type": "text", "text": piece} if isinstance(piece, str) else piece


def _kind(item: Object) -> tuple[str, bool]:
    kind = str(item.get("type"))
    return kind, isinstance(item.get(kind), list)


def _together(run: Sequence[Object]) -> Sequence[Object]:
    """Texts one after the other as one, and thoughts."""
    kind, listed = _kind(run[0])
    if kind == "text" and not listed:
        return [{**run[0], "text": joined(str(item.get("text") or "") for item in run)}]
    if kind == "thinking" and listed:
        return [{**run[0], "thinking": [one for item in run for one in objects(item["thinking"])]}]
    return run


def _grown(old: JsonValue, new: JsonValue) -> JsonValue:
    match old, new:
        case (list(), list()):
            old += new
            return old
        case (dict(), dict()):
            return {**old, **without_nulls(new)}
        case _:
            return new


def openai_identifiers(body: Object) -> tuple[JsonValue, ...]:
    """Whom an OpenAI client says it speaks for."""
    return body.get("user"), body.get("safety_identifier")


def _elsewhere(body: Object) -> str:
    return "" if body.get("n") in (None, 1) else "it asks for more than one answer"


def _looked(message: Object) -> tuple[bytes, bool]:
    role = message.get("role")
    answers = role == "assistant"
    told = _said(message)
    if answers and not told:
        return b"", True
    whose = "" if answers else named(message.get("name"))
    call = named(message.get("tool_call_id"))
    return alike((named(role), whose, call, told)), answers


def _said(message: Object) -> list[Told]:
    if named(message.get("role")) not in _ROLES:
        return [other(message)]
    told: list[Told | None] = [
        *contents(message.get("content"), item),
        refused(message.get("refusal")),
        _audio(message.get("audio")),
        _function("", message.get("function_call")),
        *map(_call, objects(message.get("tool_calls"))),
    ]
    return [one for one in told if one is not None]


def _audio(audio: JsonValue) -> Told | None:
    return ("audio", named(audio.get("id"))) if isinstance(audio, dict) else None


def _call(call: Object) -> Told | None:
    id_ = named(call.get("id"))
    if function := _function(id_, call.get("function")):
        return function
    custom = call.get("custom")
    if isinstance(custom, dict):
        return ("custom", id_, named(custom.get("name")), named(custom.get("input")))
    return other({key: value for key, value in call.items() if key != "index"})


def _function(id_: str, function: JsonValue) -> Told | None:
    if not isinstance(function, dict):
        return None
    return ("call", id_, named(function.get("name")), arguments(function.get("arguments")))


_ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool", "function"})

_NAME: Final = "openai-chat"
OPENAI_CHAT: Final = Dialect(
    _NAME,
    "/v1/chat/completions",
    Form(
        conversation="messages",
        instructions=None,  # the system messages in front
        tools=("tools", "functions"),
        elsewhere=_elsewhere,
        identifiers=openai_identifiers,
        seen=FingerprintCache(wire_for(_NAME), _looked),
    ),
    answer=answer,
    assembling=AssemblingChat,
    refusal=openai_refusal,
)
"""The dialect of chat completions."""
