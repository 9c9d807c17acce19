"""What is forgotten leaves no byte in any file of a SQLite store."""

# ruff: noqa: F811, F401 - fixtures are imported

import sqlite3
from uuid import uuid4

import pytest
from sqlite_files import path, say

from refold.errors import ErasureUnfinished
from refold.log import Artifact, FoldCompleted, FoldStarted, Note, Opened, Requested, Span, outline
from refold.log.artifact import INLINE_LIMIT
from refold.stores import SqliteStore
from refold.stores.sqlite import search
from refold.testing.strategies import author

SECRET = "Xylophone-Quarterly-7391046528"  # noqa: S105 - nobody's


def bytes_of_store(path) -> bytes:
    files = sorted(path.parent.glob(f"{path.name}*"))
    assert path in files
    return b"".join(file.read_bytes() for file in files)


def traces(path) -> list[bytes]:
    """Which spellings of the secret lie in any file of the store, whole or word by word."""
    data = bytes_of_store(path).lower()
    spellings = [SECRET.lower().encode(), *(word.encode() for word in SECRET.lower().split("-"))]
    return [spelling for spelling in spellings if spelling in data]


async def a_life(log, makes) -> None:
    """A session with the secret in every place there is, and a fork of it."""
    large = f"{SECRET} " + "hay " * INLINE_LIMIT
    fold = uuid4()
    values = [
        Opened("openai-chat", "balanced", title=f"About {SECRET}"),
        say(f"the word is {SECRET}"),
        say(large),
        Note(SECRET, {"deep": [SECRET]}),
        FoldStarted(fold, (Span(2, 3),), "manual", focus=SECRET),
        FoldCompleted(fold, (Span(2, 3),), {"text": f"said {SECRET}"}),
        Requested((Span(2, 4),), [{"insert": SECRET}], "model", "digest", 1000),
    ]
    drafts = [makes.draft(value) for value in values]
    attached = [Artifact.of(SECRET.encode() * 3, f"text/{SECRET}")]
    drafts.append(makes.draft(Note("see"), scope=f"/{SECRET}", artifacts=attached))
    await log.append("s", drafts, expected=0)
    for at in range(50):  # so that pages fill, split and are written again
        await log.append(
            "s", [makes.draft(say(f"padding {at} {SECRET} {'x' * at * 9}"))], expected=None
        )
    await log.fork("s", "t")
    await log.append("t", [makes.draft(Note("own words of the fork"))], expected=None)
    assert len(await log.search(SECRET, limit=99)) == 55
    await log.append("t", [makes.draft(say("after the index"))], expected=None)


@pytest.mark.parametrize("whole", [True, False])
async def test_no_forgotten_byte_is_left(path, whole):
    makes = author()
    async with SqliteStore(path) as store:
        log = store.log()
        await a_life(log, makes)
        await log.append("s", [makes.draft(say(f"not indexed yet {SECRET}"))], expected=None)
        assert traces(path)
        await log.forget("s", None if whole else Span(1, 99))
        assert traces(path) == []
        record = (await log.read("t"))[6]
        assert (record.kind, record.forgotten) == ("request", True)
        assert [hit.entry.seq for hit in await log.search("own words")] == [59]
    assert traces(path) == []


async def test_an_expired_session_leaves_no_byte(path):
    async with SqliteStore(path) as store:
        log = store.log()
        await a_life(log, author())
        await log.forget("t")
        assert await log.expire(2**62) == ["s"]
        assert traces(path) == []


async def test_a_fork_that_copied_is_erased_too(path):
    makes = author()
    async with SqliteStore(path) as store:
        log = store.log()
        await log.append("0", [makes.draft(Opened("f", "p")), makes.draft(say(SECRET))], expected=0)
        for at in range(1, 40):
            await log.fork(f"{at - 1}", f"{at}")
            await log.append(f"{at}", [makes.draft(say(f"{at} {SECRET}"))], expected=None)
        assert len(await log.search(SECRET, limit=99)) == 40
        copies = await store.read(
            "default", lambda tx: tx.db.execute("SELECT * FROM copies").fetchall()
        )
        assert copies
        await log.forget("39", Span(2, 99))
        assert traces(path) == []


async def test_a_reader_of_an_older_state_delays_the_erasure(path):
    async with SqliteStore(path, wait=0.2) as store:
        log = store.log()
        await a_life(log, author())
        reader = sqlite3.connect(path)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM entries").fetchone()
        with pytest.raises(ErasureUnfinished, match="reader"):
            await log.forget("s")
        assert await log.search(SECRET) == []
        reader.close()
    async with SqliteStore(path):
        assert traces(path) == []


async def test_copies_of_copies_are_erased(path, monkeypatch):
    monkeypatch.setattr(outline, "MAX_SEGMENTS", 1)
    makes = author()
    async with SqliteStore(path) as store:
        log = store.log()
        opening = [makes.draft(Opened("f", "p")), makes.draft(say(SECRET))]
        await log.append("0", opening, expected=0)
        for at in (1, 2, 3):
            await log.fork(f"{at - 1}", f"{at}")
            await log.append(f"{at}", [makes.draft(say("more"))], expected=None)
        await log.forget("1")
        await log.forget("2")
        await log.forget("0", Span(2, 2))
        assert (await log.read("3"))[1].forgotten
        assert traces(path) == []


async def test_another_table_of_characters_indexes_anew(path, monkeypatch):
    makes = author()
    async with SqliteStore(path) as store:
        log = store.log()
        await log.append("s", [makes.draft(Opened("f", "p")), makes.draft(say(SECRET))], expected=0)
        assert len(await log.search(SECRET)) == 1
        monkeypatch.setattr(search, "UNICODE", 99)
        monkeypatch.setattr(search, "index_words", lambda text: ["other", *text.split()])
        await log.forget("s", Span(2, 2))
        assert traces(path) == []
