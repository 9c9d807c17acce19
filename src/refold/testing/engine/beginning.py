"""How folds begin: one at a time, each once."""

import asyncio
from dataclasses import replace
from uuid import uuid4

import pytest

from refold.errors import InvalidEntry, SessionNotFound
from refold.fold.job import Job
from refold.log import CODEC, Author, FoldCompleted, FoldStarted, Log, Note, Rewound, Span
from refold.testing.engine.base import LONG, EngineTests, Maker, World


class BeginningConformance(EngineTests):
    async def test_a_fold_is_begun_made_and_stands(self, log: Log, world: World) -> None:
        job, maker = await self.job(log), Maker(summary={"text": "short"})
        engine = world.engine(maker)
        assert await engine.start(job)
        ended = await self.end_of(engine, job)
        assert ended.completed
        assert ended.summary == {"text": "short"}
        assert maker.jobs == [job]
        assert await self.active_folds(log) == [job.fold]
        *_, start, end = [CODEC.decode(entry) for entry in await self.entries_without_steps(log)]
        assert start == job.started()
        assert end == FoldCompleted(job.fold, job.spans, {"text": "short"})

    async def test_starting_does_not_wait_for_the_fold(self, log: Log, world: World) -> None:
        job, maker = await self.job(log), Maker(held=True)
        engine = world.engine(maker)
        assert await engine.start(job)
        assert [one.fold for one in (await log.visible("s")).outline.running] == [job.fold]
        maker.let_go()
        assert await engine.wait("s", job.fold, LONG)

    async def test_the_log_tells_all_of_the_job(self, log: Log, world: World) -> None:
        plain = await self.job(log)
        job = replace(plain, focus="the tests", context={"todo": ["a", {"b": 1.5}]})
        engine = world.engine()
        await engine.start(job)
        await engine.wait("s", job.fold, LONG)
        started = next(
            value
            for value in map(CODEC.decode, await log.read("s"))
            if isinstance(value, FoldStarted)
        )
        assert Job.from_started("s", started) == job

    async def test_one_fold_at_a_time(self, log: Log, world: World) -> None:
        job, maker = await self.job(log), Maker(held=True)
        engine, other = world.engine(maker), world.engine(maker)
        assert await engine.start(job)
        for one in (engine, other):
            assert not await one.start(self.new_job("s", Span(2, 3)))
        maker.let_go()
        await engine.wait("s", job.fold, LONG)
        assert list(await self.ends(log)) == [job.fold]
        assert len(maker.jobs) == 1

    async def test_of_many_that_ask_one_is_heard(self, log: Log, world: World) -> None:
        job, maker = await self.job(log), Maker(held=True)
        jobs = [job, *(self.new_job("s", Span(2, last)) for last in range(3, 7))]
        engines = [world.engine(maker) for _ in range(2)]
        asked = [engine.start(job) for engine in engines for job in jobs]
        answers = await asyncio.gather(*asked)
        maker.let_go()
        (fold,) = await self.ends(log)
        assert await engines[0].wait("s", fold, LONG)
        assert len(maker.jobs) == 1
        begun = [jobs[at % len(jobs)].fold for at, answer in enumerate(answers) if answer]
        assert set(begun) == {fold}

    async def test_when_one_has_ended_the_next_may_begin(self, log: Log, world: World) -> None:
        job = await self.job(log)
        for engine in (world.engine(), world.engine()):
            for _ in range(3):
                assert await engine.start(job)
                ended = await self.end_of(engine, job)
                assert ended.completed
                job = self.new_job("s", Span(2, 6))
        assert len(await self.ends(log)) == 6

    async def test_asking_again_changes_nothing(self, log: Log, world: World) -> None:
        job, maker = await self.job(log), Maker(held=True)
        engine, other = world.engine(maker), world.engine(maker)
        for _ in range(2):
            assert await engine.start(job)
            assert await other.start(job)
        maker.let_go()
        await engine.wait("s", job.fold, LONG)
        entries_without_steps = len(await self.entries_without_steps(log))
        assert await engine.start(job)
        assert await other.start(job)
        larger = self.new_job("s", Span(2, 6))
        await engine.start(larger)
        await engine.wait("s", larger.fold, LONG)
        assert await engine.start(job), "also when a later fold stands over it"
        assert len(await self.entries_without_steps(log)) == entries_without_steps + 2
        assert [one.fold for one in maker.jobs] == [job.fold, larger.fold]

    async def test_a_failed_fold_is_not_begun_again(self, log: Log, world: World) -> None:
        job, maker = await self.job(log), Maker(error=ValueError("no"))
        engine = world.engine(maker)
        await engine.start(job)
        await engine.wait("s", job.fold, LONG)
        assert await engine.start(job)
        ended = await self.end_of(engine, job)
        assert not ended.completed
        assert len(maker.jobs) == 1

    async def test_what_was_chosen_before_another_fold_is_stale(
        self, log: Log, world: World
    ) -> None:
        job = await self.job(log)
        head = await log.head("s")
        engine = world.engine()
        await engine.start(job)
        await engine.wait("s", job.fold, LONG)
        late = replace(self.new_job("s", Span(3, 6)), head=head)
        assert not await engine.start(late)
        assert list(await self.ends(log)) == [job.fold]
        assert await engine.start(replace(late, head=await log.head("s")))
        await engine.wait("s", late.fold, LONG)
        assert await engine.start(replace(job, head=head)), "it was begun"

    async def test_what_the_session_does_not_hold_is_refused(self, log: Log, world: World) -> None:
        job = await self.job(log)
        engine = world.engine()
        with pytest.raises(SessionNotFound):
            await engine.start(self.new_job("t", Span(1, 1)))
        await self.add(log, "s", Rewound(4))
        for spans in ((Span(3, 6),), (Span(2, 99),), ()):
            with pytest.raises(InvalidEntry):
                await engine.start(self.new_job("s", *spans))
        assert await self.ends(log) == {}
        job = self.new_job("s", Span(2, 4))
        assert await engine.start(job), "nothing is left of what was refused"
        await engine.wait("s", job.fold, LONG)

    async def test_many_sessions_at_once(self, log: Log, world: World) -> None:
        maker = Maker(held=True)
        engines = [world.engine(maker) for _ in range(3)]
        jobs = [await self.job(log, f"s{at}") for at in range(30)]
        asked = [engines[at % 3].start(job) for at, job in enumerate(jobs)]
        assert all(await asyncio.gather(*asked))
        maker.let_go()
        ended = await asyncio.gather(
            *(engines[at % 2].wait(job.session, job.fold, LONG) for at, job in enumerate(jobs))
        )
        assert all(one is not None and one.completed for one in ended)
        assert len(maker.jobs) == 30

    async def test_others_append_meanwhile(self, log: Log, world: World) -> None:
        job = await self.job(log)
        author, stop, appended = Author(), asyncio.Event(), 0

        async def talk() -> None:
            nonlocal appended
            while not stop.is_set():
                await log.append("s", [author.draft(Note("more"))], expected=None)
                appended += 1
                await asyncio.sleep(0)

        talking = [asyncio.create_task(talk()) for _ in range(3)]
        engine = world.engine()
        try:
            for _ in range(5):
                assert await engine.start(job)
                ended = await self.end_of(engine, job)
                assert ended.completed
                job = self.new_job("s", Span(2, 6))
        finally:
            stop.set()
            await asyncio.gather(*talking)
        assert appended
        assert sum(entry.kind == Note.KIND for entry in await log.read("s")) == appended

    async def test_tenants_do_not_meet(self, log: Log, world: World) -> None:
        job, maker = await self.job(log), Maker(held=True)
        await self.begin(log, "t", 6)
        engine = world.engine(maker)
        assert await engine.start(job)
        assert await engine.start(replace(job, session="t"))
        maker.let_go()
        for name in ("s", "t"):
            assert await engine.wait(name, job.fold, LONG)
            assert await self.active_folds(log, name) == [job.fold]
        assert await engine.wait("t", uuid4(), LONG) is None
