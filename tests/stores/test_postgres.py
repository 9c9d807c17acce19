"""PostgreSQL under the store: a pool that runs out, a server that goes, writers that race."""

import asyncio
import subprocess
import sys
from itertools import count
from textwrap import dedent
from time import monotonic

import pytest
from plain_drafts import message_drafts, opened

from refold.errors import (
    Conflict,
    InvalidInput,
    SessionNotFound,
    StoreBusy,
    StoreClosed,
    StoreFailed,
    StoreFull,
    StoreNotFound,
    StoreReadOnly,
)
from refold.log import Author, Note, Span, Titled
from refold.stores import open_store
from refold.stores.postgres import Pool, PostgresStore, migrate
from refold.stores.postgres.connection import Address, execute, explained

SOON = 30.0
"""Seconds: far less than the times that the tests below set for what must not be waited for."""


@pytest.fixture
async def store(postgres_address):
    async with PostgresStore(postgres_address) as store:
        yield store


async def sleeping(tx):
    return await tx.all("SELECT pg_sleep(60)")


async def test_by_address(postgres_address):
    async with open_store(postgres_address) as store:
        await store.log().append("s", opened(), expected=0)
    async with open_store(postgres_address) as store:
        assert await store.log().head("s") == 1


async def test_an_exhausted_pool_refuses_soon(postgres_address):
    pool = Pool(min_size=1, max_size=1, queue=1, wait=0.3)
    async with PostgresStore(postgres_address, pool=pool) as store:
        log = store.log()
        await log.append("s", opened(), expected=0)
        busy = asyncio.create_task(store.read("default", sleeping))
        await asyncio.sleep(0.1)
        began = monotonic()
        waiting = asyncio.create_task(log.head("s"))
        await asyncio.sleep(0)
        with pytest.raises(StoreBusy, match="Too many wait"):
            await log.head("s")
        with pytest.raises(StoreBusy, match="No connection"):
            await waiting
        assert monotonic() - began < SOON
        busy.cancel()
        with pytest.raises(asyncio.CancelledError):
            await busy
        assert await log.head("s") == 1


async def test_a_statement_that_takes_too_long(postgres_address):
    async with PostgresStore(postgres_address, pool=Pool(max_size=1, statement=0.2)) as store:
        with pytest.raises(StoreBusy, match="longer than a statement may"):
            await store.read("default", sleeping)
        await store.log().append("s", opened(), expected=0)


async def test_a_server_that_does_not_answer(postgres_address, monkeypatch):
    """The limit of our own ends it, if the server's does not."""
    monkeypatch.setattr("refold.stores.postgres.connection._SLACK", -59.0)
    async with PostgresStore(postgres_address, pool=Pool(max_size=1, statement=60.0)) as store:
        with pytest.raises(StoreBusy, match="does not answer"):
            await store.read("default", sleeping)
        await store.log().append("s", opened(), expected=0)


async def test_without_prepared_statements(postgres_address):
    """As behind a pooler that gives each transaction another connection."""
    async with PostgresStore(postgres_address, pool=Pool(max_size=1, prepare=False)) as store:
        log = store.log()
        await log.append("s", opened(), expected=0)
        for at in range(1, 8):
            await log.append("s", message_drafts(), expected=at)
            await log.visible("s")
        prepared = "SELECT count(*) FROM pg_prepared_statements"
        assert await store.read("default", lambda tx: tx.all(prepared)) == [(0,)]


async def test_no_session_has_a_name_that_text_cannot_hold(store):
    for name in ("a\0b", "\ud800", "new\nline"):
        with pytest.raises(SessionNotFound):
            await store.log().head(name)
        with pytest.raises(InvalidInput):
            await store.log().append(name, opened(), expected=0)


async def test_a_restarted_server_is_found_again(postgres, store):
    log = store.log()
    await log.append("s", opened(), expected=0)
    await asyncio.gather(*(log.head("s") for _ in range(10)))  # so that several break
    for at, mode in enumerate(("immediate", "fast"), 1):
        await asyncio.to_thread(postgres.restart, mode)
        done = await log.append("s", message_drafts(), expected=at)
        assert (done.first, done.last, done.repeated) == (at + 1, at + 1, False)
        assert await log.head("s") == at + 1
    await asyncio.to_thread(postgres.restart)
    await log.fork("s", "t")
    assert await log.head("t") == 3


async def test_appends_go_on_through_a_restart(postgres, store):
    """Nothing acknowledged is lost, nothing is there twice, and no place is empty."""
    log = store.log()
    names = [f"s{at}" for at in range(4)]
    acknowledged = {name: [] for name in names}
    over = asyncio.Event()

    async def write(name):
        await log.append(name, opened(), expected=0)
        for at in count(2):
            drafts = message_drafts(f"{name} {at}") if at % 5 else [Author().draft(Titled(f"{at}"))]
            done = await log.append(name, drafts, expected=None)
            assert (done.first, done.last) == (at, at)
            acknowledged[name].append(drafts[0].id)
            if over.is_set():
                return

    writing = [asyncio.create_task(write(name)) for name in names]
    for _ in range(2):
        await asyncio.sleep(0.3)
        await asyncio.to_thread(postgres.restart)
    while min(map(len, acknowledged.values())) <= 2:
        assert not any(one.done() for one in writing)
        await asyncio.sleep(0.05)
    over.set()
    await asyncio.gather(*writing)
    for name in names:
        ids = [entry.id for entry in await log.read(name)]
        assert ids[1:] == acknowledged[name]


RACER = """
    import asyncio, sys
    from refold.log import Author, Note, Titled
    from refold.stores import open_store

    async def main(address, times):
        async with open_store(address) as store:
            log, author = store.log(), Author()
            for at in range(int(times)):
                value = Titled(f"{at}") if at % 3 == 0 else Note(f"{at}")
                await log.append("s", [author.draft(value)], expected=None)

    asyncio.run(main(*sys.argv[1:]))
"""


async def test_processes_race_on_one_session(postgres_address, store):
    await store.log().append("s", opened(), expected=0)
    command = [sys.executable, "-c", dedent(RACER), postgres_address, "20"]
    racing = [subprocess.Popen(command) for _ in range(2)]  # noqa: ASYNC220 - waited for below
    assert [await asyncio.to_thread(one.wait, 60) for one in racing] == [0, 0]
    entries = await store.log().read("s")
    assert [entry.seq for entry in entries] == list(range(1, 42))
    assert len({entry.id for entry in entries}) == 41


async def test_appends_anywhere_do_not_race_for_the_head(postgres_address, store, monkeypatch):
    """A store that knows nothing of the session yet looks about once for each."""
    await store.log().append("s", opened(), expected=0)
    async with PostgresStore(postgres_address) as cold:
        real, reads = cold.read, []

        def read(tenant, work):
            reads.append(tenant)
            return real(tenant, work)

        monkeypatch.setattr(cold, "read", read)
        drafts = [message_drafts() for _ in range(30)]
        appending = [cold.log().append("s", one, expected=None) for one in [*drafts, *drafts[:3]]]
        done = await asyncio.gather(*appending)
    assert sorted({one.first for one in done}) == list(range(2, 32))
    assert await store.log().head("s") == 31
    assert len(reads) <= 2 * len(done)


async def test_two_stores_know_of_each_other_by_what_they_are_refused(postgres_address, store):
    async with PostgresStore(postgres_address) as other:
        ours, theirs = store.log(), other.log()
        await ours.append("s", opened(), expected=0)
        await theirs.append("s", message_drafts(), expected=1)
        with pytest.raises(Conflict):
            await ours.append("s", message_drafts(), expected=1)
        title = [Author().draft(Titled("by them"))]
        await theirs.append("s", title, expected=2)
        await ours.append("s", message_drafts(), expected=None)
        assert (await ours.info("s")).title == "by them"
        await ours.append("s", [Author().draft(Note("a")), *message_drafts()], expected=4)
        await theirs.forget("s", Span(2, 2))
        await ours.append("s", message_drafts(), expected=6)
        assert (await theirs.append("s", title, expected=None)).repeated


async def test_entries_come_in_order_wherever_they_lie(postgres, postgres_database, store):
    log = store.log()
    await log.append("s", [*opened(), *(message_drafts()[0] for _ in range(8))], expected=0)
    postgres.execute("UPDATE refold.entries SET at = at WHERE seq < 5", postgres_database)
    postgres.execute("VACUUM FULL refold.entries", postgres_database)
    for span, seqs in ((None, range(1, 10)), (Span(3, 7), range(3, 8))):
        assert [entry.seq for entry in await log.read("s", span)] == list(seqs)
    assert [entry.seq for entry in (await log.visible("s")).entries] == list(range(1, 10))


async def test_a_store_that_is_not_open(postgres_address):
    store = PostgresStore(postgres_address)
    with pytest.raises(StoreClosed):
        await store.log().head("s")
    with pytest.raises(StoreClosed):
        await store.log().locks().take("s")


async def test_a_role_that_no_policy_holds_for_is_warned_of_once(
    postgres, postgres_database, postgres_address, caplog
):
    """A superuser, and who may pass over row-level security."""
    postgres.execute("CREATE ROLE refold_over LOGIN BYPASSRLS")
    try:
        owner = postgres.address(postgres_database)
        await migrate(owner, roles=["refold_over"])
        over = postgres.address(postgres_database, user="refold_over")
        for address, warnings in ((postgres_address, 0), (over, 1), (owner, 1)):
            async with PostgresStore(address):
                assert len(caplog.records) == warnings
        assert "may do everything" in caplog.text
        assert "refold_over" not in caplog.text
    finally:
        postgres.drop(postgres_database)
        postgres.execute("DROP ROLE refold_over")


async def test_wrong_addresses_say_what_is_wrong(postgres):
    wrong = postgres.address("no_such_database")
    made = f"createdb -h 127.0.0.1 -p {postgres.port} -E UTF8 -T template0 no_such_database"
    for refused in (PostgresStore(wrong).open, lambda: migrate(wrong)):
        with pytest.raises(StoreNotFound) as missing:
            await refused()
        assert f"`{made}`" in missing.value.fix
    assert Address("host=h dbname='a b' password=x").createdb.endswith("template0 'a b'")
    assert Address("").createdb == "createdb -E UTF8 -T template0"
    nobody = "postgresql://me:hunter2@127.0.0.1:1/refold"
    with pytest.raises(StoreFailed) as refused:
        await PostgresStore(nobody).open()
    with pytest.raises(InvalidInput) as unread:
        PostgresStore("postgresql://me:hunter2@host:port:/x?nonsense=hunter2")
    for error in (refused.value, unread.value):
        assert "hunter2" not in f"{error}{error.__cause__}"
    with pytest.raises(InvalidInput):
        Pool(min_size=3, max_size=2)


@pytest.mark.parametrize(
    ("code", "kind"), [("53100", StoreFull), ("25006", StoreReadOnly), ("53300", StoreBusy)]
)
async def test_the_servers_errors_in_our_words(store, code, kind):
    raised = f"DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{code}'; END $$"
    with pytest.raises(kind):
        await store.read("default", lambda tx: tx.run(raised))
    assert isinstance(explained(Address("postgresql:///x"), ValueError()), StoreFailed)


async def test_it_goes_on_when_others_are_in_the_way(store):
    """A deadlock's victim tries again."""
    log = store.log()
    for name in "ab":
        await log.append(name, opened(), expected=0)
    both = asyncio.Barrier(2)
    tries = []

    def locking(first, second):
        async def work(tx):
            tries.append(first)
            await tx.run(LOCK, (tx.tenant, first))
            if tries.count(first) == 1:
                await both.wait()
            return await tx.run(LOCK, (tx.tenant, second))

        return work

    done = await asyncio.gather(
        store.write("default", locking("a", "b")), store.write("default", locking("b", "a"))
    )
    assert done == [1, 1]
    assert len(tries) > 2


LOCK = "SELECT 1 FROM refold.sessions WHERE tenant = $1 AND session = $2 FOR UPDATE"


async def test_read_only(postgres, postgres_database, store):
    await store.log().append("s", opened(), expected=0)
    role = f'ALTER DATABASE "{postgres_database}" SET default_transaction_read_only = on'
    postgres.execute(role)
    address = postgres.address(postgres_database, user="refold_app")
    async with PostgresStore(address) as reading:
        assert await reading.log().head("s") == 1
        with pytest.raises(StoreReadOnly):
            await reading.log().append("s", message_drafts(), expected=1)
        assert await reading._connections.run(lambda one: execute(one, "SELECT 1"))
