"""Recorded sessions: what an importer reads and a replay plays."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from refold.log import Author, Draft, Log, Message, Opened, wall_clock

FORMAT = "pydantic-ai"
"""The format of a recording's messages."""

_BATCH = 200


@dataclass(frozen=True, slots=True)
class Usage:
    """What a provider said a request used, in tokens, and what it cost in dollars."""

    input: int
    """All that was sent, cached or not."""
    output: int
    cache_read: int = 0
    cache_write: int = 0
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """One message, as raw JSON, and what is known of it."""

    payload: bytes
    at: int | None = None
    """Milliseconds since 1970, UTC."""
    usage: Usage | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded session: the messages that were said, in order."""

    name: str
    messages: tuple[Recorded, ...]
    skipped: Mapping[str, int] = field(default_factory=dict[str, int])
    """What the importer left out because no model was shown it: how many of each kind."""

    @property
    def payloads(self) -> tuple[bytes, ...]:
        """The messages alone."""
        return tuple(one.payload for one in self.messages)


async def write(recording: Recording, log: Log, session: str, *, profile: str = "balanced") -> int:
    """Append the recording to a log as a new session, with its own times; the head it has then.

    Raises Conflict when a session of that name is there already.
    """
    drafts = _drafts(recording, profile)
    head = 0
    for first in range(0, len(drafts), _BATCH):
        batch = drafts[first : first + _BATCH]
        head = (await log.append(session, batch, expected=head)).last
    return head


def _drafts(recording: Recording, profile: str) -> list[Draft]:
    """Written by an author whose clock shows when each message was said."""
    times = [one.at for one in recording.messages if one.at is not None]
    moment = _moment(times[0]) if times else wall_clock()
    author = Author(clock=lambda: moment)
    drafts = [author.draft(Opened(format=FORMAT, profile=profile, title=recording.name))]
    for one in recording.messages:
        moment = moment if one.at is None else _moment(one.at)
        drafts.append(author.draft(Message(one.payload)))
    return drafts


def _moment(at: int) -> datetime:
    return datetime.fromtimestamp(at / 1000, UTC)
