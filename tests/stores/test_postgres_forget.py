"""Forgetting in the PostgreSQL store: while others write, and until no byte is left."""

import asyncio
import json
from contextlib import suppress
from random import Random
from uuid import uuid4

import psycopg
import pytest
from needed import need_postgres

from refold.errors import Conflict, ErasureUnfinished, SessionExists, SessionForgotten
from refold.log import (
    Artifact,
    FoldCompleted,
    FoldStarted,
    Message,
    Note,
    Opened,
    Requested,
    Span,
)
from refold.log.artifact import INLINE_LIMIT
from refold.stores.postgres import PostgresStore
from refold.stores.postgres.maintenance import scrub
from refold.stores.postgres.migrate import migrate
from refold.testing.postgres import Cluster
from refold.testing.strategies import author

SECRET = "xylographer"  # noqa: S105 - a word to look for
LONG = "".join(Random(5).choices("bcdfghjklmnpqrstvwxz", k=3_000))  # noqa: S311 - no pattern to pack


@pytest.fixture
async def store(postgres_address):
    async with PostgresStore(postgres_address) as opened:
        yield opened


@pytest.fixture
async def another(postgres_address):
    """The same store, as another process has it open."""
    async with PostgresStore(postgres_address) as opened:
        yield opened


def say(text):
    return Message(json.dumps({"role": "user", "content": text}).encode())


async def begin(log, name, *values):
    makes = author(seed=hash(name))
    drafts = [makes.draft(value) for value in (Opened("f", "p", f"title of {name}"), *values)]
    await log.append(name, drafts, expected=0)
    return makes


async def test_many_entries_take_few_statements(store, monkeypatch):
    log = store.log()
    await begin(log, "s", *(say(f"message {at}") for at in range(3_000)))
    await log.search("message 77")
    statements = []
    execute = psycopg.AsyncRawCursor.execute

    async def counted(cursor, query, *arguments, **options):
        statements.append(query)
        return await execute(cursor, query, *arguments, **options)

    monkeypatch.setattr(psycopg.AsyncRawCursor, "execute", counted)
    assert (await log.forget("s", Span(2, 2_501))).entries == 2_500
    assert len(statements) < 45
    statements.clear()
    assert (await log.forget("s")).entries == 501
    assert len(statements) < 45


async def test_an_append_decided_before_a_forget_is_decided_again(store, another):
    log, other = store.log(), another.log()
    makes = await begin(log, "s", say("one"), say("two"))
    fold = uuid4()
    folding = [FoldStarted(fold, (Span(2, 3),), "manual"), FoldCompleted(fold, (Span(2, 3),), "x")]
    await log.append("s", [makes.draft(value) for value in folding], expected=3)
    await other.forget("s", Span(3, 3))
    await log.append("s", [makes.draft(Requested((Span(2, 2),), [], "m", "d"))], expected=5)
    assert (await log.visible("s")).outline.folds == ()
    await other.forget("s")
    with pytest.raises(SessionForgotten):
        await log.append("s", [makes.draft(say("late"))], expected=None)
    await begin(log, "t")
    await other.fork("t", "fork")
    assert await other.expire(2**50, only=["t"]) == ["t"]
    with pytest.raises(SessionForgotten):
        await log.append("t", [makes.draft(say("late"))], expected=1)
    assert len(await log.read("fork")) == 1


async def test_forgetting_goes_on_beside_everything_else(  # noqa: C901 - four at once
    store, another, owner
):
    """Appends, forks, searches and forgets at once: whatever wins, all is as if one by one."""
    log, other = store.log(), another.log()
    makes = await begin(log, "s", *(say(f"{SECRET} {at}") for at in range(5)))
    rivals = author(seed=99)

    async def appending():
        for at in range(40):
            await log.append("s", [makes.draft(say(f"{SECRET} later {at}"))], expected=None)

    async def forking():
        for at in range(10):
            await other.fork("s", f"fork {at}")
            drafts = [rivals.draft(say(f"{SECRET} in fork {at}"))]
            await other.append(f"fork {at}", drafts, expected=None)

    async def forgetting():
        for at in range(10):
            head = await log.head("s")
            await (log, other)[at % 2].forget("s", Span(max(1, head - 7), head))

    async def searching():
        for _ in range(10):
            for hit in await other.search(SECRET, limit=100):
                assert not hit.entry.forgotten

    await asyncio.wait_for(
        asyncio.gather(appending(), forking(), forgetting(), searching()), timeout=60
    )
    await log.forget("s", Span(1, await log.head("s")))
    for name in ("s", *(f"fork {at}" for at in range(10))):
        entries = await log.read(name)
        assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
        shared = (await log.info(name)).forked_at or len(entries)
        assert all(entry.forgotten for entry in entries[:shared])
        assert [entry.forgotten for entry in entries[shared:]] == [False] * (len(entries) - shared)
    found = {hit.session for hit in await log.search(SECRET, limit=100)}
    assert found == {f"fork {at}" for at in range(10)}
    lines = await (
        await owner.execute("SELECT count(*) FROM refold.words WHERE line LIKE 'xyl%'")
    ).fetchone()
    assert lines == (10,)


async def test_of_a_fork_and_an_append_for_one_name_one_wins(store, another):
    log, other = store.log(), another.log()
    makes = await begin(log, "s", say("one"))

    async def won(call):
        with suppress(SessionExists, Conflict):
            await call
            return True

    for at in range(10):
        name, opening = f"new {at}", [makes.draft(Opened("f", "p"))]
        winners = await asyncio.gather(
            won(log.fork("s", name)),
            won(other.append(name, opening, expected=0)),
        )
        assert winners.count(True) == 1
        assert len(await log.read(name)) in {1, 2}


async def test_sessions_expire_beside_their_forks(store, another):
    log, other = store.log(), another.log()
    for at in range(8):
        await begin(log, f"old {at}", say(SECRET))
    before = (await log.info("old 7")).updated_at + 1
    gone, forked = await asyncio.gather(
        log.expire(before),
        asyncio.gather(
            *(other.fork(f"old {at}", f"young {at}") for at in range(8)), return_exceptions=True
        ),
    )
    assert gone == [f"old {at}" for at in range(8)]
    for at, fork in enumerate(forked):
        if isinstance(fork, SessionForgotten):
            continue
        assert [entry.forgotten for entry in await log.read(f"young {at}")] == [False, False]
    living = [fork for fork in forked if not isinstance(fork, SessionForgotten)]
    assert len(await log.search(SECRET)) == len(living)


async def test_folds_that_are_forgotten_are_told(store, owner):
    await owner.execute("CREATE TABLE refold.told (whose text, fold uuid)")
    await owner.execute(
        "CREATE OR REPLACE FUNCTION refold.forget_folds(whose text, folds uuid[]) RETURNS void"
        " LANGUAGE sql SECURITY DEFINER"
        " AS $$ INSERT INTO refold.told SELECT whose, unnest(folds) $$"
    )
    log = store.log("a tenant")
    makes = await begin(log, "s", say("one"), say("two"))
    folds = [uuid4() for _ in range(3)]
    for at, fold in enumerate(folds):
        draft = makes.draft(FoldStarted(fold, (Span(2 + at % 2, 3),), "manual"))._replace(id=fold)
        await log.append("s", [draft], expected=None)
        ended = FoldCompleted(fold, (Span(2 + at % 2, 3),), "summary")
        if at == 0:
            await log.append("s", [makes.draft(ended)], expected=None)
    await log.forget("s", Span(4, 4))
    reported = await (await owner.execute("TABLE refold.told")).fetchall()
    assert reported == [("a tenant", folds[0])]
    await log.forget("s")
    reported = await (await owner.execute("TABLE refold.told")).fetchall()
    assert {fold for _, fold in reported} == set(folds)


@pytest.fixture(scope="module")
def own_cluster():
    """A server whose log is removed, not used again."""
    need_postgres()
    with Cluster(settings={"wal_recycle": "off", "autovacuum": "off"}) as cluster:
        yield cluster


@pytest.fixture
async def scrubbed(own_cluster):
    """A database of that server, a store on it, and the owner's connection."""
    name = f"scrubbed_{uuid4().hex}"
    address = own_cluster.database(name)
    await migrate(address, 4)
    async with (
        PostgresStore(address) as store,
        await psycopg.AsyncConnection.connect(address, autocommit=True) as connection,
    ):
        yield store, connection
    own_cluster.drop(name)


async def traces(cluster, connection, folder="base"):
    """Which spellings of what was forgotten lie in the server's files."""
    await connection.execute("CHECKPOINT")
    data = b"".join(
        file.read_bytes() for file in sorted((cluster.data / folder).rglob("*")) if file.is_file()
    )
    spellings = SECRET, LONG[:40], LONG[-40:], LONG[-64:-4]
    return [spelling for spelling in spellings if spelling.encode() in data]


async def a_life(log):
    """A session with the secret in every place there is, and a fork of it."""
    large = f"{SECRET} {LONG} " + "hay " * INLINE_LIMIT
    fold = uuid4()
    values = [
        say(f"the word is {SECRET}, then {LONG}"),
        say(large),
        Note(SECRET, {"deep": [SECRET]}),
        FoldStarted(fold, (Span(2, 3),), "manual", focus=SECRET),
        FoldCompleted(fold, (Span(2, 3),), {"text": f"said {SECRET} {LONG}"}),
        Requested((Span(2, 4),), [{"insert": SECRET}], "model", "digest", 1000),
    ]
    makes = await begin(log, SECRET[:3], *values)
    attached = [Artifact.of(f"{SECRET} {LONG}".encode(), f"text/{SECRET}")]
    draft = makes.draft(Note("see"), scope=f"/{SECRET}", artifacts=attached)
    await log.append(SECRET[:3], [draft], expected=None)
    for at in range(30):
        text = f"{SECRET} {at} {LONG if at % 2 else ''}"  # ANALYZE would take samples of short ones
        await log.append(SECRET[:3], [makes.draft(Note(text))], expected=None)
    await log.fork(SECRET[:3], "fork")
    assert len(await log.search(SECRET, limit=100)) > 30


async def test_a_scrub_leaves_no_byte(own_cluster, scrubbed):
    store, owner = scrubbed
    log = store.log()
    await a_life(log)
    makes = await begin(log, "stays", say("kept words"))
    await owner.execute("ANALYZE")
    assert len(await traces(own_cluster, owner)) == 4
    await log.forget(SECRET[:3], Span(1, await log.head(SECRET[:3])))
    assert await log.search(SECRET) == []
    assert SECRET in await traces(own_cluster, owner)  # so there is something to scrub
    done = await scrub(owner)
    assert "sessions" in done.rewritten
    assert done.checkpointed
    assert await traces(own_cluster, owner) == []
    await owner.execute("SELECT pg_switch_wal()")
    assert await traces(own_cluster, owner, "pg_wal") == []
    assert (await scrub(owner)).rewritten == ()
    await log.append("stays", [makes.draft(say("more kept words"))], expected=2)
    assert [hit.entry.seq for hit in await log.search("kept words")] == [3, 2]


async def test_a_scrub_reaches_what_was_removed_or_never_committed(own_cluster, scrubbed):
    store, owner = scrubbed
    log = store.log()
    await a_life(log)
    await owner.execute("BEGIN")  # words that somebody was adding when the power failed
    await owner.execute("UPDATE refold.words SET line = line || ' again'")
    await owner.execute("ROLLBACK")
    await log.expire(2**50)
    assert SECRET in await traces(own_cluster, owner)
    await scrub(owner)
    assert await traces(own_cluster, owner) == []


async def test_a_scrub_says_when_older_transactions_see_the_forgotten(own_cluster, scrubbed):
    store, owner = scrubbed
    log = store.log()
    await a_life(log)
    address = owner.info.dsn
    async with await psycopg.AsyncConnection.connect(address) as reader:
        await reader.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
        await reader.execute("SELECT 1 FROM refold.facts")
        await log.forget(SECRET[:3])
        with pytest.raises(ErasureUnfinished, match="words_"):
            await scrub(owner)
        await reader.rollback()
        await reader.execute("SELECT count(*) FROM refold.sessions")
        with pytest.raises(ErasureUnfinished, match=r"in sessions\."):
            await scrub(owner, wait=0.1)
    assert (await scrub(owner)).rewritten == ("sessions",)
    assert await traces(own_cluster, owner) == []


async def test_a_forget_during_a_scrub_is_left_to_the_next(own_cluster, scrubbed):
    store, owner = scrubbed
    log = store.log()
    await a_life(log)
    await log.forget(SECRET[:3])
    await owner.execute("UPDATE refold.erasures SET begun = true")  # as a scrub that died does
    await begin(log, "s", say("one"))
    await log.forget("s")
    found = await (await owner.execute("SELECT part, begun FROM refold.erasures")).fetchall()
    assert {("sessions", True), ("sessions", False)} <= set(found)
    await scrub(owner)
    assert await (await owner.execute("TABLE refold.erasures")).fetchall() == []
    assert await traces(own_cluster, owner) == []


async def test_forgets_share_their_notes(store, owner):
    log = store.log()
    await begin(log, "s", *(say(f"message {at}") for at in range(5)))
    for at in range(2, 7):
        await log.forget("s", Span(at, at))
    found = await (await owner.execute("SELECT part FROM refold.erasures")).fetchall()
    assert len(found) == len(set(found)) == 3


async def test_who_uses_a_store_can_only_add_notes(store, postgres_address):
    await begin(store.log(), "s", say("one"))
    await store.log().forget("s")
    async with await psycopg.AsyncConnection.connect(postgres_address, autocommit=True) as app:
        for statement in (
            "SELECT * FROM refold.erasures",
            "DELETE FROM refold.erasures",
            "SELECT refold.keep_no_samples()",
            "SELECT * FROM refold.words_0",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                await app.execute(statement)
