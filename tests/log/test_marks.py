"""Marks where stores differ: files, servers, processes. The suite of stores has the rest."""

import asyncio

import pytest

from refold.errors import MarkConflict
from refold.log import Author, Mark, Marked, Note, Opened, Span, export_session, import_session
from refold.stores import MemoryStore, SqliteStore
from refold.stores.sqlite.store import shipped

KEY, OTHER = b"sixteen bytes it", b"another sixteen!"


def drafts(*values):
    author = Author()
    return [author.draft(value) for value in values]


async def begin(log, name="s"):
    await log.append(name, drafts(Opened("openai-chat", "balanced")), expected=0)


async def mark(log, key=KEY, after=None, name="s"):
    note = drafts(Note("marked"))
    return (await log.append(name, note, expected=None, mark=Mark(key, 0, after))).first


def bytes_of(path):
    return b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*"))


async def test_no_byte_of_a_forgotten_mark_is_left_in_a_file(tmp_path):
    path = tmp_path / "refold.db"
    async with SqliteStore(path) as store:
        log = store.log()
        await begin(log)
        await mark(log)
        await mark(log, OTHER)
        assert KEY in bytes_of(path)
        await log.forget("s", Span(2, 2))
        assert KEY not in bytes_of(path)
        assert OTHER in bytes_of(path)
        await log.fork("s", "t")
        assert await log.expire(2**50, only=["s"]) == ["s"]
        assert OTHER not in bytes_of(path)
        assert [entry.forgotten for entry in await log.read("t")] == [False, True, False]


async def test_a_file_from_before_marks_is_brought_up_to_date(tmp_path):
    path = tmp_path / "refold.db"
    async with SqliteStore(path, migrations=shipped()[:1]) as store:
        await begin(store.log())
    async with SqliteStore(path) as store:
        assert await mark(store.log(), after=0) == 2
        assert await store.log().marked([KEY]) == [Marked(KEY, "s", 2, 2, 0)]


async def rivals(stores):
    """Two stores over the same data race for each place after a mark; who lost is told where."""
    logs = [store.log() for store in stores]
    await begin(logs[0])
    newest = 0
    for _ in range(10):
        ends = await asyncio.gather(
            *(mark(log, after=newest) for log in logs), return_exceptions=True
        )
        [won] = [end for end in ends if isinstance(end, int)]
        [lost] = [end for end in ends if isinstance(end, MarkConflict)]
        assert (lost.expected, lost.found) == (newest, won)
        newest = won
    assert newest == await logs[0].head("s") == 11
    assert await logs[0].marked([KEY]) == await logs[1].marked([KEY])


async def test_rivals_for_a_file(tmp_path):
    path = tmp_path / "refold.db"
    async with SqliteStore(path) as one, SqliteStore(path) as other:
        await rivals([one, other])


async def test_rivals_on_a_server(postgres_address):
    from refold.stores.postgres import PostgresStore  # noqa: PLC0415 - if installed

    async with PostgresStore(postgres_address) as one, PostgresStore(postgres_address) as other:
        await rivals([one, other])


async def test_what_a_server_is_to_scrub(postgres, postgres_database, postgres_address):
    psycopg = pytest.importorskip("psycopg")
    from refold.stores.postgres import PostgresStore  # noqa: PLC0415 - if installed

    async def noted():
        address = postgres.address(postgres_database)
        async with await psycopg.AsyncConnection.connect(address) as owner:
            found = await owner.execute("SELECT part FROM refold.erasures")
            return [part for (part,) in await found.fetchall()].count("marks")

    async with PostgresStore(postgres_address) as store:
        log = store.log()
        await begin(log)
        await log.append("s", drafts(Note("without")), expected=1)
        await mark(log)
        await log.forget("s", Span(2, 2))
        assert await noted() == 0
        await log.forget("s", Span(3, 3))
        assert await noted() == 1
        await begin(log, "t")
        await mark(log, name="t")
        await log.fork("t", "fork")
        assert await log.expire(2**50, only=["t"]) == ["t"]
        assert (await noted(), await log.marked([KEY])) == (1, [])


async def test_marks_are_not_exported():
    async with MemoryStore() as store, MemoryStore() as another:
        await begin(store.log())
        await mark(store.log())
        await import_session(another.log(), export_session(store.log(), "s"))
        assert await another.log().head("s") == 2
        assert await another.log().marked([KEY]) == []
