"""The local engine: a fold is a task of the process that requested it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from uuid import UUID

from refold.engine.fold_runner import STOP_TIMEOUT, FoldRunner, consume_result
from refold.engine.locks import FileLocks, LockHandle, retry_shielded
from refold.engine.protocol import (
    INTERRUPTED,
    Ended,
    FoldWatcher,
    end_of,
    engine_closed,
    log_cancellation,
    running,
    wait_for,
)
from refold.engine.steps import FoldInputs, LoggedSteps, is_canceled
from refold.fold.job import Job, Make
from refold.log import Author, Log, Running

TIME_LIMIT = 3_600.0
"""Default limit, in seconds, for making one fold."""
MAX_ATTEMPTS = 3
"""How often a fold is attempted whose process dies while making it."""
_START_PAUSES = (0.01, 0.04, 0.15)
_FIRST_PAUSE, _MAX_PAUSE, _BACKOFF = 0.02, 1.0, 1.5


@dataclass(eq=False)
class _Work:
    """What this engine does in one session while it holds the session's lock."""

    lock: LockHandle
    requested: UUID | None
    """The fold to start, if any; otherwise dead folds are recovered only."""
    started: "asyncio.Future[bool]"
    """Whether the requested fold was started, now or before."""
    current: UUID | None = None
    unsettled: set[UUID] | None = None
    """The folds whose attempts are noted and which have not ended; None: not read yet."""
    ended: dict[UUID, Ended] = field(default_factory=dict[UUID, Ended])
    task: "asyncio.Task[None] | None" = None

    def expect(self, fold: UUID) -> None:
        if self.unsettled is not None:
            self.unsettled.add(fold)

    def end(self, ended: Ended) -> None:
        self.ended[ended.fold] = ended
        if self.unsettled:
            self.unsettled.discard(ended.fold)


class LocalEngine:
    """Runs folds as tasks of this process. On a single machine, nothing more is needed.

    `locks` is a folder shared by all processes that use the same store; a lock in it shows that a
    session's fold is alive. The default is the log's own. `limit` is how many seconds making one
    fold may take. With `leave`, folds that are running when the engine is closed are left to the
    next process that opens their sessions, if the store has such a process; otherwise they are
    canceled. `reach` is for tests.
    """

    def __init__(  # noqa: PLR0913 - all but two have a default
        self,
        log: Log,
        make: Make,
        *,
        locks: Path | None = None,
        author: Author | None = None,
        limit: float | None = TIME_LIMIT,
        leave: bool = False,
        reach: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._log = log
        self._author = author or Author()
        self._locks = FileLocks(locks, log.tenant) if locks else log.locks()
        # Locks without a place belong to this process alone: no other could finish a fold.
        leaves = leave and self._locks.place is not None
        self._runner = FoldRunner(
            log,
            make,
            steps=self._steps,
            author=self._author,
            limit=limit,
            reach=reach,
            hands_over=lambda: leaves and self._closed,
        )
        self._reach = reach
        self._active: dict[str, _Work] = {}
        self._closed = False

    def _steps(self, job: Job, inputs: FoldInputs) -> LoggedSteps:
        return LoggedSteps(self._log, job, self._author, inputs, reach=self._reach)

    async def start(self, job: Job) -> bool:
        for pause in _START_PAUSES:
            work = self._active.get(job.session) or await self._take_lock(job.session, job)
            if work is not None and job.fold in (work.requested, work.current):
                return job.fold == work.current or await asyncio.shield(work.started)
            if folds := await running(self._log, job.session):
                return any(entry.fold == job.fold for entry in folds)
            # The holder of the lock is about to start a fold, or to release it.
            if work is not None and work.task is not None:
                await asyncio.wait({work.task}, timeout=pause)
            else:
                await asyncio.sleep(pause)
        return False

    async def wait(self, session: str, fold: UUID, timeout: float | None = None) -> Ended | None:  # noqa: ASYNC109 - part of the protocol
        until = None if timeout is None else asyncio.get_running_loop().time() + timeout
        if work := self._active.get(session):
            await asyncio.wait({work.started}, timeout=timeout)
        return await wait_for(self._log, session, fold, self._watch, until)

    async def cancel(self, session: str, fold: UUID) -> Ended | None:
        work = self._active.get(session)
        if work is not None:
            await asyncio.wait({work.started})
        ended = await log_cancellation(self._log, session, fold, self._author)
        if ended is None:
            return await end_of(self._log, session, fold)
        if work is not None and work.unsettled:
            work.unsettled.discard(fold)
        if work is not None and work.task is not None and work.current == fold:
            work.task.cancel()
            await asyncio.wait({work.task}, timeout=2 * STOP_TIMEOUT)
        return ended

    async def recover(self, session: str) -> tuple[Ended, ...]:
        work = await self._take_lock(session)
        if work is None or work.task is None:
            return ()
        await asyncio.shield(work.started)
        await asyncio.wait({work.task})
        return tuple(work.ended.values())

    @property
    def busy(self) -> bool:
        return bool(self._active)

    async def drain(self) -> None:
        """Wait until no fold is being made anymore."""
        while tasks := self._tasks():
            await asyncio.wait(tasks)

    async def close(self) -> None:
        self._closed = True
        tasks = self._tasks()
        for task in tasks:
            task.cancel()
        if tasks:
            await retry_shielded(lambda: asyncio.wait(tasks))

    def _tasks(self) -> set[asyncio.Task[None]]:
        return {work.task for work in self._active.values() if work.task is not None}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def _take_lock(self, session: str, job: Job | None = None) -> _Work | None:
        """Take the session's lock and start to work; None when the lock is held."""
        if self._closed:
            raise engine_closed()
        await self._log.head(session)  # raises, so that no lock is made for a missing session
        lock = await self._locks.take(session)
        if lock is None:
            return None
        if self._closed:
            lock.release()
            raise engine_closed()
        work = _Work(lock, job and job.fold, asyncio.get_running_loop().create_future())
        work.started.add_done_callback(consume_result)
        work.task = asyncio.create_task(self._work(work, session, job))
        # Not in the task itself: one that is canceled at once never runs.
        work.task.add_done_callback(lambda _: self._release(work, session))
        self._active[session] = work
        return work

    def _release(self, work: _Work, session: str) -> None:
        del self._active[session]
        if work.unsettled is not None and not work.unsettled:
            work.lock.settle()
        work.lock.release()
        if not work.started.done():
            work.started.set_exception(engine_closed())

    async def _work(self, work: _Work, session: str, job: Job | None) -> None:
        try:
            self._reach("fold.locked")
            await self._finish_dead_folds(work, session)
            if job is not None and not work.started.done():
                outcome = await self._runner.start(job)
                if outcome == "started":
                    work.expect(job.fold)
                    await work.lock.attempt(job.fold)
                    await self._make(work, job)
                else:
                    work.started.set_result(outcome == "known")
        except Exception as error:  # noqa: BLE001 - the caller gets it; an open fold is found later
            if not work.started.done():
                work.started.set_exception(error)
        if not work.started.done():
            work.started.set_result(False)

    async def _finish_dead_folds(self, work: _Work, session: str) -> None:
        """Finish or close the running folds of the log: we hold the lock, so they are dead.

        A request for another fold then returns that one of these is running.
        """
        dead = await running(self._log, session)
        work.unsettled = {fold.fold for fold in dead}
        for fold in dead:
            job = await self._runner.find_job(session, fold)
            attempts = await work.lock.attempt(fold.fold)
            if job is not None and attempts <= MAX_ATTEMPTS:
                self._reach("fold.resumed")
                await self._make(work, job)
            else:
                reason = INTERRUPTED if job is None else f"{INTERRUPTED} too often"
                if ended := await self._runner.close(session, fold, reason):
                    work.end(ended)
            if is_canceled():
                return  # the next recovery continues

    async def _make(self, work: _Work, job: Job) -> None:
        work.current = job.fold
        if not work.started.done():
            work.started.set_result(work.requested == job.fold)
        if ended := await self._runner.run(job):
            work.end(ended)
        work.current = None

    async def _watch(self, session: str, fold: Running) -> Ended:
        """Wait for a running fold, wherever it runs; if its process died, finish it here."""
        watcher, pause = FoldWatcher(self._log, session, fold), _FIRST_PAUSE
        while True:
            work = self._active.get(session) or await self._take_lock(session)
            if work is not None and work.task is not None:
                await asyncio.wait({work.task})
            if ended := await watcher.poll():
                return ended
            await asyncio.sleep(pause)
            pause = min(pause * _BACKOFF, _MAX_PAUSE)
