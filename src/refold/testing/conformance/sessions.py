"""Many sessions: lists, forks, tenants."""

import json
from uuid import uuid4

import pytest

from refold.errors import (
    ArtifactNotFound,
    InvalidInput,
    SessionExists,
    SessionNotFound,
    StoreClosed,
)
from refold.log import (
    Appended,
    Artifact,
    Cleared,
    Log,
    Message,
    Note,
    Opened,
    Span,
    Store,
    Titled,
)
from refold.log.artifact import INLINE_LIMIT
from refold.testing.conformance.base import Conformance

_DEEP = 40


class SessionsConformance(Conformance):
    async def test_sessions_are_listed_last_used_first(self, log: Log) -> None:
        for name in ("a", "b", "c"):
            await self.begin(log, name, 2)
        await self.add(log, "a", Note("again"))
        await log.fork("b", "d")
        assert await self.names(log) == ["d", "a", "c", "b"]

    async def test_lists_have_pages(self, log: Log) -> None:
        for at in range(7):
            await self.begin(log, f"s{at}")
        names: list[str] = []
        page = None
        while True:
            found = await log.sessions(limit=3, page=page)
            names += [info.session for info in found.sessions]
            page = found.next
            if page is None:
                break
        assert names == [f"s{at}" for at in range(6, -1, -1)]
        with pytest.raises(InvalidInput):
            await log.sessions(page="elsewhere")

    async def test_titles_and_counts(self, log: Log) -> None:
        await self.begin(log, "s", 2, title="First title")
        await self.add(log, "s", Note("x"), Titled("Second title"), Message(b"{}"))
        info = (await log.sessions()).sessions[0]
        assert (info.title, info.entries, info.messages) == ("Second title", 6, 3)
        entries = await log.read("s")
        assert (info.created_at, info.updated_at) == (entries[0].at, entries[-1].at)

    async def test_sessions_are_found_by_title_text_and_name(self, log: Log) -> None:
        await self.begin(log, "support-42", title="Broken kettle")
        await self.begin(log, "sales-7", title="A new lamp")
        await self.add(log, "sales-7", Message(b'{"content":"does the KETTLE come in red?"}'))
        await log.fork("sales-7", "sales-7b")
        assert await self.names(log, "kettle") == ["sales-7b", "sales-7", "support-42"]
        assert await self.names(log, "lamp new") == ["sales-7b", "sales-7"]
        assert await self.names(log, "support") == ["support-42"]
        assert await self.names(log, "nowhere") == []
        assert await self.names(log, "!!") == []

    async def test_a_fork_shares_and_goes_its_own_way(self, log: Log) -> None:
        await self.begin(log, "s", 4)
        made = await log.fork("s", "t", at=3)
        assert (made.entries, made.messages) == (3, 2)
        assert (made.forked_from, made.forked_at) == ("s", 3)
        await self.add(log, "s", Note("in s"))
        await self.add(log, "t", Note("in t"))
        s, t = await log.read("s"), await log.read("t")
        assert [entry.id for entry in t[:3]] == [entry.id for entry in s[:3]]
        assert (len(s), len(t), t[3].seq) == (6, 4, 4)
        assert await self.visible_seqs(log, "t") == [1, 2, 3, 4]

    async def test_forking_again_changes_nothing(self, log: Log) -> None:
        await self.begin(log, "s", 4)
        made = await log.fork("s", "t")
        assert await log.fork("s", "t") == made
        assert await log.fork("s", "t", at=5) == made
        for source, new, at in (("s", "t", 2), ("t", "s", None), ("s", "s", None)):
            with pytest.raises(SessionExists):
                await log.fork(source, new, at=at)
        for at in (0, 6, -1):
            with pytest.raises(InvalidInput):
                await log.fork("s", "u", at=at)

    async def test_a_fork_has_the_view_of_its_place(self, log: Log) -> None:
        await self.begin(log, "s", 4)
        await self.fold(log, "s", Span(2, 4))
        await self.add(log, "s", Cleared(), Titled("late"))
        await log.fork("s", "before", at=5)
        await log.fork("s", "folded", at=7)
        await log.fork("s", "after")
        assert await self.visible_seqs(log, "before") == [1, 2, 3, 4, 5]
        assert await self.visible_seqs(log, "folded") == [1, 5, 6, 7]
        assert await self.visible_seqs(log, "after") == [1, 9]
        assert (await log.info("folded")).title is None
        assert (await log.info("after")).title == "late"

    async def test_a_fork_knows_the_drafts_it_shares(self, log: Log) -> None:
        drafts = self.drafts(Opened("f", "p"), Note("x"))
        await log.append("s", drafts, expected=0)
        await log.fork("s", "t")
        await self.add(log, "t", Note("own"))
        assert await log.append("t", drafts, expected=None) == Appended(1, 2, repeated=True)
        assert await log.append("t", drafts[1:], expected=3) == Appended(2, 2, repeated=True)

    async def test_forks_of_forks_read_as_one(self, log: Log) -> None:
        await self.begin(log, "f0", 3)
        for at in range(1, _DEEP + 1):
            await log.fork(f"f{at - 1}", f"f{at}")
            large = json.dumps({"content": f"{at} " * INLINE_LIMIT}).encode()
            await self.add(log, f"f{at}", Message(large) if at % 10 == 0 else Note(f"note {at}"))
        entries = await log.read(f"f{_DEEP}")
        assert [entry.seq for entry in entries] == list(range(1, _DEEP + 5))
        assert json.loads(entries[-2].body) == {"text": f"note {_DEEP - 1}"}
        assert [hit.entry.seq for hit in await log.search("note 3", session=f"f{_DEEP}")] == [7]
        assert len(await log.search("note 3")) == 1
        await log.forget(f"f{_DEEP}", Span(5, _DEEP + 4))
        for at in (1, 9, 10, 33, 34, _DEEP):
            read = await log.read(f"f{at}")
            assert [entry.forgotten for entry in read] == [False] * 4 + [True] * at

    async def test_tenants_do_not_see_each_other(self, store: Store) -> None:
        one, other = store.log(f"tenant {uuid4()}"), store.log(f"tenant {uuid4()}")
        picture = Artifact.of(b"shared bytes", "image/png")
        draft = self.author.draft(Note("kettle"), artifacts=[picture])
        opening = self.author.draft(Opened("f", "p"))
        await one.append("s", [opening, draft], expected=0)
        assert await self.names(other) == []
        assert await other.search("kettle") == []
        with pytest.raises(SessionNotFound):
            await other.read("s")
        with pytest.raises(ArtifactNotFound):
            await other.artifact(picture.hash)
        assert await other.append("s", [opening, draft], expected=0) == Appended(1, 2)
        await one.forget("s")
        assert [entry.forgotten for entry in await other.read("s")] == [False, False]
        assert await other.artifact(picture.hash) == picture
        assert await other.expire(0) == []

    async def test_a_closed_store_says_so(self, store: Store) -> None:
        log = store.log("someone")
        await store.close()
        with pytest.raises(StoreClosed):
            await log.append("s", self.drafts(Opened("f", "p")), expected=0)
        with pytest.raises(StoreClosed):
            await log.sessions()
