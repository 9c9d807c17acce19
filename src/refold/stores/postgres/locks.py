"""Locks of sessions between all who use the same database."""

import asyncio
from collections.abc import Awaitable, Callable
from hashlib import sha256
from random import uniform
from time import monotonic
from typing import Final, TypeVar
from uuid import UUID

import psycopg

from refold.errors import StoreClosed
from refold.log.protocol import LockHandle
from refold.stores.postgres.connection import (
    Address,
    Connection,
    Pool,
    Row,
    connect,
    execute,
    explained,
    is_lost,
)

T = TypeVar("T")
_PAUSE: Final = 0.2
_TAKE = "SELECT pg_try_advisory_lock($1)"
_RELEASE = "SELECT pg_advisory_unlock($1)"
_ATTEMPT = "SELECT refold.attempt($1, $2, $3)"


class LockConnection:
    """The connection that holds a store's locks, made when the first is taken.

    The server lets go of them when this connection ends, however it ends: with its process, with
    the server, with the network between them. Then nothing tells those who hold them; what they do
    is safe only because the log itself refuses a second end of a fold, or an append at a head that
    has moved. Whoever asks next gets a new connection; for `wait` seconds we try to make one.
    """

    def __init__(self, address: Address, pool: Pool, wait: float = 30.0) -> None:
        self.address = address
        self._pool = pool
        self._wait = wait
        self._connection: Connection | None = None
        self._held: set[int] = set()
        self._releasing: asyncio.Queue[tuple[Connection, int]] | None = None
        self._releases: asyncio.Task[None] | None = None
        self._guard = asyncio.Lock()

    def open(self) -> None:
        self._guard = asyncio.Lock()
        self._releasing = asyncio.Queue()
        self._releases = asyncio.create_task(self._release_all(self._releasing))

    async def take(self, key: int) -> Connection | None:
        """The connection that holds the lock; None when another one does, here or elsewhere."""
        if self._releasing is None:
            raise StoreClosed(f"The store {self.address} is not open.")
        await self._releasing.join()
        if key in self._held:  # the server would give it to the same connection twice
            return None
        self._held.add(key)
        tried: list[Connection] = []

        async def try_lock(connection: Connection) -> Row | None:
            tried.append(connection)
            return await (await execute(connection, _TAKE, (key,))).fetchone()

        try:
            row = await self._run(try_lock)
        except BaseException:
            if tried:  # the server may have given the lock, to nobody now
                self.release(tried[-1], key)
            else:
                self._held.discard(key)
            raise
        if not row or not row[0]:
            self._held.discard(key)
            return None
        return tried[-1]

    async def attempt(self, tenant: str, session: str, fold: UUID) -> int:
        """Record that a fold is about to be made; how often that was recorded so far."""

        async def record(connection: Connection) -> Row | None:
            cursor = await execute(connection, _ATTEMPT, (tenant, session, fold))
            return await cursor.fetchone()

        row = await self._run(record)
        return row[0] if row else 1

    def release(self, connection: Connection, key: int) -> None:
        """Release a lock that was taken on a connection; the next `take` waits for it."""
        if self._releasing is not None:  # else the connection is gone, and the lock with it
            self._releasing.put_nowait((connection, key))

    def abandon(self) -> None:
        """Drop a connection, and its locks, whose event loop has ended."""
        self._releases = self._releasing = None
        if self._connection is not None:
            self._connection.pgconn.finish()
            self._connection = None
        self._held.clear()

    async def close(self) -> None:
        if self._releases is None:
            return
        releases, self._releases, self._releasing = self._releases, None, None
        releases.cancel()
        await asyncio.wait([releases])
        async with self._guard:  # one may just be made
            if self._connection is not None:
                connection, self._connection = self._connection, None
                await connection.close()
        self._held.clear()

    async def _release_all(self, releasing: "asyncio.Queue[tuple[Connection, int]]") -> None:
        while True:
            connection, key = await releasing.get()
            try:
                async with asyncio.timeout(self._pool.limit):
                    await execute(connection, _RELEASE, (key,))
            except (psycopg.Error, TimeoutError):
                await connection.close()  # and with it goes the lock
            finally:
                self._held.discard(key)
                releasing.task_done()

    async def _run(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Do the work on the connection, or on a new one if it is lost."""
        until = monotonic() + self._wait
        while True:
            try:
                return await self._once(work)
            except (psycopg.Error, TimeoutError) as error:
                if not is_lost(error) or monotonic() > until:
                    raise explained(self.address, error) from error
            await asyncio.sleep(uniform(_PAUSE / 2, _PAUSE))  # noqa: S311 - so that not all come at once

    async def _once(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        connection = await self._connected()
        try:
            async with asyncio.timeout(self._pool.limit):
                return await work(connection)
        except psycopg.Error as error:
            if is_lost(error):
                await connection.close()
            raise

    async def _connected(self) -> Connection:
        async with self._guard:
            if self._releasing is None:
                raise StoreClosed(f"The store {self.address} is not open.")
            if self._connection is None or self._connection.closed:
                self._connection = await connect(self.address, self._pool)
            return self._connection


class PostgresLocks:
    def __init__(
        self,
        connection: LockConnection,
        tenant: str,
        purpose: str,
        here: Callable[[], Awaitable[None]],
    ) -> None:
        self._connection = connection
        self._tenant = tenant
        self._purpose = purpose
        self._here = here

    @property
    def place(self) -> object:
        return self._connection.address.shown

    async def take(self, session: str) -> LockHandle | None:
        await self._here()
        # Two sessions in 2**64 share a key, and then wait for each other.
        name = f"{self._tenant}\0{session}\0{self._purpose}"
        digest = sha256(name.encode("utf-8", "surrogatepass")).digest()
        key = int.from_bytes(digest[:8], signed=True)
        connection = await self._connection.take(key)
        if connection is None:
            return None
        return _Lock(self._connection, connection, key, self._tenant, session)


class _Lock:
    def __init__(
        self, locks: LockConnection, connection: Connection, key: int, tenant: str, session: str
    ) -> None:
        self._locks = locks
        self._connection = connection
        self._key = key
        self._tenant = tenant
        self._session = session
        self._released = False

    async def attempt(self, fold: UUID) -> int:
        return await self._locks.attempt(self._tenant, self._session, fold)

    def settle(self) -> None:
        """Nothing to do: a note is a row of the session, which the next fold overwrites."""

    def release(self) -> None:
        if not self._released:
            self._released = True
            self._locks.release(self._connection, self._key)
