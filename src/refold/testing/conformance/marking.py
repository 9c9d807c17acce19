"""What marks mean: entries are found again by a key, and appended after the newest mark or not."""

import asyncio
from uuid import uuid4

import pytest

from refold.errors import Conflict, IdReused, InvalidEntry, InvalidInput, MarkConflict
from refold.log import (
    Appended,
    Cleared,
    FoldCompleted,
    FoldStarted,
    Log,
    Mark,
    Marked,
    Message,
    Note,
    Opened,
    Span,
    Store,
)
from refold.testing.conformance.base import Conformance

KEY, OTHER, NEVER = (bytes([at]) * 16 for at in (1, 2, 255))


class MarkingConformance(Conformance):
    async def mark(self, log: Log, name: str, key: bytes, after: int | None = None) -> int:
        drafts = self.drafts(Note("marked"))
        return (await log.append(name, drafts, expected=None, mark=Mark(key, 0, after))).first

    async def places(self, log: Log, *keys: bytes) -> list[tuple[str, int]]:
        return [(one.session, one.seq) for one in await log.marked(keys)]

    async def test_a_marked_entry_is_found_by_its_key(self, log: Log) -> None:
        assert await log.marked([]) == await log.marked([KEY, b"", b"short"]) == []
        await self.begin(log, "s", 2)
        assert await self.mark(log, "s", KEY, after=0) == 4
        assert await log.marked([KEY]) == [Marked(KEY, "s", 4, 4, 0)]
        assert await self.mark(log, "s", OTHER, after=4) == 5
        assert await log.marked([KEY]) == [Marked(KEY, "s", 4, 5, 4)]
        assert await self.mark(log, "s", KEY, after=5) == 6
        assert await log.marked([NEVER, KEY, KEY]) == [
            Marked(KEY, "s", 6, 6, 5),
            Marked(KEY, "s", 4, 6, 5),
        ]
        assert await log.marked([OTHER]) == [Marked(OTHER, "s", 5, 6, 5)]

    async def test_those_marked_last_come_first(self, log: Log) -> None:
        for name in ("t", "s", "u"):
            await self.begin(log, name, 3 if name == "s" else 0)
        for name in ("s", "u", "t", "s"):
            await self.mark(log, name, KEY)
        assert await self.places(log, KEY) == [("s", 6), ("t", 2), ("u", 2), ("s", 5)]

    async def test_many_keys_at_once(self, log: Log) -> None:
        await self.begin(log, "s")
        keys = [at.to_bytes(16) for at in range(1, 41)]
        for key in keys:
            await self.mark(log, "s", key)
        never = [at.to_bytes(16) for at in range(1_000, 1_960)]
        found = await log.marked([*never, *keys])
        assert [(one.key, one.seq) for one in found] == [
            (key, seq) for seq, key in reversed([*enumerate(keys, 2)])
        ]
        assert {(one.tip, one.before) for one in found} == {(41, 40)}

    async def test_any_draft_can_be_the_marked_one(self, log: Log) -> None:
        drafts = self.drafts(Opened("f", "p"), *(Note(str(at)) for at in range(3)))
        await log.append("s", drafts, expected=0, mark=Mark(KEY, 2, 0))
        drafts = self.drafts(*(Message(b"{}") for _ in range(4)), Cleared())
        await log.append("s", drafts, expected=4, mark=Mark(OTHER, 3, 3))
        assert await log.marked([KEY, OTHER]) == [
            Marked(OTHER, "s", 8, 8, 3),
            Marked(KEY, "s", 3, 8, 3),
        ]
        large = self.drafts(Message(b'{"content":"%s"}' % (b"x" * 200_000)))
        await log.append("s", large, expected=9, mark=Mark(KEY, 0, 8))
        assert await self.places(log, KEY) == [("s", 10), ("s", 3)]

    async def test_a_mark_that_cannot_be_put_is_refused(self, log: Log) -> None:
        await self.begin(log, "s")
        for mark in (
            Mark(b"", 0, None),
            Mark(KEY + b"x", 0, None),
            Mark(KEY, 1, None),
            Mark(KEY, -1, None),
            Mark(KEY, 0, -1),
        ):
            with pytest.raises(InvalidInput):
                await log.append("s", self.drafts(Note("x")), expected=None, mark=mark)
        assert await log.head("s") == 1

    async def test_nothing_is_appended_after_a_mark_that_is_not_the_newest(self, log: Log) -> None:
        await self.begin(log, "s", 1)
        await self.mark(log, "s", KEY, after=0)
        await self.mark(log, "s", KEY, after=3)
        await self.add(log, "s", Note("without"))
        fold = uuid4()
        lists = [
            [Note("x")],
            [Note("x"), Note("y")],
            [FoldStarted(fold, (Span(2, 2),), "manual")],
        ]
        for values in lists:
            for after in (0, 2, 3, 5, 99):
                for expected in (None, 5):
                    late = Mark(OTHER, len(values) - 1, after)
                    with pytest.raises(MarkConflict) as raised:
                        await log.append("s", self.drafts(*values), expected=expected, mark=late)
                    assert (raised.value.expected, raised.value.found) == (after, 4)
        assert await log.head("s") == 5
        assert await log.marked([OTHER]) == []
        assert await self.mark(log, "s", OTHER, after=4) == 6

    async def test_a_new_session_has_no_marks(self, log: Log) -> None:
        with pytest.raises(MarkConflict) as raised:
            await log.append("s", self.drafts(Opened("f", "p")), expected=0, mark=Mark(KEY, 0, 3))
        assert (raised.value.expected, raised.value.found) == (3, 0)
        assert "newest mark at 0" in str(raised.value)
        assert await self.names(log) == []
        await log.append("s", self.drafts(Opened("f", "p")), expected=0, mark=Mark(KEY, 0, 0))
        assert await log.marked([KEY]) == [Marked(KEY, "s", 1, 1, 0)]

    async def test_what_is_refused_for_another_reason_puts_no_mark(self, log: Log) -> None:
        await self.begin(log, "s", 2)
        note = self.drafts(Note("x"))
        with pytest.raises(Conflict) as raised:
            await log.append("s", note, expected=2, mark=Mark(KEY, 0, 0))
        assert (raised.value.expected, raised.value.found) == (2, 3)
        assert "head at 3" in str(raised.value)
        wrong = self.drafts(Note("y"), FoldCompleted(uuid4(), (Span(2, 2),), "never begun"))
        with pytest.raises(InvalidEntry):
            await log.append("s", wrong, expected=3, mark=Mark(KEY, 0, 0))
        await log.append("s", note, expected=3)
        other = [note[0]._replace(body=b'{"text":"z"}')]
        with pytest.raises(IdReused):
            await log.append("s", other, expected=4, mark=Mark(KEY, 0, 0))
        assert await log.marked([KEY]) == []

    async def test_appending_again_changes_nothing(self, log: Log) -> None:
        await self.begin(log, "s")
        for drafts in (self.drafts(Note("x")), self.drafts(Note("y"), Note("z"))):
            head = await log.head("s")
            mark = Mark(uuid4().bytes, len(drafts) - 1, None if head == 1 else head)
            first = await log.append("s", drafts, expected=head, mark=mark)
            before = await log.marked([mark.key])
            for _ in range(2):
                for after in (mark.after, 0, 99):
                    for expected in (head, None):
                        again = await log.append(
                            "s", drafts, expected=expected, mark=mark._replace(after=after)
                        )
                        assert again == Appended(first.first, first.last, repeated=True)
            assert len(before) == 1
            assert await log.marked([mark.key]) == before
            another = Mark(NEVER, 0, None)
            assert (await log.append("s", drafts, expected=None, mark=another)).repeated
        assert await log.marked([NEVER]) == []

    async def test_of_rivals_after_one_mark_one_wins(self, log: Log) -> None:
        await self.begin(log, "s")
        for after, values in ((0, 1), (2, 3)):
            head = await log.head("s")
            ends = await asyncio.gather(
                *(
                    log.append(
                        "s",
                        self.drafts(*(Note(f"{at}") for _ in range(values))),
                        expected=None,
                        mark=Mark(KEY, 0, after),
                    )
                    for at in range(8)
                ),
                return_exceptions=True,
            )
            lost = [end for end in ends if isinstance(end, MarkConflict)]
            assert len(lost) == 7, ends
            assert {(one.expected, one.found) for one in lost} == {(after, head + 1)}
            assert await log.head("s") == head + values
        assert await self.places(log, KEY) == [("s", 3), ("s", 2)]

    async def test_whoever_needs_no_newest_does_not_race(self, log: Log) -> None:
        await self.begin(log, "s")
        seqs = await asyncio.gather(*(self.mark(log, "s", KEY) for _ in range(10)))
        assert sorted(seqs) == list(range(2, 12))
        assert sorted(seq for _, seq in await self.places(log, KEY)) == sorted(seqs)

    async def test_a_fork_begins_without_marks(self, log: Log) -> None:
        await self.begin(log, "s", 1)
        await self.mark(log, "s", KEY, after=0)
        await log.fork("s", "t")
        assert await log.marked([KEY]) == [Marked(KEY, "s", 3, 3, 0)]
        with pytest.raises(MarkConflict):
            await self.mark(log, "t", OTHER, after=3)
        assert await self.mark(log, "t", OTHER, after=0) == 4
        assert await self.mark(log, "s", OTHER, after=3) == 4
        assert await log.marked([OTHER, KEY]) == [
            Marked(OTHER, "s", 4, 4, 3),
            Marked(OTHER, "t", 4, 4, 0),
            Marked(KEY, "s", 3, 4, 3),
        ]
        drafts = self.drafts(Note("shared"))
        await log.append("s", drafts, expected=4, mark=Mark(KEY, 0, 4))
        await log.fork("s", "u")
        assert (await log.append("u", drafts, expected=4, mark=Mark(KEY, 0, 4))).repeated

    async def test_forgetting_entries_takes_their_marks(self, log: Log) -> None:
        await self.begin(log, "s", 1)
        for after in (0, 3, 4):
            await self.mark(log, "s", KEY, after)
        await log.fork("s", "t")
        await self.mark(log, "t", OTHER, 0)
        await log.forget("t", Span(4, 4))
        assert await log.marked([KEY]) == [Marked(KEY, "s", 5, 5, 3), Marked(KEY, "s", 3, 5, 3)]
        await log.forget("s", Span(5, 5))
        assert await log.marked([KEY]) == [Marked(KEY, "s", 3, 3, 0)]
        assert await self.places(log, OTHER) == [("t", 6)]
        with pytest.raises(MarkConflict):
            await self.mark(log, "s", KEY, after=5)
        assert await self.mark(log, "s", KEY, after=3) == 6

    async def test_a_mark_goes_with_what_its_entry_rests_on(self, log: Log) -> None:
        await self.begin(log, "s", 2)
        fold = uuid4()
        await self.add(log, "s", FoldStarted(fold, (Span(2, 2),), "manual"))
        made = self.drafts(FoldCompleted(fold, (Span(2, 2),), "summary"))
        await log.append("s", made, expected=4, mark=Mark(KEY, 0, 0))
        await log.forget("s", Span(2, 2))
        assert await log.marked([KEY]) == []

    async def test_a_late_append_does_not_bring_a_mark_back(self, log: Log) -> None:
        await self.begin(log, "s")
        drafts, mark = self.drafts(Note("secret")), Mark(KEY, 0, 0)
        await log.append("s", drafts, expected=1, mark=mark)
        await log.forget("s", Span(2, 2))
        assert (await log.append("s", drafts, expected=1, mark=mark)).repeated
        assert await log.marked([KEY]) == []

    async def test_a_session_that_goes_takes_its_marks(self, log: Log) -> None:
        for name in ("s", "t"):
            await self.begin(log, name, 1)
            await self.mark(log, name, KEY)
            await log.fork(name, f"fork of {name}")
        await log.forget("s")
        assert await self.places(log, KEY) == [("t", 3)]
        assert await log.expire(self.now(), only=["t"]) == ["t"]
        assert await log.marked([KEY]) == []
        assert [e.forgotten for e in await log.read("fork of t")] == [False] * 3
        await self.begin(log, "t")
        assert await self.mark(log, "t", KEY, after=0) == 2
        await log.forget("fork of t")
        assert await log.marked([KEY]) == [Marked(KEY, "t", 2, 2, 0)]

    async def test_a_tenant_finds_its_own_only(self, store: Store) -> None:
        one, other = (store.log(f"tenant {uuid4()}") for _ in range(2))
        await self.begin(one, "s")
        await self.begin(other, "s")
        await self.mark(one, "s", KEY, after=0)
        assert await other.marked([KEY]) == []
        assert await self.mark(other, "s", KEY, after=0) == 2
        await one.forget("s")
        assert await one.marked([KEY]) == []
        assert await self.places(other, KEY) == [("s", 2)]
