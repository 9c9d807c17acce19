"""What a memory is given, and what it must do with it."""

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal, Protocol
from uuid import UUID

Reason = Literal["trimmed", "overflow", "daily"]
"""Why something is remembered: it leaves the view, a provider refused it, a day is over."""

_DIGITS = 32


@dataclass(frozen=True, slots=True)
class Note:
    """What a session leaves to memory."""

    session: str
    at: int
    """When, in milliseconds since 1970."""
    reason: Reason
    text: str
    fold: UUID | None = None
    """The fold that it comes from, where it comes from one."""
    messages: int = 0
    """How many messages it tells of."""

    @property
    def digest(self) -> str:
        """The same for the same note.

        A fold that is made again after a crash leaves the same note, though a model may word it
        otherwise and the clock has moved on. What comes from no fold is known by its words.
        """
        said = self.text if self.fold is None else str(self.fold)
        known_by = json.dumps([self.session, self.reason, said])
        return sha256(known_by.encode()).hexdigest()[:_DIGITS]


class MemorySink(Protocol):
    """Where notes are kept. One belongs to one tenant."""

    async def write(self, note: Note) -> None:
        """Keep the note; it is there for good when this returns.

        The same note a second time changes nothing. Raises a RefoldError when it cannot be kept.
        """
        ...
