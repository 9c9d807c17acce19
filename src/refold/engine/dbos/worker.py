"""A worker: makes the folds of all tenants that DBOS's queues deliver."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from threading import Lock
from typing import Any, Final, Self, TypeVar, cast
from uuid import uuid4
from weakref import WeakSet

import psycopg
from dbos import DBOS
from dbos import error as dbos_error
from pydantic import JsonValue
from sqlalchemy.exc import SQLAlchemyError

from refold.engine.dbos.database import (
    POOL,
    SCHEMA,
    VERSION,
    WORKFLOW,
    application,
    database_error,
    version_of,
)
from refold.engine.dbos.limits import Limits
from refold.engine.dbos.metrics import FoldMetrics, Making
from refold.engine.dbos.queue import FoldQueue, QueuedFold
from refold.engine.dbos.recovery import Sweeper, WorkerLease
from refold.engine.fold_runner import FoldRunner
from refold.engine.local import MAX_ATTEMPTS, TIME_LIMIT
from refold.engine.locks import TRANSIENT, retry_shielded
from refold.engine.protocol import INTERRUPTED, reason_of
from refold.engine.steps import FoldInputs, LoggedSteps, find_running
from refold.errors import InvalidInput, RefoldError, SessionForgotten, SessionNotFound
from refold.fold.job import Job, Make, Steps
from refold.log import Author, Log

T = TypeVar("T")

GRACE: Final = 10.0
"""Seconds that a worker's lock must be free before others treat the worker as dead."""
SWEEP: Final = 2.0
"""Seconds between two sweeps for dead workers."""
_FIRST_PAUSE, _MAX_PAUSE = 0.5, 10.0
_ONE_PER_PROCESS: Final = Lock()  # as DBOS itself is

Logs = Callable[[str], Log]
"""The log of a tenant."""
Makes = Callable[[Log], Make]
"""What makes the summaries of a log's folds."""


class Worker:
    """Makes folds while it is entered: `async with Worker(address, store.log, make):`.

    A process has at most one, because it has one DBOS. Any number of processes may run one over the
    same database; DBOS decides which of them makes a fold.
    """

    def __init__(  # noqa: PLR0913 - all but three have a default
        self,
        address: str,
        logs: Logs,
        make: Makes,
        *,
        limits: Limits | None = None,
        models: Iterable[str] = (),
        executor: str | None = None,
        pool: str = POOL,
        version: str = VERSION,
        author: Author | None = None,
        limit: float | None = TIME_LIMIT,
        grace: float = GRACE,
        sweep: float = SWEEP,
        patience: float = 30.0,
        metrics: FoldMetrics | None = None,
        reach: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Make a worker; nothing happens before it is entered.

        Args:
            address: The database with DBOS's tables, without a pooler that shares connections: the
                worker holds a lock and listens.
            logs: Returns a tenant's log.
            make: Returns what makes the summaries of a log's folds.
            limits: The limits of its pool's queues; the worker that starts last sets them.
            models: The summarizing models that are known already; others are discovered.
            executor: Its id, unique among running workers; a new one by default.
            pool: The pool whose engines' folds it makes.
            version: The workflow's version; it takes no folds of another.
            author: Makes the entries; tests give it a clock.
            limit: Seconds that making one fold may take.
            grace: Seconds that a worker's lock must be free before the worker counts as dead; the
                same for all workers and engines of a database.
            sweep: Seconds between two sweeps for dead workers.
            patience: Seconds to let running folds finish on exit; the rest is handed over.
            metrics: What is measured, and where it goes.
            reach: For tests.
        """
        self.executor = executor or f"worker-{uuid4()}"
        self._address = address
        self._logs = logs
        self._make = make
        self._models = ("", *models)
        self._author = author or Author()
        self._limit = limit
        self._patience = patience
        self._reach = reach
        self._metrics = metrics or FoldMetrics()
        self._queue = FoldQueue(address, limits or Limits(), pool, version)
        self._lease = WorkerLease(
            address, self.executor, grace=grace, lost=self._on_lease_lost, stop=self._stop_fold
        )
        self._sweeper = Sweeper(
            self._queue, self._metrics, grace=grace, every=sweep, on_sweep=self._set_limits
        )
        self._making: dict[str, tuple[QueuedFold, asyncio.Task[None]]] = {}
        """By workflow id."""
        self._handed_over: WeakSet[asyncio.Task[None]] = WeakSet()
        """The tasks that were stopped here and whose folds are left to others."""
        self._arriving: set[asyncio.Task[Any]] = set()
        """Deliveries of DBOS whose rows are not claimed yet."""
        self._stopping = False

    async def __aenter__(self) -> Self:
        if not _ONE_PER_PROCESS.acquire(blocking=False):
            raise InvalidInput(
                "A worker runs in this process.", "Run each worker in a process of its own."
            )
        try:
            await self._begin()
        except BaseException:
            _ONE_PER_PROCESS.release()
            await self._queue.close()
            raise
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Take no new folds, let running ones finish, and hand the rest over to other workers."""
        if self._stopping:
            return
        self._stopping = True
        await self._sweeper.end()
        busy = self._making or self._arriving
        ending = asyncio.create_task(_end_dbos(math.ceil(self._patience) + 10 if busy else 0))
        for arriving in self._arriving:
            arriving.cancel()
        if self._making:
            making = {task for _, task in self._making.values()}
            await asyncio.wait(making, timeout=self._patience)
        self._hand_over_all()
        await ending
        with suppress(RefoldError):  # then others will notice that we are gone
            await self._queue.requeue_all(self.executor)
        await self._lease.end()
        await self._queue.close()
        _ONE_PER_PROCESS.release()

    async def _begin(self) -> None:
        await retry_shielded(lambda: self._set_limits(self._models))
        await retry_shielded(self._lease.begin)
        try:
            self._launch()
        except (SQLAlchemyError, dbos_error.DBOSException, psycopg.Error, OSError) as error:
            await _end_dbos()
            await self._lease.end()
            raise database_error(error) from error
        self._lease.keep()
        self._sweeper.begin()

    def _launch(self) -> None:
        # Each worker registers its own, so that no workflow outlives the worker that it runs on.
        # Attempts are counted in the fold's row: DBOS counts those of one workflow only.
        @DBOS.workflow(name=WORKFLOW, max_recovery_attempts=None)
        async def fold() -> None:
            await self._on_delivery(DBOS.workflow_id or "")

        DBOS(
            config={
                "name": application(self._queue.pool),
                "system_database_url": self._address,
                "dbos_system_schema": SCHEMA,
                "executor_id": self.executor,
                "application_version": version_of(self._queue.pool, self._queue.version),
                "run_migrations": False,
                "use_listen_notify": False,
                "log_level": "ERROR",
            }
        )
        DBOS.launch()

    async def _on_delivery(self, workflow: str) -> None:
        """Finish the fold of a workflow.

        Raises CancelledError when the fold belongs to another workflow by now: DBOS then records no
        outcome.
        """
        arriving = cast("asyncio.Task[Any]", asyncio.current_task())
        self._arriving.add(arriving)
        try:
            await self._lease.wait_until_sure()
            row = await self._persist(lambda: self._queue.claim(workflow, self.executor))
        finally:
            self._arriving.discard(arriving)
        if row is None or not await self._make_claimed(row):
            await self._persist(lambda: self._queue.discard([workflow]))
            raise asyncio.CancelledError

    async def _make_claimed(self, row: QueuedFold) -> bool:
        """Make a fold; False when it was handed over to others, or forgotten."""
        # A fold that was requeued may be delivered while it is still being made here.
        making = next((task for other, task in self._making.values() if other.key == row.key), None)
        making = making or asyncio.create_task(self._make_fold(row))
        self._making[row.id] = row, making
        if self._stopping or not self._lease.is_sure():
            self._hand_over_all()
        await asyncio.wait({making})
        del self._making[row.id]
        if making.cancelled() and making in self._handed_over:
            # This attempt did not fail, so it does not count.
            await self._persist(lambda: self._queue.requeue(row, back=1))
            return False
        return await self._persist(lambda: self._queue.finish(row))

    async def _make_fold(self, row: QueuedFold) -> None:
        pause = _FIRST_PAUSE
        while True:
            try:
                if row.attempts > MAX_ATTEMPTS:
                    return await self._close(row, f"{INTERRUPTED} too often")
                with self._metrics.fold() as making:
                    making.ended(await self._runner(row, making).resume(row.session, row.fold))
            except (SessionForgotten, SessionNotFound):
                return None
            except TRANSIENT:
                await asyncio.sleep(pause)
                pause = min(2 * pause, _MAX_PAUSE)
            except asyncio.CancelledError:
                raise
            except BaseException as error:  # noqa: BLE001 - DBOS would store its message
                with suppress(Exception):
                    await self._close(row, reason_of(error))
                return None
            else:
                return None

    async def _close(self, row: QueuedFold, reason: str) -> None:
        outlined = await self._logs(row.tenant).outlined(row.session)
        if fold := find_running(outlined, row.fold):
            await self._runner(row).close(row.session, fold, reason)

    def _runner(self, row: QueuedFold, making: Making | None = None) -> FoldRunner:
        log = self._logs(row.tenant)
        make = self._make(log)

        def steps(job: Job, inputs: FoldInputs) -> Steps:
            logged = LoggedSteps(log, job, self._author, inputs, reach=self._reach)
            return logged if making is None else making.steps(logged, job)

        async def contained(job: Job, steps: Steps) -> JsonValue:
            try:
                return await make(job, steps)
            except (KeyboardInterrupt, SystemExit) as error:  # it would end all other folds, too
                raise RuntimeError(f"it would end the worker: {reason_of(error)}") from error

        return FoldRunner(
            log,
            contained,
            steps=steps,
            author=self._author,
            limit=self._limit,
            reach=self._reach,
            hands_over=lambda: asyncio.current_task() in self._handed_over,
        )

    async def _set_limits(self, models: Iterable[str] = ()) -> None:
        """Set our limits on these queues, and on all that engines have made since."""
        for model in (*models, *await self._queue.models()):
            await self._queue.register(model, update=True)

    def _stop_fold(self, workflow: str) -> None:
        if workflow in self._making:  # the log says already that it was canceled
            self._making[workflow][1].cancel()

    def _on_lease_lost(self) -> None:
        self._metrics.fenced()
        self._hand_over_all()

    def _hand_over_all(self) -> None:
        for _, making in self._making.values():
            self._handed_over.add(making)
            making.cancel()

    async def _persist(self, work: Callable[[], Awaitable[T]]) -> T:
        pause = _FIRST_PAUSE
        while True:
            try:
                return await work()
            except TRANSIENT:
                if self._stopping:
                    raise asyncio.CancelledError from None  # others will find the fold
                await asyncio.sleep(pause)
                pause = min(2 * pause, _MAX_PAUSE)


async def _end_dbos(seconds: int = 0) -> None:
    await asyncio.to_thread(
        DBOS.destroy, destroy_registry=True, workflow_completion_timeout_sec=seconds
    )
