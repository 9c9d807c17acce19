"""Pydantic AI messages, written as JSON.

The lab writes the JSON itself, so that reading a recording needs no framework.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import isfinite

from pydantic import JsonValue

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
    """What the developer says."""
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
    """What the model says."""
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
    """A picture, as base64."""
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
