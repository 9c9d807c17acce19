"""What a view is made of."""

from uuid import uuid4

import pytest

from refold.errors import InvalidEntry, SessionForgotten, SessionNotFound
from refold.log import (
    Cleared,
    FoldCompleted,
    FoldFailed,
    FoldStarted,
    FoldUndone,
    Log,
    Note,
    PartRef,
    Pinned,
    Requested,
    Rewound,
    Span,
    Unpinned,
)
from refold.testing.conformance.base import Conformance


class ViewingConformance(Conformance):
    """Folds, rewinds, clears and pins."""

    async def test_a_view_needs_everything_at_first(self, log: Log) -> None:
        await self.begin(log, "s", 4)
        visible = await log.visible("s")
        assert [entry.seq for entry in visible.entries] == [1, 2, 3, 4, 5]
        assert visible.info == await log.info("s")

    async def test_an_outline_comes_without_entries(self, log: Log) -> None:
        with pytest.raises(SessionNotFound):
            await log.outlined("s")
        await self.begin(log, "s", 6)
        for _ in range(2):
            await self.fold(log, "s", Span(2, 4))
            await log.append("s", self.drafts(Note("n")), expected=None)
            outlined, visible = await log.outlined("s"), await log.visible("s")
            assert (outlined.info, outlined.outline) == (visible.info, visible.outline)
        await log.forget("s")
        with pytest.raises(SessionForgotten):
            await log.outlined("s")

    async def test_a_revision_tells_that_nothing_was_forgotten(self, log: Log) -> None:
        await self.begin(log, "s", 6)
        await log.fork("s", "t", at=4)
        befores = {name: (await log.outlined(name)).revision for name in ("s", "t")}
        if None in befores.values():
            with pytest.raises(InvalidEntry):
                await log.append("s", self.drafts(Note("n")), expected=None, revision=0)
            return
        for name, before in befores.items():
            done = await log.append(name, self.drafts(Note("n")), expected=None, revision=before)
            assert done.revision == (await log.outlined(name)).revision == before
        await log.forget("s", Span(3, 3))
        for name, before in befores.items():
            head = await log.head(name)
            assert (await log.outlined(name)).revision != before
            with pytest.raises(InvalidEntry, match="forgotten since"):
                await log.append(name, self.drafts(Note("m")), expected=None, revision=before)
            assert await log.head(name) == head

    async def test_entries_are_read_as_they_are_now(self, log: Log) -> None:
        """Also by who knows the session from before."""
        await self.begin(log, "s", 3)
        await log.outlined("s")
        assert [one.forgotten for one in await log.read("s", Span(2, 3))] == [False, False]
        await log.forget("s", Span(3, 3))
        assert [one.forgotten for one in await log.read("s", Span(2, 3))] == [False, True]

    async def test_a_fold_stands_for_its_spans(self, log: Log) -> None:
        await self.begin(log, "s", 8)
        await self.fold(log, "s", Span(2, 4), Span(6, 7))
        assert await self.seen(log, "s") == [1, 5, 8, 9, 10, 11]
        await self.fold(log, "s", Span(2, 9))
        assert await self.seen(log, "s") == [1, 10, 11, 12, 13]
        folds = (await log.visible("s")).outline.folds
        assert [fold.seq for fold in folds] == [13]

    async def test_a_fold_can_be_taken_back(self, log: Log) -> None:
        await self.begin(log, "s", 5)
        first = await self.fold(log, "s", Span(2, 4))
        second = await self.fold(log, "s", Span(2, 6))
        with pytest.raises(InvalidEntry, match="does not stand"):
            await self.add(log, "s", FoldUndone(first))
        await self.add(log, "s", FoldUndone(second))
        assert await self.seen(log, "s") == [1, 5, 6, 7, 8, 9, 10, 11]
        await self.add(log, "s", FoldUndone(first))
        assert await self.seen(log, "s") == list(range(1, 13))

    async def test_each_start_of_a_fold_has_one_end(self, log: Log) -> None:
        await self.begin(log, "s", 3)
        fold = uuid4()
        span = (Span(2, 3),)
        for early in (FoldCompleted(fold, span, "s"), FoldFailed(fold, "x")):
            with pytest.raises(InvalidEntry, match="not running"):
                await self.add(log, "s", early)
        await self.add(log, "s", FoldStarted(fold, span, "manual"))
        with pytest.raises(InvalidEntry, match="started already"):
            await self.add(log, "s", FoldStarted(fold, span, "manual"))
        assert [one.fold for one in (await log.visible("s")).outline.running] == [fold]
        await self.add(log, "s", FoldFailed(fold, "cancelled"))
        assert (await log.visible("s")).outline.running == ()
        with pytest.raises(InvalidEntry, match="not running"):
            await self.add(log, "s", FoldCompleted(fold, span, "late"))

    async def test_a_fold_covers_only_what_is_on_the_line(self, log: Log) -> None:
        await self.begin(log, "s", 5)
        fold = uuid4()
        await self.add(log, "s", FoldStarted(fold, (Span(2, 6),), "manual"))
        await self.add(log, "s", Rewound(3))
        with pytest.raises(InvalidEntry, match="not on the session's line"):
            await self.add(log, "s", FoldCompleted(fold, (Span(2, 6),), "stale"))
        for spans in ((), (Span(2, 99),)):
            with pytest.raises(InvalidEntry):
                await self.add(log, "s", FoldStarted(uuid4(), spans, "manual"))

    async def test_rewinding_goes_back_and_forth(self, log: Log) -> None:
        await self.begin(log, "s", 5)
        await self.add(log, "s", Rewound(3), Note("another way"))
        assert await self.seen(log, "s") == [1, 2, 3, 8]
        await self.add(log, "s", Rewound(6))
        assert await self.seen(log, "s") == [1, 2, 3, 4, 5, 6]
        assert await log.head("s") == 9
        for nowhere in (0, 10, 99):
            with pytest.raises(InvalidEntry):
                await self.add(log, "s", Rewound(nowhere))

    async def test_rewinding_behind_a_fold_takes_it_away(self, log: Log) -> None:
        await self.begin(log, "s", 4)
        await self.fold(log, "s", Span(2, 4))
        await self.add(log, "s", Rewound(5))
        assert await self.seen(log, "s") == [1, 2, 3, 4, 5]
        await self.add(log, "s", Rewound(7))
        assert await self.seen(log, "s") == [1, 5, 6, 7]

    async def test_clearing_begins_anew_and_loses_nothing(self, log: Log) -> None:
        await self.begin(log, "s", 3)
        await self.add(log, "s", Pinned((PartRef(2, 0),)), Cleared(), Note("new"))
        assert await self.seen(log, "s") == [1, 7]
        assert len(await log.read("s")) == 7
        await self.add(log, "s", Rewound(5))
        assert await self.seen(log, "s") == [1, 2, 3, 4, 5]

    async def test_pins_stay_under_folds(self, log: Log) -> None:
        await self.begin(log, "s", 6)
        await self.add(log, "s", Pinned((PartRef(3, 0), PartRef(3, 1), PartRef(5, 0))))
        await self.fold(log, "s", Span(2, 8))
        assert await self.seen(log, "s") == [1, 3, 5, 9, 10]
        await self.add(log, "s", Unpinned((PartRef(3, 0), PartRef(5, 0))))
        assert await self.seen(log, "s") == [1, 3, 9, 10, 11]
        with pytest.raises(InvalidEntry):
            await self.add(log, "s", Pinned((PartRef(99, 0),)))

    async def test_a_view_can_be_bounded(self, log: Log) -> None:
        await self.begin(log, "s", 20)
        await self.add(log, "s", Pinned((PartRef(4, 0),)))
        visible = await log.visible("s", last=3)
        assert [entry.seq for entry in visible.entries] == [1, 4, 20, 21, 22]

    async def test_a_request_record_comes_with_its_chain(self, log: Log) -> None:
        await self.begin(log, "s", 3)
        chain: tuple[int, ...] = ()
        for _ in range(3):
            record = Requested((Span(2, 3),), ["keep"], "model", "digest", chain=chain)
            await self.add(log, "s", record)
            chain = (*chain, await log.head("s"))
        await self.fold(log, "s", Span(2, 7))
        assert await self.seen(log, "s") == [1, 5, 6, 7, 8, 9]
        assert (await log.visible("s")).outline.record == 7
