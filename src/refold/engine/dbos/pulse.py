"""The lock that says that a worker lives, and the word that a fold was given up."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import monotonic
from typing import Final

import psycopg

from refold.engine.dbos.link import Row, connected, refused
from refold.engine.dbos.names import STOPS
from refold.engine.dbos.tables import LOCK, worker_name
from refold.engine.folding import heard
from refold.errors import InvalidInput, RefoldError

_TAKE: Final = f"SELECT pg_try_advisory_lock({LOCK.format(executor='%(executor)s::text')})".encode()
_END_OURS: Final = b"""
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid = %(pid)s AND application_name = %(name)s
"""
_WITHOUT_GRACE: Final = 5.0  # where a lock that is free is a death at once, all this is in vain
_PAUSE: Final = 0.1
_STILL: Final = 4  # less than the silence for which others end our connection


class Pulse:
    """Holds a worker's lock on a connection of its own, and takes it again when that is lost.

    Who sweeps takes a worker for dead when its lock was free for `grace` seconds. So a worker that
    has not known for half of that time that it holds its lock must make nothing: `lost` is called,
    and `back` when it holds the lock again. `stop` hears which folds were given up. Who sweeps ends
    a connection that has been silent for long: so it never is, while the loop goes on.
    """

    def __init__(  # noqa: PLR0913 - made in one place
        self,
        address: str,
        executor: str,
        *,
        grace: float,
        lost: Callable[[], None],
        back: Callable[[], Awaitable[None]],
        stop: Callable[[str], None],
    ) -> None:
        self._address = address
        self._executor = executor
        self._name = worker_name(executor)
        self._within = grace / 2 if grace else _WITHOUT_GRACE
        self._lost = lost
        self._back = back
        self._stop = stop
        self._db: psycopg.AsyncConnection[Row] | None = None
        self._pid = 0
        self._known = 0.0
        """When it was last known that the lock is held."""
        self._is_lost = False
        self._returning: asyncio.Task[None] | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def begin(self) -> None:
        """Take the lock."""
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
        """See from now on that it is held."""
        self._tasks = [asyncio.create_task(self._beat()), asyncio.create_task(self._watch())]

    def is_sure(self) -> bool:
        """Whether it is known that the lock is held. Any thread may ask."""
        return monotonic() - self._known <= self._within

    async def end(self) -> None:
        """Let go of the lock."""
        tasks = [*self._tasks, *([self._returning] if self._returning else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        db, self._db = self._db, None
        if db is not None:
            await db.close()

    async def _taken(self, db: psycopg.AsyncConnection[Row]) -> bool:
        asked = monotonic()
        done = await db.execute(_TAKE, {"executor": self._executor})
        if await done.fetchone() != (True,):
            return False
        await db.execute(f"LISTEN {STOPS}".encode())
        self._pid = db.info.backend_pid
        self._known = asked
        return True

    async def _beat(self) -> None:
        while True:
            try:
                if self._db is not None:
                    await self._listen(self._db)
            except (psycopg.Error, OSError, TimeoutError):
                await self._again()

    async def _listen(self, db: psycopg.AsyncConnection[Row]) -> None:
        """Ask whether the server still knows us, and hear for a while what is given up."""
        asked = monotonic()
        async with asyncio.timeout(self._within / 2):
            await db.execute(b"SELECT")
        self._proved(asked)
        async for told in db.notifies(timeout=self._within / 4):
            self._stop(told.payload)

    def _proved(self, at: float) -> None:
        """It was held then."""
        self._known = at
        if self._is_lost and (self._returning is None or self._returning.done()):
            # Beside the beat: it may take longer than we may be without one.
            self._returning = asyncio.create_task(self._return())
            self._returning.add_done_callback(heard)

    async def _return(self) -> None:
        with suppress(RefoldError):  # the next time, then
            await self._back()
            self._is_lost = not self.is_sure()
            if self._is_lost:
                self._lost()

    async def _again(self) -> None:
        """Take the lock on a new connection."""
        while True:
            if self._db is not None:
                with suppress(psycopg.Error, OSError):
                    await self._db.close()
            self._db = None
            try:
                async with asyncio.timeout(self._within):
                    self._db = await connected(self._address, self._name)
                    # The server may not have noticed yet that the old one is gone.
                    await self._db.execute(_END_OURS, {"pid": self._pid, "name": self._name})
                    if await self._taken(self._db):
                        break
            except (psycopg.Error, OSError, TimeoutError):
                pass
            await asyncio.sleep(_PAUSE)
        self._proved(self._known)

    async def _watch(self) -> None:
        """See that it is known to be held."""
        often = self._within / 8
        while True:
            looked = monotonic()
            await asyncio.sleep(often)
            stood_still = monotonic() - looked - often
            if often < stood_still < _STILL * self._within:
                await asyncio.sleep(often)  # nothing was made, and the beat can tell in a moment
            if not self.is_sure() and not self._is_lost:
                self._is_lost = True
                self._lost()
