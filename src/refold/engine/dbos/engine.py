"""The engine on DBOS: a fold is a workflow that any worker may run."""

import asyncio
import logging
from asyncio import FIRST_COMPLETED
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, Never, Self
from uuid import UUID

from pydantic import JsonValue

from refold.engine.dbos.database import POOL, VERSION, Lane, queue_of
from refold.engine.dbos.limits import Limits, model_of
from refold.engine.dbos.metrics import Measuring
from refold.engine.dbos.queue import FoldQueue, QueuedFold
from refold.engine.dbos.recovery import Liveness
from refold.engine.dbos.worker import GRACE
from refold.engine.folding import STOPPING, Folding, heard
from refold.engine.local import LIMIT
from refold.engine.locks import retry_shielded
from refold.engine.protocol import Ended, Lookout, closed, end_of, give_up, running, wait_for
from refold.engine.steps import FoldInputs, LoggedSteps
from refold.errors import SessionForgotten, SessionNotFound
from refold.fold.compactor import MANUAL, is_extractive, read_context
from refold.fold.job import Job, Make, Steps
from refold.log import Author, Log, Running

# Folds that call no model, made by the process that needs them.
#
# An extractive summary takes some milliseconds and costs nothing, so it needs no queue, no limit
# for
# each tenant and no worker. It needs no lease either: the same log gives the same summary, and the
# log takes one end of a fold. So whoever needs a fold that is not finished makes it, whether the
# process that began it is slow or dead. Two that make the same one waste a few milliseconds, and
# the
# later end is refused.

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


_FIRST_PAUSE, _LONGEST_PAUSE, _SLOWER = 0.02, 0.5, 1.5
_SHORTEST: Final = 0.01
_ALONE: Final = 5.0
"""Seconds that somebody waits for a fold before it is looked whether any worker is there."""
_LOGGER: Final = logging.getLogger("refold.engine")
_WAITED_FOR: Final = frozenset({MANUAL, "model switch"})


class DbosEngine:
    """Has folds made by workers: see `Worker`.

    Its own process makes those that call no model, where it is given `extract`: see
    `refold.engine.dbos.engine`.

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
        extract: Make | None = None,
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
            extract: Makes the summaries that need no model, in this process; None: workers do.
            measuring: What is measured, and where it goes.
        """
        self._log = log
        self._author = author or Author()
        self._folding = Folding(
            log, _never, steps=_no_steps, author=self._author, limit=None, reach=lambda _: None
        )
        self._measuring = measuring or Measuring()
        self._queue = FoldQueue(address, limits or Limits(), pool, version)
        self._liveness = Liveness(grace, look)
        self._grace = grace
        self._extract = extract
        self._extractive = ExtractiveFolds(self._carry_out)
        self._look = look
        self._leave = leave
        self._begun: dict[tuple[str, UUID], None] = {}
        self._starting: dict[asyncio.Task[bool], str] = {}
        self._closed = False
        self._warned = False

    async def start(self, job: Job) -> bool:
        if self._closed:
            raise closed()
        starting = asyncio.create_task(self._start(job))
        self._starting[starting] = job.session
        starting.add_done_callback(self._starting.pop)
        starting.add_done_callback(heard)
        return await asyncio.shield(starting)

    async def wait(self, session: str, fold: UUID, timeout: float | None = None) -> Ended | None:  # noqa: ASYNC109 - part of the protocol
        until = None if timeout is None else asyncio.get_running_loop().time() + timeout
        await self._started(session, timeout)
        return await wait_for(self._log, session, fold, self._watched, until)

    async def cancel(self, session: str, fold: UUID) -> Ended | None:
        await self._started(session)
        ended = await give_up(self._log, session, fold, self._author)
        await self._extractive.stop(session, fold)
        if ended is None:
            return await end_of(self._log, session, fold)
        await self._stop(session, fold)
        return ended

    async def recover(self, session: str) -> tuple[Ended, ...]:
        if self._closed:
            raise closed()
        ours: list[Running] = []
        for one in await running(self._log, session):
            job = await self._extractive_job(session, one)
            if job is not None or await self._seen_to(session, one):
                self._note(session, one.fold)
                ours.append(one)
        ended = [await self.wait(session, one.fold) for one in ours]
        return tuple(one for one in ended if one is not None)

    async def close(self) -> None:
        """Stop. What is under way goes on elsewhere, or is given up: see `leave`."""
        self._closed = True
        if self._starting:
            await retry_shielded(lambda: asyncio.wait(set(self._starting)))
        await retry_shielded(lambda: asyncio.gather(*(self._given_up(*one) for one in self._begun)))
        await retry_shielded(self._extractive.close)
        await self._queue.close()

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
                if self._makes(job):
                    self._extractive.start(job)
                    return True
                await self._queue.put(self._log.tenant, job, _lane(job))
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

    def _makes(self, job: Job) -> bool:
        return self._extract is not None and is_extractive(job)

    async def _extractive_job(self, session: str, one: Running) -> Job | None:
        """The job of a running fold, where this process can make it, whoever began it."""
        if self._extract is None:
            return None
        job = await self._folding.left(session, one)
        return job if job is not None and self._makes(job) else None

    async def _carry_out(self, job: Job) -> Ended | None:
        with self._measuring.fold() as making:

            def steps(job: Job, fold_inputs: FoldInputs) -> Steps:
                return making.steps(LoggedSteps(self._log, job, self._author, fold_inputs), job)

            ended = await Folding(
                self._log,
                self._extract or _never,
                steps=steps,
                author=self._author,
                limit=LIMIT,
                reach=lambda _: None,
                leaves=lambda: self._extractive.closing,
            ).carry_out(job)
            making.ended(ended)
            return ended

    async def _rescued(self, session: str, one: Running, lane: Lane) -> bool:
        """Requeue or close an abandoned fold; False when it was not ours to do."""
        job = await self._extractive_job(session, one)
        if job is not None:
            self._note(session, one.fold)
            self._extractive.start(job)
            return True
        if await self._handed_over(session, one, lane):
            self._note(session, one.fold)
            return True
        return False

    async def _handed_over(self, session: str, one: Running, lane: Lane) -> bool:
        row = await self._find(session, one.fold)
        if not await self._is_abandoned(row) or one not in await running(self._log, session):
            return False
        job = await self._folding.left(session, one)
        if job is None:
            return await self._folding.close(session, one) is not None
        if row is None:
            return await self._queue.put(self._log.tenant, job, lane)
        await self._queue.register(model_of(job))
        queue = queue_of(self._queue.pool, lane, model_of(job))
        # A fold of another version goes back to its own workers.
        moved = await self._queue.requeue(
            row, queue if row.version == self._queue.version else None
        )
        self._measuring.taken_over(int(moved and row.worker is not None))
        return moved

    async def _is_abandoned(self, row: QueuedFold | None) -> bool:
        """Whether a fold is abandoned: its worker is dead, or it is in no queue.

        Workers sweep for that, too, but not for one whose process died before it was queued.
        """
        if row is None:
            return True
        if row.worker is None:
            return await self._queue.is_lost(row.id)
        dead = self._liveness.dead(await self._queue.workers())
        return any(worker.executor == row.worker for worker in dead)

    async def _seen_to(self, session: str, one: Running) -> bool:
        """The same, and wait until it is known whether the fold's worker is dead."""
        while not await self._rescued(session, one, "background"):
            row = await self._find(session, one.fold)
            if row is None or row.worker is None or row.held:
                return False
            if one not in await running(self._log, session):
                return False
            await asyncio.sleep(self._grace / 8 + _SHORTEST)
        return True

    async def _find(self, session: str, fold: UUID) -> QueuedFold | None:
        return await self._queue.find(self._log.tenant, session, fold)

    def _note(self, session: str, fold: UUID) -> None:
        if not self._leave:
            self._begun[session, fold] = None

    async def _watched(self, session: str, one: Running) -> Ended:
        """How a running fold ended, wherever it runs; it is rescued if nobody makes it."""
        job = await self._extractive_job(session, one)
        if job is not None and (ended := await self._extractive.finish(job)) is not None:
            return ended
        await self._queue.lift(self._log.tenant, session, one.fold)
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
        if self._warned or waited < _ALONE:
            return
        if any(worker.held for worker in await self._queue.workers()):
            return
        self._warned = True
        _LOGGER.warning("A fold waits, and no worker is there to make it: start `refold worker`.")

    async def _stop(self, session: str, fold: UUID) -> None:
        """Have the worker of a fold that was given up stop, and wait until it has."""
        pause = _FIRST_PAUSE
        with suppress(TimeoutError):
            async with asyncio.timeout(2 * STOPPING):
                # Whoever takes it from a queue finds that it has ended.
                while (row := await self._find(session, fold)) and row.held:
                    await self._queue.stop(row.id)
                    await asyncio.sleep(pause)
                    pause = min(pause * _SLOWER, _LONGEST_PAUSE)

    async def _given_up(self, session: str, fold: UUID) -> None:
        with suppress(SessionNotFound, SessionForgotten):
            await self.cancel(session, fold)

    async def _started(self, session: str, timeout: float | None = None) -> None:  # noqa: ASYNC109 - of another's wait
        starting = {task for task, name in self._starting.items() if name == session}
        if starting:
            await asyncio.wait(starting, timeout=timeout)


def _lane(job: Job) -> Lane:
    waited_for = job.trigger in _WAITED_FOR or read_context(job.context).at_once
    return "waiting" if waited_for else "background"


async def _never(job: Job, steps: Steps) -> JsonValue:  # noqa: ARG001 - it is a `Make`
    raise AssertionError


def _no_steps(job: Job, fold_inputs: FoldInputs) -> Never:  # noqa: ARG001 - it is a `NewSteps`
    raise AssertionError
