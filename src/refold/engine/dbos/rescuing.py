"""Sees to folds that the log calls running and that nobody makes."""

import asyncio
from typing import Final

from refold.engine.dbos.deaths import Deaths
from refold.engine.dbos.names import VERSION, Lane, workflow_id
from refold.engine.dbos.queueing import Queueing
from refold.engine.dbos.tables import Standing, Tables
from refold.engine.ends import running
from refold.engine.folding import Folding
from refold.engine.reason import INTERRUPTED
from refold.fold.job import Job
from refold.log import Log, Running

_ENDED: Final = frozenset({"SUCCESS", "ERROR", "CANCELLED"})
_QUEUED: Final = frozenset({"ENQUEUED", "DELAYED"})
_SHORTEST: Final = 0.01


class Rescuing:
    """Rescues folds one at a time, where somebody asks for a session: workers sweep for the rest.

    A fold is nobody's when its worker is dead, when the process that began it died before it had
    put it into a queue, or when DBOS gave it up.
    """

    def __init__(
        self, log: Log, folding: Folding, tables: Tables, queueing: Queueing, grace: float
    ) -> None:
        self._log = log
        self._folding = folding
        self._tables = tables
        self._queueing = queueing
        self._grace = grace
        self._deaths = Deaths(grace)

    async def seen_to(self, session: str, one: Running) -> bool:
        """The same, and wait until it is known whether its worker is dead."""
        while not await self.rescued(session, one, "background"):
            standing = await self._tables.standing(self._id(session, one))
            if standing is None or standing.held or standing.status != "PENDING":
                return False
            if one not in await running(self._log, session):
                return False
            await asyncio.sleep(self._grace / 8 + _SHORTEST)
        return True

    async def rescued(self, session: str, one: Running, lane: Lane) -> bool:
        """Hand over or close a fold that nobody makes; False when it was not for us to do."""
        workflow = self._id(session, one)
        standing = await self._tables.standing(workflow)
        if standing is not None:
            if standing.status in _QUEUED or not self._is_dead(standing):
                return False
            if standing.status in _ENDED and one not in await running(self._log, session):
                return False
        job = await self._folding.left(session, one)
        if job is None:
            return await self._folding.close(session, one) is not None
        return await self._again(session, one, job, standing, lane)

    async def _again(
        self, session: str, one: Running, job: Job, standing: Standing | None, lane: Lane
    ) -> bool:
        """Have a fold made again that can be finished, unless it was tried too often."""
        workflow = self._id(session, one)
        if standing is not None:
            if standing.status == "PENDING":
                return await self._handed_over(workflow, standing, job, lane)
            await self._tables.remove(workflow)
            if standing.status not in _ENDED:
                closed = await self._folding.close(session, one, f"{INTERRUPTED} too often")
                return closed is not None
        # It was never there, or has ended though the log says that the fold has not.
        return await self._queueing.put(self._log.tenant, job, lane)

    def _is_dead(self, standing: Standing) -> bool:
        if standing.status != "PENDING":
            return True
        return self._deaths.dead(standing.executor or "", held=standing.held, up=standing.up)

    async def _handed_over(self, workflow: str, standing: Standing, job: Job, lane: Lane) -> bool:
        executor = standing.executor or ""
        if (standing.version or "").partition(".")[0] != VERSION:
            return bool(await self._tables.take_over(executor))  # to the workers of its version
        queueing = self._queueing
        return await self._tables.hand_over(
            workflow,
            executor,
            queue=await queueing.queue(job, lane),
            application=queueing.application,
            version=queueing.version,
        )

    def _id(self, session: str, one: Running) -> str:
        return workflow_id(self._log.tenant, session, one.fold)
