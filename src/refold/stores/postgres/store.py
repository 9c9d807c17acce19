"""The store in a PostgreSQL database: opening it, and the transactions on its connections."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from time import monotonic
from typing import TypeVar

from psycopg.errors import UniqueViolation

from refold.errors import InvalidInput, StoreBusy
from refold.log.codec import Clock, wall_clock
from refold.log.entry import check_name
from refold.log.protocol import DEFAULT_TENANT, Store
from refold.stores.postgres.connection import (
    Address,
    Connection,
    Pool,
    Reading,
    Values,
    Writing,
    execute,
)
from refold.stores.postgres.locks import LockConnection
from refold.stores.postgres.log import PostgresLog
from refold.stores.postgres.metrics import Measuring, Pooled
from refold.stores.postgres.migrate import check_schema, shipped, warn_if_not_kept
from refold.stores.postgres.pool import Connections, Overdue
from refold.stores.postgres.read import Changed, Glance, KnownSessions, Packed, Statement
from refold.stores.sql import Migration, Reach, check_shipped, onwards

T = TypeVar("T")
_NUMBER = "SELECT pg_current_xact_id()::text"
_ENDED = "SELECT pg_xact_status($1::xid8)"
_UNDECIDED = "in progress"
_PAUSE = 0.1


class PostgresStore(Store):
    """Keeps logs in a PostgreSQL database that any number of machines may use.

    `refold store migrate` makes its tables. `wait` is how many seconds to try again when the
    server is gone for a while or others are in the way. `locks` is the address for the locks of
    sessions, which need a connection that stays: give one where `address` is a pooler's.
    `measuring` says what is measured, and where it goes. `clock` tells when sessions are forked and
    forgotten; `migrations` and `reach` are for tests.
    """

    def __init__(  # noqa: PLR0913 - all but the address have a default
        self,
        address: str,
        *,
        pool: Pool | None = None,
        wait: float = 30.0,
        locks: str | None = None,
        measuring: Measuring | None = None,
        clock: Clock = wall_clock,
        reach: Reach = onwards,
        migrations: Sequence[Migration] | None = None,
    ) -> None:
        self.wait = wait
        self.known = KnownSessions()
        self.measuring = measuring or Measuring()
        self._pool = pool or Pool()
        self._connections = Connections(Address(address), self._pool, wait, self.measuring)
        self.locking = LockConnection(Address(locks or address), self._pool, wait)
        self._overdue = Overdue(self._pool.limit)
        self._packed = Packed(prepare=self._pool.prepare)
        self._clock = clock
        self._reach = reach
        self._migrations = shipped() if migrations is None else migrations
        self._opening: asyncio.Lock | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._watched: Pooled | None = None

    @property
    def address(self) -> Address:
        """Where the database is."""
        return self._connections.address

    def log(self, tenant: str = DEFAULT_TENANT) -> PostgresLog:
        """The log of one tenant."""
        check_name(tenant, "tenant")
        return PostgresLog(self, tenant)

    async def open(self) -> None:
        """Connect, and look whether the schema is the one that this version works with."""
        check_shipped(self._migrations)
        if self._loop is not None:
            await self.here()
        self._loop = asyncio.get_running_loop()
        self._opening = self._opening or asyncio.Lock()
        async with self._opening:
            if not self._connections.is_open:
                self.known.clear()
                await self._connections.open(self._check)
                self.locking.open()
                self._watched = self.measuring.watch(str(self.address), self.stats)

    async def close(self) -> None:
        """Close the connections."""
        self._watched = None
        if self._loop is not None:
            await self.here()
        await self.locking.close()
        await self._connections.close()
        self._opening = self._loop = None

    async def here(self) -> None:
        """Be ready for calls in the event loop that runs.

        Connections belong to the loop that made them. When that one has ended, new ones are made.
        """
        loop = asyncio.get_running_loop()
        if loop is self._loop or self._loop is None:
            return
        if not self._loop.is_closed():
            raise InvalidInput(
                f"The store {self.address} is used in another event loop.",
                "Open a store of its own in each event loop.",
            )
        self._connections.abandon()
        self.locking.abandon()
        self._overdue = Overdue(self._pool.limit)
        self._opening = self._loop = None
        await self.open()

    async def _check(self, connection: Connection) -> None:
        await check_schema(connection, self.address, self._migrations)
        await warn_if_not_kept(connection, self.address)

    def stats(self) -> dict[str, int]:
        """What the pool of connections says of itself."""
        return self._connections.stats()

    def now(self) -> int:
        """Milliseconds since 1970."""
        return int(self._clock().timestamp() * 1000)

    async def call(self, sql: str, values: Values) -> object:
        """Call one function, which is a transaction of its own; None if a unique index objects."""

        async def call(connection: Connection) -> object:
            self._reach("append.begun")
            try:
                done = await self._overdue.run(execute(connection, sql, values))
            except UniqueViolation:
                return None
            self._reach("append.done")
            found = await done.fetchone()
            return found[0] if found else None

        await self.here()
        return await self._connections.run(call)

    async def call_packed(self, what: Statement, values: Sequence[bytes | None]) -> int | None:
        """The same, with values that are packed already."""

        async def call(connection: Connection) -> int | None:
            self._reach("append.begun")
            try:
                done = await self._overdue.run(self._packed.run(connection, what, values))
            except UniqueViolation:
                return None
            self._reach("append.done")
            return done

        if asyncio.get_running_loop() is not self._loop:
            await self.here()
        return await self._connections.run(call)

    async def read(self, tenant: str, work: Callable[[Reading], Awaitable[T]]) -> T:
        """Do work that only reads, in one transaction."""

        async def transaction(connection: Connection) -> T:
            tx = Reading(connection, tenant, 0, self._reach, self._pool.limit)
            result = await work(tx)
            await tx.end()
            return result

        await self.here()
        return await self._connections.run(transaction)

    async def glance(self, tenant: str, work: Callable[[Reading], Awaitable[T]]) -> T:
        """Do work that only reads one session, by single calls if that will do."""

        async def calls(connection: Connection) -> T:
            return await work(Glance(connection, tenant, 0, self._reach, self._pool.limit))

        await self.here()
        try:
            return await self._connections.run(calls)
        except Changed:
            return await self.read(tenant, work)

    async def write(self, tenant: str, work: Callable[[Writing], Awaitable[T]]) -> T:
        """Do work that writes, in a transaction of its own.

        When the connection breaks while it is being committed, the server is asked what came of
        it, so the work is done once.
        """
        now = self.now()
        asked: list[tuple[str, T]] = []

        async def transaction(connection: Connection) -> T:
            if asked:
                number, result = asked[-1]
                if await self._committed(connection, number):
                    return result
                asked.clear()
            tx = Writing(connection, tenant, now, self._reach, self._pool.limit)
            result = await work(tx)
            self._reach("write.written")
            [(number,)] = await tx.all(_NUMBER)
            asked.append((number, result))
            await tx.commit()
            self._reach("write.done")
            return result

        await self.here()
        return await self._connections.run(transaction)

    async def _committed(self, connection: Connection, number: str) -> bool:
        """How a transaction ended; the server may not have noticed yet that its client is gone."""
        until = monotonic() + self.wait
        while monotonic() < until:
            found = await (await execute(connection, _ENDED, (number,))).fetchone()
            if found is None or found[0] != _UNDECIDED:
                return found is not None and found[0] == "committed"
            await asyncio.sleep(_PAUSE)
        raise StoreBusy(
            f"It is not known whether the store {self.address} did it: the connection broke, and "
            "the server has not noticed yet.",
            "Do it again in a while. If it was done, that changes nothing more.",
        )
