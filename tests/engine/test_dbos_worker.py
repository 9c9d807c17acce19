"""Workers: what they take, how many at once, and what becomes of what they leave."""

# pyright: reportOptionalMemberAccess=false, reportOptionalSubscript=false
# pyright: reportOptionalIterable=false
# None fails a test just as well.

# ruff: noqa: F811, F401 - fixtures are imported

import asyncio
from uuid import uuid4

import pytest

pytest.importorskip("dbos", reason="the extra `dbos` is not installed")

from dbos_servers import dbos, dbos_address
from dbos_working import (
    LONG,
    Busy,
    asking,
    has_ended,
    job,
    link,
    made,
    status,
    store,
    until,
    working,
)
from engines import begin, values

from refold.engine.dbos import Bound, Bounds, Limits
from refold.engine.dbos.database import queue_of
from refold.engine.dbos.queue import LOCK
from refold.errors import InvalidInput
from refold.fold.job import Job
from refold.log import FoldCompleted, FoldFailed, FoldStarted, Span
from refold.testing.engine import Maker


async def test_a_tenant_and_a_model_have_their_limits(dbos_address, store):
    """And a model that is not named in advance has a queue, too."""
    bound = Bound(3, 2)
    limits = Limits(Bounds(bound, bound), polling=0.02)
    busy = Busy(together=2)
    logs = {name: store.log(name) for name in ("a", "b")}
    async with working(dbos_address, store, busy, limits=limits):
        for name, log in logs.items():
            async with asking(dbos_address, log, limits=limits) as engine:
                jobs = [job(f"{name}{at}", model="some:model") for at in range(6)]
                for one in jobs:
                    await begin(log, one.session)
                    assert await engine.start(one)
        for name, log in logs.items():
            for at in range(6):
                await until(lambda log=log, name=name, at=at: has_ended(log, f"{name}{at}"))
    assert busy.most["a"] <= 2
    assert busy.most["b"] <= 2
    assert 2 <= busy.most["all"] <= 3


async def test_who_waits_is_not_behind_what_nobody_waits_for(dbos_address, store, link):
    one = Bound(1)
    limits = Limits(log=Bounds(one, one), polling=0.02)
    log, maker = store.log(), Maker(held=True)
    names = ["long", "queued", "asked"]
    for name in names:
        await begin(log, name)
    long, queued, asked = job("long"), job("queued"), job("asked", trigger="manual")
    async with (
        asking(dbos_address, log, limits=limits) as engine,
        working(dbos_address, store, maker, limits=limits),
    ):
        await engine.start(long)
        await maker.called()
        await engine.start(queued)
        await engine.start(asked)
        await until(lambda: made(maker, 2))
        assert [one.fold for one in maker.jobs] == [long.fold, asked.fold]
        assert (await status(link, log, queued))[0] == "ENQUEUED"
        maker.let_go()
        for one in (long, queued, asked):
            assert (await engine.wait(one.session, one.fold, LONG)).completed


async def test_what_somebody_begins_to_wait_for_changes_the_lane(dbos_address, store, link):
    log, one = store.log(), job()
    await begin(log)
    async with asking(dbos_address, log) as engine:
        assert await engine.start(one)
        assert (await status(link, log, one))[2] == queue_of("default", "background", "")
        assert await engine.wait("s", one.fold, 0.3) is None
        assert (await status(link, log, one))[2] == queue_of("default", "waiting", "")
        async with working(dbos_address, store, Maker()):
            assert (await engine.wait("s", one.fold, LONG)).completed


async def test_a_worker_of_another_version_does_not_take_it(dbos_address, store, link):
    log, one = store.log(), job()
    await begin(log)
    async with asking(dbos_address, log) as engine:
        async with working(dbos_address, store, Maker(), version="refold-fold-0"):
            assert await engine.start(one)
            assert await engine.wait("s", one.fold, 0.5) is None
        assert (await status(link, log, one))[0] == "ENQUEUED"
        async with working(dbos_address, store, Maker()):
            assert (await engine.wait("s", one.fold, LONG)).completed


async def test_who_stops_gives_to_others_what_he_has_not_made(dbos_address, store, link):
    log, one, held = store.log(), job(), Maker(held=True)
    await begin(log)
    async with asking(dbos_address, log) as engine:
        async with working(dbos_address, store, held, patience=0.1):
            await engine.start(one)
            await held.called()
        assert held.cancelled == 1
        assert (await status(link, log, one))[:2] == ("ENQUEUED", 0)
        assert await values(log) == [one.started()]
        async with working(dbos_address, store, Maker()):
            assert (await engine.wait("s", one.fold, LONG)).completed


async def test_who_stops_waits_for_what_he_makes(dbos_address, store):
    log, one, busy = store.log(), job(), Busy()
    await begin(log)
    async with asking(dbos_address, log) as engine:
        async with working(dbos_address, store, busy, patience=30.0):
            await engine.start(one)
            await until(lambda: made(busy, 1, "order"))
        assert (await engine.wait("s", one.fold, 0.0)).completed


async def test_no_word_is_in_the_engines_tables(dbos_address, store, link):
    log = store.log()
    await begin(log)
    one = Job("s", uuid4(), (Span(2, 4),), "zebras", "zebras", {"todo": "zebras"})
    other = Job("s", uuid4(), (Span(2, 4),), "soft")
    async with asking(dbos_address, log) as engine:
        async with working(dbos_address, store, Maker(summary="zebras")):
            await engine.start(one)
            assert (await engine.wait("s", one.fold, LONG)).completed
        async with working(dbos_address, store, Maker(error=ValueError("zebras"))):
            await engine.start(other)
            assert not (await engine.wait("s", other.fold, LONG)).completed
    tables = await link.run(
        "SELECT schemaname || '.' || tablename FROM pg_tables"
        " WHERE schemaname IN ('refold_dbos', 'refold_engine')"
    )
    assert len(tables) > 7
    for (table,) in tables:
        rows = await link.run(f"SELECT t::text FROM {table} AS t")  # noqa: S608 - our own
        assert not any("zebras" in row for (row,) in rows), table


async def test_a_make_cannot_end_the_worker(dbos_address, store):
    log, one, other = store.log(), job("s"), job("t")
    for name in ("s", "t"):
        await begin(log, name)

    async def make(job, steps):  # noqa: ARG001 - it is a `make`
        if job.session == "s":
            raise KeyboardInterrupt
        return "made"

    async with working(dbos_address, store, make), asking(dbos_address, log) as engine:
        await engine.start(one)
        ended = await engine.wait("s", one.fold, LONG)
        await engine.start(other)
        assert (await engine.wait("t", other.fold, LONG)).completed
    assert ended.reason == "RuntimeError: it would end the worker: KeyboardInterrupt"


async def test_one_worker_in_a_process(dbos_address, store):
    async with working(dbos_address, store, Maker(), executor="me"):
        with pytest.raises(InvalidInput, match="process of its own"):
            async with working(dbos_address, store, Maker()):
                pass


async def test_one_worker_of_an_id(dbos_address, store, link):
    key = LOCK.format(executor="'me'::text")
    await link.run(f"SELECT pg_advisory_lock({key})")
    with pytest.raises(InvalidInput, match="executor id 'me'"):
        async with working(dbos_address, store, Maker(), executor="me"):
            pass
    async with working(dbos_address, store, Maker(), executor="you"):
        pass


async def test_where_an_end_is_written_twice_the_first_stands(dbos_address, store):
    log, one, maker = store.log(), job(), Maker(held=True)
    await begin(log)
    async with asking(dbos_address, log) as engine, working(dbos_address, store, maker):
        await engine.start(one)
        await maker.called()
        ended = await engine.cancel("s", one.fold)
        assert maker.cancelled == 1
        kinds = [type(value) for value in await values(log)]
    assert ended.reason == "cancelled"
    assert kinds == [FoldStarted, FoldFailed]
    assert FoldCompleted not in kinds
