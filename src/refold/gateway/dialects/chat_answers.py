"""Answers of OpenAI's chat completions, and of servers that differ from it in how they stream.

What servers do that others do not: they repeat ids and names with each piece of a call, send calls
without an index or whole, give each call the index 0, never name a role, count tokens in each chunk
or in fields of their own, end without `[DONE]`. Fields that nobody here knows are kept.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from pydantic import JsonValue

from refold.gateway.dialects.answered import Answer, joined, openai_usage, read, without_nulls
from refold.gateway.dialects.chat_calls import Call, Calls
from refold.gateway.dialects.events import Event
from refold.gateway.dialects.reasoning_details import Details
from refold.models.spending import Usage
from refold.wire.splice import Object, encoded, objects

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
        kept["tool_calls"] = [_call(one) for one in objects(kept["tool_calls"])]
    # Some servers refuse a message without content.
    content = kept.pop("content", None if any(map(kept.get, _SPOKEN)) else "")
    return {"role": "assistant", "content": content, **{k: kept[k] for k in kept if k != "role"}}


def _call(call: Object) -> Object:
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
