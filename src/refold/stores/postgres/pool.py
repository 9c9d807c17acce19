"""The store's connections: taken for one call, replaced when they break.

A call that ends leaves its connection idle for the next one, outside of the pool of psycopg;
`Connections` returns idle connections to that pool now and then.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import uniform
from time import monotonic
from typing import Any, Final, TypeVar, cast

import psycopg
from psycopg.pq import TransactionStatus
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout, TooManyRequests

from refold.errors import StoreClosed
from refold.stores.postgres.connection import (
    Address,
    Connection,
    Pool,
    SwiftConnection,
    configure,
    connect,
    explained,
    give_up,
    is_lost,
    parameters,
    unreachable,
)
from refold.stores.postgres.metrics import Measuring

T = TypeVar("T")
Waiter = asyncio.Future[Connection | None]
PsycopgPool = AsyncConnectionPool[Connection]
_LOOKS: Final = 8
_REASONS: Final = {"40001": "serialization", "40P01": "deadlock"}
"""Two transactions were in each other's way, and one of them may try again."""
_PAUSES: Final = (0.0, 0.05, 0.1, 0.2, 0.5)
_REST: Final = 1.0
_RECONNECT: Final = 2.0
"""Seconds after which the pool starts over to connect. Its pauses between two attempts double, up
to this: with the usual five minutes, a server would be back for half a minute before it is tried.
"""


class CallTimeouts:
    """Gives each call `limit` seconds, or up to an eighth more, by one timer for all of them.

    A timer for each call would cost a good part of what an append costs.
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._started: dict[asyncio.Task[Any], float] = {}
        self._timed_out: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def run(self, call: Awaitable[T]) -> T:
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        loop = asyncio.get_running_loop()
        self._started[task] = loop.time()
        if self._timer is None:
            self._timer = loop.call_later(self._limit / _LOOKS, self._look, loop)
        try:
            return await call
        except asyncio.CancelledError:
            if task in self._timed_out and task.uncancel() == 0:
                raise TimeoutError from None
            raise
        finally:
            del self._started[task]
            self._timed_out.discard(task)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        late = loop.time() - self._limit
        for task, since in self._started.items():
            if since < late and task not in self._timed_out:
                self._timed_out.add(task)
                task.cancel()
        again = bool(self._started)
        self._timer = loop.call_later(self._limit / _LOOKS, self._look, loop) if again else None


class IdleConnections:
    """Connections between two calls, and the queue of calls that wait for one.

    Going through the pool costs a good part of what an append costs, so a call that ends hands its
    connection to the longest waiter, or leaves it here for the next. Nothing here waits while it
    has a connection, so no call can be canceled in a moment in which it would be lost.

    A waiter is given a connection, or None: there is room, and the pool is to be asked.
    """

    def __init__(self, queue: int, wait: float) -> None:
        self._queue: Final = queue
        self._wait: Final = wait
        self._idle: list[Connection] = []
        self._waiters: deque[Waiter] = deque()
        self.reused = 0
        self.refused = 0

    def __len__(self) -> int:
        return len(self._idle)

    @property
    def waiting(self) -> int:
        return len(self._waiters)

    def take(self) -> Connection | None:
        if not self._idle:
            return None
        self.reused += 1
        return self._idle.pop()

    def take_all(self) -> list[Connection]:
        idle, self._idle = self._idle, []
        return idle

    def put(self, connection: Connection) -> None:
        """Hand a connection to the longest waiter, or keep it idle."""
        if self.hand(connection):
            self.reused += 1
        else:
            self._idle.append(connection)

    def hand(self, connection: Connection | None) -> bool:
        """Hand something to the longest waiter; whether there was one."""
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(connection)
                return True
        return False

    def wait(self) -> Waiter:
        """Begin to wait; TooManyRequests when too many do."""
        if len(self._waiters) >= self._queue:
            self.refused += 1
            raise TooManyRequests
        loop = asyncio.get_running_loop()
        waiter: Waiter = loop.create_future()
        timer = loop.call_later(self._wait, self._refuse, waiter)
        waiter.add_done_callback(lambda _: timer.cancel())
        self._waiters.append(waiter)
        return waiter

    def stop_waiting(self, waiter: Waiter) -> None:
        with suppress(ValueError):
            self._waiters.remove(waiter)

    def close(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_exception(PoolClosed())

    def _refuse(self, waiter: Waiter) -> None:
        if not waiter.done():
            self.refused += 1
            self.stop_waiting(waiter)
            waiter.set_exception(PoolTimeout())


class Connections:
    """A pool of connections to one database.

    Work is given a connection that is in no transaction. When the connection breaks, the work is
    done again on another, until `wait` seconds are over: it must be such that this does no harm.
    """

    def __init__(self, address: Address, pool: Pool, wait: float, measuring: Measuring) -> None:
        self.address = address
        self.settings = pool
        self._wait = wait
        self._measuring = measuring
        self._used = 0
        self._asking = 0
        self._to_pool = 0
        self._idle = IdleConnections(pool.queue, pool.wait)
        self._rest: asyncio.TimerHandle | None = None
        self._returning: set[asyncio.Task[None]] = set()
        self._pool: PsycopgPool | None = None

    @property
    def is_open(self) -> bool:
        return self._pool is not None

    def stats(self) -> dict[str, int]:
        if self._pool is None:
            return {}
        stats, idle = self._pool.get_stats(), self._idle
        for name, more in (
            ("pool_available", len(idle)),
            ("requests_waiting", idle.waiting),
            ("requests_num", idle.reused),
            ("requests_errors", idle.refused),
        ):
            stats[name] = stats.get(name, 0) + more
        return stats

    async def open(self, check: Callable[[Connection], Awaitable[None]]) -> None:
        """Connect once, check the database, and open the pool."""
        try:
            first = await connect(self.address, self.settings)
            try:
                await check(first)
            finally:
                await first.close()
        except psycopg.Error as error:
            raise explained(self.address, error) from error
        settings = self.settings
        pool = PsycopgPool(
            self.address.conninfo,
            connection_class=SwiftConnection,
            kwargs=parameters(self.address, settings),
            configure=configure,
            min_size=settings.min_size,
            max_size=settings.max_size,
            timeout=settings.wait,
            reconnect_timeout=_RECONNECT,
            reconnect_failed=_reconnect_for_waiters,
            name="refold",
            open=False,
        )
        try:
            await pool.open(wait=True, timeout=settings.wait)
        except PoolTimeout as error:
            raise unreachable(self.address, "no connection can be made") from error
        self._pool = pool

    def abandon(self) -> None:
        """Drop connections whose event loop has ended: nobody can close them properly."""
        if self._pool is not None:
            pool, self._pool = self._pool, None
            for connection in (*pool._pool, *self._idle.take_all()):  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
                connection.pgconn.finish()
            self._used = self._asking = self._to_pool = 0
            self._idle = IdleConnections(self.settings.queue, self.settings.wait)
            self._rest = None
            self._returning.clear()

    async def close(self) -> None:
        if self._pool is not None:
            pool, self._pool = self._pool, None
            if self._rest is not None:
                self._rest.cancel()
                self._rest = None
            self._idle.close()
            self._return_idle(pool)
            if self._returning:
                await asyncio.wait(self._returning)
            await pool.close()

    async def run(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        until = monotonic() + self._wait
        tries, canceled = 0, _cancel_count()
        while True:
            try:
                return await self._once(work)
            except (psycopg.Error, TimeoutError) as error:
                if _cancel_count() > canceled:  # a connection that is closed by it says so instead
                    raise asyncio.CancelledError from error
                if not await self._may_retry(error) or monotonic() > until:
                    if isinstance(error, PoolTimeout) and self._has_room():
                        raise unreachable(self.address, "no connection can be made") from error
                    raise explained(self.address, error) from error
                code = getattr(error, "sqlstate", None) or ""
                self._measuring.retried(_REASONS.get(code, "lost connection"))
                pause = _PAUSES[min(tries, len(_PAUSES) - 1)]
            tries += 1
            await asyncio.sleep(uniform(pause / 2, pause))  # noqa: S311 - so that not all come at once

    async def _once(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        pool = self._pool
        if pool is None:
            raise StoreClosed(f"The store {self.address} is not open.")
        connection = self._idle.take() or await self._acquire(pool)
        try:
            result = await work(connection)
        except BaseException:
            await self._give_back(pool, connection)
            raise
        if self._is_reusable(pool, connection):
            self._idle.put(connection)
        else:
            await self._give_back(pool, connection)
        return result

    async def _acquire(self, pool: PsycopgPool) -> Connection:
        """A connection of the pool, or one that another call is done with."""
        if self._used + self._asking < self.settings.max_size and not self._idle.waiting:
            self._asking += 1
        elif (connection := await self._wait_for_idle(pool)) is not None:
            return connection
        before = _cancel_count()
        try:
            connection = await pool.getconn()
        except BaseException:
            self._stop_asking()
            raise
        self._asking -= 1
        self._used += 1
        if self._rest is None:
            self._rest = asyncio.get_running_loop().call_later(_REST, self._let_rest)
        if _cancel_count() > before:
            await self._give_back(pool, connection)
            raise asyncio.CancelledError
        return connection

    async def _wait_for_idle(self, pool: PsycopgPool) -> Connection | None:
        """Wait for a connection that another call is done with, or for room to ask the pool."""
        waiter = self._idle.wait()
        try:
            return await waiter
        except asyncio.CancelledError:
            self._idle.stop_waiting(waiter)
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                connection = waiter.result()
                if connection is None:
                    self._stop_asking()
                else:
                    self._return(pool, connection)
            raise

    def _stop_asking(self) -> None:
        self._asking -= 1
        self._next_may_ask()

    def _next_may_ask(self) -> None:
        if self._used + self._asking < self.settings.max_size and self._idle.hand(None):
            self._asking += 1

    def _is_reusable(self, pool: PsycopgPool, connection: Connection) -> bool:
        if connection.pgconn.transaction_status != TransactionStatus.IDLE or self._pool is not pool:
            return False
        if self._asking:  # the pool may be unable to make another
            return False
        if self._to_pool:
            self._to_pool -= 1
            return False
        return True

    def _let_rest(self) -> None:
        """Return connections to the pool now and then: it closes the old and the surplus."""
        self._rest = None
        if self._pool is not None and self._used:
            self._to_pool = self._used - len(self._idle)
            self._return_idle(self._pool)
            self._rest = asyncio.get_running_loop().call_later(_REST, self._let_rest)

    def _return_idle(self, pool: PsycopgPool) -> list[asyncio.Task[None]]:
        return [self._return(pool, connection) for connection in self._idle.take_all()]

    async def _give_back(self, pool: PsycopgPool, connection: Connection) -> None:
        """Return a connection, also when its call is canceled meanwhile."""
        await asyncio.shield(self._return(pool, connection))

    def _return(self, pool: PsycopgPool, connection: Connection) -> asyncio.Task[None]:
        async def give_back() -> None:
            try:
                async with asyncio.timeout(self.settings.limit):
                    await give_up(connection)
            except TimeoutError:
                await connection.close()
            finally:
                self._used -= 1
                await pool.putconn(connection)
                self._next_may_ask()

        returning = asyncio.create_task(give_back())
        self._returning.add(returning)
        returning.add_done_callback(self._returning.discard)
        return returning

    async def _may_retry(self, error: BaseException) -> bool:
        """Whether to try again; if so, the pool checks its other connections too."""
        pool = self._pool
        if pool is None:
            return False
        if isinstance(error, PoolTimeout):
            return self._has_room()
        if isinstance(error, psycopg.Error) and error.sqlstate in _REASONS:
            return True
        if not is_lost(error):
            return False
        if returning := self._return_idle(pool):
            await asyncio.wait(returning)
        with suppress(psycopg.Error):
            await pool.check()
        return True

    def _has_room(self) -> bool:
        """If no connection came all the same, then because none can be made."""
        return self._used < self.settings.max_size


async def _reconnect_for_waiters(pool: PsycopgPool) -> None:
    """Start over where somebody waits; otherwise the next request does."""
    if pool.get_stats().get("requests_waiting"):
        await pool.check()


def _cancel_count() -> int:
    """How often this task was asked to cancel.

    On Python 3.11 `asyncio.wait_for`, by which the pool waits, loses a cancellation that comes in
    the moment in which what it waits for does.
    """
    task = asyncio.current_task()
    return task.cancelling() if task else 0
