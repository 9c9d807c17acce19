"""The engine on DBOS: a fold is a workflow that any worker may run."""

import asyncio
import logging
from contextlib import suppress
from typing import Final, Never, Self
from uuid import UUID

from pydantic import JsonValue

from refold.engine.beneath import Beneath
from refold.engine.dbos.limits import Limits
from refold.engine.dbos.link import Link
from refold.engine.dbos.measuring import Measuring
from refold.engine.dbos.names import POOL, VERSION, Lane, workflow_id
from refold.engine.dbos.queueing import Queueing
from refold.engine.dbos.rescuing import Rescuing
from refold.engine.dbos.tables import Tables
from refold.engine.dbos.worker import GRACE
from refold.engine.ends import end_of, running
from refold.engine.folding import STOPPING, Folding, heard
from refold.engine.protocol import Ended, closed
from refold.engine.surely import surely
from refold.engine.waiting import Lookout, give_up, wait_for
from refold.errors import SessionForgotten, SessionNotFound
from refold.fold.job import Job, Steps
from refold.fold.run import MANUAL, read_context
from refold.log import Author, Log, Running

_FIRST_PAUSE, _LONGEST_PAUSE, _SLOWER = 0.02, 0.5, 1.5
_ALONE: Final = 5.0
"""Seconds that somebody waits for a fold before it is looked whether any worker is there."""
_LOGGER: Final = logging.getLogger("refold.engine")
_WAITED_FOR: Final = frozenset({MANUAL, "model switch"})


class DbosEngine:
    """Has folds made by workers: see `Worker`. Its own process makes none.

    All engines and workers of a store are of this kind: another kind would take their folds for
    dead.
    """

    def __init__(  # noqa: PLR0913 - all but two have a default
        self,
        log: Log,
        address: str,
        *,
        limits: Limits | None = None,
        author: Author | None = None,
        pool: str = POOL,
        version: str = VERSION,
        grace: float = GRACE,
        look: float = 1.0,
        leave: bool = True,
        measuring: Measuring | None = None,
    ) -> None:
        """Make an engine; it connects when it is first used.

        Args:
            log: The log of one tenant.
            address: The database of DBOS's tables, see `prepare`.
            limits: What the queues let through; the same for all engines and workers of a pool.
            author: Makes the entries; tests give it a clock.
            pool: Which workers make the folds.
            version: Of the workflow.
            grace: Seconds that a lock must be free before its worker is taken for dead.
            look: Seconds between two looks whether the worker of a fold that is waited for lives.
            leave: Whether folds that are under way when the engine is closed go on; else they are
                given up.
            measuring: What is measured, and where it goes.
        """
        self._log = log
        self._author = author or Author()
        self._folding = Folding(
            log, _never, steps=_no_steps, author=self._author, limit=None, reach=lambda _: None
        )
        self._link = Link(address)
        self._measuring = measuring or Measuring()
        self._tables = Tables(self._link, self._measuring)
        self._queueing = Queueing(address, limits or Limits(), pool, version)
        self._rescuing = Rescuing(log, self._folding, self._tables, self._queueing, grace)
        self._look = look
        self._leave = leave
        self._begun: dict[tuple[str, UUID], None] = {}
        self._starting: dict[asyncio.Task[bool], str] = {}
        self._closed = False
        self._warned = False

    async def start(self, job: Job) -> bool:
        """See `Engine.start`."""
        if self._closed:
            raise closed()
        starting = asyncio.create_task(self._start(job))
        self._starting[starting] = job.session
        starting.add_done_callback(self._starting.pop)
        starting.add_done_callback(heard)
        return await asyncio.shield(starting)

    async def wait(self, session: str, fold: UUID, timeout: float | None = None) -> Ended | None:  # noqa: ASYNC109 - part of the protocol
        """See `Engine.wait`."""
        until = None if timeout is None else asyncio.get_running_loop().time() + timeout
        await self._started(session, timeout)
        return await wait_for(self._log, session, fold, self._watched, until)

    async def cancel(self, session: str, fold: UUID) -> Ended | None:
        """See `Engine.cancel`."""
        await self._started(session)
        ended = await give_up(self._log, session, fold, self._author)
        if ended is None:
            return await end_of(self._log, session, fold)
        await self._stop(session, fold)
        return ended

    async def recover(self, session: str) -> tuple[Ended, ...]:
        """See `Engine.recover`."""
        if self._closed:
            raise closed()
        ours: list[Running] = []
        for one in await running(self._log, session):
            if await self._rescuing.seen_to(session, one):
                self._note(session, one.fold)
                ours.append(one)
        ended = [await self.wait(session, one.fold) for one in ours]
        return tuple(one for one in ended if one is not None)

    async def close(self) -> None:
        """Stop. What is under way goes on elsewhere, or is given up: see `leave`."""
        self._closed = True
        if self._starting:
            await surely(lambda: asyncio.wait(set(self._starting)))
        await surely(lambda: asyncio.gather(*(self._given_up(*one) for one in self._begun)))
        await self._link.close()
        await self._queueing.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def _start(self, job: Job) -> bool:
        for _ in range(2):
            begun = await self._folding.begin(job)
            if begun == "begun":
                self._note(job.session, job.fold)
                self._measuring.started(job.trigger)
                await self._queueing.put(self._log.tenant, job, _lane(job))
                return True
            if begun == "known":
                return True
            there = await running(self._log, job.session)
            rescued = [await self._rescued(job.session, one, "background") for one in there]
            if any(one.fold == job.fold for one in there):
                return True
            if not any(rescued) or await running(self._log, job.session):
                return False
        return False

    async def _rescued(self, session: str, one: Running, lane: Lane) -> bool:
        if await self._rescuing.rescued(session, one, lane):
            self._note(session, one.fold)
            return True
        return False

    def _note(self, session: str, fold: UUID) -> None:
        if not self._leave:
            self._begun[session, fold] = None

    async def _watched(self, session: str, one: Running) -> Ended:
        """How a running fold ended, wherever it runs; it is rescued if nobody makes it."""
        await self._tables.lift(self._id(session, one.fold), self._queueing.pool)
        lookout, pause, looked = Lookout(self._log, session, one), _FIRST_PAUSE, 0.0
        loop = asyncio.get_running_loop()
        began = loop.time()
        while True:
            if ended := await lookout.ended():
                return ended
            if loop.time() - looked > self._look:
                looked = loop.time()
                if await self._rescued(session, one, "waiting"):
                    pause = _FIRST_PAUSE
                await self._warn(looked - began)
            await asyncio.sleep(pause)
            pause = min(pause * _SLOWER, _LONGEST_PAUSE)

    async def _warn(self, waited: float) -> None:
        """Say once that nobody is there who could make what is waited for."""
        if self._warned or waited < _ALONE or await self._tables.are_there_workers():
            return
        self._warned = True
        _LOGGER.warning("A fold waits, and no worker is there to make it: start `refold worker`.")

    async def _stop(self, session: str, fold: UUID) -> None:
        """Have the worker of a fold that was given up stop, and wait until it has."""
        workflow = self._id(session, fold)
        pause = _FIRST_PAUSE
        with suppress(TimeoutError):
            async with asyncio.timeout(2 * STOPPING):
                while True:
                    standing = await self._tables.standing(workflow)
                    if standing is None or not standing.held:
                        return  # who takes it from a queue finds that it has ended
                    await self._tables.stop(workflow)
                    await asyncio.sleep(pause)
                    pause = min(pause * _SLOWER, _LONGEST_PAUSE)

    async def _given_up(self, session: str, fold: UUID) -> None:
        with suppress(SessionNotFound, SessionForgotten):
            await self.cancel(session, fold)

    async def _started(self, session: str, timeout: float | None = None) -> None:  # noqa: ASYNC109 - of another's wait
        """What is being started in this session has been."""
        starting = {task for task, name in self._starting.items() if name == session}
        if starting:
            await asyncio.wait(starting, timeout=timeout)

    def _id(self, session: str, fold: UUID) -> str:
        return workflow_id(self._log.tenant, session, fold)


def _lane(job: Job) -> Lane:
    """Whether somebody waits for the fold from its beginning on."""
    waited_for = job.trigger in _WAITED_FOR or read_context(job.context).at_once
    return "waiting" if waited_for else "background"


async def _never(job: Job, steps: Steps) -> JsonValue:  # noqa: ARG001 - it is a `Make`
    raise AssertionError


def _no_steps(job: Job, beneath: Beneath) -> Never:  # noqa: ARG001 - it is a `NewSteps`
    raise AssertionError
