"""Pydantic AI messages written as JSON, so that reading a transcript needs no framework."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import isfinite

from pydantic import JsonValue, TypeAdapter

Json = dict[str, JsonValue]

_MESSAGE = TypeAdapter(dict[str, JsonValue])


def request(parts: Sequence[Json], *, at: int | None = None) -> bytes:
    times = _times(at)
    return dump({"parts": [part | times for part in parts], **times, "kind": "request"})


def response(
    parts: Sequence[Json], *, at: int | None = None, more: Mapping[str, JsonValue] | None = None
) -> bytes:
    """`more` are the response's other fields."""
    return dump({"parts": [*parts], **_times(at), **(more or {}), "kind": "response"})


def system_prompt(text: str) -> Json:
    return {"content": text, "part_kind": "system-prompt"}


def user_prompt(content: JsonValue) -> Json:
    """`content` is a text, or a list of texts and images."""
    return {"content": content, "part_kind": "user-prompt"}


def tool_return(
    tool: str, call: str, content: JsonValue, *, failed: bool = False, metadata: JsonValue = None
) -> Json:
    """A tool result; the model is not shown the metadata."""
    part: Json = {"tool_name": tool, "content": content, "tool_call_id": call}
    if metadata is not None:
        part["metadata"] = metadata
    return part | {"outcome": "failed" if failed else "success", "part_kind": "tool-return"}


def text(content: str) -> Json:
    return {"content": content, "part_kind": "text"}


def thinking(content: str, *, signature: str | None = None, provider: str | None = None) -> Json:
    """The signature is of use only to its provider."""
    part: Json = {"content": content, "part_kind": "thinking"}
    if signature is not None:
        part["signature"] = signature
        part["provider_name"] = provider
    return part


def tool_call(tool: str, call: str, arguments: JsonValue) -> Json:
    """The arguments are an object, or its JSON."""
    part: Json = {"tool_name": tool, "args": arguments, "tool_call_id": call}
    return part | {"part_kind": "tool-call"}


def image(data: str, media_type: str) -> Json:
    return {"data": data, "media_type": media_type, "kind": "binary"}


def dump(value: JsonValue) -> bytes:
    """Compact JSON; a number that is too large for it becomes null."""
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
            return {name: _finite(item) for name, item in value.items()}
        case list():
            return [_finite(item) for item in value]
        case float():
            return value if isfinite(value) else None
        case _:
            return value


def _times(at: int | None) -> Json:
    if at is None:
        return {}
    return {"timestamp": datetime.fromtimestamp(at / 1000, UTC).isoformat()}


def parse(payload: bytes) -> Json:
    return _MESSAGE.validate_json(payload)


def parts_of(message: Json) -> list[Json]:
    parts = message.get("parts")
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
