"""The sweeper: hands over what dead workers left, finds what was lost, removes what has ended."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Final

from refold.engine.dbos.lease import Lasting, Liveness
from refold.engine.dbos.measuring import Measuring
from refold.engine.dbos.queue import FoldQueue, QueuedFold
from refold.errors import RefoldError

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
        """Look from now on."""
        self._task = asyncio.create_task(self._sweep_on())

    async def end(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def sweep(self) -> None:
        """Look once."""
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
        """Tell how the queues stand."""
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
