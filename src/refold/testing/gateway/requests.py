"""Whole requests in each format."""

import json
from collections.abc import Iterator
from random import Random
from typing import Final

from pydantic import JsonValue

from refold.testing.gateway.conversations import (
    Object,
    as_body,
    chance,
    conversation,
    name,
    shuffled,
    text,
    value,
    with_extras,
    with_mark,
)


def request(format_name: str, random: Random) -> bytes:
    """The body of a request, with fields that are known and fields that are not."""
    return body_with(format_name, random, conversation(format_name, random))


def body_with(format_name: str, random: Random, messages: list[Object]) -> bytes:
    body: Object = {"model": name(random, "model"), "stream": random.choice((True, False, None))}
    sent: list[JsonValue] = [*messages]
    if format_name == "openai-chat":
        sent = [*_lead(random), *sent]
    elif chance(random, 0.5):
        body[_INSTRUCTIONS[format_name]] = _instructions(format_name, random)
    if chance(random, 0.4):
        body["tools"] = [_tool(format_name, random) for _ in range(random.randint(0, 2))]
    if chance(random, 0.3):
        user = name(random, "user")
        body |= {"metadata": {"user_id": user}} if "system" in body else {"user": user}
    if chance(random, 0.5):
        body |= {"temperature": random.choice((0, 1.0, 0.70, 1e-7)), "seed": 10**25}
    body["input" if format_name == "openai-responses" else "messages"] = sent
    if format_name == "openai-responses" and chance(random, 0.1):
        body["input"] = text(random)
    for _ in range(3):
        body = with_extras(random, body)
    return as_body(random, {key: body[key] for key in _in_any_order(random, body)})


def _in_any_order(random: Random, body: Object) -> list[str]:
    keys = list(body)
    if chance(random, 0.5):
        random.shuffle(keys)
    return keys


def _lead(random: Random) -> list[JsonValue]:
    count = random.choice((0, 1, 1, 2))
    return [
        {"role": random.choice(("system", "developer")), "content": _system_content(random, "text")}
        for _ in range(count)
    ]


def _instructions(format_name: str, random: Random) -> JsonValue:
    return text(random) if format_name == "openai-responses" else _system_content(random, "text")


def _system_content(random: Random, kind: str) -> JsonValue:
    if chance(random, 0.5):
        return text(random)
    return [with_mark(random, {"type": kind, "text": text(random)})]


def _tool(format_name: str, random: Random) -> JsonValue:
    schema: Object = {"type": "object", "properties": {"path": {"type": "string"}}}
    described: Object = {"name": "read", "description": text(random)}
    if format_name == "openai-chat":
        function: Object = {**described, "parameters": schema, "strict": None}
        return shuffled(random, {"type": "function", "function": function})
    if format_name == "openai-responses":
        return {"type": "function", **described, "parameters": schema, "x": value(random)}
    return with_mark(random, {**described, "input_schema": schema})


_INSTRUCTIONS: Final = {"openai-responses": "instructions", "anthropic-messages": "system"}


# Changes that make another conversation of one.

Holder = tuple[dict[str, JsonValue], str]
"""An object and the key of a text in it."""


def changed(random: Random, messages: list[Object]) -> list[Object]:
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
