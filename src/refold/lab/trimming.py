"""Recordings that are too long to be replayed, cut to their newest part."""

from dataclasses import replace
from typing import Final

from pydantic import JsonValue, TypeAdapter

from refold.lab import messages as make
from refold.lab.messages import Json
from refold.lab.recording import Recorded, Recording

MOST_MESSAGES: Final = 6_000
"""What a replay takes of one session; its time grows with the square of it."""
MOST_BYTES: Final = 16 * 2**20
"""About four million tokens."""

_MESSAGE = TypeAdapter(dict[str, JsonValue])


def trimmed(
    recording: Recording, *, messages: int = MOST_MESSAGES, size: int = MOST_BYTES
) -> Recording:
    """The newest messages, from a prompt on; results whose call is gone are gone with it."""
    first = _first(recording, messages, size)
    if not first:
        return recording
    calls: set[JsonValue] = set()
    kept: list[Recorded] = []
    for one in recording.messages[first:]:
        message = _MESSAGE.validate_json(one.payload)
        parts = _parts(message)
        calls.update(_calls(parts, "tool-call"))
        if kept or any(part.get("part_kind") == "user-prompt" for part in parts):
            whole: list[JsonValue] = [
                part for part in parts if _calls([part], "tool-return") <= calls
            ]
            if len(whole) == len(parts):
                kept.append(one)
            elif whole:
                kept.append(replace(one, payload=make.dump({**message, "parts": [*whole]})))
    return replace(recording, messages=tuple(kept))


def _first(recording: Recording, messages: int, size: int) -> int:
    left = size
    for nth, one in enumerate(reversed(recording.messages), 1):
        left -= len(one.payload)
        if nth > messages or left < 0:
            return len(recording.messages) - nth + 1
    return 0


def _parts(message: Json) -> list[Json]:
    parts = message.get("parts")
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _calls(parts: list[Json], kind: str) -> set[JsonValue]:
    found = (part.get("tool_call_id") for part in parts if part.get("part_kind") == kind)
    return {call for call in found if isinstance(call, str)}
