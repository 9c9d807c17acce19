"""Changes that make another conversation of one."""

import json
from collections.abc import Iterator
from random import Random
from typing import Final

from pydantic import JsonValue

from refold.testing.gateway.values import Object

Holder = tuple[dict[str, JsonValue], str]
"""An object and the key of a text in it."""


def changed(random: Random, messages: list[Object]) -> list[Object]:
    """Another conversation: one text, name, id, argument or place differs."""
    other: list[Object] = json.loads(json.dumps(messages))
    spots = [spot for message in other for spot in _spots(message)]
    ways = ["reordered", "shortened", "lengthened", *["respelled"] * 6]
    match random.choice(ways):
        case "reordered" if _reordered(random, other):
            return other
        case "shortened" if said := [at for at, one in enumerate(other) if _words(one)]:
            del other[random.choice(said)]
        case "lengthened":
            other.insert(random.randint(0, len(other)), {"role": "user", "content": "one more"})
        case _:
            holder, key = random.choice(spots)
            holder[key] = _respelled(random, key, holder[key])
    return other


def _respelled(random: Random, key: str, value: JsonValue) -> JsonValue:
    if key == "role":
        return "user" if value == "assistant" else "assistant"
    if key == "arguments":
        given = json.loads(str(value))
        given[random.choice([*given, "new"])] = "another value"
        return json.dumps(given)
    if key == "input":
        return {"another": "value"} if isinstance(value, dict) else f"{value}!"
    text = str(value)
    return text + random.choice(("!", " ", "\u0301")) if text else "!"


def _reordered(random: Random, messages: list[Object]) -> bool:
    """Two messages with other words change places."""
    pairs = [
        at
        for at in range(len(messages) - 1)
        if _words(messages[at]) and _words(messages[at + 1])
        if _words(messages[at]) != _words(messages[at + 1])
    ]
    if pairs:
        at = random.choice(pairs)
        messages[at], messages[at + 1] = messages[at + 1], messages[at]
    return bool(pairs)


def _words(message: Object) -> list[str]:
    return [json.dumps(holder[key]) for holder, key in _spots(message) if key not in _WHO]


def _spots(value: JsonValue) -> Iterator[Holder]:
    """The texts that say something, wherever they are; not those of thoughts and marks."""
    if isinstance(value, list):
        for one in value:
            yield from _spots(one)
    if not isinstance(value, dict) or value.get("type") in _SILENT:
        return
    for key, one in value.items():
        if (key in _TEXTS and isinstance(one, str)) or (key == "input" and isinstance(one, dict)):
            yield value, key
        elif key in _WITHIN:
            yield from _spots(one)


_SILENT: Final = ("thinking", "redacted_thinking", "reasoning")
_WHO: Final = ("role", "name", "tool_call_id")
_TEXTS: Final = frozenset(
    {
        *("role", "name", "content", "text", "refusal", "arguments", "input", "output"),
        *("tool_call_id", "tool_use_id", "call_id", "url", "file_id", "file_data", "what", "query"),
    }
)
_WITHIN: Final = frozenset(
    {
        *("content", "output", "tool_calls", "function", "custom", "source", "file", "action"),
        *("image_url",),
    }
)
