"""The life of one fold, for who holds its session's lock: begun, made, ended."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any, Literal
from uuid import UUID

from pydantic import JsonValue

from refold.engine.locks import retry_shielded
from refold.engine.protocol import (
    CANCELLED,
    INTERRUPTED,
    Ended,
    end_of,
    ended_by,
    reason_of,
    running,
)
from refold.engine.steps import (
    FORGOTTEN_MEANWHILE,
    FoldInputs,
    Glance,
    erase_steps,
    forgotten_since,
    glance,
    look_beneath,
)
from refold.errors import Conflict, IdReused, InvalidEntry
from refold.fold.job import Job, Make, Steps
from refold.fold.material import needed
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
from refold.log.entry import subtract, union

STOPPING = 5.0
"""Seconds that a cancelled `make` has to come to its end; then it is left alone."""
OFF_THE_LINE = "the session was rewound or cleared meanwhile"
_POLITE = 20

Begun = Literal["begun", "known", "refused"]
"""What came of beginning a fold: it is to be made now; it was begun before, and has ended; another
one runs, or was completed since its spans were chosen."""
NewSteps = Callable[[Job, FoldInputs], Steps]
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
        leaves: Callable[[], bool] = lambda: False,
    ) -> None:
        """Make one; `leaves` says whether a fold that is cancelled is left to another process."""
        self._log = log
        self._make = make
        self._steps = steps
        self._author = author
        self._limit = limit
        self._reach = reach
        self._leaves = leaves

    async def begin(self, job: Job) -> Begun:
        """Append the start.

        The start's id is the fold's own, so the log itself takes no fold twice. Compare-and-set
        shows that nothing began or was completed since we looked. Where others append all the time
        we do without, and look afterwards: of two that begin so, the first goes on.
        """
        draft: Draft | None = None
        if job.needs is not None and job.head is not None:
            draft = self._start(job, job.needs)
            with suppress(Conflict, InvalidEntry):
                if await self._begun(job, draft, job.head) == "begun":
                    return "begun"
            # It was planned too long ago, or begun before: look.
        for attempt in count():
            seen = await self._log.outlined(job.session)
            if not _is_fresh(job, seen.outline):
                return "known" if await end_of(self._log, job.session, job.fold) else "refused"
            # Once: the same id may not come with another content.
            draft = draft or self._start(job, needed(job.spans, seen.outline))
            with suppress(Conflict):
                head = seen.info.entries if attempt < _POLITE else None
                return await self._begun(job, draft, head)
        raise AssertionError

    async def left(self, session: str, one: Running) -> Job | None:
        """The job of a fold whose process died; None when it cannot be finished any more."""
        seen = await self._log.outlined(session)
        for entry in await self._log.read(session, Span(one.seq, one.seq)):
            match CODEC.decode(entry):
                case FoldStarted() as started:
                    job = Job.from_started(session, started)
                    return job if _stands(job, seen.outline, seen.info.entries) else None
                case _:
                    return None
        return None

    async def close(self, session: str, one: Running, reason: str = INTERRUPTED) -> Ended | None:
        """End a fold that is not made any more."""
        await retry_shielded(lambda: erase_steps(self._log, session, one))
        return await self._fail(Job(session, one.fold, (), ""), reason)

    async def take_up(self, session: str, fold: UUID) -> Ended | None:
        """Make a fold that was begun elsewhere, or close it when it cannot be finished any more."""
        seen = await glance(self._log, session, fold)
        if seen.start is None:
            return None
        match CODEC.decode(seen.start):
            case FoldStarted() as started:
                job = Job.from_started(session, started)
                if _stands(job, seen.outline, seen.head):
                    return await self.carry_out(job, seen)
            case _:
                pass
        return await self.close(session, Running(seen.start.seq, fold))

    async def carry_out(self, job: Job, seen: Glance | None = None) -> Ended | None:
        """Make a fold that was begun, and append its end: how it ended, here or elsewhere."""
        fold_inputs = FoldInputs()
        try:
            fold_inputs = await look_beneath(self._log, job, seen)
            made = await self._made(job, fold_inputs)
        except asyncio.CancelledError:
            if self._leaves():
                raise
            return await self._fail(job, CANCELLED)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 - the log is told; a panic of native code, too
            return await self._fail(job, reason_of(error))
        self._reach("fold.made")
        return await self._complete(job, made, fold_inputs)

    async def _made(self, job: Job, fold_inputs: FoldInputs) -> Draft:
        """What `make` gives, as a draft; it has a limited time, also to stop."""
        making = asyncio.ensure_future(self._call(job, fold_inputs))
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

    async def _call(self, job: Job, fold_inputs: FoldInputs) -> JsonValue:
        try:
            return await self._make(job, self._steps(job, fold_inputs))
        except SystemExit as error:  # from a task it would end the loop, and all other folds
            raise RuntimeError("it wanted to end the process") from error

    async def _complete(self, job: Job, draft: Draft, fold_inputs: FoldInputs) -> Ended | None:
        done = await self._append_unforgotten(job, draft, fold_inputs)
        if done is not None:
            self._reach("fold.completed")
            return ended_by(draft, done.first)
        objection = await retry_shielded(lambda: self._objection(job, fold_inputs))
        if objection is not None:
            return await self._fail(job, objection)
        try:
            done = await self._append(job, draft)
        except InvalidEntry as error:  # the session changed since we looked
            return await self._fail(job, reason_of(error))
        self._reach("fold.completed")
        if await retry_shielded(
            lambda: forgotten_since(self._log, job, fold_inputs, done.revision)
        ):
            # Forgotten after we looked and before the summary was there to be forgotten too.
            await retry_shielded(
                lambda: self._log.forget(job.session, Span(done.first, done.first))
            )
            return await retry_shielded(lambda: end_of(self._log, job.session, job.fold))
        return ended_by(draft, done.first)

    async def _append_unforgotten(
        self, job: Job, draft: Draft, fold_inputs: FoldInputs
    ) -> Appended | None:
        """Append the end, if nothing at all was forgotten since we began; None if one must look."""
        if fold_inputs.revision is None:
            return None
        revision = fold_inputs.revision
        try:
            done = await retry_shielded(
                lambda: self._log.append(job.session, [draft], expected=None, revision=revision)
            )
        except InvalidEntry:
            return None
        return None if done.revision is None else done

    async def _fail(self, job: Job, reason: str) -> Ended | None:
        draft = self._draft(job, FoldFailed(job.fold, reason))
        try:
            done = await self._append(job, draft)
        except InvalidEntry:  # it has ended: somebody cancelled it
            return await retry_shielded(lambda: end_of(self._log, job.session, job.fold))
        self._reach("fold.failed")
        return Ended(job.fold, done.first, reason=reason)

    def _draft(self, job: Job, value: Value) -> Draft:
        """A draft that goes with what the fold is about, when that is forgotten.

        A start holds what the host knew, and an error may quote what it stumbled over. A summary
        rests on the folds that it took its words from, too, which may stand behind what it covers.
        """
        return self._author.draft(value)._replace(rests_on=union((*job.spans, *value.rests_on())))

    async def _begun(self, job: Job, draft: Draft, head: int | None) -> Begun:
        """Append the start there, or wherever the head is; what came of it."""
        try:
            done = await self._append(job, draft, head)
        except IdReused:
            return "known"
        if done.repeated and not await self._is_running(job):  # a tombstone is like any draft
            return "known"
        if head is None and not await self._is_first(job):
            return "refused"
        self._reach("fold.started")
        return "begun"

    async def _is_running(self, job: Job) -> bool:
        return any(one.fold == job.fold for one in await running(self._log, job.session))

    async def _append(self, job: Job, draft: Draft, expected: int | None = None) -> Appended:
        """Append the draft, once.

        An end goes wherever the head is: that the fold runs and its spans are on the line is what
        the log itself looks at, in the moment it writes.
        """
        return await retry_shielded(
            lambda: self._log.append(job.session, [draft], expected=expected)
        )

    async def _objection(self, job: Job, fold_inputs: FoldInputs) -> str | None:
        seen = await self._log.outlined(job.session)
        if not _stands(job, seen.outline, seen.info.entries):
            return OFF_THE_LINE
        gone = await forgotten_since(self._log, job, fold_inputs, seen.revision)
        return FORGOTTEN_MEANWHILE if gone else None

    async def _is_first(self, job: Job) -> bool:
        """Whether no other fold was begun before this one; else it is closed."""
        first, *_ = await running(self._log, job.session)
        if first.fold == job.fold:
            return True
        await self._fail(job, "another fold is under way")
        return False

    def _start(self, job: Job, needs: tuple[Span, ...]) -> Draft:
        draft = self._draft(job, job.started())
        return draft._replace(id=job.fold, rests_on=union((*draft.rests_on, *needs)))


def heard(future: asyncio.Future[Any]) -> None:
    """Take note of how a future ended, so that asyncio does not complain that nobody did."""
    if not future.cancelled():
        future.exception()


def _is_fresh(job: Job, outline: Outline) -> bool:
    if outline.running:
        return False
    return job.head is None or all(fold.seq <= job.head for fold in outline.folds)


def _stands(job: Job, outline: Outline, head: int) -> bool:
    return not subtract(job.spans, outline.on_line(head))


async def _stopped(making: asyncio.Future[JsonValue]) -> None:
    making.cancel()
    await retry_shielded(lambda: asyncio.wait({making}, timeout=STOPPING))
