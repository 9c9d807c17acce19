"""What becomes of a fold whose process dies."""

import asyncio
from dataclasses import replace

from refold.fold.job import Job
from refold.log import Cleared, Log, Note, Rewound, Span
from refold.testing.engine.base import LONG, EngineTests, Maker, World


class DyingConformance(EngineTests):
    async def test_another_process_finishes_it(self, log: Log, world: World) -> None:
        job = replace(await self.job(log), focus="tests", context={"todo": ["x"]})
        await self._die_while_making(log, world, job)
        maker = Maker(summary="made again")
        other = world.engine(maker)
        (ended,) = await other.recover("s")
        assert ended.fold == job.fold
        assert ended.summary == "made again"
        assert maker.jobs == [job]
        assert await self.active_folds(log) == [job.fold]
        assert await other.recover("s") == ()
        assert await self.ends(log) == {job.fold: 1}

    async def test_a_living_fold_is_left_alone(self, log: Log, world: World) -> None:
        job, maker = await self.job(log), Maker(held=True)
        engine, other = world.engine(maker), world.engine(maker)
        await engine.start(job)
        assert await other.recover("s") == ()
        assert await engine.recover("s") == ()
        maker.let_go()
        ended = await self.end_of(engine, job)
        assert ended.completed
        assert len(maker.jobs) == 1

    async def test_where_nothing_died_nothing_is_done(self, log: Log, world: World) -> None:
        await self.begin(log, "s", 3)
        assert await world.engine().recover("s") == ()
        assert await log.head("s") == 4

    async def test_it_is_closed_when_the_session_went_on_without_it(
        self, log: Log, world: World
    ) -> None:
        for name, change in (("s", Rewound(4)), ("t", Cleared())):
            job = await self.job(log, name)
            await self._die_while_making(log, world, job)
            await self.add(log, name, change, Note("on"))
            maker = Maker()
            (ended,) = await world.engine(maker).recover(name)
            assert (ended.fold, ended.reason) == (job.fold, "interrupted")
            assert maker.jobs == []
            assert await self.active_folds(log, name) == []
            assert await self.ends(log, name) == {job.fold: 1}

    async def test_it_is_closed_when_its_start_was_forgotten(self, log: Log, world: World) -> None:
        job = await self.job(log)
        await self._die_while_making(log, world, job)
        await log.forget("s", Span(8, 8))
        (ended,) = await world.engine().recover("s")
        assert not ended.completed
        assert await self.ends(log) == {job.fold: 1}

    async def test_it_is_not_made_of_what_was_forgotten_since(self, log: Log, world: World) -> None:
        job = await self.job(log)
        await self._die_while_making(log, world, job)
        await log.forget("s", Span(4, 4))
        maker = Maker()
        (ended,) = await world.engine(maker).recover("s")
        assert not ended.completed
        assert maker.jobs == []

    async def test_who_waits_for_it_has_it_finished(self, log: Log, world: World) -> None:
        job, held = await self.job(log), Maker(held=True)
        engine, other = world.engine(held), world.engine()
        await engine.start(job)
        await held.called()
        waiting = asyncio.create_task(other.wait("s", job.fold, LONG))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        await world.die(engine)
        ended = await waiting
        assert ended is not None
        assert ended.completed

    async def test_it_can_be_cancelled(self, log: Log, world: World) -> None:
        job = await self.job(log)
        await self._die_while_making(log, world, job)
        other = world.engine()
        ended = await other.cancel("s", job.fold)
        assert ended is not None
        assert ended.reason == "cancelled"
        assert await other.recover("s") == ()
        assert await self.active_folds(log) == []

    async def test_it_comes_before_the_next(self, log: Log, world: World) -> None:
        job = await self.job(log)
        await self._die_while_making(log, world, job)
        other = world.engine()
        assert not await other.start(self.new_job("s", Span(2, 4))), "one is under way"
        ended = await self.end_of(other, job)
        assert ended.completed
        live = self.new_job("s", Span(2, 6))
        assert await other.start(live)
        assert await other.wait("s", live.fold, LONG)

    async def test_asking_for_it_again_has_it_finished(self, log: Log, world: World) -> None:
        job = await self.job(log)
        await self._die_while_making(log, world, job)
        other = world.engine()
        assert await other.start(job)
        ended = await self.end_of(other, job)
        assert ended.completed

    async def test_what_cannot_be_finished_is_no_hindrance(self, log: Log, world: World) -> None:
        job = await self.job(log)
        await self._die_while_making(log, world, job)
        await self.add(log, "s", Rewound(4))
        live, other = self.new_job("s", Span(2, 4)), world.engine()
        assert await other.start(live)
        assert await other.wait("s", live.fold, LONG)
        assert await self.active_folds(log) == [live.fold]

    async def test_of_many_that_recover_one_does(self, log: Log, world: World) -> None:
        job = await self.job(log)
        await self._die_while_making(log, world, job)
        maker = Maker()
        engines = [world.engine(maker) for _ in range(4)]
        ended = await asyncio.gather(*(engine.recover("s") for engine in engines for _ in "ab"))
        assert sum(len(one) for one in ended) == 1
        assert len(maker.jobs) == 1
        assert await self.active_folds(log) == [job.fold]

    async def test_a_fork_finishes_what_it_took_along(self, log: Log, world: World) -> None:
        job, maker = await self.job(log), Maker(held=True)
        engine = world.engine(maker)
        await engine.start(job)
        await log.fork("s", "fork")
        maker.let_go()
        await engine.wait("s", job.fold, LONG)
        (ended,) = await engine.recover("fork")
        assert ended.completed
        assert await self.active_folds(log, "fork") == [job.fold]

    async def _die_while_making(self, log: Log, world: World, job: Job) -> None:
        maker = Maker(held=True)
        engine = world.engine(maker)
        assert await engine.start(job)
        await maker.called()
        await world.die(engine)
        assert await self.ends(log, job.session) == {job.fold: 0}
