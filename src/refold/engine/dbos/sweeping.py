"""The sweeper: finds what dead workers left, and what nobody will make."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Final
from uuid import UUID

from refold.engine.dbos.deaths import Deaths
from refold.engine.dbos.tables import Tables
from refold.engine.reason import INTERRUPTED
from refold.errors import RefoldError

KEPT: Final = 600.0
"""Seconds that a workflow is kept after its end. The log has the end; limits by the period count
what began in it, so no period may be longer."""
_SELDOM: Final = 30
_LOGGER: Final = logging.getLogger("refold.engine")
_NOW_AND_THEN: Final = 5
_SILENT: Final = 3
"""How many times the grace a worker may be connected and silent. A worker speaks eight times in
each."""

Close = Callable[[str, str, UUID, str], Awaitable[None]]
"""Ends the fold of a tenant's session, and says why."""


class Sweeper:
    """Looks every few seconds. Every worker has one, and any of them is enough.

    `look` is what its worker looks after itself, each time.
    """

    def __init__(  # noqa: PLR0913 - made in one place
        self,
        tables: Tables,
        executor: str,
        *,
        grace: float,
        every: float,
        look: Callable[[], Awaitable[None]],
        close: Close,
    ) -> None:
        self._tables = tables
        self._executor = executor
        self._silent = _SILENT * grace
        self._deaths = Deaths(grace)
        self._every = every
        self._look = look
        self._close = close
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Look from now on."""
        self._task = asyncio.create_task(self._go_on())

    async def end(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _go_on(self) -> None:
        turn = 0
        while True:
            await asyncio.sleep(self._every)
            try:
                await self.sweep()
                if turn % _NOW_AND_THEN == 0:
                    await self._tables.measure()
                if turn % _SELDOM == 0:
                    await self._tables.remove_old(KEPT)
            except Exception as error:  # noqa: BLE001 - what is not swept now is swept later
                said = error.what if isinstance(error, RefoldError) else type(error).__name__
                _LOGGER.warning("The sweeper will look again: %s", said)
            else:
                turn += 1

    async def sweep(self) -> None:
        """Look once."""
        if self._silent:
            await self._tables.end_silent(self._executor, self._silent)
        for executor, held, up in await self._tables.executors(self._executor):
            if self._deaths.dead(executor, held=held, up=up):
                await self._tables.take_over(executor)
                self._deaths.forget(executor)
        await self._look()
        for workflow, given in await self._tables.given_up():
            tenant, session, fold = json.loads(given)["positionalArgs"]
            await self._close(tenant, session, UUID(fold), f"{INTERRUPTED} too often")
            await self._tables.remove(workflow)
