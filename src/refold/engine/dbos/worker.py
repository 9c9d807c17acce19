"""A worker: makes the folds of all tenants that come through DBOS's queues."""

import asyncio
import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final, Self
from uuid import UUID, uuid4

import psycopg
from dbos import DBOS
from dbos._error import DBOSException  # it is raised to callers, but not exported
from sqlalchemy.exc import SQLAlchemyError

from refold.engine.beneath import Beneath, running_of
from refold.engine.dbos import workflow as workflows
from refold.engine.dbos.containing import contained
from refold.engine.dbos.door import Door
from refold.engine.dbos.limits import Limits
from refold.engine.dbos.link import Link, refused
from refold.engine.dbos.measuring import Making, Measuring
from refold.engine.dbos.names import POOL, SCHEMA, VERSION
from refold.engine.dbos.polling import Polling
from refold.engine.dbos.pulse import Pulse
from refold.engine.dbos.queueing import Queueing
from refold.engine.dbos.sweeping import Sweeper
from refold.engine.dbos.tables import Tables
from refold.engine.folding import Folding
from refold.engine.local import LIMIT
from refold.engine.reason import reason_of
from refold.engine.steps import LoggedSteps
from refold.engine.surely import PASSING, surely
from refold.errors import RefoldError, SessionForgotten, SessionNotFound
from refold.fold.job import Job, Make, Steps
from refold.log import Author, Log

GRACE: Final = 10.0
"""Seconds that a worker's lock must be free before others take the worker for dead."""
SWEEP: Final = 2.0
"""Seconds between two looks for dead workers."""
_GONE: Final = (SessionForgotten, SessionNotFound)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 10.0
_STRAY: Final = 10.0

Logs = Callable[[str], Log]
"""The log of a tenant."""
Makes = Callable[[Log], Make]
"""What makes the summaries of a log's folds."""


class Worker:
    """Makes folds, as long as it is entered: `async with Worker(address, store.log, make):`.

    A process has one at most, for DBOS is one for each process. Any number of processes may have
    one over the same database; which of them makes a fold is DBOS's to say.
    """

    def __init__(  # noqa: PLR0913 - all but three have a default
        self,
        address: str,
        logs: Logs,
        make: Makes,
        *,
        limits: Limits | None = None,
        models: Iterable[str] = (),
        executor: str | None = None,
        pool: str = POOL,
        version: str = VERSION,
        author: Author | None = None,
        limit: float | None = LIMIT,
        grace: float = GRACE,
        sweep: float = SWEEP,
        patience: float = 30.0,
        measuring: Measuring | None = None,
        reach: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Make a worker; nothing happens before it is entered.

        Args:
            address: The database of DBOS's tables: directly, not through a pooler that shares
                connections, for it holds a lock and listens.
            logs: The log of each tenant.
            make: What makes the summaries of a log's folds.
            limits: What the queues of its pool let through: it sets them, and whoever is last wins.
            models: The summarising models that are known already; others are found by themselves.
            executor: Its id, which no other process has while it lives; a new one without.
            pool: Which engines' folds it makes.
            version: Of the workflow; it takes no folds of another.
            author: Makes the entries; tests give it a clock.
            limit: Seconds that making one fold may take.
            grace: Seconds that a lock must be free before its worker is taken for dead. All
                workers and engines of a database have the same.
            sweep: Seconds between two looks for dead workers.
            patience: Seconds that it waits, when it is left, for what it makes; the rest is given
                to others.
            measuring: What is measured, and where it goes.
            reach: For tests.
        """
        self.executor = executor or f"worker-{uuid4()}"
        self._address = address
        self._logs = logs
        self._make = make
        self._models = ("", *models)
        self._author = author or Author()
        self._limit = limit
        self._patience = patience
        self._reach = reach
        self._link = Link(address, "refold sweeper")
        self._measuring = measuring or Measuring()
        self._tables = Tables(self._link, self._measuring)
        self._queueing = Queueing(address, limits or Limits(), pool, version)
        self._pulse = Pulse(
            address,
            self.executor,
            grace=grace,
            lost=self._lost,
            back=self._back,
            stop=self._stopped,
        )
        self._sweeper = Sweeper(
            self._tables,
            self.executor,
            grace=grace,
            every=sweep,
            look=self._look_after,
            close=self._close,
        )
        self._door = Door(self._tables, self.executor)
        self._making: dict[str, asyncio.Task[None]] = {}
        self._leaving = False
        """Whether what is made is left to others: the worker stops, or does not know its lock."""
        self._stopping = False

    async def __aenter__(self) -> Self:
        workflows.begin(self)
        try:
            await self._begin()
        except BaseException:
            workflows.end(self)
            await self._link.close()
            await self._queueing.close()
            raise
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stop()

    async def work(self, workflow: str, tenant: str, session: str, fold: UUID) -> None:
        """Bring a fold to its end; cancelled when it is left to others. DBOS calls it."""
        async with self._door.entering():
            if not await self._door.lets_in(workflow) or self._leaving or workflow in self._making:
                raise asyncio.CancelledError
            making = asyncio.create_task(self._brought_to_an_end(tenant, session, fold))
            self._making[workflow] = making
        try:
            await asyncio.wait({making})
        finally:
            if self._making.get(workflow) is making:
                del self._making[workflow]
        if making.cancelled() and self._leaving:
            raise asyncio.CancelledError  # DBOS writes no outcome: the fold is another's now

    async def stop(self) -> None:
        """Take nothing new, wait for what is made, and give the rest to others."""
        if self._stopping:
            return
        self._stopping = True
        await self._sweeper.end()
        limit = math.ceil(self._patience) + 10 if self._making else 0
        ending = asyncio.create_task(
            asyncio.to_thread(DBOS.destroy, workflow_completion_timeout_sec=limit)
        )
        if self._making:
            await asyncio.wait(set(self._making.values()), timeout=self._patience)
        await self._leave()
        await ending
        with suppress(RefoldError):  # then others will find that we are gone
            await self._door.put_back(list)
        await self._pulse.end()
        await self._link.close()
        await self._queueing.close()
        workflows.end(self)

    async def _begin(self) -> None:
        await surely(lambda: self._set_limits(self._models))
        await surely(self._pulse.begin)
        try:
            self._launch()
        except (SQLAlchemyError, DBOSException, psycopg.Error, OSError) as error:
            await asyncio.to_thread(DBOS.destroy)
            await self._pulse.end()
            raise refused(error) from error
        self._pulse.keep()
        self._sweeper.begin()

    def _launch(self) -> None:
        DBOS(
            config={
                "name": self._queueing.application,
                "system_database_url": self._address,
                "dbos_system_schema": SCHEMA,
                "executor_id": self.executor,
                "application_version": self._queueing.version,
                "run_migrations": False,
                "use_listen_notify": False,
                "log_level": "ERROR",
            }
        )
        DBOS.launch()
        Polling(lambda: self._leaving or not self._pulse.is_sure()).begin()

    async def _brought_to_an_end(self, tenant: str, session: str, fold: UUID) -> None:
        pause = _FIRST_PAUSE
        while True:
            try:
                return await self._made(tenant, session, fold)
            except _GONE:
                return None
            except PASSING:
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            except asyncio.CancelledError:
                raise
            except BaseException as error:  # noqa: BLE001 - DBOS would keep its words
                with suppress(Exception):
                    await self._close(tenant, session, fold, reason_of(error))
                return None

    async def _made(self, tenant: str, session: str, fold: UUID) -> None:
        with self._measuring.fold() as making:
            folding = self._folding(self._logs(tenant), making)
            making.ended(await folding.take_up(session, fold))

    def _folding(self, log: Log, making: Making | None = None) -> Folding:
        def steps(job: Job, beneath: Beneath) -> Steps:
            logged = LoggedSteps(log, job, self._author, beneath, reach=self._reach)
            return logged if making is None else making.steps(logged, job)

        return Folding(
            log,
            contained(self._make(log)),
            steps=steps,
            author=self._author,
            limit=self._limit,
            reach=self._reach,
            leaves=lambda: self._leaving,
        )

    async def _close(self, tenant: str, session: str, fold: UUID, reason: str) -> None:
        """End a fold that nobody makes any more."""
        log = self._logs(tenant)
        try:
            one = running_of(await log.outlined(session), fold)
            if one is not None:
                await self._folding(log).close(session, one, reason)
        except _GONE:
            return

    async def _look_after(self) -> None:
        """What no other worker can do for us, now and then."""
        # Taken from the queue for us, but lost on the way: a connection broke in between.
        await self._door.put_back(lambda: list(self._making), since=_STRAY)
        await self._set_limits()

    async def _set_limits(self, models: Iterable[str] = ()) -> None:
        """Give our limits to these queues, and to all that engines have made since."""
        for model in (*models, *await self._tables.models(self._queueing.pool)):
            await self._queueing.register(model, anew=True)

    def _stopped(self, workflow: str) -> None:
        """A fold was given up: the log says so already."""
        if making := self._making.get(workflow):
            making.cancel()

    def _lost(self) -> None:
        """We do not know any more that we are taken for alive: make nothing."""
        self._measuring.fenced()
        self._door.beware()
        self._leaving = True
        for making in self._making.values():
            making.cancel()

    async def _back(self) -> None:
        """We are alive again: what we had is anybody's, and we may have it again."""
        await self._leave()
        await self._door.put_back(list)
        self._leaving = self._stopping

    async def _leave(self) -> None:
        """Stop making, and wait until that is so."""
        self._leaving = True
        for making in self._making.values():
            making.cancel()
        if self._making:
            await asyncio.wait(set(self._making.values()))
