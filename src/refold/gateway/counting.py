"""What an answer that is passed on unread used: nothing is free because it is not managed."""

from typing import Final, cast

from pydantic import JsonValue
from pydantic_core import from_json

from refold.gateway.dialects.answered import anthropic_usage, openai_usage
from refold.gateway.dialects.events import Events, EventTooLarge
from refold.models.spending import Usage

_MOST: Final = 4 * 1024 * 1024
"""Bytes of an answer that is one JSON value, in which its use is looked for."""
_CHARS: Final = 4
"""Bytes of a token, where nobody says how many there were."""
_WITHIN: Final = ("response", "message")
"""Where the events of some providers have it."""


class Counting:
    """Reads along."""

    def __init__(self, *, stream: bool, messages: bool) -> None:
        """Read a stream of events or one value; `messages`: as Anthropic counts."""
        self._messages = messages
        self._events = Events() if stream else None
        self._whole = bytearray()
        self._told: dict[str, JsonValue] = {}
        self._came = 0

    def take(self, chunk: bytes) -> None:
        """Take what came."""
        self._came += len(chunk)
        if self._events is None:
            if len(self._whole) <= _MOST:
                self._whole += chunk
            return
        try:
            for event in self._events.feed(chunk):
                if b'"usage"' in event.data:
                    self._look(event.data)
        except EventTooLarge:
            self._events = None
            self._whole = bytearray(_MOST + 1)

    def used(self, asked: int | None) -> Usage | None:
        """What was used; where nobody said, what so many bytes that asked for it come to."""
        if self._events is None and len(self._whole) <= _MOST:
            self._look(bytes(self._whole))
        told = anthropic_usage(self._told) if self._messages else openai_usage(self._told)
        if told is None and asked is not None:
            return Usage(asked // _CHARS, self._came // _CHARS)
        return told

    def _look(self, data: bytes) -> None:
        try:
            value = from_json(data)
        except ValueError:
            return
        if not isinstance(value, dict):
            return
        top = cast("dict[str, JsonValue]", value)
        for one in (top, *(top.get(name) for name in _WITHIN)):
            if isinstance(one, dict) and isinstance(told := one.get("usage"), dict):
                self._told |= {name: count for name, count in told.items() if count is not None}
