"""Liveness of workers, and recovery of the folds of dead ones.

A worker holds a PostgreSQL lock on a connection of its own, and increments the `beat` of its row.
The lock is released as soon as its process dies. The beat stops when the process hangs. After a
restart of the server, all locks are free until they are taken again, so a free lock or a missing
beat proves nothing until it has lasted. Each observer measures that with its own monotonic clock:
changing a wall clock, here or on the server, has no effect.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from time import monotonic
from typing import Final, Generic, TypeVar

import psycopg

from refold.engine.dbos.database import Connection, connect, database_error
from refold.engine.dbos.metrics import FoldMetrics
from refold.engine.dbos.queue import LOCK, STOPS, FoldQueue, QueuedFold, WorkerState
from refold.errors import InvalidInput, RefoldError

T = TypeVar("T")

_TAKE: Final = f"SELECT pg_try_advisory_lock({LOCK.format(executor='%(executor)s::text')})".encode()
_LISTEN: Final = f"LISTEN {STOPS}".encode()
_BEAT: Final = b"""
INSERT INTO refold_engine.workers AS known VALUES (%(executor)s, 1)
ON CONFLICT (executor) DO UPDATE SET beat = known.beat + 1
"""
_END: Final = b"DELETE FROM refold_engine.workers WHERE executor = %(executor)s"
_END_OURS: Final = b"""
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid = %(pid)s AND application_name = %(name)s
"""
_MAX_NAME: Final = 63  # of a connection
_WITHOUT_GRACE: Final = 5.0  # seconds to confirm a lock in, when a free one means death at once
_PAUSE: Final = 0.1
_SILENT: Final = 3
"""How many grace periods a worker may be connected without a beat. It beats eight times in each."""
_STILL: Final = 4
"""In halves of the grace, so twice the grace: a worker suspended for longer assumes that others
took over its folds. They do so only after `_SILENT` graces."""
STRAY: Final = 10.0
"""Seconds until a fold that DBOS delivered, and that no worker claimed, is queued again."""
RETENTION_SECONDS: Final = 600.0
"""Seconds that a workflow is kept after its end. The log has the end; a rate limit counts what
started in its period, so no period may be longer."""
_MEASURE_EVERY: Final = 5
_LOGGER: Final = logging.getLogger("refold.engine")


class WorkerLease:
    """A worker's proof that it is alive, renewed until it ends.

    Others treat a worker as dead when its lock was free for `grace` seconds. So a worker that could
    not confirm its lock for half of that time must stop making folds: `lost` is called. `stop` is
    called with each workflow whose fold was canceled.
    """

    def __init__(
        self,
        address: str,
        executor: str,
        *,
        grace: float,
        lost: Callable[[], None],
        stop: Callable[[str], None],
    ) -> None:
        self._address = address
        self._executor = executor
        self._me = {"executor": executor}
        self._name = f"refold worker {executor}"[:_MAX_NAME]
        self._within = grace / 2 if grace else _WITHOUT_GRACE
        self._lost = lost
        self._stop = stop
        self._db: Connection | None = None
        self._pid = 0
        self._confirmed = 0.0
        """When the lock was last confirmed to be held."""
        self._is_lost = False
        self._renewals = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def begin(self) -> None:
        self._confirmed = monotonic()
        try:
            self._db = await connect(self._address, self._name)
            locked = await self._take_lock(self._db)
        except (psycopg.Error, OSError) as error:
            await self.end()
            raise database_error(error) from error
        if not locked:
            await self.end()
            raise InvalidInput(
                f"A worker with the executor id {self._executor!r} is running.",
                "Give each worker an id of its own, or none.",
            )

    def keep(self) -> None:
        self._tasks = [asyncio.create_task(self._renew()), asyncio.create_task(self._watch())]

    def is_sure(self) -> bool:
        """Whether the lock was confirmed recently enough."""
        return monotonic() - self._confirmed <= self._within

    async def wait_until_sure(self) -> None:
        while not self.is_sure():
            self._renewals.clear()
            await self._renewals.wait()

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        db, self._db = self._db, None
        if db is not None:
            with suppress(psycopg.Error, OSError):
                if self._tasks:
                    await db.execute(_END, self._me)
            await db.close()

    async def _take_lock(self, db: Connection) -> bool:
        sent = monotonic()
        if await (await db.execute(_TAKE, self._me)).fetchone() != (True,):
            return False
        await db.execute(_LISTEN)
        await db.execute(_BEAT, self._me)
        self._pid = db.info.backend_pid
        self._confirm(sent)
        return True

    def _confirm(self, time: float) -> None:
        if time - self._confirmed > _STILL * self._within:
            self._lose()  # the process was suspended so long that others may have taken over
        self._confirmed, self._is_lost = time, False
        self._renewals.set()

    def _lose(self) -> None:
        if not self._is_lost:
            self._is_lost = True
            self._lost()

    async def _renew(self) -> None:
        while True:
            try:
                if self._db is not None:
                    await self._beat(self._db)
            except (psycopg.Error, OSError, TimeoutError):
                await self._reconnect()

    async def _beat(self, db: Connection) -> None:
        sent = monotonic()
        async with asyncio.timeout(self._within / 2):
            await db.execute(_BEAT, self._me)
        self._confirm(sent)
        async for notification in db.notifies(timeout=self._within / 4):
            self._stop(notification.payload)

    async def _reconnect(self) -> None:
        while True:
            db, self._db = self._db, None
            with suppress(psycopg.Error, OSError, TimeoutError):
                if db is not None:
                    await db.close()
                async with asyncio.timeout(self._within):
                    self._db = await connect(self._address, self._name)
                    # The server may not have noticed yet that the old connection is gone.
                    await self._db.execute(_END_OURS, {"pid": self._pid, "name": self._name})
                    if await self._take_lock(self._db):
                        return
            await asyncio.sleep(_PAUSE)

    async def _watch(self) -> None:
        """Call `lost` when it is not known any more that the lock is held."""
        often = self._within / 8
        while True:
            before = monotonic()
            await asyncio.sleep(often)
            suspended = monotonic() - before - often
            if often < suspended < _STILL * self._within:
                await asyncio.sleep(often)  # nothing was made, and the next beat will tell
            if not self.is_sure():
                self._lose()


class Ages(Generic[T]):
    """Tracks how long each item has been observed without interruption."""

    def __init__(self, limit: float, max_pause: float) -> None:
        """`max_pause` is how far observations may be apart before the count starts over."""
        self._limit = limit
        self._max_pause = max_pause
        self._last = monotonic()
        self._since: dict[T, float] = {}

    def too_old(self, items: Iterable[T]) -> list[T]:
        """Those of the items observed now that have been there for too long."""
        now = monotonic()
        if now - self._last > self._max_pause:
            self._since.clear()
        self._last = now
        self._since = {item: self._since.get(item, now) for item in items}
        return [item for item, since in self._since.items() if now - since >= self._limit]


class Liveness:
    """Tells dead workers from living ones by observing them repeatedly."""

    def __init__(self, grace: float, every: float) -> None:
        """`every` is the approximate number of seconds between two observations."""
        pause = grace + 5 * every
        self._disconnected: Ages[WorkerState] = Ages(grace, pause)
        self._silent: Ages[WorkerState] = Ages(_SILENT * grace or float("inf"), pause)

    def dead(self, workers: Iterable[WorkerState]) -> list[WorkerState]:
        """Those whose lock has been free, or whose beat has not changed, for too long."""
        workers = list(workers)  # a new beat makes another `WorkerState`, with an age of its own
        return [
            *self._disconnected.too_old(worker for worker in workers if not worker.held),
            *self._silent.too_old(worker for worker in workers if worker.held),
        ]


class Sweeper:
    """Hands over the folds of dead workers, requeues lost ones and removes ended workflows.

    Every worker has one, and any of them is enough. They need not elect a leader: a hand-over
    changes the fold's row, and the second sweeper finds nothing. If there were only one, nobody
    would notice that it hangs.
    """

    def __init__(
        self,
        queue: FoldQueue,
        metrics: FoldMetrics,
        *,
        grace: float,
        every: float,
        on_sweep: Callable[[], Awaitable[None]],
    ) -> None:
        self._queue = queue
        self._metrics = metrics
        self._every = every
        self._on_sweep = on_sweep
        self._liveness = Liveness(grace, every)
        self._strays: Ages[QueuedFold | str] = Ages(STRAY, STRAY + 5 * every)
        self._ended: set[str] = set()
        self._ended_at = monotonic()
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        self._task = asyncio.create_task(self._sweep_on())

    async def end(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def sweep(self) -> None:
        for worker in self._liveness.dead(await self._queue.workers()):
            self._metrics.taken_over(await self._queue.requeue_all(worker.executor))
            await self._queue.unregister(worker)
        await self._on_sweep()
        folds, workflows = await self._queue.undelivered()
        strays = self._strays.too_old([*folds, *workflows])
        for stray in strays:
            if isinstance(stray, QueuedFold):
                await self._queue.requeue(stray)
        await self._queue.discard(stray for stray in strays if isinstance(stray, str))

    async def measure(self) -> None:
        self._metrics.queues(await self._queue.lengths())

    async def _sweep_on(self) -> None:
        turn = 0
        while True:
            await asyncio.sleep(self._every)
            try:
                await self.sweep()
                if turn % _MEASURE_EVERY == 0:
                    await self.measure()
                if monotonic() - self._ended_at >= RETENTION_SECONDS:
                    await self._remove_ended()
            except Exception as error:  # noqa: BLE001 - what is not swept now is swept later
                cause = error.what if isinstance(error, RefoldError) else type(error).__name__
                _LOGGER.warning("The sweeper will look again: %s", cause)
            else:
                turn += 1

    async def _remove_ended(self) -> None:
        """Remove what had ended by the last time: no clock tells how long ago that was."""
        ended = await self._queue.ended()
        await self._queue.discard(ended & self._ended)
        self._ended, self._ended_at = ended - self._ended, monotonic()
