"""The local engine: a fold is a task of the process that asked for it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from uuid import UUID

from refold.engine.folding import STOPPING, Folding, heard
from refold.engine.locks import FileLocks, Held, retry_shielded
from refold.engine.protocol import (
    INTERRUPTED,
    Ended,
    Lookout,
    closed,
    end_of,
    give_up,
    running,
    wait_for,
)
from refold.engine.steps import FoldInputs, LoggedSteps, is_cancelled
from refold.fold.job import Job, Make
from refold.log import Author, Log, Running

LIMIT = 3_600.0
"""Seconds that making one fold may take, unless told otherwise."""
MOST_ATTEMPTS = 3
"""How often a fold is made whose process dies while it is made."""
_MOMENTS = (0.01, 0.04, 0.15)
_FIRST_PAUSE, _LONGEST_PAUSE, _SLOWER = 0.02, 1.0, 1.5


@dataclass(eq=False)
class _Work:
    """What this engine does in one session, as long as it holds the session's lock."""

    lock: Held
    asked: UUID | None
    """The fold that was asked for, where one was."""
    begun: "asyncio.Future[bool]"
    """Whether that fold was begun, now or before."""
    now: UUID | None = None
    """The fold that is being made."""
    ended: dict[UUID, Ended] = field(default_factory=dict[UUID, Ended])
    task: "asyncio.Task[None] | None" = None


class LocalEngine:
    """Runs folds as tasks of this process. A person's laptop needs no more.

    `locks` is a folder that all processes with the same store share: there, a lock says that a
    session's fold is alive. It is the log's own unless told. `limit` is how many seconds making one
    fold may take; `reach` is for tests.
    """

    def __init__(  # noqa: PLR0913 - all but two have a default
        self,
        log: Log,
        make: Make,
        *,
        locks: Path | None = None,
        author: Author | None = None,
        limit: float | None = LIMIT,
        reach: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._log = log
        self._author = author or Author()
        self._locks = FileLocks(locks, log.tenant) if locks else log.locks()
        self._folding = Folding(
            log, make, steps=self._steps, author=self._author, limit=limit, reach=reach
        )
        self._reach = reach
        self._at_work: dict[str, _Work] = {}
        self._closed = False

    async def start(self, job: Job) -> bool:
        for pause in _MOMENTS:
            work = self._at_work.get(job.session) or await self._take_up(job.session, job)
            if work is not None and job.fold in (work.asked, work.now):
                return job.fold == work.now or await asyncio.shield(work.begun)
            if under_way := await running(self._log, job.session):
                return any(one.fold == job.fold for one in under_way)
            await _moment(work, pause)  # who holds the lock is about to begin, or to let go
        return False

    async def wait(self, session: str, fold: UUID, timeout: float | None = None) -> Ended | None:  # noqa: ASYNC109 - part of the protocol
        until = None if timeout is None else asyncio.get_running_loop().time() + timeout
        work = self._at_work.get(session)
        if work is not None:
            await asyncio.wait({work.begun}, timeout=timeout)
        return await wait_for(self._log, session, fold, self._watched, until)

    async def cancel(self, session: str, fold: UUID) -> Ended | None:
        work = self._at_work.get(session)
        if work is not None:
            await asyncio.wait({work.begun})
        ended = await give_up(self._log, session, fold, self._author)
        if ended is None:
            return await end_of(self._log, session, fold)
        if work is not None and work.task is not None and work.now == fold:
            work.task.cancel()
            await asyncio.wait({work.task}, timeout=2 * STOPPING)
        return ended

    async def recover(self, session: str) -> tuple[Ended, ...]:
        work = await self._take_up(session)
        if work is None or work.task is None:
            return ()
        await asyncio.shield(work.begun)
        await asyncio.wait({work.task})
        return tuple(work.ended.values())

    @property
    def busy(self) -> bool:
        return bool(self._at_work)

    async def drain(self) -> None:
        """Return when it makes no fold any more."""
        while tasks := {work.task for work in self._at_work.values() if work.task is not None}:
            await asyncio.wait(tasks)

    async def close(self) -> None:
        self._closed = True
        tasks = {work.task for work in self._at_work.values() if work.task is not None}
        for task in tasks:
            task.cancel()
        if tasks:
            await retry_shielded(lambda: asyncio.wait(tasks))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def _steps(self, job: Job, fold_inputs: FoldInputs) -> LoggedSteps:
        return LoggedSteps(self._log, job, self._author, fold_inputs, reach=self._reach)

    async def _take_up(self, session: str, job: Job | None = None) -> _Work | None:
        """Begin to work in a session; None when its lock is taken."""
        if self._closed:
            raise closed()
        await self._log.head(session)  # no lock for a session that is not there
        lock = await self._locks.take(session)
        if lock is None:
            return None
        if self._closed:
            lock.release()
            raise closed()
        work = _Work(lock, job and job.fold, asyncio.get_running_loop().create_future())
        work.begun.add_done_callback(heard)
        work.task = asyncio.create_task(self._do(work, session, job))
        # Not in the task itself: one that is cancelled at once never runs.
        work.task.add_done_callback(lambda _: self._let_go(work, session))
        self._at_work[session] = work
        return work

    def _let_go(self, work: _Work, session: str) -> None:
        del self._at_work[session]
        work.lock.release()
        if not work.begun.done():
            work.begun.set_exception(closed())

    async def _do(self, work: _Work, session: str, job: Job | None) -> None:
        try:
            self._reach("fold.locked")
            await self._bring_to_an_end(work, session)
            if job is not None and not work.begun.done():
                await self._fold(work, job)
        except Exception as error:  # noqa: BLE001 - who asked is told; a fold without end is found later
            if not work.begun.done():
                work.begun.set_exception(error)
        if not work.begun.done():
            work.begun.set_result(False)

    async def _fold(self, work: _Work, job: Job) -> None:
        begun = await self._folding.begin(job)
        if begun == "begun":
            await work.lock.attempt(job.fold)
            await self._make(work, job)
        else:
            work.begun.set_result(begun == "known")

    async def _bring_to_an_end(self, work: _Work, session: str) -> None:
        """Finish or close the folds that the log calls running: we hold the lock, so they are dead.

        Who asked for another fold is told that one of these is under way.
        """
        for one in await running(self._log, session):
            job = await self._folding.left(session, one)
            attempts = await work.lock.attempt(one.fold)
            if job is None:
                _note(work, await self._folding.close(session, one))
            elif attempts > MOST_ATTEMPTS:
                _note(work, await self._folding.close(session, one, f"{INTERRUPTED} too often"))
            else:
                self._reach("fold.resumed")
                await self._make(work, job)
            if is_cancelled():
                return  # whoever recovers next goes on

    async def _make(self, work: _Work, job: Job) -> None:
        work.now = job.fold
        if not work.begun.done():
            work.begun.set_result(work.asked == job.fold)
        _note(work, await self._folding.carry_out(job))
        work.now = None

    async def _watched(self, session: str, one: Running) -> Ended:
        """How a running fold ended, wherever it runs; if its process died, it is finished here."""
        lookout, pause = Lookout(self._log, session, one), _FIRST_PAUSE
        while True:
            work = self._at_work.get(session) or await self._take_up(session)
            if work is not None and work.task is not None:
                await asyncio.wait({work.task})
            if ended := await lookout.ended():
                return ended
            await asyncio.sleep(pause)
            pause = min(pause * _SLOWER, _LONGEST_PAUSE)


async def _moment(work: _Work | None, seconds: float) -> None:
    if work is not None and work.task is not None:
        await asyncio.wait({work.task}, timeout=seconds)
    else:
        await asyncio.sleep(seconds)


def _note(work: _Work, ended: Ended | None) -> None:
    if ended is not None:
        work.ended[ended.fold] = ended
