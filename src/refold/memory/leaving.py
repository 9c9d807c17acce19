"""What leaves a view without a fold is remembered first.

That is so when a provider refuses a request for its length, and when fixed limits take turns out
because nothing summarises them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from hashlib import sha256
from uuid import NAMESPACE_OID, UUID, uuid5

from pydantic import JsonValue

from refold.fold.job import Job, Make
from refold.fold.run import Folder, Remember, from_the_log
from refold.log import Log, Span
from refold.log.span import intersect, subtract, union
from refold.memory.remembering import OVERFLOW
from refold.view import Counter, Plan
from refold.view.sheet import Sheet

TRIMMED = "fixed limits"
"""The trigger of what is noted because it leaves a view by fixed limits."""


class _Once:
    """Steps that are done when asked for, and kept nowhere: a note is made in one go."""

    async def step(self, name: str, work: Callable[[], Awaitable[JsonValue]]) -> JsonValue:  # noqa: ARG002 - nothing is kept under it
        return await work()


class Leaving:
    """Notes what leaves the view of one session.

    `make` writes the summaries, and must remember them by itself; without one, or where it fails,
    the log is quoted.
    """

    def __init__(
        self, log: Log, session: str, counter: Counter, remember: Remember, make: Make | None = None
    ) -> None:
        self._session = session
        self._by_log = Folder(log, counter, from_the_log, remember)
        self._make: Make = make or self._by_log
        self._owed: tuple[Span, ...] = ()
        """What left by fixed limits and could not be noted yet."""
        self._pause = self._left = 0
        """For how many requests it is not tried again, and how many of those are left."""

    async def all_of(self, sheet: Sheet, context: JsonValue, limit: float) -> UUID | None:
        """Note everything that the view is made of; the model has so many seconds for it.

        What the note is known by; None where there is nothing to note. Raises what kept the log's
        own words from being noted.
        """
        if not sheet.rows:
            return None
        spans = intersect((Span(2, sheet.head),), sheet.outline.on_line(sheet.head))
        said = sha256(b"\n".join(row.payload for row in sheet.rows)).hexdigest()
        job = self._job(spans, OVERFLOW, said, context)
        try:
            async with asyncio.timeout(limit):
                await self._make(job, _Once())
        except Exception:  # noqa: BLE001 - whatever a model does, the log can be quoted
            await self._by_log(job, _Once())
        return job.fold

    async def trimmed(self, before: Plan | None, plan: Plan) -> None:
        """Note what this plan takes out by fixed limits, and the one before it did not.

        What cannot be noted now is tried again, ever less often; raises what keeps it from that.
        """
        new = subtract(_limited(plan), _limited(before) if before else ())
        self._owed = union((*self._owed, *new))
        self._left = 0 if new else max(0, self._left - 1)
        if not self._owed or self._left:
            return
        self._pause = self._left = 2 * self._pause + 1
        await self._by_log(self._job(self._owed, TRIMMED, "", None), _Once())
        self._owed, self._pause, self._left = (), 0, 0

    def _job(self, spans: tuple[Span, ...], trigger: str, said: str, context: JsonValue) -> Job:
        """The same for the same entries, so that they are noted once."""
        known_by = f"{self._session}\0{trigger}\0{spans}\0{said}"
        return Job(self._session, uuid5(NAMESPACE_OID, known_by), spans, trigger, context=context)


def _limited(plan: Plan) -> Iterable[Span]:
    return (one.span for one in plan.layout.gone if one.reason == "window")
