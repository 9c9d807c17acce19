"""What the PostgreSQL store lists, and what it says when something is wrong."""

import asyncio
import json

import psycopg
import pytest
from psycopg.errors import InsufficientPrivilege

from refold.errors import InvalidInput, NotAStore, StoreFailed, StoreReadOnly
from refold.log import Message, Note, Opened
from refold.log.protocol import page_after
from refold.stores import MemoryStore
from refold.stores.postgres import PostgresStore, maintenance, migrate
from refold.stores.postgres import search as listing
from refold.stores.postgres.connection import Reading, explained
from refold.stores.postgres.maintenance import scrubbed
from refold.testing.strategies import TickingClock, author

WAITS = "SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'"


@pytest.fixture
async def store(postgres_address):
    async with PostgresStore(postgres_address, clock=TickingClock()) as opened:
        yield opened


async def sessions_of(log):
    """Sessions of two kinds of names; some hold a word."""
    makes = author(7, TickingClock())
    for nth in range(12):
        name = ("bill", "bill-", "order %", "Bill", "bil")[nth % 5] + f"{nth}"
        drafts = [makes.draft(Opened("f", "p"))]
        if nth % 3 == 0:
            drafts.append(makes.draft(Note("about a bill2 or bill7")))
        await log.append(name, drafts, expected=0)
    await log.fork("bill0", "a fork")


async def pages(log, search, limit):
    """All pages of a list."""
    shown, page = [], None
    while True:
        there = await log.sessions(search=search, limit=limit, page=page)
        shown.append([one.session for one in there.sessions])
        page = there.next
        if page is None:
            return shown


@pytest.mark.parametrize("few", [0, 3, 1_000])
async def test_sessions_are_found_by_words_and_by_names(store, monkeypatch, few):
    monkeypatch.setattr(listing, "_FEW", few)
    async with MemoryStore(clock=TickingClock()) as memory:
        for log in (store.log(), memory.log()):
            await sessions_of(log)
        for search in ("bill", "bill-", "bill2", "order %", "a", "", "B", "none", "\x00", "\ud800"):
            for limit in (1, 2, 50):
                ours, theirs = [await pages(one.log(), search, limit) for one in (store, memory)]
                assert ours == theirs, search


async def test_a_search_reads_only_the_sessions_it_shows(store, monkeypatch):
    log = store.log()
    await sessions_of(log)
    await log.sessions(search="bill7")
    read = []
    every = Reading.all

    async def all_(tx, sql, values=()):
        rows = await every(tx, sql, values)
        read.extend(row[0] for row in rows if len(row) > 3)
        return rows

    monkeypatch.setattr(Reading, "all", all_)
    for few in (0, 1_000):
        read.clear()
        monkeypatch.setattr(listing, "_FEW", few)
        shown = [one.session for one in (await log.sessions(search="order")).sessions]
        assert len(shown) == 2
        assert read == shown


@pytest.mark.parametrize("number", [-(2**70), -1, 2**70])
async def test_numbers_that_no_column_can_hold(store, number):
    log = store.log()
    await sessions_of(log)
    assert len(await log.search("bill7", limit=number)) == (4 if number > 0 else 0)
    assert len(await log.search("bill7", session="bill0", limit=number)) == (number > 0)
    found = await log.matches([(("bill7",),)], max_matches=number)
    assert len(found.matches) == (4 if number > 0 else 0)
    shown = await log.sessions(page=page_after(number, number))
    assert len(shown.sessions) == (13 if number > 0 else 0)
    assert len(await log.expire(number)) == (13 if number > 0 else 0)


@pytest.mark.parametrize("password", ["p@w", "p@w/x:1", "@", "a@b?c"])
async def test_no_piece_of_a_password_is_shown(password):
    """It should have been escaped, and is taken for a host otherwise."""
    with pytest.raises(InvalidInput, match="not one of PostgreSQL") as raised:
        PostgresStore(f"postgresql://u:{password}@127.0.0.1/db")
    assert "w/x" not in repr(raised.value)
    PostgresStore("postgresql://u:p%40w@127.0.0.1/db?application_name=a@b")
    PostgresStore("host=127.0.0.1 password=a@b@c")


async def test_a_database_set_to_read_only_takes_nothing(store, owner, postgres_address):
    await sessions_of(store.log())
    name = owner.info.dbname
    await owner.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on'.encode())
    async with PostgresStore(postgres_address) as later:
        log = later.log()
        for work in (
            log.forget("bill0"),
            log.fork("bill0", "new"),
            log.expire(2**60),
            log.append("bill0", [author().draft(Message(json.dumps("a").encode()))], expected=None),
        ):
            with pytest.raises(StoreReadOnly) as raised:
                await work
            assert "file" not in raised.value.fix
        assert len((await log.sessions()).sessions) == 13


async def test_what_only_the_owner_may_do(postgres_address):
    for work in (migrate(postgres_address, roles=["refold_app"]), scrubbed(postgres_address)):
        with pytest.raises(StoreFailed) as raised:
            await work
        assert "as the owner of the schema" in raised.value.fix


async def test_a_schema_that_another_program_made(postgres, postgres_database):
    address = postgres.database(f"{postgres_database}_other")
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as db:
        await db.execute("CREATE SCHEMA refold CREATE TABLE migrations (name text)")
    try:
        with pytest.raises(NotAStore):
            await PostgresStore(address).open()
        with pytest.raises(NotAStore):
            await migrate(address)
    finally:
        postgres.drop(f"{postgres_database}_other")


@pytest.mark.parametrize(
    ("error", "advice"),
    [(TimeoutError(), "whether the server runs"), (InsufficientPrivilege(), "as the owner")],
)
def test_errors_say_what_to_do(error, advice):
    assert advice in explained("there", error).fix


async def has_begun_to_wait(reader):
    """Return when somebody waits for a table of its own."""
    while True:
        if (await (await reader.execute(WAITS)).fetchone())[0]:
            return
        await asyncio.sleep(0.01)


async def test_others_go_on_while_a_scrub_waits_for_its_turn(store, owner, monkeypatch):
    monkeypatch.setattr(maintenance, "_TRY", 0.1)
    monkeypatch.setattr(maintenance, "_PAUSE", 0.1)
    log = store.log()
    await sessions_of(log)
    await log.forget("bill5")
    async with await psycopg.AsyncConnection.connect(owner.info.dsn) as reader:
        await reader.execute("LOCK TABLE refold.sessions IN ACCESS SHARE MODE")
        scrubbing = asyncio.create_task(maintenance.scrub(owner, wait=60))
        await has_begun_to_wait(reader)
        for _ in range(3):
            await asyncio.wait_for(log.info("bill0"), 10)
        assert not scrubbing.done()
    assert "sessions" in (await scrubbing).rewritten


async def test_appends_of_one_process_do_not_race_each_other(store, postgres_address, monkeypatch):
    """Several drafts at once need the head, so of those who race for it all but one lose."""
    makes = author(3, TickingClock())
    await store.log().append("s", [makes.draft(Opened("f", "p"))], expected=0)
    async with PostgresStore(postgres_address) as cold:
        lost = []
        monkeypatch.setattr(cold.measuring, "decided_again", lambda: lost.append(1))
        drafts = [[makes.draft(Note("a")), makes.draft(Note("b"))] for _ in range(20)]
        done = await asyncio.gather(*(cold.log().append("s", two, expected=None) for two in drafts))
    assert sorted(one.first for one in done) == list(range(2, 42, 2))
    assert lost == []
