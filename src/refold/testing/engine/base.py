"""What the parts of the suite share."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, cast
from uuid import UUID, uuid4

import pytest
from pydantic import JsonValue

from refold.engine import Engine
from refold.errors import StoreClosed
from refold.fold.job import Job, Make, Steps
from refold.log import (
    CODEC,
    Entry,
    FoldCompleted,
    FoldFailed,
    FoldStarted,
    FoldStepped,
    Forgotten,
    Log,
    Span,
)
from refold.testing.conformance.base import Conformance

NewEngine = Callable[[Log, Make], Engine]
Drop = Callable[[Engine], Awaitable[None]]
_MOMENT = 10.0
LONG = 60.0
"""Seconds that only a test which would hang for ever waits."""


class Maker:
    """A `make` that a test leads: it stays where it is held, and gives or raises what it is told.

    What it raises, it raises once it is let go.
    """

    def __init__(
        self,
        *,
        held: bool = False,
        error: BaseException | None = None,
        summary: JsonValue = "what was said",
        stubborn: bool = False,
    ) -> None:
        self.jobs: list[Job] = []
        self.cancelled = 0
        self._called = asyncio.Event()
        self._go = asyncio.Event()
        self._error = error
        self._summary = summary
        self._stubborn = stubborn
        if not held:
            self._go.set()

    async def __call__(self, job: Job, steps: Steps) -> JsonValue:
        """Make a fold."""
        self.jobs.append(job)
        self._called.set()
        try:
            await self._go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            if not self._stubborn:
                raise
        if self._error is not None:
            raise self._error
        return await steps.step("summary", self._summarized)

    async def called(self) -> None:
        """Return when it was called."""
        async with asyncio.timeout(LONG):
            await self._called.wait()

    def let_go(self) -> None:
        """Let it go on."""
        self._go.set()

    async def _summarized(self) -> JsonValue:
        return self._summary


class _MortalLog:
    """A log as one process sees it; dead processes see nothing."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.is_alive = True

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the log has
        if not self.is_alive:
            raise StoreClosed("This process is dead.")
        return getattr(self.log, name)


class World:
    """The engines of one test, each as in a process of its own."""

    def __init__(self, log: Log, new_engine: NewEngine, drop: Drop) -> None:
        self._log = log
        self._new_engine = new_engine
        self._drop = drop
        self._living: dict[Engine, _MortalLog] = {}

    def engine(self, make: Make | None = None) -> Engine:
        """A new engine over the log."""
        life = _MortalLog(self._log)
        engine = self._new_engine(cast("Log", life), make or Maker())
        self._living[engine] = life
        return engine

    async def die(self, engine: Engine) -> None:
        """Let the engine's process die: from now on it writes nothing, and its locks are free."""
        self._living.pop(engine).is_alive = False
        await self._drop(engine)

    async def close(self) -> None:
        """Close all engines."""
        for engine in self._living:
            await engine.close()


class EngineTests(Conformance):
    """Shorthands of the tests."""

    @pytest.fixture
    async def world(self, log: Log, new_engine: NewEngine) -> AsyncIterator[World]:
        """Makes engines, and sees that nothing they did is left running or without an end."""
        before = asyncio.all_tasks()
        world = World(log, new_engine, self.drop)
        yield world
        await world.close()
        left = asyncio.all_tasks() - before - {asyncio.current_task()}
        if left:  # what a store was at ends by itself in a moment
            _, left = await asyncio.wait(left, timeout=_MOMENT)
        assert not left, f"left running: {left}"
        for info in (await log.sessions(limit=1000)).sessions:
            assert all(count == 1 for count in (await self.ends(log, info.session)).values())

    async def drop(self, engine: Engine) -> None:
        """Let go of an engine as its process's death would; it can write to its log no more.

        Override it where closing such an engine would do what no dead process does.
        """
        await engine.close()

    async def job(self, log: Log, name: str = "s", *, messages: int = 6) -> Job:
        """A new session of some messages, and a job to fold those after the first."""
        await self.begin(log, name, messages)
        return self.another(name, Span(3, messages))

    async def making(self, log: Log, world: World, maker: Maker) -> tuple[Job, Engine]:
        """A fold that is being made: it was begun, and the maker called."""
        job, engine = await self.job(log), world.engine(maker)
        await engine.start(job)
        await maker.called()
        return job, engine

    def another(self, name: str, *spans: Span, trigger: str = "soft") -> Job:
        """A job with a new id."""
        return Job(name, uuid4(), spans, trigger)

    async def ends(self, log: Log, name: str = "s") -> dict[UUID, int]:
        """How many ends each started fold of the session has."""
        started: list[UUID] = []
        ended: Counter[UUID] = Counter()
        for entry in await log.read(name):
            match CODEC.decode(entry):
                case FoldStarted(fold):
                    started.append(fold)
                case FoldCompleted(fold) | FoldFailed(fold):
                    ended[fold] += 1
                case Forgotten(FoldStarted.KIND, {"fold": str(fold)}):
                    started.append(UUID(fold))
                case Forgotten(FoldCompleted.KIND | FoldFailed.KIND, {"fold": str(fold)}):
                    ended[UUID(fold)] += 1
                case _:
                    pass
        assert len(started) == len(set(started)), "a fold was started twice"
        assert ended.keys() <= set(started)
        return {fold: ended[fold] for fold in started}

    async def told(self, log: Log, name: str = "s") -> list[Entry]:
        """The session without what an engine may note for itself while it folds."""
        return [entry for entry in await log.read(name) if entry.kind != FoldStepped.KIND]

    async def standing(self, log: Log, name: str = "s") -> list[UUID]:
        """The folds that stand in the session's view."""
        return [fold.fold for fold in (await log.visible(name)).outline.folds]
