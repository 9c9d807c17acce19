from uuid import uuid4

import pytest

from refold.errors import InvalidEntry, SessionExists, SessionForgotten
from refold.log import (
    CODEC,
    Appended,
    Cleared,
    FoldCompleted,
    FoldStarted,
    Forgotten,
    Log,
    Message,
    Note,
    Opened,
    PartRef,
    Pinned,
    Requested,
    Rewound,
    Span,
    Titled,
)
from refold.testing.conformance.base import Conformance


class ForgettingConformance(Conformance):
    async def test_forgotten_entries_leave_tombstones(self, log: Log) -> None:
        await self.begin(log, "s", 3, title="secret title")
        before = await log.read("s")
        erased = await log.forget("s", Span(1, 3))
        assert (erased.entries, erased.derived) == (3, 0)
        after = await log.read("s")
        assert [entry.forgotten for entry in after] == [True, True, True, False]
        assert [(e.seq, e.id, e.at, e.kind) for e in after] == [
            (e.seq, e.id, e.at, e.kind) for e in before
        ]
        assert [entry.body for entry in after[1:3]] == [b"{}", b"{}"]
        opening = CODEC.decode(after[0])
        assert opening == Forgotten("session", {"format": "openai-chat", "profile": "balanced"})
        info = await log.info("s")
        assert (info.title, info.format, info.messages) == (None, "openai-chat", 3)
        assert (await log.forget("s", Span(1, 3))).entries == 0

    async def test_what_rested_on_the_forgotten_goes_too(self, log: Log) -> None:
        await self.begin(log, "s", 6)
        await self.fold(log, "s", Span(2, 3))
        await self.fold(log, "s", Span(5, 6))
        whole = Requested((Span(2, 4),), ["keep"], "model", "digest", 100)
        await self.add(log, "s", whole)
        await self.add(log, "s", Requested((Span(6, 7),), [], "model", "digest", chain=(12,)))
        await self.add(log, "s", Requested((Span(6, 7),), [], "model", "digest"))
        erased = await log.forget("s", Span(3, 3))
        assert (erased.entries, erased.derived) == (1, 3)
        entries = await log.read("s")
        assert [entry.seq for entry in entries if entry.forgotten] == [3, 9, 12, 13]
        record = CODEC.decode(entries[11])
        assert record == Forgotten("request", {"digest": "digest", "limit": 100, "model": "model"})
        assert isinstance(record, Forgotten)
        assert record.state == "unrebuildable"
        assert await self.visible_seqs(log, "s") == [1, 2, 3, 4, 7, 8, 9, 10, 11, 12, 13, 14]

    async def test_forgetting_does_not_move_the_line(self, log: Log) -> None:
        await self.begin(log, "s", 4)
        await self.fold(log, "s", Span(2, 3))
        running = uuid4()
        await self.add(log, "s", Pinned((PartRef(2, 0),)), Rewound(7))
        await self.add(log, "s", FoldStarted(running, (Span(4, 4),), "manual", focus="secret"))
        await self.add(log, "s", Cleared(), Note("new"))
        visible_seqs = await self.visible_seqs(log, "s")
        await log.forget("s", Span(4, 11))
        assert await self.visible_seqs(log, "s") == visible_seqs == [1, 12]
        assert [one.fold for one in (await log.visible("s")).outline.running] == [running]

    async def test_forgetting_reaches_forks_and_their_source(self, log: Log) -> None:
        await self.begin(log, "s", 4)
        await log.fork("s", "t")
        await log.fork("t", "u", at=3)
        await self.fold(log, "t", Span(2, 3))
        await log.forget("u", Span(3, 3))
        for name, gone in (("s", [3]), ("t", [3, 7]), ("u", [3])):
            assert [e.seq for e in await log.read(name) if e.forgotten] == gone
        assert (await log.visible("t")).outline.folds == ()

    async def test_a_title_goes_with_the_entry_that_it_is_made_of(self, log: Log) -> None:
        opened = Opened("openai-chat", "balanced", "the kettle is", title_source=2)
        said = Message(b'{"role": "user", "content": "the kettle is green"}')
        values = (opened, said, Note("other"), Titled("a kettle", source=2))
        await log.append("s", self.drafts(*values), expected=0)
        await self.add(log, "s", Titled("their own"), Titled("green kettle", source=2))
        await log.fork("s", "whole")
        await log.fork("s", "opening", at=1)
        await log.fork("whole", "early", at=4)
        assert (await log.info("s")).title == "green kettle"
        assert (await log.info("opening")).title == "the kettle is"
        erased = await log.forget("early", Span(2, 2))
        assert (erased.entries, erased.derived) == (1, 3)
        titles = {one.session: one.title for one in (await log.sessions()).sessions}
        assert titles == {"s": "their own", "whole": "their own", "opening": None, "early": None}
        assert await log.search("kettle") == []
        assert (await log.sessions(search="kettle")).sessions == ()
        assert [e.seq for e in await log.read("s") if e.forgotten] == [1, 2, 4, 6]
        assert (await log.info("s")).format == "openai-chat"

    async def test_a_title_outlives_other_entries(self, log: Log) -> None:
        opened = Opened("openai-chat", "balanced", "the kettle is", title_source=3)
        values = (opened, Note("one"), Note("the kettle is green"), Note("three"))
        await log.append("s", self.drafts(*values), expected=0)
        await log.forget("s", Span(2, 2))
        await log.forget("s", Span(4, 4))
        assert (await log.info("s")).title == "the kettle is"
        await log.forget("s", Span(3, 3))
        assert (await log.info("s")).title is None

    async def test_a_forgotten_session_is_gone(self, log: Log) -> None:
        await self.begin(log, "s", 3, title="kettle")
        await log.fork("s", "t")
        await self.add(log, "t", Note("kettle own"))
        erased = await log.forget("s")
        assert (erased.session, erased.entries) == ("s", 4)
        assert await self.names(log) == ["t"]
        for call in (log.head("s"), log.read("s"), log.visible("s"), log.fork("s", "x")):
            with pytest.raises(SessionForgotten):
                await call
        with pytest.raises(SessionForgotten):
            await log.append("s", self.drafts(Note("late")), expected=4)
        assert [e.forgotten for e in await log.read("t")] == [True] * 4 + [False]
        assert [hit.entry.seq for hit in await log.search("kettle")] == [5]

    async def test_forgetting_a_fork_leaves_its_source(self, log: Log) -> None:
        await self.begin(log, "s", 3)
        await log.fork("s", "t")
        await self.add(log, "t", Note("own"))
        assert (await log.forget("t")).entries == 1
        assert [entry.forgotten for entry in await log.read("s")] == [False] * 4

    async def test_a_forgotten_session_may_begin_anew(self, log: Log) -> None:
        old = self.drafts(Opened("f", "p"), Note("old words"))
        await log.append("s", old, expected=0)
        await log.forget("s")
        with pytest.raises(SessionForgotten):
            await log.append("s", old, expected=0)
        await self.begin(log, "s")
        for expected in (None, 1):
            with pytest.raises(SessionForgotten):
                await log.append("s", old[1:], expected=expected)
        assert len(await log.read("s")) == 1

    async def test_no_way_leads_back_to_a_forgotten_life(self, log: Log) -> None:
        old = self.drafts(Opened("f", "p"), Note("old words"))
        await log.append("s", old, expected=0)
        await log.forget("s")
        opening = self.author.draft(Opened("f", "p"))
        with pytest.raises(SessionForgotten):
            await log.append("s", [opening, old[1]], expected=0)
        await self.begin(log, "t", 2)
        await log.fork("t", "s")
        with pytest.raises(SessionForgotten):
            await log.append("s", old[1:], expected=3)
        assert len(await log.read("s")) == 3

    async def test_a_fork_outlives_the_name_of_its_source(self, log: Log) -> None:
        await self.begin(log, "s", 2)
        await log.fork("s", "t")
        await log.forget("s")
        info = await log.info("t")
        assert (info.forked_from, info.forked_at, info.entries) == (None, None, 3)
        await self.begin(log, "s", 2)
        with pytest.raises(SessionExists):
            await log.fork("s", "t")
        again = self.drafts(Note("x"))
        await log.append("t", again, expected=3)
        shared = await log.read("t", Span(1, 1))
        assert shared[0].forgotten

    async def test_an_entry_names_all_it_rests_on(self, log: Log) -> None:
        await self.begin(log, "s", 3)
        fold = uuid4()
        await self.add(log, "s", FoldStarted(fold, (Span(2, 3),), "manual"))
        draft = self.author.draft(FoldCompleted(fold, (Span(2, 3),), "summary"))
        for less in ((), (Span(2, 2),)):
            with pytest.raises(InvalidEntry, match="rests on more"):
                await log.append("s", [draft._replace(rests_on=less)], expected=5)

    async def test_a_late_append_does_not_bring_words_back(self, log: Log) -> None:
        await self.begin(log, "s")
        drafts = self.drafts(Note("secret"))
        await log.append("s", drafts, expected=1)
        await log.forget("s", Span(2, 2))
        assert await log.append("s", drafts, expected=1) == Appended(2, 2, repeated=True)
        assert (await log.read("s"))[1].body == b"{}"

    async def test_old_sessions_expire(self, log: Log) -> None:
        await self.begin(log, "old", 2)
        await self.begin(log, "older fork", 2)
        await log.fork("old", "living")
        before = self.now()
        await self.begin(log, "new", 2)
        await self.add(log, "living", Note("still here"))
        assert await log.expire(before, only=()) == []
        assert await log.expire(before, only={"old", "new"}) == ["old"]
        assert await log.expire(before) == ["older fork"]
        assert await log.expire(before) == []
        assert await self.names(log) == ["living", "new"]
        assert [entry.forgotten for entry in await log.read("living")] == [False] * 4
        assert len(await log.search("message")) == 4
        assert await log.expire(self.now()) == ["living", "new"]
        assert await self.names(log) == []
        with pytest.raises(SessionForgotten):
            await log.read("living")
