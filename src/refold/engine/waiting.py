"""Waiting for a fold that runs somewhere, and giving it up: the same for every engine."""

import asyncio
from collections.abc import Awaitable, Callable
from uuid import UUID

from refold.engine.ends import end_among, end_of, running
from refold.engine.protocol import Ended
from refold.engine.reason import CANCELLED
from refold.engine.surely import surely
from refold.errors import InvalidEntry
from refold.log import Author, FoldFailed, Log, Running, Span


class Lookout:
    """Looks, again and again, whether a running fold has ended; what was read is not read again."""

    def __init__(self, log: Log, session: str, one: Running) -> None:
        self._log = log
        self._session = session
        self._fold = one.fold
        self._seen = one.seq

    async def ended(self) -> Ended | None:
        """How the fold ended, if an entry since the last look says so."""
        head = await self._log.head(self._session)
        if head <= self._seen:
            return None
        newer = Span(self._seen + 1, head)
        entries = await self._log.read(self._session, newer, whole=False)
        self._seen = head
        return await end_among(self._log, self._session, self._fold, entries)


async def wait_for(
    log: Log,
    session: str,
    fold: UUID,
    watch: Callable[[str, Running], Awaitable[Ended]],
    until: float | None,
) -> Ended | None:
    """How a fold ended; None when it has not by then (the loop's time), or was never started.

    `watch` is the engine's own way to see a running fold to its end.
    """
    for one in await running(log, session):
        if one.fold == fold:
            try:
                async with asyncio.timeout_at(until):
                    return await watch(session, one)
            except TimeoutError:
                return None
    return await end_of(log, session, fold)


async def give_up(log: Log, session: str, fold: UUID, author: Author) -> Ended | None:
    """Say in the log that the fold was cancelled; None when it is not running any more."""
    draft = author.draft(FoldFailed(fold, CANCELLED))
    try:
        done = await surely(lambda: log.append(session, [draft], expected=None))
    except InvalidEntry:
        return None
    return Ended(fold, done.first, reason=CANCELLED)
