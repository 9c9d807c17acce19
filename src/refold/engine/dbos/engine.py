"""The engine on DBOS: a fold is a workflow that any worker may run.

Folds that call no model are the exception: with `extract`, the process that needs one makes it. An
extractive summary takes a few milliseconds and costs nothing, so it needs no queue, no limit per
tenant and no worker. It needs no lease either: the same log gives the same summary, and the log
accepts one end per fold. So any process makes an unfinished one, whether the process that started
it is slow or dead. Two processes that make the same fold waste a few milliseconds, and the later
end is refused.
"""

import asyncio
import logging
from asyncio import FIRST_COMPLETED
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, Never, Self
from uuid import UUID

from refold.engine.dbos.database import POOL, VERSION, Priority, queue_of
from refold.engine.dbos.limits import Limits, model_of
from refold.engine.dbos.metrics import FoldMetrics
from refold.engine.dbos.queue import FoldQueue, QueuedFold
from refold.engine.dbos.recovery import Liveness
from refold.engine.dbos.worker import GRACE
from refold.engine.fold_runner import STOP_TIMEOUT, FoldRunner, consume_result
from refold.engine.local import TIME_LIMIT
from refold.engine.locks import retry_shielded
from refold.engine.protocol import (
    Ended,
    FoldWatcher,
    end_of,
    engine_closed,
    log_cancellation,
    running,
    wait_for,
)
from refold.engine.steps import FoldInputs, LoggedSteps
from refold.errors import SessionForgotten, SessionNotFound
from refold.fold.compactor import MANUAL, is_extractive, read_context
from refold.fold.job import Job, Make, Steps
from refold.log import Author, Log, Running

AT_ONCE: Final = 2
"""Folds that one engine makes at a time: they share the processor with requests."""
_CLOSE_TIMEOUT: Final = 30.0
"""Seconds to finish extractive folds on close: enough for hundreds, if none of them hangs."""
_FIRST_PAUSE, _MAX_PAUSE, _BACKOFF = 0.02, 0.5, 1.5
_MIN_PAUSE: Final = 0.01
_WARN_AFTER: Final = 5.0
"""Seconds to wait for a fold before checking that there is a worker at all."""
_LOGGER: Final = logging.getLogger("refold.engine")
_AWAITED_TRIGGERS: Final = frozenset({MANUAL, "model switch"})


class ExtractiveFolds:
    """The extractive folds that one engine is making in this process."""

    def __init__(self, run: Callable[[Job], Awaitable[Ended | None]]) -> None:
        self._run = run
        self._tasks: dict[tuple[str, UUID], asyncio.Task[Ended | None]] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)
        self.closing = False
        """From now on, a canceled fold is left to others and not logged as failed."""

    def start(self, job: Job) -> asyncio.Task[Ended | None]:
        """Make a fold that was started, here or elsewhere, unless this process is making it."""
        key = job.session, job.fold
        task = self._tasks.get(key)
        if task is None:
            task = self._tasks[key] = asyncio.create_task(self._make(job))
            task.add_done_callback(consume_result)
            task.add_done_callback(lambda _: self._tasks.pop(key, None))
        return task

    async def _make(self, job: Job) -> Ended | None:
        async with self._slots:
            return await self._run(job)

    async def stop(self, session: str, fold: UUID) -> None:
        task = self._tasks.get((session, fold))
        if task is not None:
            task.cancel()
            await asyncio.wait({task}, timeout=2 * STOP_TIMEOUT)

    async def close(self) -> None:
        """Finish the folds that are being made; those that take too long are left to others."""
        pending = set(self._tasks.values())
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _CLOSE_TIMEOUT
        while pending and loop.time() < deadline:
            done, pending = await asyncio.wait(
                pending, timeout=STOP_TIMEOUT, return_when=FIRST_COMPLETED
            )
            if not done:  # the store does not answer
                break
        self.closing = True
        for task in pending:
            task.cancel()
        if pending:
            await asyncio.wait(pending, timeout=STOP_TIMEOUT)


class DbosEngine:
    """Queues folds for workers: see `Worker`.

    With `extract`, it makes folds that call no model itself: see `refold.engine.dbos.engine`.

    All engines and workers of a store must be of this kind: another kind would treat their folds as
    dead.
    """

    def __init__(  # noqa: PLR0913 - all but two have a default
        self,
        log: Log,
        address: str,
        *,
        limits: Limits | None = None,
        author: Author | None = None,
        pool: str = POOL,
        version: str = VERSION,
        grace: float = GRACE,
        look: float = 1.0,
        leave: bool = True,
        extract: Make | None = None,
        metrics: FoldMetrics | None = None,
    ) -> None:
        """Make an engine; it connects when it is first used.

        Args:
            log: The log of one tenant.
            address: The database with DBOS's tables, see `prepare`.
            limits: The limits of the queues; the same for all engines and workers of a pool.
            author: Makes the entries; tests give it a clock.
            pool: The workers that make the folds.
            version: The workflow's version.
            grace: Seconds that a worker's lock must be free before the worker counts as dead.
            look: Seconds between two checks that the worker of an awaited fold is alive.
            leave: Whether folds that are running when the engine is closed go on; otherwise they
                are canceled.
            extract: Makes summaries that need no model, in this process; None: workers do.
            metrics: What is measured, and where it goes.
        """
        self._log = log
        self._author = author or Author()
        self._runner = FoldRunner(log, _never, steps=_never, author=self._author, limit=None)
        self._metrics = metrics or FoldMetrics()
        self._queue = FoldQueue(address, limits or Limits(), pool, version)
        self._liveness = Liveness(grace, look)
        self._grace = grace
        self._extract = extract
        self._extractive = ExtractiveFolds(self._run_extractive)
        self._look = look
        self._leave = leave
        self._to_cancel: dict[tuple[str, UUID], None] = {}
        self._starting: dict[asyncio.Task[bool], str] = {}
        self._closed = False
        self._warned = False

    async def start(self, job: Job) -> bool:
        if self._closed:
            raise engine_closed()
        # A task of its own: a fold whose start is in the log must be queued, too.
        starting = asyncio.create_task(self._start(job))
        self._starting[starting] = job.session
        starting.add_done_callback(self._starting.pop)
        starting.add_done_callback(consume_result)
        return await asyncio.shield(starting)

    async def _start(self, job: Job) -> bool:
        for _ in range(2):
            outcome = await self._runner.start(job)
            if outcome == "started":
                self._note(job.session, job.fold)
                self._metrics.started(job.trigger)
                if self._makes(job):
                    self._extractive.start(job)
                else:
                    await self._queue.put(self._log.tenant, job, _priority(job))
                return True
            if outcome == "known":
                return True
            folds = await running(self._log, job.session)
            rescued = [await self._rescue(job.session, fold, "background") for fold in folds]
            if any(fold.fold == job.fold for fold in folds):
                return True
            if not any(rescued) or await running(self._log, job.session):
                return False
        return False

    async def wait(self, session: str, fold: UUID, timeout: float | None = None) -> Ended | None:  # noqa: ASYNC109 - part of the protocol
        until = None if timeout is None else asyncio.get_running_loop().time() + timeout
        await self._wait_for_starts(session, timeout)
        return await wait_for(self._log, session, fold, self._watch, until)

    async def cancel(self, session: str, fold: UUID) -> Ended | None:
        await self._wait_for_starts(session)
        ended = await log_cancellation(self._log, session, fold, self._author)
        await self._extractive.stop(session, fold)
        if ended is None:
            return await end_of(self._log, session, fold)
        await self._stop_worker(session, fold)
        return ended

    async def recover(self, session: str) -> tuple[Ended, ...]:
        if self._closed:
            raise engine_closed()
        recovered: list[Running] = []
        for fold in await running(self._log, session):
            job = await self._extractive_job(session, fold)
            if job is not None or await self._rescue_if_dead(session, fold):
                self._note(session, fold.fold)
                recovered.append(fold)
        ends = [await self.wait(session, fold.fold) for fold in recovered]
        return tuple(ended for ended in ends if ended is not None)

    async def close(self) -> None:
        """Stop. Running folds go on elsewhere, or are canceled: see `leave`."""
        self._closed = True
        if self._starting:
            await retry_shielded(lambda: asyncio.wait(set(self._starting)))
        await retry_shielded(
            lambda: asyncio.gather(*(self._cancel_existing(*key) for key in self._to_cancel))
        )
        await retry_shielded(self._extractive.close)
        await self._queue.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def _makes(self, job: Job) -> bool:
        return self._extract is not None and is_extractive(job)

    async def _extractive_job(self, session: str, fold: Running) -> Job | None:
        """The job of a running fold, if this process can make it, whichever process started it."""
        if self._extract is None:
            return None
        job = await self._runner.find_job(session, fold)
        return job if job is not None and self._makes(job) else None

    async def _run_extractive(self, job: Job) -> Ended | None:
        with self._metrics.fold() as making:

            def steps(job: Job, inputs: FoldInputs) -> Steps:
                return making.steps(LoggedSteps(self._log, job, self._author, inputs), job)

            ended = await FoldRunner(
                self._log,
                self._extract or _never,
                steps=steps,
                author=self._author,
                limit=TIME_LIMIT,
                hands_over=lambda: self._extractive.closing,
            ).run(job)
            making.ended(ended)
            return ended

    async def _rescue(self, session: str, fold: Running, priority: Priority) -> bool:
        """Requeue, make or close an abandoned fold; False when it was not abandoned."""
        if job := await self._extractive_job(session, fold):
            self._extractive.start(job)
        elif not await self._hand_over(session, fold, priority):
            return False
        self._note(session, fold.fold)
        return True

    async def _hand_over(self, session: str, fold: Running, priority: Priority) -> bool:
        row = await self._find(session, fold.fold)
        if not await self._is_abandoned(row) or fold not in await running(self._log, session):
            return False
        job = await self._runner.find_job(session, fold)
        if job is None:
            return await self._runner.close(session, fold) is not None
        if row is None:
            return await self._queue.put(self._log.tenant, job, priority)
        await self._queue.register(model_of(job))
        queue = queue_of(self._queue.pool, priority, model_of(job))
        # A fold of another version goes back to its own workers.
        moved = await self._queue.requeue(
            row, queue if row.version == self._queue.version else None
        )
        self._metrics.taken_over(int(moved and row.worker is not None))
        return moved

    async def _is_abandoned(self, row: QueuedFold | None) -> bool:
        """Whether the fold's worker is dead, or it is in no queue.

        Workers sweep for dead workers, too, but not for a fold whose process died before queuing.
        """
        if row is None:
            return True
        if row.worker is None:
            return await self._queue.is_lost(row.id)
        dead = self._liveness.dead(await self._queue.workers())
        return any(worker.executor == row.worker for worker in dead)

    async def _rescue_if_dead(self, session: str, fold: Running) -> bool:
        """Rescue it, after waiting until it is known whether the fold's worker is dead."""
        while not await self._rescue(session, fold, "background"):
            row = await self._find(session, fold.fold)
            if row is None or row.worker is None or row.held:
                return False
            if fold not in await running(self._log, session):
                return False
            await asyncio.sleep(self._grace / 8 + _MIN_PAUSE)
        return True

    async def _find(self, session: str, fold: UUID) -> QueuedFold | None:
        return await self._queue.find(self._log.tenant, session, fold)

    def _note(self, session: str, fold: UUID) -> None:
        if not self._leave:
            self._to_cancel[session, fold] = None

    async def _watch(self, session: str, fold: Running) -> Ended:
        """Wait for a running fold, wherever it runs; rescue it if it is abandoned."""
        job = await self._extractive_job(session, fold)
        # Shielded: a caller that stops waiting does not stop the fold.
        if job and (ended := await asyncio.shield(self._extractive.start(job))):
            return ended
        await self._queue.prioritize(self._log.tenant, session, fold.fold)
        watcher, pause, checked = FoldWatcher(self._log, session, fold), _FIRST_PAUSE, 0.0
        loop = asyncio.get_running_loop()
        began = loop.time()
        while True:
            if ended := await watcher.poll():
                return ended
            if loop.time() - checked > self._look:
                checked = loop.time()
                if await self._rescue(session, fold, "waiting"):
                    pause = _FIRST_PAUSE
                if checked - began >= _WARN_AFTER:
                    await self._warn_without_workers()
            await asyncio.sleep(pause)
            pause = min(pause * _BACKOFF, _MAX_PAUSE)

    async def _warn_without_workers(self) -> None:
        if self._warned or any(worker.held for worker in await self._queue.workers()):
            return
        self._warned = True
        _LOGGER.warning(
            "A fold is waiting, and there is no worker to make it: start `refold worker`."
        )

    async def _stop_worker(self, session: str, fold: UUID) -> None:
        """Have a canceled fold's worker stop making it, and wait until it has."""
        pause = _FIRST_PAUSE
        with suppress(TimeoutError):
            async with asyncio.timeout(2 * STOP_TIMEOUT):
                # One that is only queued needs no stop: its worker finds that it has ended.
                while (row := await self._find(session, fold)) and row.held:
                    await self._queue.stop(row.id)
                    await asyncio.sleep(pause)
                    pause = min(pause * _BACKOFF, _MAX_PAUSE)

    async def _cancel_existing(self, session: str, fold: UUID) -> None:
        with suppress(SessionNotFound, SessionForgotten):
            await self.cancel(session, fold)

    async def _wait_for_starts(self, session: str, timeout: float | None = None) -> None:  # noqa: ASYNC109 - the caller's own
        starting = {task for task, name in self._starting.items() if name == session}
        if starting:
            await asyncio.wait(starting, timeout=timeout)


def _priority(job: Job) -> Priority:
    awaited = job.trigger in _AWAITED_TRIGGERS or read_context(job.context).at_once
    return "waiting" if awaited else "background"


def _never(*_: object) -> Never:
    raise AssertionError
