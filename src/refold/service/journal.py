"""Notes that all processes of the service share: a session of a tenant that nobody else has.

What the service must remember is appended there as notes with data, on whatever store it has: so it
survives a process, reaches the others, and says who did what when.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from pydantic import JsonValue

from refold.errors import SessionForgotten, SessionNotFound
from refold.log import CODEC, Author, Draft, Log, Note, Opened, Span

TENANT: Final = "refold.service"
"""The tenant of the service itself: no key is for it."""
_FORMAT, _PROFILE = "openai-chat", "balanced"  # a session has some, though no model sees this one
_PAGE: Final = 1_000


class Written(NamedTuple):
    """A note as it was written."""

    seq: int
    at: int
    data: dict[str, JsonValue]


class Journal:
    """One such session, read from its beginning and then on from where it was read to."""

    def __init__(self, log: Log, session: str, author: Author | None = None) -> None:
        self._log = log
        self._session = session
        self._author = author or Author()
        self.upto = 0
        """The newest entry that was read."""
        self.forgotten = False
        """Whether somebody had the session forgotten: what it said is gone."""

    async def news(self) -> list[Written]:
        """The notes that were written since the last time."""
        try:
            head = await self._log.head(self._session)
        except (SessionNotFound, SessionForgotten) as error:
            self.forgotten = self.forgotten or isinstance(error, SessionForgotten)
            self.upto = 0
            return []
        found: list[Written] = []
        while self.upto < head:
            span = Span(self.upto + 1, min(head, self.upto + _PAGE))
            for entry in await self._log.read(self._session, span):
                match None if entry.forgotten else CODEC.decode(entry):
                    case Note(data=dict(data)):
                        found.append(Written(entry.seq, entry.at, data))
                    case _:
                        pass
            self.upto = span.last
        return found

    async def add(self, notes: Sequence[Note], *, exactly: bool = True) -> None:
        """Write notes: right after what was read (else Conflict), or wherever the end is."""
        drafts = [self._author.draft(note) for note in notes]
        if exactly and self.upto:
            await self._log.append(self._session, drafts, expected=self.upto)
        elif exactly:
            await self._log.append(self._session, [self._opening(), *drafts], expected=0)
        else:
            await self._log.append(self._session, drafts, expected=None)

    async def begin(self) -> None:
        """Make the session, unless it is there."""
        try:
            await self._log.head(self._session)
        except (SessionNotFound, SessionForgotten):
            await self._log.append(self._session, [self._opening()], expected=0)

    async def erase(self, seqs: Sequence[int]) -> None:
        """Have notes forgotten, for good."""
        for seq in seqs:
            await self._log.forget(self._session, Span(seq, seq))

    def _opening(self) -> Draft:
        return self._author.draft(Opened(_FORMAT, _PROFILE, title=f"{TENANT}: {self._session}"))
