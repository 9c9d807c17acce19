"""What only the SQLite store promises: shared commits, an index that no append waits for,
migrations."""

# ruff: noqa: F811, F401 - fixtures are imported

import asyncio
from uuid import uuid4

import pytest
from sqlite_files import path, say

from refold.errors import Conflict, NotAStore, WrittenByNewer
from refold.log import Appended, Author, FoldStarted, Note, Opened, Span
from refold.log.text import WORDS_VERSION
from refold.stores import SqliteStore
from refold.stores.sqlite import search, writer
from refold.stores.sqlite.store import shipped
from refold.testing.strategies import author


async def test_appends_at_once_share_their_commits(path):
    commits = []
    makes = author()
    async with SqliteStore(path, reach=commits.append) as store:
        log = store.log()
        drafts = [[makes.draft(Opened("f", "p"))] for _ in range(64)]
        await asyncio.gather(
            *(log.append(f"s{at}", one, expected=0) for at, one in enumerate(drafts))
        )
        assert commits.count("commit.done") <= 4
        commits.clear()
        drafts = [[makes.draft(say(f"{at}"))] for at in range(64)]
        await asyncio.gather(
            *(log.append(f"s{at}", one, expected=1) for at, one in enumerate(drafts))
        )
        assert commits.count("commit.done") <= 4


@pytest.mark.parametrize("limit", [-1.0, 60.0])
async def test_one_bad_append_does_not_spoil_the_others(path, monkeypatch, limit):
    """On the event loop and in the thread alike."""
    monkeypatch.setattr(writer, "LOOP_LIMIT", limit)
    makes = author()
    async with SqliteStore(path) as store:
        log = store.log()
        for at in range(6):
            await log.append(f"s{at}", [makes.draft(Opened("f", "p"))], expected=0)
        good = [log.append(f"s{at}", [makes.draft(Note("x"))], expected=1) for at in range(3)]
        late = log.append("s3", [makes.draft(Note("x"))], expected=7)
        # What SQLite itself refuses makes the whole transaction fail.
        odd = log.append("s4", [makes.draft(Note("x"))._replace(body="no bytes")], expected=1)
        ends = await asyncio.gather(*good, late, odd, return_exceptions=True)
        assert ends[:3] == [Appended(2, 2)] * 3
        assert all(isinstance(end, Exception) for end in ends[3:])
        assert [await log.head(f"s{at}") for at in range(6)] == [2, 2, 2, 1, 1, 1]


async def test_loop_and_thread_take_turns(path, monkeypatch):
    """Whichever commits, each append is done once and no caller waits for ever."""
    makes = author()
    async with SqliteStore(path) as store:
        log = store.log()

        async def talk(name: str) -> None:
            await log.append(name, [makes.draft(Opened("f", "p"))], expected=0)
            for head in range(1, 40):
                await log.append(name, [makes.draft(say(f"{head}"))], expected=head)

        async def change_sides() -> None:
            while True:
                for limit in (-1.0, 60.0):
                    monkeypatch.setattr(writer, "LOOP_LIMIT", limit)
                    await asyncio.sleep(0)

        changing = asyncio.create_task(change_sides())
        await asyncio.wait_for(asyncio.gather(*(talk(f"s{at}") for at in range(12))), 60)
        changing.cancel()
        assert [await log.head(f"s{at}") for at in range(12)] == [40] * 12


async def test_a_busy_loop_still_turns(path):
    makes = author()
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with SqliteStore(path) as store:
        log = store.log()
        await log.append("s", [makes.draft(Opened("f", "p"))], expected=0)
        drafts = [makes.draft(say(f"{at}")) for at in range(300)]
        counting = asyncio.create_task(count())
        for at, draft in enumerate(drafts, 1):
            await log.append("s", [draft], expected=at)
        counting.cancel()
        assert turns >= 5


def test_one_store_serves_one_loop_after_another(path):
    makes = author()
    store = SqliteStore(path)

    async def first() -> None:
        await store.open()
        await store.log().append("s", [makes.draft(Opened("f", "p"))], expected=0)

    async def second() -> None:
        await store.log().append("s", [makes.draft(Note("x"))], expected=1)
        assert await store.log().head("s") == 2
        await store.close()

    asyncio.run(first())
    asyncio.run(second())


async def test_a_session_is_there_after_a_restart(path):
    makes = author()
    drafts = [makes.draft(Opened("f", "p")), makes.draft(say("hello"))]
    async with SqliteStore(path) as store:
        await store.log().append("s", drafts, expected=0)
    async with SqliteStore(path) as store:
        entries = await store.log().read("s")
        assert [(entry.id, entry.body) for entry in entries] == [
            (one.id, one.body) for one in drafts
        ]


async def test_appending_indexes_nothing(path):
    makes = author()
    async with SqliteStore(path) as store:
        log = store.log()
        await log.append("s", [makes.draft(Opened("f", "p")), makes.draft(say("word"))], expected=0)

        def indexed(tx):
            return tx.db.execute("SELECT count(*) FROM words_docsize").fetchone()[0]

        assert await store.read("default", indexed) == 0
        assert len(await log.search("word")) == 1
        assert await store.read("default", indexed) == 1
        await log.append("s", [makes.draft(say("word again"))], expected=2)
        assert await store.read("default", indexed) == 1
        assert len(await log.search("word")) == 2


async def test_another_making_of_words_indexes_anew(path, monkeypatch):
    makes = author()
    async with SqliteStore(path) as store:
        log = store.log()
        await log.append("s", [makes.draft(Opened("f", "p")), makes.draft(say("word"))], expected=0)
        assert len(await log.search("word")) == 1
        monkeypatch.setattr(search, "WORDS_VERSION", WORDS_VERSION + 1)
        monkeypatch.setattr(search, "index_words", lambda text: [w + "s" for w in text.split()])
        await log.append("s", [makes.draft(say("more"))], expected=2)
        assert len(await log.search("words")) == 1
        monkeypatch.setattr(search, "WORDS_VERSION", 1)
        await log.append("s", [makes.draft(say("older"))], expected=3)
        with pytest.raises(WrittenByNewer):
            await log.search("older")


async def test_outlines_of_an_older_version_are_replayed(path):
    makes = author()
    fold = uuid4()
    values = [Opened("f", "p", "title"), say("x"), FoldStarted(fold, (Span(2, 2),), "manual")]
    async with SqliteStore(path) as store:
        log = store.log()
        await log.append("s", [makes.draft(value) for value in values], expected=0)
        before = await log.visible("s")
        await store.write(
            "default",
            lambda tx: tx.db.execute(
                "UPDATE sessions SET outline = CAST('{\"version\":0}' AS BLOB)"
            ),
        )
        assert await log.visible("s") == before
        newer = (
            "UPDATE sessions SET outline = CAST('{\"version\":9}' AS BLOB), revision = revision + 1"
        )
        await store.write("default", lambda tx: tx.db.execute(newer))
        for call in (log.visible("s"), log.append("s", [makes.draft(Note("x"))], expected=3)):
            with pytest.raises(WrittenByNewer, match="Upgrade"):
                await call


async def test_the_head_is_where_the_entries_end_for_every_connection(path):
    """What one connection knows of a session is good only until another one writes."""
    makes = author()
    async with SqliteStore(path) as one, SqliteStore(path) as two:
        await one.log().append("s", [makes.draft(Opened("f", "p"))], expected=0)
        for head in range(1, 9):
            log = (one if head % 2 else two).log()
            assert await log.append("s", [makes.draft(say("x"))], expected=head) == Appended(
                head + 1, head + 1
            )
        await two.log().search("x")
        await one.log().append("s", [makes.draft(say("needle"))], expected=9)
        assert len(await two.log().search("needle")) == 1
        await two.log().forget("s")
        with pytest.raises(Exception, match="forgotten"):
            await one.log().append("s", [makes.draft(say("late"))], expected=10)


async def test_a_reopened_store_knows_nothing_of_before(path):
    makes = author()
    one = SqliteStore(path)
    await one.open()
    await one.log().append("s", [makes.draft(Opened("f", "p")), makes.draft(say("a"))], expected=0)
    await one.close()
    async with SqliteStore(path) as two:
        await two.log().forget("s")
    async with SqliteStore(path) as two:
        await two.log().append("s", [Author().draft(Opened("f", "p"))], expected=0)
    await one.open()
    late = one.log().append("s", [Author().draft(say("b"))], expected=2)
    with pytest.raises(Conflict):
        await late
    assert await one.log().append("s", [Author().draft(say("b"))], expected=1) == Appended(2, 2)
    assert len(await one.log().read("s")) == 2
    await one.close()


@pytest.mark.parametrize("limit", [60, -1], ids=["on the loop", "in the thread"])
def test_an_interrupt_in_a_commit_loses_nothing(path, limit, monkeypatch):
    monkeypatch.setattr(writer, "LOOP_LIMIT", limit)
    makes = author()
    interrupts = 0

    def reach(point: str) -> None:
        nonlocal interrupts
        if point == "commit.written" and interrupts == 1:
            interrupts += 1
            raise KeyboardInterrupt

    loop = asyncio.new_event_loop()
    store = SqliteStore(path, reach=reach)
    log = store.log()
    loop.run_until_complete(store.open())
    loop.run_until_complete(log.append("s", [makes.draft(Opened("f", "p"))], expected=0))
    interrupts = 1
    batch = [makes.draft(say("a")), makes.draft(say("b"))]
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(log.append("s", batch, expected=1))
    more = [makes.draft(say("c"))]
    loop.run_until_complete(log.append("s", batch, expected=1))
    loop.run_until_complete(log.append("s", more, expected=3))
    assert [e.id for e in loop.run_until_complete(log.read("s"))][1:] == [
        draft.id for draft in (*batch, *more)
    ]
    loop.run_until_complete(store.close())
    loop.close()


async def test_a_body_without_words_spoils_no_search(path):
    makes = author()
    async with SqliteStore(path) as store:
        log, other = store.log(), store.log("other")
        odd = [b'{"n":' + b"9" * 5000 + b',"text":"found"}', b"[" * 5000, b"not json"]
        drafts = [makes.draft(Note("x"))._replace(kind="odd", body=body) for body in odd]
        await log.append("s", [makes.draft(Opened("f", "p")), *drafts], expected=0)
        await other.append("t", [makes.draft(Opened("f", "p", "kettle"))], expected=0)
        assert len(await other.search("kettle")) == 1
        assert [hit.entry.seq for hit in await log.search("found")] == [2]
        assert (await log.forget("s")).entries == 4


def test_migrations_are_numbered_without_gaps():
    assert [one.number for one in shipped()] == list(range(1, len(shipped()) + 1))


@pytest.mark.parametrize(("content", "create"), [(b"x", True), (b"x", False), (b"", False)])
async def test_a_file_of_a_byte_or_none_is_not_written_over(path, content, create):
    path.write_bytes(content)
    with pytest.raises(NotAStore):
        await SqliteStore(path, create=create).open()
    assert path.read_bytes() == content
