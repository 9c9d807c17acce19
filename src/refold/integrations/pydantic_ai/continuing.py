"""Whether a message history that was given continues what a session holds.

Messages are compared part by part, because Pydantic AI joins requests that follow one another.
What was noted beside the parts (run, time, instructions) does not matter, and what the system says
is made anew by each run.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

from pydantic_ai.messages import ModelMessage
from pydantic_core import from_json, to_json

from refold.errors import HistoryDiffers
from refold.integrations.pydantic_ai.message_bytes import payload_of
from refold.log import CODEC, Log, Message, Span
from refold.session import Session

_SYSTEM = "system-prompt"


async def take_up(
    session: Session, log: Log, history: Sequence[ModelMessage], failed: int | None = None
) -> None:
    """Log what a history that was given adds to the session.

    `failed` is where a run began that came to no end. Raises HistoryDiffers where the history does
    not continue the session, as it is or was before that run.
    """
    fresh = list(history)
    if said := session.said:
        below = await _beneath(session, log)
        known = all_likenesses([*said, *await session.shown(), *below])
        try:
            fresh = _added(session.name, history, known, _newest(said[-1]))
        except HistoryDiffers:
            fresh = await _once_more(session, history, all_likenesses(below), failed)
    if fresh:
        await session.say(*map(payload_of, fresh))


async def _once_more(
    session: Session, history: Sequence[ModelMessage], known: set[str], failed: int | None
) -> list[ModelMessage]:
    """What a history adds that ends before a run that failed, or prompts that were never answered.

    This run is to do it over: the view goes back to before them.
    """
    before = session.answered if failed is None else failed
    said = session.said_by(before)
    last = _newest(said[-1]) if said else set[str]()
    fresh = _added(session.name, history, known, last)
    await session.rewind(before)
    return fresh


async def _beneath(session: Session, log: Log) -> list[bytes]:
    """Every message of the session, folded or not."""
    entries = await log.read(session.name, Span(1, session.head))
    values = (CODEC.decode(one) for one in entries if one.kind == Message.KIND)
    return [value.payload for value in values if isinstance(value, Message)]


def likenesses(payload: bytes) -> list[str | None]:
    """For each part of a message, what makes it the same part; None where that is no matter."""
    message: dict[str, Any] = from_json(payload)
    return [_likeness(part) for part in message.get("parts", ())]


def _likeness(part: dict[str, Any]) -> str | None:
    if part.get("part_kind") == _SYSTEM:
        return None
    said = {key: value for key, value in part.items() if key != "timestamp"}
    return sha256(to_json(said)).hexdigest()


def _newest(payload: bytes) -> set[str]:
    """Those of a session's newest message, with its time where it has one.

    The same may have been said before.
    """
    return set(filter(None, _timed(payload)))


def _timed(payload: bytes) -> list[str | None]:
    message: dict[str, Any] = from_json(payload)
    at = message.get("timestamp")
    return [
        one and f"{one} {part.get('timestamp') or at or ''}"
        for one, part in zip(likenesses(payload), message.get("parts", ()), strict=True)
    ]


def all_likenesses(payloads: Iterable[bytes]) -> set[str]:
    """Those of all parts of these messages."""
    return {one for payload in payloads for one in likenesses(payload) if one}


def _added(
    session: str, history: Sequence[ModelMessage], known: set[str], last: set[str]
) -> list[ModelMessage]:
    """The messages of the history that come after all that the session holds.

    Raises HistoryDiffers where it holds something else: `known` are the parts that were said or
    shown before, `last` those of its newest message.
    """
    found = [likenesses(payload_of(message)) for message in history]
    parts = [(nth, part) for nth, those in enumerate(found) for part in those if part]
    ends = [at for at, (_, part) in enumerate(parts) if part in known]
    end = ends[-1] + 1 if ends else 0
    known_parts = {part for _, part in parts[:end]}
    if any(part not in known for _, part in parts[:end]):
        raise HistoryDiffers(
            f"The message history holds something that session {session!r} does not."
        )
    payloads = (payload_of(message) for message in history)
    times = {one for payload in payloads for one in _timed(payload) if one}
    if not all(_among(one, times, known_parts) for one in last):
        raise HistoryDiffers(f"Session {session!r} goes on after the end of the message history.")
    fresh = {part for _, part in parts[end:]}
    first = parts[end][0] if end < len(parts) else len(history)
    return [
        message if not _some(those, known) else _only(message, those, fresh)
        for message, those in zip(history[first:], found[first:], strict=True)
    ]


def _among(part: str, times: set[str], parts: set[str]) -> bool:
    """Whether a part is there, said at its time if that is known."""
    like, _, at = part.partition(" ")
    return part in times if at else like in parts


def _some(parts: Sequence[str | None], known: set[str]) -> bool:
    return any(part in known for part in parts if part)


def _only(message: ModelMessage, parts: Sequence[str | None], fresh: set[str]) -> ModelMessage:
    kept: Any = [one for one, part in zip(message.parts, parts, strict=True) if part in fresh]
    return replace(message, parts=kept)
