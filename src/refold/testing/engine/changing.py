"""What becomes of a fold when its session changes while it is made."""

from dataclasses import replace

import pytest

from refold.errors import SessionForgotten
from refold.fold.job import Job
from refold.log import (
    Cleared,
    FoldUndone,
    Log,
    Note,
    PartRef,
    Pinned,
    Rewound,
    Span,
    Titled,
    Value,
)
from refold.testing.engine.base import LONG, EngineTests, Maker, World


class ChangingConformance(EngineTests):
    """A summary is put only where what it stands for still is."""

    @pytest.mark.parametrize("change", [Rewound(2), Rewound(5), Cleared()])
    async def test_what_is_no_longer_on_the_line_is_not_folded(
        self, log: Log, world: World, change: Value
    ) -> None:
        maker = Maker(held=True)
        job, engine = await self.making(log, world, maker)
        await self.add(log, "s", change)
        before = (await log.visible("s")).outline
        maker.let_go()
        ended = await engine.wait("s", job.fold, LONG)
        assert ended is not None
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
        job, engine = await self.making(log, world, maker)
        await self.add(log, "s", change)
        maker.let_go()
        ended = await engine.wait("s", job.fold, LONG)
        assert ended is not None
        assert ended.completed
        assert await self.standing(log) == [job.fold]

    async def test_what_was_forgotten_meanwhile_is_not_told(self, log: Log, world: World) -> None:
        maker = Maker(held=True, summary="it was about zebras")
        job, engine = await self.making(log, world, maker)
        await log.forget("s", Span(4, 4))
        maker.let_go()
        ended = await engine.wait("s", job.fold, LONG)
        assert ended is not None
        assert not ended.completed
        assert await self.standing(log) == []
        assert not await log.search("zebras")

    async def test_what_was_forgotten_before_does_not_disturb(self, log: Log, world: World) -> None:
        job = await self.job(log)
        await log.forget("s", Span(4, 4))
        engine = world.engine()
        await engine.start(job)
        ended = await engine.wait("s", job.fold, LONG)
        assert ended is not None
        assert ended.completed

    async def test_other_entries_may_be_forgotten_meanwhile(self, log: Log, world: World) -> None:
        maker = Maker(held=True)
        job, engine = await self.making(log, world, maker)
        await log.forget("s", Span(2, 2))
        maker.let_go()
        ended = await engine.wait("s", job.fold, LONG)
        assert ended is not None
        assert ended.completed

    async def test_forgetting_takes_what_folds_said_of_it(self, log: Log, world: World) -> None:
        """What the host knew, what failed, what was told: all of it may quote the forgotten."""
        await self.begin(log, "s", 6)
        jobs: list[Job] = []
        for maker in (Maker(error=ValueError("no zebras")), Maker(summary="zebras")):
            job = replace(self.another("s", Span(3, 6)), context={"todo": "zebras"}, focus="zebras")
            engine = world.engine(maker)
            await engine.start(job)
            assert await engine.wait("s", job.fold, LONG)
            jobs.append(job)
        assert sum(b"zebras" in entry.body for entry in await self.told(log)) == 4
        await log.forget("s", Span(4, 4))
        assert not any(b"zebras" in entry.body for entry in await log.read("s"))
        late, head = Maker(), await log.head("s")
        engine = world.engine(late)
        for job in jobs:
            ended = await engine.wait("s", job.fold, LONG)
            assert ended is not None
            assert not ended.completed
            assert await engine.start(job), "it is known still"
        await engine.close()
        assert await log.head("s") == head
        assert late.jobs == []

    async def test_a_session_may_be_forgotten_meanwhile(self, log: Log, world: World) -> None:
        maker = Maker(held=True)
        job, engine = await self.making(log, world, maker)
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
        assert await self.standing(log) == []
        anew = self.another("s", *job.spans)
        assert await engine.start(anew)
        await engine.wait("s", anew.fold, LONG)
        assert await self.standing(log) == [anew.fold]

    async def test_a_forgotten_summary_is_an_end_too(self, log: Log, world: World) -> None:
        job = await self.job(log)
        engine = world.engine()
        await engine.start(job)
        assert await engine.wait("s", job.fold, LONG)
        await log.forget("s", Span(3, 3))
        ended = await engine.wait("s", job.fold, LONG)
        assert ended is not None
        assert not ended.completed
        assert ended.summary is None
