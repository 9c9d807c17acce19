"""Ends calls that take too long, by one timer for all of them.

A timer for each call would cost a good part of what an append costs.
"""

import asyncio
from collections.abc import Awaitable
from typing import Any, Final, TypeVar, cast

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
