"""A worker: makes the folds of all tenants that come through DBOS's queues."""

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
    refused,
    version_of,
)
from refold.engine.dbos.limits import Limits
from refold.engine.dbos.metrics import Making, Measuring
from refold.engine.dbos.queue import FoldQueue, QueuedFold
from refold.engine.dbos.recovery import Lease, Sweeper
from refold.engine.folding import Folding
from refold.engine.local import LIMIT, MOST_ATTEMPTS
from refold.engine.locks import PASSING, retry_shielded
from refold.engine.protocol import INTERRUPTED, reason_of
from refold.engine.steps import FoldInputs, LoggedSteps, running_of
from refold.errors import InvalidInput, RefoldError, SessionForgotten, SessionNotFound
from refold.fold.job import Job, Make, Steps
from refold.log import Author, Log

T = TypeVar("T")

GRACE: Final = 10.0
"""Seconds that a worker's lock must be free before others take the worker for dead."""
SWEEP: Final = 2.0
"""Seconds between two looks for dead workers."""
_GONE: Final = (SessionForgotten, SessionNotFound)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 10.0
_ONE_IN_A_PROCESS: Final = Lock()  # as DBOS itself is

Logs = Callable[[str], Log]
"""The log of a tenant."""
Makes = Callable[[Log], Make]
"""What makes the summaries of a log's folds."""


class Worker:
    """Makes folds, as long as it is entered: `async with Worker(address, store.log, make):`.

    A process has one at most, for DBOS is one for each process. Any number of processes may have
    one over the same database; which of them makes a fold is DBOS's to say.
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
        limit: float | None = LIMIT,
        grace: float = GRACE,
        sweep: float = SWEEP,
        patience: float = 30.0,
        measuring: Measuring | None = None,
        reach: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Make a worker; nothing happens before it is entered.

        Args:
            address: The database of DBOS's tables: directly, not through a pooler that shares
                connections, for it holds a lock and listens.
            logs: The log of each tenant.
            make: What makes the summaries of a log's folds.
            limits: What the queues of its pool let through: it sets them, and whoever is last wins.
            models: The summarizing models that are known already; others are found by themselves.
            executor: Its id, which no other process has while it lives; a new one without.
            pool: Which engines' folds it makes.
            version: Of the workflow; it takes no folds of another.
            author: Makes the entries; tests give it a clock.
            limit: Seconds that making one fold may take.
            grace: Seconds that a lock must be free before its worker is taken for dead. All
                workers and engines of a database have the same.
            sweep: Seconds between two looks for dead workers.
            patience: Seconds that it waits, when it is left, for what it makes; the rest is given
                to others.
            measuring: What is measured, and where it goes.
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
        self._measuring = measuring or Measuring()
        self._queue = FoldQueue(address, limits or Limits(), pool, version)
        self._lease = Lease(
            address, self.executor, grace=grace, lost=self._lost, stop=self._canceled
        )
        self._sweeper = Sweeper(
            self._queue, self._measuring, grace=grace, every=sweep, look=self._set_limits
        )
        self._making: dict[str, tuple[QueuedFold, asyncio.Task[None]]] = {}
        """By workflow."""
        self._left: WeakSet[asyncio.Task[None]] = WeakSet()
        """Those of them that are stopped here and left to others."""
        self._arriving: set[asyncio.Task[Any]] = set()
        """What DBOS has delivered and nobody has claimed yet."""
        self._stopping = False

    async def __aenter__(self) -> Self:
        if not _ONE_IN_A_PROCESS.acquire(blocking=False):
            raise InvalidInput(
                "A worker runs in this process.", "Run each worker in a process of its own."
            )
        try:
            await self._begin()
        except BaseException:
            _ONE_IN_A_PROCESS.release()
            await self._queue.close()
            raise
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Take nothing new, wait for what is made, and give the rest to others."""
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
        self._leave()
        await ending
        with suppress(RefoldError):  # then others will find that we are gone
            await self._queue.requeue_all(self.executor)
        await self._lease.end()
        await self._queue.close()
        _ONE_IN_A_PROCESS.release()

    async def _begin(self) -> None:
        await retry_shielded(lambda: self._set_limits(self._models))
        await retry_shielded(self._lease.begin)
        try:
            self._launch()
        except (SQLAlchemyError, dbos_error.DBOSException, psycopg.Error, OSError) as error:
            await _end_dbos()
            await self._lease.end()
            raise refused(error) from error
        self._lease.keep()
        self._sweeper.begin()

    def _launch(self) -> None:
        # Each worker registers its own, so that no workflow outlives the worker that it runs on.
        # Attempts are counted in the fold's row: DBOS counts those of one workflow only.
        @DBOS.workflow(name=WORKFLOW, max_recovery_attempts=None)
        async def fold() -> None:
            await self._delivered(DBOS.workflow_id or "")

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

    async def _delivered(self, workflow: str) -> None:
        """Bring the fold of a workflow to its end.

        Canceled when the fold is not this workflow's any more: DBOS writes no outcome then.
        """
        arriving = cast("asyncio.Task[Any]", asyncio.current_task())
        self._arriving.add(arriving)
        try:
            await self._lease.sure()
            row = await self._persist(lambda: self._queue.claim(workflow, self.executor))
        finally:
            self._arriving.discard(arriving)
        if row is None or not await self._made_claimed(row):
            await self._persist(lambda: self._queue.discard([workflow]))
            raise asyncio.CancelledError

    async def _made_claimed(self, row: QueuedFold) -> bool:
        """Make a fold; False when it was handed over to others, or forgotten."""
        # One that others took for left may come back while it is still being made here.
        making = next((task for other, task in self._making.values() if other.key == row.key), None)
        making = making or asyncio.create_task(self._bring_to_an_end(row))
        self._making[row.id] = row, making
        if self._stopping or not self._lease.is_sure():
            self._leave()
        await asyncio.wait({making})
        del self._making[row.id]
        if making.cancelled() and making in self._left:
            # That is no attempt that failed.
            await self._persist(lambda: self._queue.requeue(row, back=1))
            return False
        return await self._persist(lambda: self._queue.finish(row))

    async def _bring_to_an_end(self, row: QueuedFold) -> None:
        pause = _FIRST_PAUSE
        while True:
            try:
                if row.attempts > MOST_ATTEMPTS:
                    return await self._close(row, f"{INTERRUPTED} too often")
                return await self._take_up(row)
            except _GONE:
                return None
            except PASSING:
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            except asyncio.CancelledError:
                raise
            except BaseException as error:  # noqa: BLE001 - DBOS would keep its words
                with suppress(Exception):
                    await self._close(row, reason_of(error))
                return None

    async def _take_up(self, row: QueuedFold) -> None:
        with self._measuring.fold() as making:
            making.ended(await self._folding(row, making).take_up(row.session, row.fold))

    async def _close(self, row: QueuedFold, reason: str) -> None:
        """End a fold that no worker will make again."""
        one = running_of(await self._logs(row.tenant).outlined(row.session), row.fold)
        if one is not None:
            await self._folding(row).close(row.session, one, reason)

    def _folding(self, row: QueuedFold, making: Making | None = None) -> Folding:
        log = self._logs(row.tenant)
        make = self._make(log)

        def steps(job: Job, fold_inputs: FoldInputs) -> Steps:
            logged = LoggedSteps(log, job, self._author, fold_inputs, reach=self._reach)
            return logged if making is None else making.steps(logged, job)

        async def contained(job: Job, steps: Steps) -> JsonValue:
            try:
                return await make(job, steps)
            except (KeyboardInterrupt, SystemExit) as error:  # it would end all other folds, too
                raise RuntimeError(f"it would end the worker: {reason_of(error)}") from error

        return Folding(
            log,
            contained,
            steps=steps,
            author=self._author,
            limit=self._limit,
            reach=self._reach,
            leaves=lambda: asyncio.current_task() in self._left,
        )

    async def _set_limits(self, models: Iterable[str] = ()) -> None:
        """Give our limits to these queues, and to all that engines have made since."""
        for model in (*models, *await self._queue.models()):
            await self._queue.register(model, update=True)

    def _canceled(self, workflow: str) -> None:
        """A fold was given up: the log says so already."""
        if workflow in self._making:
            self._making[workflow][1].cancel()

    def _lost(self) -> None:
        """We do not know any more that others take us for alive: make nothing."""
        self._measuring.fenced()
        self._leave()

    def _leave(self) -> None:
        """Stop making folds, and leave them to others."""
        for _, making in self._making.values():
            self._left.add(making)
            making.cancel()

    async def _persist(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do it as soon as the database lets us."""
        pause = _FIRST_PAUSE
        while True:
            try:
                return await work()
            except PASSING:
                if self._stopping:
                    raise asyncio.CancelledError from None  # others will find what we left
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)


async def _end_dbos(seconds: int = 0) -> None:
    """End it, and wait so long for its workflows."""
    await asyncio.to_thread(
        DBOS.destroy, destroy_registry=True, workflow_completion_timeout_sec=seconds
    )
