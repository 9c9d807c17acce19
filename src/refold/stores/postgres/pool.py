"""The store's connections: taken for a moment, tried again when they break."""

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

from refold.errors import StoreClosed, StoreError
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
    is_passing,
    parameters,
    unreachable,
)
from refold.stores.postgres.metrics import Measuring

# Ends calls that take too long, by one timer for all of them.
#
# A timer for each call would cost a good part of what an append costs.

T = TypeVar("T")
_LOOKS: Final = 8


class Overdue:
    """Gives each call `limit` seconds, or a little more: it looks some times in each of them."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._under_way: dict[asyncio.Task[Any], float] = {}
        self._ended: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def run(self, call: Awaitable[T]) -> T:
        """What the call gives; TimeoutError when it has taken too long."""
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        loop = asyncio.get_running_loop()
        self._under_way[task] = loop.time()
        if self._timer is None:
            self._timer = loop.call_later(self._limit / _LOOKS, self._look, loop)
        try:
            return await call
        except asyncio.CancelledError:
            if task in self._ended and task.uncancel() == 0:
                raise TimeoutError from None
            raise
        finally:
            del self._under_way[task]
            self._ended.discard(task)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        late = loop.time() - self._limit
        for task, since in self._under_way.items():
            if since < late and task not in self._ended:
                self._ended.add(task)
                task.cancel()
        again = bool(self._under_way)
        self._timer = loop.call_later(self._limit / _LOOKS, self._look, loop) if again else None


# Connections between two calls, and who waits for one.
#
# The way through the pool costs a good part of what an append costs, so a call that ends hands its
# connection to who has waited longest, or leaves it here for the next. Nothing here waits while it
# has a connection, so no call can be cancelled in a moment in which it would be lost.

Waiting = asyncio.Future[Connection | None]


class Spare:
    """Connections that nobody uses just now, and a queue of those who want one.

    Who waits is given a connection, or None: a place is free, and the pool is to be asked.
    """

    def __init__(self, queue: int, wait: float) -> None:
        self._queue: Final = queue
        self._wait: Final = wait
        self._free: list[Connection] = []
        self._waiting: deque[Waiting] = deque()
        self.taken = 0
        self.refused = 0

    @property
    def free(self) -> int:
        """How many connections nobody uses."""
        return len(self._free)

    @property
    def waiting(self) -> int:
        """How many wait for one."""
        return len(self._waiting)

    def take(self) -> Connection | None:
        """The connection used last, if there is one."""
        if not self._free:
            return None
        self.taken += 1
        return self._free.pop()

    def take_all(self) -> list[Connection]:
        """All that nobody uses."""
        free, self._free = self._free, []
        return free

    def leave(self, connection: Connection) -> None:
        """Leave a connection for who waits, or for who comes."""
        if self.hand(connection):
            self.taken += 1
        else:
            self._free.append(connection)

    def hand(self, connection: Connection | None) -> bool:
        """Hand something to who has waited longest; whether there was anybody."""
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(connection)
                return True
        return False

    def wait(self) -> Waiting:
        """Begin to wait; TooManyRequests when too many do."""
        if len(self._waiting) >= self._queue:
            self.refused += 1
            raise TooManyRequests
        loop = asyncio.get_running_loop()
        waiting: Waiting = loop.create_future()
        timer = loop.call_later(self._wait, self._refuse, waiting)
        waiting.add_done_callback(lambda _: timer.cancel())
        self._waiting.append(waiting)
        return waiting

    def leave_queue(self, waiting: Waiting) -> None:
        """Stop waiting."""
        with suppress(ValueError):
            self._waiting.remove(waiting)

    def close(self) -> None:
        """Nobody is given a connection any more."""
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_exception(PoolClosed())

    def _refuse(self, waiting: Waiting) -> None:
        if not waiting.done():
            self.refused += 1
            self.leave_queue(waiting)
            waiting.set_exception(PoolTimeout())


_REASONS: Final = {"40001": "serialization", "40P01": "deadlock"}
_PAUSES: Final = (0.0, 0.05, 0.1, 0.2, 0.5)
_REST: Final = 1.0
_RECONNECT: Final = 2.0
"""Seconds after which the pool begins anew to connect. Its pauses between two attempts double, up
to this: with the usual five minutes, a server would be back for half a minute before it is tried.
"""


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
        self._spare = Spare(pool.queue, pool.wait)
        self._rest: asyncio.TimerHandle | None = None
        self._returning: set[asyncio.Task[None]] = set()
        self._pool: AsyncConnectionPool[Connection] | None = None

    @property
    def is_open(self) -> bool:
        """Whether it was opened and not closed since."""
        return self._pool is not None

    def stats(self) -> dict[str, int]:
        """What the pool says of itself."""
        if self._pool is None:
            return {}
        said, spare = self._pool.get_stats(), self._spare
        for name, more in (
            ("pool_available", spare.free),
            ("requests_waiting", spare.waiting),
            ("requests_num", spare.taken),
            ("requests_errors", spare.refused),
        ):
            said[name] = said.get(name, 0) + more
        return said

    async def open(self, check: Callable[[Connection], Awaitable[None]]) -> None:
        """Connect once, look whether this is what we want, and begin to keep connections."""
        try:
            first = await connect(self.address, self.settings)
            try:
                await check(first)
            finally:
                await first.close()
        except psycopg.Error as error:
            raise explained(self.address, error) from error
        settings = self.settings
        pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
            self.address.conninfo,
            connection_class=SwiftConnection,
            kwargs=parameters(self.address, settings),
            configure=configure,
            min_size=settings.least,
            max_size=settings.most,
            timeout=settings.wait,
            reconnect_timeout=_RECONNECT,
            reconnect_failed=_connect_for_those_who_wait,
            name="refold",
            open=False,
        )
        try:
            await pool.open(wait=True, timeout=settings.wait)
        except PoolTimeout as error:
            raise unreachable(self.address, "no connection can be made") from error
        self._pool = pool

    def abandon(self) -> None:
        """Let go of connections whose event loop has ended: nobody can close them in good order."""
        if self._pool is not None:
            pool, self._pool = self._pool, None
            for connection in (*pool._pool, *self._spare.take_all()):  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
                connection.pgconn.finish()
            self._used = self._asking = self._to_pool = 0
            self._spare = Spare(self.settings.queue, self.settings.wait)
            self._rest = None
            self._returning.clear()

    async def close(self) -> None:
        """Close them all."""
        if self._pool is not None:
            pool, self._pool = self._pool, None
            if self._rest is not None:
                self._rest.cancel()
                self._rest = None
            self._spare.close()
            self._return_spare(pool)
            if self._returning:
                await asyncio.wait(self._returning)
            await pool.close()

    async def run(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Do the work on a connection."""
        until = monotonic() + self._wait
        tries, canceled = 0, _cancelled()
        while True:
            try:
                return await self._once(work)
            except (psycopg.Error, TimeoutError) as error:
                if _cancelled() > canceled:  # a connection that is closed by it says so instead
                    raise asyncio.CancelledError from error
                if not await self._may_come_back(error) or monotonic() > until:
                    raise self._explained(error) from error
                self._measuring.retried(_REASONS.get(_sqlstate(error), "lost connection"))
                pause = _PAUSES[min(tries, len(_PAUSES) - 1)]
            tries += 1
            await asyncio.sleep(uniform(pause / 2, pause))  # noqa: S311 - so that not all come at once

    async def _once(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        pool = self._pool
        if pool is None:
            raise StoreClosed(f"The store {self.address} is not open.")
        connection = self._spare.take() or await self._taken(pool)
        try:
            result = await work(connection)
        except BaseException:
            await self._give_back(pool, connection)
            raise
        if self._is_kept(pool, connection):
            self._spare.leave(connection)
        else:
            await self._give_back(pool, connection)
        return result

    async def _taken(self, pool: "AsyncConnectionPool[Connection]") -> Connection:
        """A connection of the pool, or one that another call is done with."""
        if self._used + self._asking < self.settings.most and not self._spare.waiting:
            self._asking += 1
        elif (connection := await self._handed(pool)) is not None:
            return connection
        before = _cancelled()
        try:
            connection = await pool.getconn()
        except BaseException:
            self._give_up_place()
            raise
        self._asking -= 1
        self._used += 1
        if self._rest is None:
            self._rest = asyncio.get_running_loop().call_later(_REST, self._let_rest)
        if _cancelled() > before:
            await self._give_back(pool, connection)
            raise asyncio.CancelledError
        return connection

    async def _handed(self, pool: "AsyncConnectionPool[Connection]") -> Connection | None:
        """Wait for a connection that another call is done with, or for a place among the asking."""
        waiting = self._spare.wait()
        try:
            return await waiting
        except asyncio.CancelledError:
            self._spare.leave_queue(waiting)
            if waiting.done() and not waiting.cancelled() and waiting.exception() is None:
                connection = waiting.result()
                if connection is None:
                    self._give_up_place()
                else:
                    self._return(pool, connection)
            raise

    def _give_up_place(self) -> None:
        """Whoever asks the pool for a connection has a place, which is another's then."""
        self._asking -= 1
        self._next_may_ask()

    def _next_may_ask(self) -> None:
        if self._used + self._asking < self.settings.most and self._spare.hand(None):
            self._asking += 1

    def _is_kept(self, pool: "AsyncConnectionPool[Connection]", connection: Connection) -> bool:
        """Whether a connection is fit for the next call as it is."""
        if connection.pgconn.transaction_status != TransactionStatus.IDLE or self._pool is not pool:
            return False
        if self._asking:  # the pool may be unable to make another
            return False
        if self._to_pool:
            self._to_pool -= 1
            return False
        return True

    def _let_rest(self) -> None:
        """Let the pool see its connections now and then: it ends those that are old or too many."""
        self._rest = None
        if self._pool is not None and self._used:
            self._to_pool = self._used - self._spare.free
            self._return_spare(self._pool)
            self._rest = asyncio.get_running_loop().call_later(_REST, self._let_rest)

    def _return_spare(self, pool: "AsyncConnectionPool[Connection]") -> list[asyncio.Task[None]]:
        return [self._return(pool, connection) for connection in self._spare.take_all()]

    async def _give_back(
        self, pool: "AsyncConnectionPool[Connection]", connection: Connection
    ) -> None:
        """Give a connection back, also when who had it is cancelled while we do."""
        await asyncio.shield(self._return(pool, connection))

    def _return(
        self, pool: "AsyncConnectionPool[Connection]", connection: Connection
    ) -> asyncio.Task[None]:
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

    async def _may_come_back(self, error: BaseException) -> bool:
        """Whether to try again; the pool then looks after its other connections too."""
        pool = self._pool
        if pool is None:
            return False
        if isinstance(error, PoolTimeout):
            return self._is_away()
        if isinstance(error, psycopg.Error) and is_passing(error):
            return True
        if not is_lost(error):
            return False
        if returning := self._return_spare(pool):
            await asyncio.wait(returning)
        with suppress(psycopg.Error):
            await pool.check()
        return True

    def _is_away(self) -> bool:
        """Whether no connection came because none can be made, and not because all are in use."""
        return self._used < self.settings.most

    def _explained(self, error: BaseException) -> StoreError:
        if isinstance(error, PoolTimeout) and self._is_away():
            return unreachable(self.address, "no connection can be made")
        return explained(self.address, error)


async def _connect_for_those_who_wait(pool: "AsyncConnectionPool[Connection]") -> None:
    """Begin anew where somebody waits; else the next who asks for a connection does."""
    if pool.get_stats().get("requests_waiting"):
        await pool.check()


def _cancelled() -> int:
    """How often this task was told to stop.

    On Python 3.11 `asyncio.wait_for`, by which the pool waits, loses a cancellation that comes in
    the moment in which what it waits for does.
    """
    task = asyncio.current_task()
    return task.cancelling() if task else 0


def _sqlstate(error: BaseException) -> str:
    return (isinstance(error, psycopg.Error) and error.sqlstate) or ""
