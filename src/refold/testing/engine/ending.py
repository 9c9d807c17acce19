"""How folds end: completed, failed, cancelled or closed; once, and soon."""

import asyncio
from dataclasses import replace
from uuid import uuid4

import pytest
from pydantic import JsonValue

from refold.errors import RefoldError, SessionForgotten
from refold.fold.job import Job
from refold.log import Cleared, FoldUndone, Log, Note, PartRef, Pinned, Rewound, Span, Titled, Value
from refold.log.artifact import INLINE_LIMIT
from refold.testing.engine.base import LONG, EngineTests, Maker, World

CANCELLED = "cancelled"


class EndingConformance(EngineTests):
    async def test_what_fails_leaves_the_view_as_it_was(self, log: Log, world: World) -> None:
        job = await self.job(log)
        before = await log.visible("s")
        engine = world.engine(Maker(error=ValueError("the model said no")))
        assert await engine.start(job)
        ended = await self.end_of(engine, job)
        assert not ended.completed
        assert ended.reason is not None
        assert "ValueError" in ended.reason
        assert "the model said no" in ended.reason
        assert await self.ends(log) == {job.fold: 1}
        assert (await log.visible("s")).outline == before.outline
        assert await log.read("s", Span(1, 7)) == list(before.entries)
        job = self.new_job("s", Span(2, 6))
        assert await engine.start(job), "the session goes on"
        assert await engine.wait("s", job.fold, LONG)

    async def test_no_secret_is_kept(self, log: Log, world: World) -> None:
        job = await self.job(log)
        error = RuntimeError("401 for api_key=sk-verysecret12345 " + "and so on " * 1_000)
        engine = world.engine(Maker(error=error))
        await engine.start(job)
        ended = await self.end_of(engine, job)
        assert ended.reason is not None
        assert "RuntimeError: 401" in ended.reason
        assert "verysecret" not in ended.reason
        assert len(ended.reason) < 1_000

    async def test_a_summary_that_is_no_json_fails(self, log: Log, world: World) -> None:
        job = await self.job(log)
        engine = world.engine(Maker(summary=object()))  # type: ignore[arg-type] - that is the point
        await engine.start(job)
        ended = await self.end_of(engine, job)
        assert not ended.completed

    async def test_summaries_of_any_size_come_back(self, log: Log, world: World) -> None:
        await self.begin(log, "s", 6)
        many: list[JsonValue] = ["y"] * INLINE_LIMIT
        summaries: list[JsonValue] = ["x" * 2 * INLINE_LIMIT, many, None, 0]
        for summary in summaries:
            job = self.new_job("s", Span(2, 6))
            engine = world.engine(Maker(summary=summary))
            await engine.start(job)
            for one in (engine, world.engine()):
                ended = await self.end_of(one, job)
                assert ended.completed
                assert ended.summary == summary

    async def test_waiting_has_a_limit(self, log: Log, world: World) -> None:
        job, maker = await self.job(log), Maker(held=True)
        engine, other = world.engine(maker), world.engine()
        await engine.start(job)
        for one in (engine, other):
            assert await one.wait("s", job.fold, 0.0) is None
            assert await one.wait("s", job.fold, 0.05) is None
        assert not maker.cancelled, "who waits no longer does not end the fold"
        maker.let_go()
        for one in (engine, other):
            ended = await one.wait("s", job.fold)
            assert ended is not None
            assert ended.completed
            assert await one.wait("s", job.fold, 0.0) == ended
        assert len(maker.jobs) == 1

    async def test_many_wait_for_one(self, log: Log, world: World) -> None:
        job, maker = await self.job(log), Maker(held=True)
        engine, other = world.engine(maker), world.engine()
        await engine.start(job)
        waiting = [asyncio.create_task(one.wait("s", job.fold)) for one in (engine, other) * 3]
        await maker.called()
        waiting[0].cancel()
        await asyncio.sleep(0)
        maker.let_go()
        given_up, *ended = await asyncio.gather(*waiting, return_exceptions=True)
        assert isinstance(given_up, asyncio.CancelledError)
        assert ended == [await engine.wait("s", job.fold)] * 5
        assert await self.active_folds(log) == [job.fold]

    async def test_nobody_waits_for_what_was_never_started(self, log: Log, world: World) -> None:
        await self.begin(log, "s", 2)
        engine = world.engine()
        assert await engine.wait("s", uuid4()) is None
        assert await engine.cancel("s", uuid4()) is None
        assert await log.head("s") == 3

    async def test_a_cancelled_fold_is_given_up(self, log: Log, world: World) -> None:
        maker = Maker(held=True)
        job, engine = await self.start_making(log, world, maker)
        ended = await engine.cancel("s", job.fold)
        assert ended is not None
        assert ended.reason == CANCELLED
        assert maker.cancelled == 1
        assert await engine.wait("s", job.fold, LONG) == ended
        assert await engine.cancel("s", job.fold) == ended
        assert await self.active_folds(log) == []
        job = self.new_job("s", Span(2, 6))
        maker.let_go()
        assert await engine.start(job), "the session is free"
        assert await engine.wait("s", job.fold, LONG)

    async def test_a_fold_may_be_cancelled_at_once(self, log: Log, world: World) -> None:
        job, maker = await self.job(log), Maker(held=True)
        engine = world.engine(maker)
        starting = asyncio.create_task(engine.start(job))
        await asyncio.sleep(0)
        ended = await engine.cancel("s", job.fold)
        assert await starting
        if ended is None:  # it came before the start
            ended = await engine.cancel("s", job.fold)
        assert ended is not None
        assert ended.reason == CANCELLED

    async def test_what_is_completed_stays_completed(self, log: Log, world: World) -> None:
        job = await self.job(log)
        engine, other = world.engine(), world.engine()
        await engine.start(job)
        ended = await engine.wait("s", job.fold, LONG)
        for one in (engine, other):
            assert await one.cancel("s", job.fold) == ended
        assert await self.active_folds(log) == [job.fold]

    async def test_another_process_may_cancel(self, log: Log, world: World) -> None:
        job, maker = await self.job(log), Maker(held=True)
        engine, other = world.engine(maker), world.engine()
        await engine.start(job)
        await maker.called()
        ended = await other.cancel("s", job.fold)
        assert ended is not None
        assert ended.reason == CANCELLED
        maker.let_go()
        for one in (engine, other):
            assert await one.wait("s", job.fold, LONG) == ended
        await engine.close()
        assert await self.active_folds(log) == [], "what it made is thrown away"
        assert await self.ends(log) == {job.fold: 1}

    async def test_a_make_that_will_not_be_cancelled_is_thrown_away(
        self, log: Log, world: World
    ) -> None:
        maker = Maker(held=True, stubborn=True)
        job, engine = await self.start_making(log, world, maker)
        ended = await engine.cancel("s", job.fold)
        assert ended is not None
        assert ended.reason == CANCELLED
        assert await self.active_folds(log) == []

    async def test_who_is_cancelled_while_starting_leaves_nothing_half(
        self, log: Log, world: World
    ) -> None:
        for turns in range(6):
            job = await self.job(log, f"s{turns}")
            engine = world.engine()
            starting = asyncio.create_task(engine.start(job))
            for _ in range(turns):
                await asyncio.sleep(0)
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            assert await engine.start(job)
            ended = await self.end_of(engine, job)
            assert ended.completed

    async def test_closing_ends_what_runs(self, log: Log, world: World) -> None:
        maker = Maker(held=True)
        engine = world.engine(maker)
        jobs = [await self.job(log, f"s{at}") for at in range(5)]
        for job in jobs:
            await engine.start(job)
        await engine.close()
        for job in jobs:
            assert await self.ends(log, job.session) == {job.fold: 1}
            assert await self.active_folds(log, job.session) == []
        await engine.close()
        with pytest.raises(RefoldError, match="closed"):
            await engine.start(self.new_job("s1", Span(2, 6)))
        job = self.new_job("s0", Span(2, 6))
        other = world.engine()
        assert await other.start(job)
        assert await other.wait("s0", job.fold, LONG)

    async def test_closing_while_starting_leaves_nothing_half(self, log: Log, world: World) -> None:
        for turns in range(6):
            job, maker = await self.job(log, f"s{turns}"), Maker(held=True)
            engine = world.engine(maker)
            starting = asyncio.create_task(engine.start(job))
            for _ in range(turns):
                await asyncio.sleep(0)
            await engine.close()
            await asyncio.gather(starting, return_exceptions=True)
            assert set((await self.ends(log, job.session)).values()) <= {1}
            maker.let_go()
            job = self.new_job(job.session, Span(2, 6))
            other = world.engine()
            assert await other.start(job), "the session is free"
            assert await other.wait(job.session, job.fold, LONG)


# What becomes of a fold when its session changes while it is made.


class ChangingConformance(EngineTests):
    @pytest.mark.parametrize("change", [Rewound(2), Rewound(5), Cleared()])
    async def test_what_is_no_longer_on_the_line_is_not_folded(
        self, log: Log, world: World, change: Value
    ) -> None:
        maker = Maker(held=True)
        job, engine = await self.start_making(log, world, maker)
        await self.add(log, "s", change)
        before = (await log.visible("s")).outline
        maker.let_go()
        ended = await self.end_of(engine, job)
        assert not ended.completed
        assert await self.ends(log) == {job.fold: 1}
        after = (await log.visible("s")).outline
        assert (after.folds, after.line, after.since) == ((), before.line, before.since)

    @pytest.mark.parametrize(
        "change",
        [Note("x"), Rewound(6), Rewound(7), Titled("t"), Pinned((PartRef(4, 0),))],
    )
    async def test_what_does_not_concern_it_does_not_disturb(
        self, log: Log, world: World, change: Value
    ) -> None:
        maker = Maker(held=True)
        job, engine = await self.start_making(log, world, maker)
        await self.add(log, "s", change)
        maker.let_go()
        ended = await self.end_of(engine, job)
        assert ended.completed
        assert await self.active_folds(log) == [job.fold]

    async def test_what_was_forgotten_meanwhile_is_not_told(self, log: Log, world: World) -> None:
        maker = Maker(held=True, summary="it was about zebras")
        job, engine = await self.start_making(log, world, maker)
        await log.forget("s", Span(4, 4))
        maker.let_go()
        ended = await self.end_of(engine, job)
        assert not ended.completed
        assert await self.active_folds(log) == []
        assert not await log.search("zebras")

    async def test_what_was_forgotten_before_does_not_disturb(self, log: Log, world: World) -> None:
        job = await self.job(log)
        await log.forget("s", Span(4, 4))
        engine = world.engine()
        await engine.start(job)
        ended = await self.end_of(engine, job)
        assert ended.completed

    async def test_other_entries_may_be_forgotten_meanwhile(self, log: Log, world: World) -> None:
        maker = Maker(held=True)
        job, engine = await self.start_making(log, world, maker)
        await log.forget("s", Span(2, 2))
        maker.let_go()
        ended = await self.end_of(engine, job)
        assert ended.completed

    async def test_forgetting_takes_what_folds_said_of_it(self, log: Log, world: World) -> None:
        """What the host knew, what failed, what was told: all of it may quote the forgotten."""
        await self.begin(log, "s", 6)
        jobs: list[Job] = []
        for maker in (Maker(error=ValueError("no zebras")), Maker(summary="zebras")):
            job = replace(self.new_job("s", Span(3, 6)), context={"todo": "zebras"}, focus="zebras")
            engine = world.engine(maker)
            await engine.start(job)
            assert await engine.wait("s", job.fold, LONG)
            jobs.append(job)
        assert sum(b"zebras" in entry.body for entry in await self.entries_without_steps(log)) == 4
        await log.forget("s", Span(4, 4))
        assert not any(b"zebras" in entry.body for entry in await log.read("s"))
        late, head = Maker(), await log.head("s")
        engine = world.engine(late)
        for job in jobs:
            ended = await self.end_of(engine, job)
            assert not ended.completed
            assert await engine.start(job), "it is known still"
        await engine.close()
        assert await log.head("s") == head
        assert late.jobs == []

    async def test_a_session_may_be_forgotten_meanwhile(self, log: Log, world: World) -> None:
        maker = Maker(held=True)
        job, engine = await self.start_making(log, world, maker)
        await log.forget("s")
        maker.let_go()
        await engine.close()
        assert (await log.sessions()).sessions == ()
        with pytest.raises(SessionForgotten):
            await engine.wait("s", job.fold, LONG)

    async def test_a_completed_fold_can_be_taken_back_and_made_anew(
        self, log: Log, world: World
    ) -> None:
        job = await self.job(log)
        engine = world.engine()
        await engine.start(job)
        ended = await engine.wait("s", job.fold, LONG)
        await self.add(log, "s", FoldUndone(job.fold))
        assert await engine.wait("s", job.fold, LONG) == ended
        assert await engine.start(job), "it was begun, and changes nothing now"
        assert await self.active_folds(log) == []
        anew = self.new_job("s", *job.spans)
        assert await engine.start(anew)
        await engine.wait("s", anew.fold, LONG)
        assert await self.active_folds(log) == [anew.fold]

    async def test_a_forgotten_summary_is_an_end_too(self, log: Log, world: World) -> None:
        job = await self.job(log)
        engine = world.engine()
        await engine.start(job)
        assert await engine.wait("s", job.fold, LONG)
        await log.forget("s", Span(3, 3))
        ended = await self.end_of(engine, job)
        assert not ended.completed
        assert ended.summary is None
