"""What becomes of a fold's finished steps: nobody pays for one twice."""

import asyncio
from dataclasses import replace

from pydantic import JsonValue

from refold.fold.job import Job, Steps
from refold.log import Log, Span
from refold.testing.engine.base import LONG, EngineTests, World

NAMES = ("one", "two", "three", "four")


class Stepper:
    """A `make` of several steps, in turn or at once, that records which of them it started.

    It stays in the step named `held` until `let_go`.
    """

    def __init__(self, *, held: str | None = None, text: str = "", at_once: bool = False) -> None:
        self.begun: list[str] = []
        self._held = held
        self._text = text
        self._at_once = at_once
        self._ended = 0
        self._settled = asyncio.Event()
        self._go = asyncio.Event()

    async def __call__(self, job: Job, steps: Steps) -> JsonValue:
        if self._at_once:
            return await asyncio.gather(*(self._step(job, steps, name) for name in NAMES))
        return [await self._step(job, steps, name) for name in NAMES]

    async def wait_until_held(self) -> None:
        async with asyncio.timeout(LONG):
            await self._settled.wait()

    def let_go(self) -> None:
        self._go.set()

    async def _step(self, job: Job, steps: Steps, name: str) -> JsonValue:
        async def work() -> JsonValue:
            self.begun.append(name)
            if name == self._held:
                self._settle()
                await self._go.wait()
            return {"step": name, "text": self._text, "of": str(job.fold)}

        result = await steps.step(name, work)
        self._ended += 1
        self._settle()
        return result

    def _settle(self) -> None:
        others = len(NAMES) - 1 if self._at_once else 0
        if self._held in self.begun and self._ended >= others:
            self._settled.set()


class SteppingConformance(EngineTests):
    async def test_what_was_done_is_not_done_again(self, log: Log, world: World) -> None:
        job = await self.job(log)
        assert await self._die_in_step(log, world, job, Stepper(held="three")) == [
            "one",
            "two",
            "three",
        ]
        stepper = Stepper()
        (ended,) = await world.engine(stepper).recover("s")
        assert stepper.begun == ["three", "four"]
        assert ended.summary == _summary_of(job)
        assert await self.active_folds(log) == [job.fold]

    async def test_a_process_may_die_more_than_once(self, log: Log, world: World) -> None:
        job = await self.job(log)
        assert await self._die_in_step(log, world, job, Stepper(held="two")) == ["one", "two"]
        stepper = Stepper(held="four")
        other = world.engine(stepper)
        assert await other.start(job)
        await stepper.wait_until_held()
        await world.die(other)
        assert stepper.begun == ["two", "three", "four"]
        stepper = Stepper()
        (ended,) = await world.engine(stepper).recover("s")
        assert stepper.begun == ["four"]
        assert ended.summary == _summary_of(job)

    async def test_steps_may_be_done_at_once(self, log: Log, world: World) -> None:
        job = await self.job(log)
        begun = await self._die_in_step(log, world, job, Stepper(held="two", at_once=True))
        assert sorted(begun) == sorted(NAMES)
        stepper = Stepper(at_once=True)
        (ended,) = await world.engine(stepper).recover("s")
        assert stepper.begun == ["two"]
        assert ended.summary == _summary_of(job)

    async def test_a_fold_asked_for_anew_does_all_anew(self, log: Log, world: World) -> None:
        job, stepper = await self.job(log), Stepper(held="three")
        engine = world.engine(stepper)
        await engine.start(job)
        await stepper.wait_until_held()
        await engine.cancel("s", job.fold)
        anew, stepper = self.new_job("s", *job.spans), Stepper()
        other = world.engine(stepper)
        assert await other.start(anew)
        ended = await self.end_of(other, anew)
        assert ended.summary == _summary_of(anew)
        assert stepper.begun == [*NAMES]

    async def test_steps_are_not_shared_between_sessions(self, log: Log, world: World) -> None:
        job = await self.job(log)
        await self._die_in_step(log, world, job, Stepper(held="three"))
        other = replace(await self.job(log, "t"), fold=job.fold)
        stepper = Stepper()
        engine = world.engine(stepper)
        assert await engine.start(other)
        assert await engine.wait("t", job.fold, LONG)
        assert stepper.begun == [*NAMES]
        await engine.recover("s")

    async def test_forgetting_takes_the_steps_of_a_dead_fold(self, log: Log, world: World) -> None:
        job = await self.job(log)
        await self._die_in_step(log, world, job, Stepper(held="three", text="zebras"))
        await log.forget("s", Span(4, 4))
        assert not await self._is_logged(log, b"zebras")
        stepper = Stepper(text="zebras")
        (ended,) = await world.engine(stepper).recover("s")
        assert not ended.completed
        assert stepper.begun == []

    async def test_forgetting_takes_the_steps_of_a_completed_fold(
        self, log: Log, world: World
    ) -> None:
        job = await self.job(log)
        engine = world.engine(Stepper(text="zebras"))
        await engine.start(job)
        assert await engine.wait("s", job.fold, LONG)
        assert await self._is_logged(log, b"zebras")
        await log.forget("s", Span(4, 4))
        assert not await self._is_logged(log, b"zebras")

    async def test_nothing_is_kept_of_what_was_forgotten_during_a_step(
        self, log: Log, world: World
    ) -> None:
        """And nothing that was not begun is begun: a model would be sent what is forgotten."""
        job, stepper = await self.job(log), Stepper(held="two", text="zebras")
        engine = world.engine(stepper)
        await engine.start(job)
        await stepper.wait_until_held()
        await log.forget("s", Span(4, 4))
        stepper.let_go()
        ended = await self.end_of(engine, job)
        assert not ended.completed
        assert stepper.begun == ["one", "two"]
        assert not await self._is_logged(log, b"zebras")

    async def test_what_another_process_cancels_is_not_gone_on_with(
        self, log: Log, world: World
    ) -> None:
        job, stepper = await self.job(log), Stepper(held="two")
        engine = world.engine(stepper)
        await engine.start(job)
        await stepper.wait_until_held()
        ended = await world.engine().cancel("s", job.fold)
        stepper.let_go()
        assert await engine.wait("s", job.fold, LONG) == ended
        await engine.close()
        assert stepper.begun == ["one", "two"]

    async def test_no_view_and_no_search_tells_of_steps(self, log: Log, world: World) -> None:
        job = await self.job(log)
        before = (await log.visible("s")).outline
        await self._die_in_step(log, world, job, Stepper(held="three", text="zebras"))
        after = (await log.visible("s")).outline
        assert (after.line, after.since, after.folds) == (before.line, before.since, ())
        assert not await log.search("zebras")
        assert await world.engine(Stepper()).recover("s")

    async def _is_logged(self, log: Log, words: bytes) -> bool:
        return any(words in entry.body for entry in await log.read("s"))

    async def _die_in_step(self, log: Log, world: World, job: Job, stepper: Stepper) -> list[str]:
        """Start the fold, and kill its process in a step; returns the steps it had started."""
        engine = world.engine(stepper)
        assert await engine.start(job)
        await stepper.wait_until_held()
        await world.die(engine)
        assert await self.ends(log, job.session) == {job.fold: 0}
        return stepper.begun


def _summary_of(job: Job) -> JsonValue:
    return [{"step": name, "text": "", "of": str(job.fold)} for name in NAMES]
