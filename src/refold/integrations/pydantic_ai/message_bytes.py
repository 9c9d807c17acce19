"""Pydantic AI's messages to the bytes that the log keeps, and back.

A message is read alone, and what this Pydantic AI does not know of it never costs the rest: parts
of an unknown kind are set aside in the message's metadata, which no model sees. The log keeps the
bytes as they were.
"""

import json
from collections.abc import Sequence
from typing import Any, Final, cast

from pydantic import JsonValue, ValidationError
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
)
from pydantic_core import PydanticSerializationError

UNREAD: Final = "refold.unread"
"""Where in a message's metadata the parts are that could not be read."""


def payload_of(message: ModelMessage) -> bytes:
    """The message as the log keeps it. Half a character, which no provider takes, becomes `�`."""
    try:
        return ModelMessagesTypeAdapter.dump_json([message], fallback=str)[1:-1]
    except PydanticSerializationError:
        [raw] = ModelMessagesTypeAdapter.dump_python([message], mode="json", fallback=str)
        return _encoded(_mended(raw))


def message_of(payload: bytes) -> ModelMessage:
    """The message of a payload, as much of it as can be read."""
    try:
        return _read(payload)
    except ValidationError:
        return _partly(json.loads(payload))


class Reading:
    """Reads messages, each once as long as it is asked for again."""

    def __init__(self) -> None:
        self._read: dict[bytes, ModelMessage] = {}

    def __call__(self, payloads: Sequence[bytes]) -> list[ModelMessage]:
        """The messages of these payloads; others are no longer kept."""
        known = self._read
        self._read = {one: known.get(one) or message_of(one) for one in payloads}
        return [self._read[one] for one in payloads]


def _read(payload: bytes) -> ModelMessage:
    return ModelMessagesTypeAdapter.validate_json(b"[%b]" % payload)[0]


def _partly(raw: JsonValue) -> ModelMessage:
    message = cast("dict[str, Any]", raw) if isinstance(raw, dict) else {}
    parts: list[Any] = _list(message.get("parts"))
    known = [part for part in parts if _readable({**message, "parts": [part]})]
    unread = [part for part in parts if part not in known]
    if known or _readable({**message, "parts": []}):
        read = _read(_encoded({**message, "parts": known}))
        read.metadata = {**(read.metadata or {}), UNREAD: unread}
        return read
    kind = ModelResponse if message.get("kind") == "response" else ModelRequest
    return kind(parts=[], metadata={UNREAD: raw})


def _readable(message: dict[str, Any]) -> bool:
    try:
        _read(_encoded(message))
    except ValidationError:
        return False
    return True


def _list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _mended(value: Any) -> Any:  # noqa: ANN401 - any JSON
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list():
            return [_mended(one) for one in cast("list[Any]", value)]
        case dict():
            return {key: _mended(one) for key, one in cast("dict[str, Any]", value).items()}
        case _:
            return value


def _encoded(value: object) -> bytes:
    return json.dumps(value).encode()
