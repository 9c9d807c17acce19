"""Connections that break: a commit whose answer is lost, a lock whose taker is gone."""

# pyright: reportOptionalMemberAccess=false, reportOptionalSubscript=false
# pyright: reportOptionalIterable=false
# None fails a test just as well.

import asyncio

import pytest
from plain_drafts import message_drafts, opened
from psycopg import AsyncConnection

from refold.errors import StoreBusy
from refold.stores.postgres import Pool, PostgresStore
from refold.stores.postgres.connection import Writing, execute

SOON = 30.0
"""Seconds: far less than the times that the tests below set for what must not be waited for."""
LOCK = "SELECT 1 FROM refold.sessions WHERE tenant = $1 AND session = $2 FOR UPDATE"
HELD = (
    "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = database"
    " WHERE locktype = 'advisory' AND granted AND datname = current_database()"
)


@pytest.fixture
async def store(postgres_address):
    async with PostgresStore(postgres_address) as store:
        yield store


@pytest.mark.parametrize("breaks", [0, 2])
async def test_a_commit_whose_answer_is_lost_is_not_done_twice(store, monkeypatch, breaks):
    """Also when the connections break that ask what came of it."""
    log = store.log()
    await log.append("s", [*opened(), *message_drafts()], expected=0)
    commit, done = AsyncConnection.wait, []

    async def lost(self, generator, *args, **kwargs):
        result = await commit(self, generator, *args, **kwargs)
        if done and done.pop():
            self.pgconn.finish()
            await self.execute("SELECT 1")
        return result

    monkeypatch.setattr(AsyncConnection, "wait", lost)

    async def forgetting(tx):
        row = await tx.run("UPDATE refold.sessions SET revision = revision + 1")
        numbered.append(row)
        return row

    committed, broken = store._committed, []

    async def break_and_look(connection, number):
        if len(broken) < breaks:
            broken.append(connection.pgconn.finish())
        return await committed(connection, number)

    monkeypatch.setattr(store, "_committed", break_and_look)
    numbered = []
    real = store._reach

    def reach(point):
        if point == "write.written" and len(numbered) == 1:
            done.extend([True, False])  # not what comes next, but the commit
        return real(point)

    monkeypatch.setattr(store, "_reach", reach)
    assert await store.write("default", forgetting) == 1
    found = await store.read("default", lambda tx: tx.all("SELECT revision FROM refold.sessions"))
    assert (found, numbered, len(broken)) == ([(1,)], [1], breaks)


async def test_a_commit_that_the_server_never_heard_of(postgres_address):
    """The server believes that its client is there, and goes on with the transaction."""
    async with PostgresStore(postgres_address, wait=0.3) as store:
        run = store._connections.run

        async def beside(connection):
            async with connection.transaction():
                found = await (
                    await execute(connection, "SELECT pg_current_xact_id()::text")
                ).fetchone()
                await run(lambda other: store._committed(other, *found))

        with pytest.raises(StoreBusy, match="not known"):
            await asyncio.wait_for(run(beside), SOON)


async def test_the_server_ends_a_transaction_whose_client_is_silent(postgres_address, monkeypatch):
    """What it holds is free for others; a client that was only slow does it again."""
    monkeypatch.setattr(Writing, "LIMITS", Writing.LIMITS.replace(b"15s", b"1s"))
    tries = []

    async def slow(tx):
        tries.append(await tx.run(LOCK, (tx.tenant, "s")))
        if len(tries) == 1:
            await done.wait()
        return await tx.run(LOCK, (tx.tenant, "s"))

    async with PostgresStore(postgres_address) as store, asyncio.timeout(SOON):
        done = asyncio.Event()
        await store.log().append("s", opened(), expected=0)
        writing = asyncio.create_task(store.write("default", slow))
        while not tries:  # noqa: ASYNC110 - it counts
            await asyncio.sleep(0.01)
        await store.log().append("s", message_drafts(), expected=1)
        done.set()
        assert (await writing, tries) == (1, [1, 1])


async def test_the_server_looks_whether_its_clients_are_there(store):
    async def settings(tx):
        return await tx.all(
            "SELECT current_setting(name) FROM unnest($1::text[]) AS name", (NAMES,)
        )

    assert await store.write("default", settings) == [("15s",), ("30",)]
    # Who reads holds up nobody, and may think for long.
    assert await store.read("default", settings) == [("0",), ("30",)]


NAMES = ["idle_in_transaction_session_timeout", "tcp_keepalives_idle"]


async def take_lock(locks, name="s"):
    """The lock, as soon as the server has heard that another has let go of it."""
    async with asyncio.timeout(SOON):
        while (held := await locks.take(name)) is None:  # noqa: ASYNC110 - it is in another store
            await asyncio.sleep(0.01)
        return held


async def test_locks_hold_between_stores(postgres_address, store):
    log = store.log()
    await log.append("s", opened(), expected=0)
    async with PostgresStore(postgres_address) as other:
        held = await log.locks().take("s")
        assert held
        assert await log.locks().take("s") is None
        assert await other.log().locks().take("s") is None
        assert await other.log().locks("turn").take("s")
        assert await other.log("else").locks().take("s")
        draft = message_drafts()[0]
        assert [await held.attempt(draft.id) for _ in range(2)] == [1, 2]
        held.release()
        held.release()
        again = await log.locks().take("s")
        assert again
        again.release()
        theirs = await take_lock(other.log().locks())
        assert await theirs.attempt(draft.id) == 3
    held = await take_lock(log.locks())  # a store that is closed holds nothing
    store.locking._connection.pgconn.finish()
    held.release()
    assert await take_lock(log.locks())


async def test_a_lock_that_nobody_waits_for_is_let_go(postgres_address, store, monkeypatch):
    """Its taker was canceled when the server had given it, and had not heard of it yet."""
    locks = store.log().locks("turn")
    (await locks.take("s")).release()
    wait, given = AsyncConnection.wait, asyncio.Event()

    async def late(self, generator, *args, **kwargs):
        result = await wait(self, generator, *args, **kwargs)
        if not given.is_set() and self is store.locking._connection and await locks_held() > 0:
            given.set()
            await asyncio.sleep(60)
        return result

    async def locks_held():
        [(number,)] = await store.read("default", lambda tx: tx.all(HELD))
        return number

    monkeypatch.setattr(AsyncConnection, "wait", late)
    taking = asyncio.create_task(locks.take("s"))
    await asyncio.wait_for(given.wait(), SOON)
    taking.cancel()
    await asyncio.wait([taking])
    assert taking.cancelled()
    async with PostgresStore(postgres_address) as other:
        theirs = await take_lock(other.log().locks("turn"))
        assert await locks.take("s") is None
        theirs.release()
    assert await take_lock(locks)


async def test_locks_are_taken_again_after_a_restart(postgres, store):
    locks = store.log().locks()
    held = await locks.take("s")
    await asyncio.to_thread(postgres.restart)
    assert await held.attempt(message_drafts()[0].id) == 1
    held.release()
    await asyncio.to_thread(postgres.restart, "fast")
    assert await locks.take("s")


async def test_canceled_calls_give_their_connections_back(postgres_address):
    """Also when they are canceled once more while they do, and others wait for a connection."""
    async with PostgresStore(postgres_address, pool=Pool(min_size=2, max_size=2)) as store:

        async def sleeping(tx):
            await tx.run("SELECT 1")
            began.append(tx)
            await asyncio.sleep(60)

        for turns in range(12):
            began: list[object] = []
            calls = [asyncio.create_task(store.write("default", sleeping)) for _ in range(4)]
            async with asyncio.timeout(SOON):
                while len(began) < 2:  # noqa: ASYNC110 - it counts
                    await asyncio.sleep(0.001)
            for call in calls:
                call.cancel()
            for _ in range(turns):
                await asyncio.sleep(0)
            for call in calls:
                call.cancel()
            await asyncio.wait(calls)
        async with asyncio.timeout(SOON):
            while store.stats()["pool_available"] < 2:  # noqa: ASYNC110 - it counts
                await asyncio.sleep(0.01)


async def test_a_call_that_is_canceled_as_it_fails_gives_its_connection_back(postgres_address):
    """Another waits for the connection, and the pool is busy."""
    async with PostgresStore(
        postgres_address, pool=Pool(min_size=1, max_size=1, wait=SOON)
    ) as store:
        began, done = asyncio.Event(), asyncio.Event()

        async def failing(tx):  # noqa: ARG001 - it is work
            began.set()
            await done.wait()
            raise ValueError("mine")

        first = asyncio.create_task(store.read("default", failing))
        await asyncio.wait_for(began.wait(), SOON)
        second = asyncio.create_task(store.read("default", lambda tx: tx.all("SELECT 1")))
        await asyncio.sleep(0.05)
        async with store._connections._pool._lock:
            done.set()
            await asyncio.sleep(0.05)
            first.cancel()
            await asyncio.wait([first])
        assert first.cancelled()
        assert await second == [(1,)]


async def test_a_call_that_is_canceled_as_its_connection_comes_ends_canceled(postgres_address):
    """In whichever moment: what waits for a connection may be done, and who waits not yet know."""
    async with PostgresStore(
        postgres_address, pool=Pool(min_size=1, max_size=1, wait=SOON)
    ) as store:
        for turns in range(12):
            began, done = asyncio.Event(), asyncio.Event()

            async def hold(tx, began=began, done=done):  # noqa: ARG001 - it is work
                began.set()
                await done.wait()

            first = asyncio.create_task(store.read("default", hold))
            await asyncio.wait_for(began.wait(), SOON)
            second = asyncio.create_task(store.log().head("s"))
            await asyncio.sleep(0.01)
            done.set()
            for _ in range(turns):
                await asyncio.sleep(0)
            accepted = second.cancel()
            await asyncio.wait([first, second])
            assert second.cancelled() == accepted
