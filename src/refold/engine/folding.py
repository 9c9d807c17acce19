"""The life of one fold, for who holds its session's lock: begun, made, ended."""

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Any, Literal

from pydantic import JsonValue

from refold.engine.beneath import Beneath, forgotten_of, look_beneath
from refold.engine.ends import end_of, running
from refold.engine.protocol import Ended
from refold.engine.reason import CANCELLED, INTERRUPTED, reason_of
from refold.engine.steps import FORGOTTEN_MEANWHILE, erase_steps
from refold.engine.surely import surely
from refold.errors import Conflict, IdReused, InvalidEntry
from refold.fold.job import Job, Make, Steps
from refold.log import (
    CODEC,
    Appended,
    Author,
    Draft,
    FoldCompleted,
    FoldFailed,
    FoldStarted,
    Log,
    Outline,
    Running,
    Span,
    Value,
)
from refold.log.span import subtract, union

GRACE = 5.0
"""Seconds that a cancelled `make` has to come to its end; then it is left alone."""
OFF_THE_LINE = "the session was rewound or cleared meanwhile"
_POLITE = 20

Begun = Literal["begun", "known", "refused"]
"""What came of beginning a fold: it is to be made now; it was begun before, and has ended; another
one runs, or was completed since its spans were chosen."""
NewSteps = Callable[[Job, Beneath], Steps]
"""Makes the steps of a job, given what lies beneath its fold."""


class Folding:
    """Runs folds of one log, and writes to it what becomes of them."""

    def __init__(  # noqa: PLR0913 - made in one place
        self,
        log: Log,
        make: Make,
        *,
        steps: NewSteps,
        author: Author,
        limit: float | None,
        reach: Callable[[str], None],
    ) -> None:
        self._log = log
        self._make = make
        self._steps = steps
        self._author = author
        self._limit = limit
        self._reach = reach

    async def begin(self, job: Job) -> Begun:
        """Append the start.

        The start's id is the fold's own, so the log itself takes no fold twice. Compare-and-set
        shows that nothing began or was completed since we looked; who holds the lock could do
        without, and so does not wait for ever for a moment in which nobody else appends.
        """
        draft = self._draft(job, job.started())._replace(id=job.fold)
        for attempt in count():
            visible = await self._log.visible(job.session, last=0)
            if not _is_fresh(job, visible.outline):
                return "known" if await end_of(self._log, job.session, job.fold) else "refused"
            head = visible.info.entries if attempt < _POLITE else None
            try:
                done = await self._append(job, draft, head)
            except Conflict:
                continue
            except IdReused:
                return "known"
            if done.repeated and not await self._is_running(job):  # a tombstone is like any draft
                return "known"
            self._reach("fold.started")
            return "begun"
        raise AssertionError

    async def left(self, session: str, one: Running) -> Job | None:
        """The job of a fold whose process died; None when it cannot be finished any more."""
        visible = await self._log.visible(session, last=0)
        for entry in await self._log.read(session, Span(one.seq, one.seq)):
            match CODEC.decode(entry):
                case FoldStarted() as started:
                    job = Job.from_started(session, started)
                    return job if _stands(job, visible.outline, visible.info.entries) else None
                case _:
                    return None
        return None

    async def close(self, session: str, one: Running, reason: str = INTERRUPTED) -> Ended | None:
        """End a fold that is not made any more."""
        await surely(lambda: erase_steps(self._log, session, one))
        return await self._fail(Job(session, one.fold, (), ""), reason)

    async def carry_out(self, job: Job) -> Ended | None:
        """Make a fold that was begun, and append its end: how it ended, here or elsewhere."""
        beneath = Beneath()
        try:
            beneath = await look_beneath(self._log, job)
            made = await self._made(job, beneath)
        except asyncio.CancelledError:
            return await self._fail(job, CANCELLED)
        except Exception as error:  # noqa: BLE001 - whatever it is, the log is told
            return await self._fail(job, reason_of(error))
        self._reach("fold.made")
        return await self._complete(job, made, beneath)

    async def _made(self, job: Job, beneath: Beneath) -> Draft:
        """What `make` gives, as a draft; it has a limited time, also to stop."""
        making = asyncio.ensure_future(self._call(job, beneath))
        making.add_done_callback(heard)
        try:
            await asyncio.wait({making}, timeout=self._limit)
        except asyncio.CancelledError:
            await _stopped(making)
            raise
        if not making.done():
            await _stopped(making)
            raise TimeoutError(f"it took longer than {self._limit:g} seconds")
        return self._draft(job, FoldCompleted(job.fold, job.spans, making.result()))

    async def _call(self, job: Job, beneath: Beneath) -> JsonValue:
        return await self._make(job, self._steps(job, beneath))

    async def _complete(self, job: Job, draft: Draft, beneath: Beneath) -> Ended | None:
        objection = await surely(lambda: self._objection(job, beneath))
        if objection is not None:
            return await self._fail(job, objection)
        try:
            done = await self._append(job, draft)
        except InvalidEntry as error:  # the session changed since we looked
            return await self._fail(job, reason_of(error))
        self._reach("fold.completed")
        if await surely(lambda: self._forgotten(job, beneath)):
            # Forgotten after we looked and before the summary was there to be forgotten too.
            await surely(lambda: self._log.forget(job.session, Span(done.first, done.first)))
        return await surely(lambda: end_of(self._log, job.session, job.fold))

    async def _fail(self, job: Job, reason: str) -> Ended | None:
        draft = self._draft(job, FoldFailed(job.fold, reason))
        try:
            done = await self._append(job, draft)
        except InvalidEntry:  # it has ended: somebody cancelled it
            return await surely(lambda: end_of(self._log, job.session, job.fold))
        self._reach("fold.failed")
        return Ended(job.fold, done.first, reason=reason)

    def _draft(self, job: Job, value: Value) -> Draft:
        """A draft that goes with what the fold is about, when that is forgotten.

        A start holds what the host knew, and an error may quote what it stumbled over. A summary
        rests on the folds that it took its words from, too, which may stand behind what it covers.
        """
        return self._author.draft(value)._replace(rests_on=union((*job.spans, *value.rests_on())))

    async def _is_running(self, job: Job) -> bool:
        return any(one.fold == job.fold for one in await running(self._log, job.session))

    async def _append(self, job: Job, draft: Draft, expected: int | None = None) -> Appended:
        """Append the draft, once.

        An end goes wherever the head is: that the fold runs and its spans are on the line is what
        the log itself looks at, in the moment it writes.
        """
        return await surely(lambda: self._log.append(job.session, [draft], expected=expected))

    async def _objection(self, job: Job, beneath: Beneath) -> str | None:
        """Why the session, as it is now, cannot take the fold."""
        visible = await self._log.visible(job.session, last=0)
        if not _stands(job, visible.outline, visible.info.entries):
            return OFF_THE_LINE
        return FORGOTTEN_MEANWHILE if await self._forgotten(job, beneath) else None

    async def _forgotten(self, job: Job, beneath: Beneath) -> bool:
        """Whether more of what lies beneath is forgotten than when the fold began to be made."""
        now = await forgotten_of(self._log, job.session, beneath.spans)
        return now != beneath.forgotten


def heard(future: asyncio.Future[Any]) -> None:
    """Take note of how a future ended, so that asyncio does not complain that nobody did."""
    if not future.cancelled():
        future.exception()


def _is_fresh(job: Job, outline: Outline) -> bool:
    """Whether the job was planned on the session as it is."""
    if outline.running:
        return False
    return job.head is None or all(fold.seq <= job.head for fold in outline.folds)


def _stands(job: Job, outline: Outline, head: int) -> bool:
    return not subtract(job.spans, outline.on_line(head))


async def _stopped(making: asyncio.Future[JsonValue]) -> None:
    making.cancel()
    await surely(lambda: asyncio.wait({making}, timeout=GRACE))
