"""Connections between two calls, and who waits for one.

The way through the pool costs a good part of what an append costs, so a call that ends hands its
connection to who has waited longest, or leaves it here for the next. Nothing here waits while it
has a connection, so no call can be cancelled in a moment in which it would be lost.
"""

import asyncio
from collections import deque
from contextlib import suppress
from typing import Final

from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

from refold.stores.postgres.transaction import Connection

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
