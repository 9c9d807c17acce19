"""Whole requests in each format."""

from random import Random
from typing import Final

from pydantic import JsonValue

from refold.testing.gateway.conversations import conversation
from refold.testing.gateway.values import (
    Object,
    as_body,
    chance,
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
    """The body of a request for the model's answer to these messages."""
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
        {"role": random.choice(("system", "developer")), "content": _told(random, "text")}
        for _ in range(count)
    ]


def _instructions(format_name: str, random: Random) -> JsonValue:
    return text(random) if format_name == "openai-responses" else _told(random, "text")


def _told(random: Random, kind: str) -> JsonValue:
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
