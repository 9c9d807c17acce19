"""Large artifacts in SQLite: written piece by piece, so that nobody waits for the whole."""

import asyncio
import sqlite3
from contextlib import closing
from itertools import pairwise

import pytest

from refold.errors import Conflict
from refold.log import Artifact, Author, Message, Opened
from refold.stores.sqlite import SqliteStore, read
from refold.stores.sqlite.read import MAX_INLINE, PIECE, add_piece, begin

PIECES = 8
SIZE = PIECES * PIECE
SECRET = b"the word that is forgotten"


def large(text=b"x"):
    return Message(b'{"text":"' + (text * (SIZE // len(text) + 1))[:SIZE] + b'"}')


def drafts(*values):
    return [Author().draft(value) for value in values]


def opened():
    return Opened("pydantic-ai", "balanced")


@pytest.fixture
async def path(tmp_path):
    found = tmp_path / "test.db"
    async with SqliteStore(found) as store:
        await store.log().append("s", drafts(opened()), expected=0)
    return found


def rows(path, table):
    with closing(sqlite3.connect(path)) as db:
        return db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608 - our tables


async def test_another_process_writes_between_the_pieces(path):
    # Each transaction of the large append lets the other one write before the next begins.
    turns = []

    def reach(point):
        if point in {"upload.begun", "append.begun"}:
            turns.append("large")

    async with SqliteStore(path, reach=reach) as one, SqliteStore(path) as other:
        await other.log().append("t", drafts(opened()), expected=0)

        async def write_small():
            while not over.is_set():
                await other.log().append("t", drafts(Message(b"{}")), expected=None)
                turns.append("small")

        over = asyncio.Event()
        small = asyncio.create_task(write_small())
        value = large()
        await one.log().append("s", drafts(value), expected=1)
        over.set()
        await small
        [entry] = (await one.log().read("s"))[1:]
        assert entry.body == drafts(value)[0].body
    pieces = [index for index, turn in enumerate(turns) if turn == "large"]
    assert len(pieces) == PIECES + 1
    between = [turns[a:b].count("small") for a, b in pairwise(pieces)]
    assert sum(map(bool, between)) > PIECES // 2, turns


async def test_a_small_artifact_is_written_with_its_entry(path):
    async with SqliteStore(path) as store:
        value = Message(b'{"text":"' + b"x" * (MAX_INLINE - 100) + b'"}')
        await store.log().append("s", drafts(value), expected=1)
    assert (rows(path, "uploads"), rows(path, "artifact_data")) == (0, 1)


async def test_what_is_stored_already_is_not_uploaded_again(path):
    async with SqliteStore(path) as store:
        await store.log().append("s", drafts(large()), expected=1)
        await store.log().append("s", drafts(large()), expected=2)
    assert (rows(path, "uploads"), rows(path, "artifacts")) == (1, 1)


async def test_an_append_that_is_refused_leaves_no_upload(path):
    async with SqliteStore(path) as store:
        with pytest.raises(Conflict):
            await store.log().append("s", drafts(large()), expected=7)
    assert (rows(path, "uploads"), rows(path, "upload_pieces")) == (0, 0)


async def test_an_append_whose_upload_is_dropped_meanwhile_writes_the_data_itself(path):
    seen = []

    def reach(point):
        if point == "upload.begun":
            seen.append(point)

    async with SqliteStore(path, reach=reach) as store, SqliteStore(path) as other:
        await other.log().append("t", drafts(opened()), expected=0)
        append = asyncio.create_task(store.log().append("s", drafts(large()), expected=1))
        async with asyncio.timeout(60):
            while len(seen) < 2:  # noqa: ASYNC110 - the store sets no event here
                await asyncio.sleep(0)
        await other.log().forget("t")
        await append
        assert (await store.log().read("s"))[1].body == drafts(large())[0].body
    assert rows(path, "upload_pieces") in (0, PIECES)


async def test_uploads_of_a_process_that_died_go_with_what_is_forgotten(path):
    async with SqliteStore(path) as store:
        upload = await store.append("default", begin)  # and its append never comes
        await store.append("default", lambda tx: add_piece(tx, upload, 0, SECRET * 100))
        await store.log().append("s", drafts(large(SECRET)), expected=1)
        assert (rows(path, "uploads"), rows(path, "upload_pieces")) == (2, PIECES + 1)
        await store.log().forget("s")
    assert (rows(path, "uploads"), rows(path, "upload_pieces")) == (0, 0)
    for file in path.parent.iterdir():
        if file.is_file():
            assert SECRET not in file.read_bytes(), file


async def test_uploads_of_a_process_that_died_are_dropped_by_the_next_one(path, monkeypatch):
    async with SqliteStore(path) as store:
        upload = await store.append("default", begin)
        for number in range(3):
            await store.append("default", _adding(upload, number))
        await store.log().append("s", drafts(large(b"one")), expected=1)
        assert rows(path, "uploads") == 2, "it may still be under way"
        monkeypatch.setattr(read, "_ABANDONED", -1_000)
        await store.log().append("s", drafts(large(b"two")), expected=2)
        assert rows(path, "uploads") == 2, "those that are used"
        assert len(await store.log().read("s")) == 3


def _adding(upload, number):
    return lambda tx: add_piece(tx, upload, number, b"abandoned")


async def test_forgetting_drops_what_was_uploaded(path):
    async with SqliteStore(path) as store:
        await store.log().append("s", drafts(large(SECRET)), expected=1)
        artifact = Artifact.of((SECRET * SIZE)[:SIZE])
        assert (await store.log().artifact(artifact.hash)).data == artifact.data
        await store.log().forget("s")
    assert (rows(path, "uploads"), rows(path, "upload_pieces"), rows(path, "artifacts")) == (
        0,
        0,
        0,
    )
    assert SECRET not in path.read_bytes()
