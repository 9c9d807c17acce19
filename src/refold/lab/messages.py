"""Pydantic AI messages, written as JSON.

The lab writes the JSON itself, so that reading a recording needs no framework.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from math import isfinite
from typing import Literal, Protocol, cast

from pydantic import JsonValue, TypeAdapter

from refold.errors import InvalidInput
from refold.fold.extractive import Find, identifiers, strings

Json = dict[str, JsonValue]


def request(parts: Sequence[Json], *, at: int | None = None) -> bytes:
    """A request: what goes to the model."""
    times = _times(at)
    return dump({"parts": [part | times for part in parts], **times, "kind": "request"})


def response(
    parts: Sequence[Json], *, at: int | None = None, more: Mapping[str, JsonValue] | None = None
) -> bytes:
    """A response: what came from the model; `more` are its other fields."""
    return dump({"parts": [*parts], **_times(at), **(more or {}), "kind": "response"})


def system_prompt(text: str) -> Json:
    return {"content": text, "part_kind": "system-prompt"}


def user_prompt(content: JsonValue) -> Json:
    """What the user says: a text, or texts and images."""
    return {"content": content, "part_kind": "user-prompt"}


def tool_return(
    tool: str, call: str, content: JsonValue, *, failed: bool = False, metadata: JsonValue = None
) -> Json:
    """What a tool answered; the model is not shown the metadata."""
    part: Json = {"tool_name": tool, "content": content, "tool_call_id": call}
    if metadata is not None:
        part["metadata"] = metadata
    return part | {"outcome": "failed" if failed else "success", "part_kind": "tool-return"}


def text(content: str) -> Json:
    return {"content": content, "part_kind": "text"}


def thinking(content: str, *, signature: str | None = None, provider: str | None = None) -> Json:
    """What the model thinks; the signature is of use only to its provider."""
    part: Json = {"content": content, "part_kind": "thinking"}
    if signature is not None:
        part["signature"] = signature
        part["provider_name"] = provider
    return part


def tool_call(tool: str, call: str, arguments: JsonValue) -> Json:
    """What the model asks a tool to do; the arguments are an object, or its JSON."""
    return {
        "tool_name": tool,
        "args": arguments,
        "tool_call_id": call,
        "part_kind": "tool-call",
    }


def image(data: str, media_type: str) -> Json:
    return {"data": data, "media_type": media_type, "kind": "binary"}


def dump(value: JsonValue) -> bytes:
    """JSON as the lab writes it; a number that is too large for it becomes null."""
    try:
        return _dump(value)
    except ValueError:
        return _dump(_finite(value))


def _dump(value: JsonValue) -> bytes:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode()


def _finite(value: JsonValue) -> JsonValue:
    match value:
        case dict():
            return {name: _finite(one) for name, one in value.items()}
        case list():
            return [_finite(one) for one in value]
        case float():
            return value if isfinite(value) else None
        case _:
            return value


def _times(at: int | None) -> Json:
    if at is None:
        return {}
    return {"timestamp": datetime.fromtimestamp(at / 1000, UTC).isoformat()}


# Counting tokens: exact for the models of OpenAI, a fair measure of the others.

Count = Callable[[str], int]
"""How many tokens a text is."""


class _Tokenizer(Protocol):
    def count(self, text: str, /) -> int: ...


@cache
def o200k() -> Count:
    """The count of OpenAI's `o200k_base`, which the lab's figures are given in."""
    try:
        package = import_module("rs_bpe.bpe")
    except ImportError as error:
        raise InvalidInput("No tokenizer is installed.", "Install refold[models].") from error
    return cast("_Tokenizer", package.openai.o200k_base()).count


# What a message says, as the lab counts and searches it.
#
# The lab reads messages by itself and not through a wire, because it also judges what wires did.

Speaker = Literal["system", "user", "assistant", "tool"]

MESSAGE_TOKENS = 2
"""What a message costs beside its parts."""
CALL_TOKENS = 4
"""What a tool call costs beside its name and its arguments."""

_MESSAGE = TypeAdapter(dict[str, JsonValue])
_ARGUMENTS = TypeAdapter[JsonValue](JsonValue)


@dataclass(frozen=True)
class Call:
    """A tool call: its id, its tool, its arguments."""

    id: str
    tool: str
    arguments: JsonValue


@dataclass(frozen=True)
class Said:
    """One message: who speaks, what a model reads of it, and how much that is."""

    speaker: Speaker
    text: str
    tokens: int
    calls: tuple[Call, ...] = ()
    returns: tuple[tuple[str, str], ...] = ()
    """The id of each call that it answers, and the answer."""


class Reader:
    """Reads messages, each of them once.

    Names in the arguments of a call are looked for in the arguments themselves; with `as_json`, in
    the JSON they are written in, where an escaped tab makes a name of its own: `tmaxTokens`.
    """

    def __init__(self, count: Count, find: Find = identifiers, *, as_json: bool = False) -> None:
        self.count = count
        self._find = find
        self._as_json = as_json
        self._said: dict[bytes, Said] = {}
        self._found: dict[bytes, Counter[str]] = {}

    def read(self, payload: bytes) -> Said:
        said = self._said.get(payload)
        if said is None:
            said = self._said[payload] = _read(payload, self.count)
        return said

    def tokens(self, payload: bytes) -> int:
        return self.read(payload).tokens

    def identifiers(self, payload: bytes) -> Counter[str]:
        """The identifiers of the message, and how often it holds each."""
        found = self._found.get(payload)
        if found is None:
            said = self.read(payload)
            text = said.text if self._as_json or not said.calls else _plain(payload)
            found = self._found[payload] = Counter(self._find(text))
        return found


def _plain(payload: bytes) -> str:
    """The text of a message, its calls with the text of their arguments."""
    return "\n".join(
        "\n".join((call.tool, *strings(call.arguments)))
        if part.get("part_kind") == "tool-call" and (call := _call(part))
        else _text(part)
        for part in _parts(_MESSAGE.validate_json(payload))
    )


def _parts(message: Json) -> list[Json]:
    parts = message.get("parts")
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _read(payload: bytes, count: Count) -> Said:
    message = _MESSAGE.validate_json(payload)
    found = _parts(message)
    pieces = [piece for piece in map(_text, found) if piece]
    calls = tuple(_call(part) for part in found if part.get("part_kind") == "tool-call")
    returns = tuple((str(part["tool_call_id"]), _text(part)) for part in found if _answers(part))
    return Said(
        _speaker(message, found, answers=bool(returns)),
        "\n".join(pieces),
        sum(map(count, pieces)) + CALL_TOKENS * len(calls) + MESSAGE_TOKENS,
        calls,
        returns,
    )


def _speaker(message: Json, parts: list[Json], *, answers: bool) -> Speaker:
    if message.get("kind") == "response":
        return "assistant"
    if answers:
        return "tool"
    only_system = all(part.get("part_kind") == "system-prompt" for part in parts)
    return "system" if parts and only_system else "user"


def _answers(part: Json) -> bool:
    match part:
        case {"part_kind": "tool-return", "tool_call_id": str()}:
            return True
        case {"part_kind": "retry-prompt", "tool_name": str(), "tool_call_id": str()}:
            return True
        case _:
            return False


def _call(part: Json) -> Call:
    arguments = part.get("args")
    if isinstance(arguments, str):
        with suppress(ValueError):  # of a call that was cut off, they are no JSON yet
            arguments = _ARGUMENTS.validate_json(arguments)
    return Call(str(part.get("tool_call_id")), str(part.get("tool_name")), arguments)


def _text(part: Json) -> str:
    """What a model reads of a part; earlier thinking is not sent again, so it counts nothing."""
    match part:
        case {"part_kind": "thinking"}:
            return ""
        case {"part_kind": "tool-call", "tool_name": str(tool)}:
            arguments = part.get("args")
            return f"{tool} {arguments if isinstance(arguments, str) else _json(arguments)}"
        case {"content": str(content)}:
            return content
        case {"content": list(content)}:
            return "\n".join(item if isinstance(item, str) else _media(item) for item in content)
        case _:
            return _json(part.get("content", ""))


def _media(item: JsonValue) -> str:
    match item:
        case {"kind": "binary" | "image-url" | "document-url" | "audio-url" | "video-url"}:
            return ""
        case _:
            return _json(item)


def _json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)
