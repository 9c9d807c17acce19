"""The life of one fold, from its start entry to its end; the caller holds the session's lock."""

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
    decode_end,
    end_of,
    reason_of,
    running,
)
from refold.engine.steps import (
    FORGOTTEN_MEANWHILE,
    FoldInputs,
    FoldSnapshot,
    erase_steps,
    forget_with_inputs,
    forgotten_since,
    gather_inputs,
    take_snapshot,
)
from refold.errors import Conflict, IdReused, InvalidEntry
from refold.fold.job import Job, Make, Steps
from refold.fold.material import needed
from refold.log import (
    CODEC,
    Appended,
    Author,
    Draft,
    Entry,
    FoldCompleted,
    FoldFailed,
    FoldStarted,
    Log,
    Outline,
    Outlined,
    Running,
    Span,
    Value,
)
from refold.log.entry import subtract, union

STOP_TIMEOUT = 5.0
"""Seconds that a canceled `make` has to stop; then it is abandoned."""
OFF_THE_LINE = "the session was rewound or cleared meanwhile"
_MAX_COMPARE_AND_SETS = 20

StartOutcome = Literal["started", "known", "refused"]
"""`started`: make it now. `known`: it was started before, and has ended. `refused`: another fold
runs, or was completed since this one's spans were chosen."""
NewSteps = Callable[[Job, FoldInputs], Steps]


class FoldRunner:
    """Runs folds of one log, and records in it what becomes of them."""

    def __init__(  # noqa: PLR0913 - all but two are keywords
        self,
        log: Log,
        make: Make,
        *,
        steps: NewSteps,
        author: Author,
        limit: float | None,
        reach: Callable[[str], None] = lambda _: None,
        hands_over: Callable[[], bool] = lambda: False,
    ) -> None:
        """`hands_over` tells whether a canceled fold is left to another process."""
        self._log = log
        self._make = make
        self._steps = steps
        self._author = author
        self._limit = limit
        self._reach = reach
        self._hands_over = hands_over

    async def start(self, job: Job) -> StartOutcome:
        """Append the start.

        The start's id is the fold's own, so the log accepts no fold twice. Compare-and-set proves
        that nothing was started or completed since we looked. Where others append all the time, we
        append without it and look afterwards: of two folds started that way, the first wins.
        """
        draft: Draft | None = None
        if job.needs is not None and job.head is not None:
            draft = self._start_draft(job, job.needs)
            with suppress(Conflict, InvalidEntry):
                if await self._append_start(job, draft, job.head) == "started":
                    return "started"
            # It was planned too long ago, or started before: look.
        for attempt in count():
            outlined = await self._log.outlined(job.session)
            if not _is_fresh(job, outlined.outline):
                return "known" if await end_of(self._log, job.session, job.fold) else "refused"
            # Drafted once: the same id may not come with different content.
            draft = draft or self._start_draft(job, needed(job.spans, outlined.outline))
            with suppress(Conflict):
                head = outlined.info.entries if attempt < _MAX_COMPARE_AND_SETS else None
                return await self._append_start(job, draft, head)
        raise AssertionError

    async def _append_start(self, job: Job, draft: Draft, head: int | None) -> StartOutcome:
        try:
            appended = await self._append(job, draft, head)
        except IdReused:
            return "known"
        if appended.repeated or head is None:
            folds = [entry.fold for entry in await running(self._log, job.session)]
            # A repeated append is also accepted for a start that has become a tombstone.
            if appended.repeated and job.fold not in folds:
                return "known"
            if head is None and folds[:1] != [job.fold]:
                await self._fail(job, "another fold is under way")
                return "refused"
        self._reach("fold.started")
        return "started"

    def _start_draft(self, job: Job, needs: tuple[Span, ...]) -> Draft:
        draft = self._draft(job, job.started())
        return draft._replace(id=job.fold, rests_on=union((*draft.rests_on, *needs)))

    async def find_job(self, session: str, fold: Running) -> Job | None:
        """The job of a running fold; None when it cannot be finished anymore."""
        outlined = await self._log.outlined(session)
        for entry in await self._log.read(session, Span(fold.seq, fold.seq)):
            return _decode_job(session, entry, outlined)
        return None

    async def close(self, session: str, fold: Running, reason: str = INTERRUPTED) -> Ended | None:
        """End a fold that nobody makes anymore."""
        await retry_shielded(lambda: erase_steps(self._log, session, fold))
        return await self._fail(Job(session, fold.fold, (), ""), reason)

    async def resume(self, session: str, fold: UUID) -> Ended | None:
        """Make a fold that was started elsewhere, or close it when it cannot be finished."""
        snapshot = await take_snapshot(self._log, session, fold)
        if snapshot.start is None:
            return None
        if job := _decode_job(session, snapshot.start, snapshot.outlined):
            return await self.run(job, snapshot)
        return await self.close(session, Running(snapshot.start.seq, fold))

    async def run(self, job: Job, snapshot: FoldSnapshot | None = None) -> Ended | None:
        """Make a started fold and append its end; returns how it ended, here or elsewhere."""
        inputs = FoldInputs()
        try:
            inputs = await gather_inputs(self._log, job, snapshot)
            draft = await self._make_summary(job, inputs)
        except asyncio.CancelledError:
            if self._hands_over():
                raise
            return await self._fail(job, CANCELLED)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 - logged, even a panic of native code
            return await self._fail(job, reason_of(error))
        self._reach("fold.made")
        return await self._complete(job, draft, inputs)

    async def _make_summary(self, job: Job, inputs: FoldInputs) -> Draft:
        async def make() -> JsonValue:
            try:
                return await self._make(job, self._steps(job, inputs))
            except SystemExit as error:  # from a task it would end the loop, and all other folds
                raise RuntimeError("it wanted to end the process") from error

        async def stop() -> None:
            making.cancel()
            await retry_shielded(lambda: asyncio.wait({making}, timeout=STOP_TIMEOUT))

        making = asyncio.create_task(make())
        making.add_done_callback(consume_result)
        try:
            await asyncio.wait({making}, timeout=self._limit)
        except asyncio.CancelledError:
            await stop()
            raise
        if not making.done():
            await stop()
            raise TimeoutError(f"it took longer than {self._limit:g} seconds")
        return self._draft(job, FoldCompleted(job.fold, job.spans, making.result()))

    async def _complete(self, job: Job, draft: Draft, inputs: FoldInputs) -> Ended | None:
        appended = await self._append_unchanged(job, draft, inputs.revision)
        if appended is not None:
            self._reach("fold.completed")
            return decode_end(draft, appended.first)
        objection = await retry_shielded(lambda: self._objection(job, inputs))
        if objection is not None:
            return await self._fail(job, objection)
        try:
            appended = await self._append(job, draft)
        except InvalidEntry as error:  # the session changed since we looked
            return await self._fail(job, reason_of(error))
        self._reach("fold.completed")
        if await forget_with_inputs(self._log, job, inputs, appended):
            return await retry_shielded(lambda: end_of(self._log, job.session, job.fold))
        return decode_end(draft, appended.first)

    async def _append_unchanged(
        self, job: Job, draft: Draft, revision: int | None
    ) -> Appended | None:
        """Append the end, if nothing was forgotten since `revision`; None if we must look."""
        if revision is None:
            return None
        try:
            appended = await retry_shielded(
                lambda: self._log.append(job.session, [draft], expected=None, revision=revision)
            )
        except InvalidEntry:
            return None
        return None if appended.revision is None else appended

    async def _objection(self, job: Job, inputs: FoldInputs) -> str | None:
        outlined = await self._log.outlined(job.session)
        if not _is_on_line(job, outlined):
            return OFF_THE_LINE
        forgotten = await forgotten_since(self._log, job, inputs, outlined.revision)
        return FORGOTTEN_MEANWHILE if forgotten else None

    async def _fail(self, job: Job, reason: str) -> Ended | None:
        draft = self._draft(job, FoldFailed(job.fold, reason))
        try:
            appended = await self._append(job, draft)
        except InvalidEntry:  # it has ended: somebody canceled it
            return await retry_shielded(lambda: end_of(self._log, job.session, job.fold))
        self._reach("fold.failed")
        return Ended(job.fold, appended.first, reason=reason)

    def _draft(self, job: Job, value: Value) -> Draft:
        # It is forgotten with what the fold is about: a start holds what the host knew, and an
        # error may quote its input. A summary also rests on the folds whose words it took.
        return self._author.draft(value)._replace(rests_on=union((*job.spans, *value.rests_on())))

    async def _append(self, job: Job, draft: Draft, expected: int | None = None) -> Appended:
        # An end needs no expected head: as it writes, the log itself checks that the fold runs and
        # that its spans are on the line.
        return await retry_shielded(
            lambda: self._log.append(job.session, [draft], expected=expected)
        )


def consume_result(future: asyncio.Future[Any]) -> None:
    """Retrieve a future's exception, so asyncio does not warn that nobody did."""
    if not future.cancelled():
        future.exception()


def _decode_job(session: str, start: Entry, outlined: Outlined) -> Job | None:
    match CODEC.decode(start):
        case FoldStarted() as started:
            job = Job.from_started(session, started)
            return job if _is_on_line(job, outlined) else None
        case _:
            return None


def _is_fresh(job: Job, outline: Outline) -> bool:
    if outline.running:
        return False
    return job.head is None or all(fold.seq <= job.head for fold in outline.folds)


def _is_on_line(job: Job, outlined: Outlined) -> bool:
    return not subtract(job.spans, outlined.outline.on_line(outlined.info.entries))
