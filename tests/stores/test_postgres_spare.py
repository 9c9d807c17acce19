"""Connections go from call to call, and now and then through the pool."""

import asyncio

import psycopg
import pytest

from refold.errors import StoreClosed
from refold.log import Author, Message, Opened
from refold.stores.postgres import Pool, PostgresStore, migrate, pool
from refold.stores.postgres.connection import execute

SOON = 30.0
AUTHOR = Author()


def opened():
    return [AUTHOR.draft(Opened("openai-chat", "balanced"))]


def message_drafts():
    return [AUTHOR.draft(Message(b'{"role":"user","content":"hello"}'))]


def fixed_pool(connections):
    return Pool(min_size=connections, max_size=connections, wait=SOON)


async def test_a_connection_is_handed_on_without_the_pool(postgres_address, monkeypatch):
    monkeypatch.setattr(pool, "_REST", 600.0)
    async with PostgresStore(postgres_address, pool=fixed_pool(1)) as store:
        log = store.log()
        await log.append("s", opened(), expected=0)
        async with store._connections._pool._lock, asyncio.timeout(SOON):
            calls = [log.append("s", message_drafts(), expected=None) for _ in range(8)]
            done = await asyncio.gather(*calls)
        assert sorted(one.first for one in done) == list(range(2, 10))


async def test_who_has_waited_longest_comes_first(postgres_address):
    order = []
    async with PostgresStore(postgres_address, pool=fixed_pool(1)) as store:

        async def work(connection, nth):
            await execute(connection, "SELECT 1")
            order.append(nth)

        run = store._connections.run
        await asyncio.gather(*(run(lambda it, nth=nth: work(it, nth)) for nth in range(6)))
    assert order == list(range(6))


async def test_the_pool_sees_its_connections_again(postgres_address, monkeypatch):
    """Also those that are never idle: it would not end the old ones otherwise."""
    monkeypatch.setattr(pool, "_REST", 0.05)
    async with PostgresStore(postgres_address, pool=fixed_pool(2)) as store:
        inner, seen = store._connections._pool, []
        put = inner.putconn

        async def noted(connection):
            seen.append(connection)
            await put(connection)

        async def work(connection):
            await execute(connection, "SELECT 1")

        async def talk():
            while len(set(seen)) < 2:
                await store._connections.run(work)

        async with asyncio.timeout(SOON):
            await asyncio.gather(*(store._connections.run(work) for _ in range(8)))
            monkeypatch.setattr(inner, "putconn", noted)
            await asyncio.gather(*(talk() for _ in range(6)))
            while inner.get_stats()["pool_available"] < 2:  # noqa: ASYNC110 - it counts
                await asyncio.sleep(0.01)
        assert store.stats()["pool_available"] == 2


async def test_a_server_that_lets_in_fewer_than_the_pool_wants(
    postgres, postgres_database, monkeypatch
):
    monkeypatch.setattr(pool, "_REST", 600.0)
    name = "refold_few"
    postgres.execute(f"CREATE ROLE {name} LOGIN CONNECTION LIMIT 3")
    owner = postgres.address(postgres_database)
    try:
        await migrate(owner, roles=[name])
        address = postgres.address(postgres_database, user=name)
        async with PostgresStore(address, pool=Pool(max_size=8, wait=SOON)) as store:
            log = store.log()
            await log.append("s", opened(), expected=0)
            async with asyncio.timeout(SOON):
                calls = [log.append("s", message_drafts(), expected=None) for _ in range(60)]
                await asyncio.gather(*calls)
            assert await log.head("s") == 61
    finally:
        postgres.drop(postgres_database)
        with psycopg.connect(postgres.address(), autocommit=True) as db:
            db.execute(f"DROP ROLE {name}")


async def test_who_waits_while_the_store_closes_is_told(postgres_address):
    store = PostgresStore(postgres_address, pool=fixed_pool(1))
    await store.open()
    began, done = asyncio.Event(), asyncio.Event()

    async def hold(tx):
        await tx.all("SELECT 1")
        began.set()
        await done.wait()

    first = asyncio.create_task(store.read("default", hold))
    await asyncio.wait_for(began.wait(), SOON)
    second = asyncio.create_task(store.read("default", hold))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await store.close()
    with pytest.raises(StoreClosed):
        await second
    done.set()
    await first
    async with store:
        assert await store.read("default", lambda tx: tx.all("SELECT 1")) == [(1,)]


async def test_waiting_for_a_connection_counts(postgres_address):
    async with PostgresStore(postgres_address, pool=fixed_pool(1)) as store:
        seen = []

        async def look(tx):
            await tx.all("SELECT 1")
            seen.append((store.stats()["requests_waiting"], store.stats()["pool_available"]))

        await asyncio.gather(*(store.read("default", look) for _ in range(3)))
        assert seen == [(2, 0), (1, 0), (0, 0)]
        assert store.stats()["pool_available"] == 1


@pytest.mark.parametrize("prepare", [True, False])
async def test_what_was_prepared_may_be_gone(postgres_address, prepare):
    """As the driver sees to when a transaction is rolled back, or a pooler at any time."""
    settings = Pool(min_size=1, max_size=1, prepare=prepare)
    async with PostgresStore(postgres_address, pool=settings) as store:
        log, run = store.log(), store._connections.run
        await log.append("s", opened(), expected=0)
        for head in (1, 2, 3):
            await log.append("s", message_drafts(), expected=head)
            await run(lambda it: execute(it, "DEALLOCATE ALL"))
        assert (await log.append("s", message_drafts(), expected=4)).first == 5


async def test_what_was_prepared_by_a_call_that_did_not_live_to_note_it(postgres_address):
    async with PostgresStore(postgres_address, pool=fixed_pool(1)) as store:
        log = store.log()
        await log.append("s", opened(), expected=0)
        await log.append("s", message_drafts(), expected=1)
        store._packed._prepared.clear()
        assert (await log.append("s", message_drafts(), expected=2)).first == 3
