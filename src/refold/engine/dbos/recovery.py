"""How a worker shows that it lives, and how others see that it does not.

A worker holds a lock of PostgreSQL on a connection of its own, and raises the `beat` of its row.
The lock goes with its process, at once. The beat stops when the process hangs. After a restart of
the server all locks are free until they are taken again, so neither is proof before it has lasted.
How long is measured by whoever looks, with its own monotonic clock, from one look to the next: a
wall clock that is set, here or on the server, changes nothing.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from time import monotonic
from typing import Final, Generic, TypeVar

import psycopg

from refold.engine.dbos.database import Connection, connected, refused
from refold.engine.dbos.metrics import Measuring
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
_LONGEST_NAME: Final = 63  # of a connection
_WITHOUT_GRACE: Final = 5.0  # without a grace, a free lock means death at once
_PAUSE: Final = 0.1
_SILENT: Final = 3
"""How many times the grace a worker may be connected without a beat. It has eight in each."""
_STILL: Final = 4  # halves of the grace: less than others wait for a beat


class Lease:
    """A worker's own proof that it lives, renewed until it is ended.

    Others take a worker for dead when its lock was free for `grace` seconds. So a worker that has
    not known for half of that time that it holds its lock must make nothing: `lost` is called.
    `stop` is called with each workflow whose fold was given up.
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
        self._name = f"refold worker {executor}"[:_LONGEST_NAME]
        self._within = grace / 2 if grace else _WITHOUT_GRACE
        self._lost = lost
        self._stop = stop
        self._db: Connection | None = None
        self._pid = 0
        self._known = 0.0
        """When it was last known that the lock is held."""
        self._is_lost = False
        self._renewals = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def begin(self) -> None:
        self._known = monotonic()
        try:
            self._db = await connected(self._address, self._name)
            taken = await self._taken(self._db)
        except (psycopg.Error, OSError) as error:
            await self.end()
            raise refused(error) from error
        if not taken:
            await self.end()
            raise InvalidInput(
                f"A worker with the executor id {self._executor!r} is running.",
                "Give each worker an id of its own, or none.",
            )

    def keep(self) -> None:
        self._tasks = [asyncio.create_task(self._renew()), asyncio.create_task(self._watch())]

    def is_sure(self) -> bool:
        """Whether it is known that the lock is held."""
        return monotonic() - self._known <= self._within

    async def sure(self) -> None:
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

    async def _taken(self, db: Connection) -> bool:
        asked = monotonic()
        if await (await db.execute(_TAKE, self._me)).fetchone() != (True,):
            return False
        await db.execute(_LISTEN)
        await db.execute(_BEAT, self._me)
        self._pid = db.info.backend_pid
        self._prove(asked)
        return True

    def _prove(self, at: float) -> None:
        if at - self._known > _STILL * self._within:
            self._lose()  # the process stood still so long that others may have taken over
        self._known, self._is_lost = at, False
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
                await self._again()

    async def _beat(self, db: Connection) -> None:
        asked = monotonic()
        async with asyncio.timeout(self._within / 2):
            await db.execute(_BEAT, self._me)
        self._prove(asked)
        async for heard in db.notifies(timeout=self._within / 4):
            self._stop(heard.payload)

    async def _again(self) -> None:
        while True:
            db, self._db = self._db, None
            with suppress(psycopg.Error, OSError, TimeoutError):
                if db is not None:
                    await db.close()
                async with asyncio.timeout(self._within):
                    self._db = await connected(self._address, self._name)
                    # The server may not have noticed yet that the old one is gone.
                    await self._db.execute(_END_OURS, {"pid": self._pid, "name": self._name})
                    if await self._taken(self._db):
                        return
            await asyncio.sleep(_PAUSE)

    async def _watch(self) -> None:
        """Call `lost` when it is not known any more that the lock is held."""
        often = self._within / 8
        while True:
            looked = monotonic()
            await asyncio.sleep(often)
            stood_still = monotonic() - looked - often
            if often < stood_still < _STILL * self._within:
                await asyncio.sleep(often)  # nothing was made, and the next beat can tell
            if not self.is_sure():
                self._lose()


class Lasting(Generic[T]):
    """Remembers for how long each thing has been seen, look after look."""

    def __init__(self, limit: float, longest_pause: float) -> None:
        """`longest_pause` is how long a look may be missing before the count starts over."""
        self._limit = limit
        self._longest_pause = longest_pause
        self._looked = monotonic()
        self._since: dict[T, float] = {}

    def too_long(self, seen: Iterable[T]) -> list[T]:
        """Those of the things seen now that have been there for too long."""
        now = monotonic()
        if now - self._looked > self._longest_pause:
            self._since.clear()
        self._looked = now
        self._since = {one: self._since.get(one, now) for one in seen}
        return [one for one, since in self._since.items() if now - since >= self._limit]


class Liveness:
    """Tells dead workers from living ones, by looking at them again and again."""

    def __init__(self, grace: float, every: float) -> None:
        """`every` is how many seconds lie between two looks, about."""
        pause = grace + 5 * every
        self._gone: Lasting[WorkerState] = Lasting(grace, pause)
        self._silent: Lasting[WorkerState] = Lasting(_SILENT * grace or float("inf"), pause)

    def dead(self, workers: Iterable[WorkerState]) -> list[WorkerState]:
        """Those whose lock has been free, or whose beat has been the same, for too long."""
        known = list(workers)
        return [
            *self._gone.too_long(worker for worker in known if not worker.held),
            *self._silent.too_long(worker for worker in known if worker.held),
        ]


# The sweeper: hands over what dead workers left, finds what was lost, removes what has ended.

STRAY: Final = 10.0
"""Seconds after which a fold that DBOS delivered, and that no worker claimed, is queued again."""
KEPT: Final = 600.0
"""Seconds that a workflow is kept after its end. The log has the end; limits by the period count
what began in it, so no period may be longer."""
_MEASURES: Final = 5
_LOGGER: Final = logging.getLogger("refold.engine")


class Sweeper:
    """Looks every few seconds. Every worker has one, and any of them is enough.

    They need not agree which of them it is: a hand-over changes the fold's row, and whoever comes
    second finds nothing. If there were only one, nobody would see that it hangs.
    """

    def __init__(
        self,
        queue: FoldQueue,
        measuring: Measuring,
        *,
        grace: float,
        every: float,
        look: Callable[[], Awaitable[None]],
    ) -> None:
        """`look` is what its worker looks after itself, each time."""
        self._queue = queue
        self._measuring = measuring
        self._every = every
        self._look = look
        self._liveness = Liveness(grace, every)
        self._strays: Lasting[QueuedFold | str] = Lasting(STRAY, STRAY + 5 * every)
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
            self._measuring.taken_over(await self._queue.requeue_all(worker.executor))
            await self._queue.unregister(worker)
        await self._look()
        folds, workflows = await self._queue.undelivered()
        strays = self._strays.too_long([*folds, *workflows])
        for stray in strays:
            if isinstance(stray, QueuedFold):
                await self._queue.requeue(stray)
        await self._queue.discard(stray for stray in strays if isinstance(stray, str))

    async def measure(self) -> None:
        self._measuring.queues(await self._queue.lengths())

    async def _sweep_on(self) -> None:
        turn = 0
        while True:
            await asyncio.sleep(self._every)
            try:
                await self.sweep()
                if turn % _MEASURES == 0:
                    await self.measure()
                if monotonic() - self._ended_at >= KEPT:
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
