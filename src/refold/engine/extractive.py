"""Folds that call no model, made by the process that needs them.

An extractive summary takes some milliseconds and costs nothing, so it needs no queue, no limit for
each tenant and no worker. It needs no lease either: the same log gives the same summary, and the
log takes one end of a fold. So whoever needs a fold that is not finished makes it, whether the
process that began it is slow or dead. Two that make the same one waste a few milliseconds, and the
later end is refused.
"""

import asyncio
from asyncio import FIRST_COMPLETED
from collections.abc import Awaitable, Callable
from typing import Final
from uuid import UUID

from refold.engine.folding import STOPPING, heard
from refold.engine.protocol import Ended
from refold.fold.job import Job

AT_ONCE: Final = 2
"""Folds that one engine makes at a time: they share the processor with requests."""

_CLOSING: Final = 30.0
"""Seconds for what is left when the engine is closed: hundreds of folds, if none of them hangs."""

CarryOut = Callable[[Job], Awaitable[Ended | None]]
"""Makes a fold that was begun, and appends its end."""
_Task = asyncio.Task[Ended | None]
_Key = tuple[str, UUID]


class ExtractiveFolds:
    """The extractive folds that are being made in this process, for one engine."""

    def __init__(self, carry_out: CarryOut) -> None:
        self._carry_out = carry_out
        self._tasks: dict[_Key, _Task] = {}
        self._places = asyncio.Semaphore(AT_ONCE)
        self.closing = False
        """What is canceled now is left to whoever needs it next, and not said to have failed."""

    def start(self, job: Job) -> _Task:
        """Make a fold that was begun, here or elsewhere; the one that makes it, if any does."""
        key = job.session, job.fold
        task = self._tasks.get(key)
        if task is None:
            task = self._tasks[key] = asyncio.create_task(self._make(job))
            task.add_done_callback(heard)
            task.add_done_callback(lambda _: self._tasks.pop(key, None))
        return task

    async def finish(self, job: Job) -> Ended | None:
        """Make it, or wait for it; a caller that stops waiting does not stop the fold."""
        return await asyncio.shield(self.start(job))

    async def stop(self, session: str, fold: UUID) -> None:
        """Stop making a fold that was given up, and wait until that is so."""
        task = self._tasks.get((session, fold))
        if task is not None:
            task.cancel()
            await asyncio.wait({task}, timeout=2 * STOPPING)

    async def close(self) -> None:
        """Let what is being made come to its end; what takes too long is left to others."""
        late = set(self._tasks.values())
        loop = asyncio.get_running_loop()
        ends = loop.time() + _CLOSING
        while late and loop.time() < ends:
            ended, late = await asyncio.wait(late, timeout=STOPPING, return_when=FIRST_COMPLETED)
            if not ended:  # the store does not answer
                break
        self.closing = True
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=STOPPING)

    async def _make(self, job: Job) -> Ended | None:
        async with self._places:
            return await self._carry_out(job)
