"""Pydantic AI messages, read for their text, tool calls and tokens.

The lab reads messages by itself and not through a wire, because it judges what wires did.
"""

import json
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue, TypeAdapter

from refold.errors import InvalidInput
from refold.fold.identifiers import Find, identifiers, strings
from refold.models.catalog import tokenizer
from refold.transcripts.messages import Json, parse, parts_of

Count = Callable[[str], int]
"""How many tokens a text is."""
Speaker = Literal["system", "user", "assistant", "tool"]

MESSAGE_TOKENS = 2
"""What a message costs beside its parts."""
CALL_TOKENS = 4
"""What a tool call costs beside its name and its arguments."""

_ARGUMENTS = TypeAdapter[JsonValue](JsonValue)


def o200k() -> Count:
    """OpenAI's `o200k_base`: exact for OpenAI's models, a fair measure of the others."""
    encoder = tokenizer("o200k")
    if encoder is None:
        raise InvalidInput("No tokenizer is installed.", "Install refold[models].")
    return encoder.count


@dataclass(frozen=True)
class Call:
    """A tool call: its id, its tool, its arguments."""

    id: str
    tool: str
    arguments: JsonValue


@dataclass(frozen=True)
class ParsedMessage:
    """A message's speaker, what a model reads of it, and how many tokens that is."""

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
        self._messages: dict[bytes, ParsedMessage] = {}
        self._identifiers: dict[bytes, Counter[str]] = {}

    def read(self, payload: bytes) -> ParsedMessage:
        message = self._messages.get(payload)
        if message is None:
            message = self._messages[payload] = _read(payload, self.count)
        return message

    def tokens(self, payload: bytes) -> int:
        return self.read(payload).tokens

    def identifiers(self, payload: bytes) -> Counter[str]:
        """The identifiers of the message, and how often it holds each."""
        names = self._identifiers.get(payload)
        if names is None:
            text = self.read(payload).text if self._as_json else self.plain(payload)
            names = self._identifiers[payload] = Counter(self._find(text))
        return names

    def plain(self, payload: bytes) -> str:
        """The text of the message, its calls with the text of their arguments."""
        message = self.read(payload)
        return _plain(payload) if message.calls else message.text


def _plain(payload: bytes) -> str:
    return "\n".join(
        "\n".join((call.tool, *strings(call.arguments)))
        if part.get("part_kind") == "tool-call" and (call := _call(part))
        else _text(part)
        for part in parts_of(parse(payload))
    )


def _read(payload: bytes, count: Count) -> ParsedMessage:
    message = parse(payload)
    parts = parts_of(message)
    pieces = [piece for piece in map(_text, parts) if piece]
    calls = tuple(_call(part) for part in parts if part.get("part_kind") == "tool-call")
    returns = tuple((str(part["tool_call_id"]), _text(part)) for part in parts if _answers(part))
    return ParsedMessage(
        _speaker(message, parts, answers=bool(returns)),
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
        with suppress(ValueError):  # a call that was cut off has incomplete JSON
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
            return "\n".join(map(_item, content))
        case _:
            return _json(part.get("content", ""))


def _item(item: JsonValue) -> str:
    match item:
        case str():
            return item
        case {"kind": "binary" | "image-url" | "document-url" | "audio-url" | "video-url"}:
            return ""  # media is not measured
        case _:
            return _json(item)


def _json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)
