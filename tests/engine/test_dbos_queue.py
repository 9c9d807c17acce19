"""What is queued, who is delivered what, and what was handed over meanwhile."""

# pyright: reportOptionalMemberAccess=false, reportOptionalSubscript=false
# pyright: reportOptionalIterable=false
# None fails a test just as well.

# ruff: noqa: F811, F401 - fixtures are imported

import asyncio

import pytest

pytest.importorskip("dbos", reason="the extra `dbos` is not installed")

from dbos_servers import dbos, dbos_address
from dbos_working import (
    LONG,
    QUICK,
    asking,
    is_gone,
    job,
    link,
    status,
    store,
    true,
    until,
    working,
)
from engines import begin

from refold.engine.dbos import Bound, Bounds, Limits
from refold.engine.dbos import engine as engines
from refold.engine.dbos.database import POOL, VERSION, model_in, queue_of
from refold.engine.dbos.queue import FoldQueue
from refold.testing.engine import Maker


async def test_who_is_fenced_claims_nothing(dbos_address, store, link, monkeypatch):
    """And burns no attempt of what others could make."""
    log, one, maker = store.log(), job(), Maker()
    await begin(log)
    async with (
        working(dbos_address, store, maker) as worker,
        asking(dbos_address, log) as engine,
    ):
        with monkeypatch.context() as fenced:
            fenced.setattr(worker._lease, "is_sure", lambda: False)
            await engine.start(one)
            await until(lambda: true(worker._arriving))
            await asyncio.sleep(0.4)
            assert (await status(link, log, one))[1] == 0
            assert not maker.jobs
        assert (await engine.wait("s", one.fold, LONG)).completed
    assert len(maker.jobs) == 1


async def test_who_loses_the_lock_while_one_enters_does_not_make_it(
    dbos_address, store, monkeypatch
):
    log, one, maker = store.log(), job(), Maker(held=True)
    await begin(log)
    async with working(dbos_address, store, maker) as worker, asking(dbos_address, log) as engine:
        claim, sure, claims = worker._queue.claim, [False], []

        async def lose(*given):
            row = await claim(*given)
            claims.append(row)
            if len(claims) == 1:
                monkeypatch.setattr(worker._lease, "is_sure", lambda: sure[0])
            return row

        monkeypatch.setattr(worker._queue, "claim", lose)
        await engine.start(one)
        await until(lambda: true(claims))
        await asyncio.sleep(0.3)
        assert not maker.jobs
        sure[0] = True
        maker.let_go()
        assert (await engine.wait("s", one.fold, LONG)).completed
    assert len(maker.jobs) == 1
    assert {row.attempts for row in claims if row} == {1}, "that was no attempt that failed"


async def test_what_was_handed_over_meanwhile_is_not_made(dbos_address, store, monkeypatch):
    """Between DBOS, which delivered it, and the worker, who has not begun it yet."""
    log, one, maker = store.log(), job(), Maker()
    await begin(log)
    delivered, go, late = asyncio.Event(), asyncio.Event(), []
    async with working(dbos_address, store, maker) as worker, asking(dbos_address, log) as engine:
        claim = worker._queue.claim

        async def slow(workflow, executor):
            if not late:
                late.append(workflow)
                delivered.set()
                await go.wait()
            return await claim(workflow, executor)

        monkeypatch.setattr(worker._queue, "claim", slow)
        await engine.start(one)
        async with asyncio.timeout(LONG):
            await delivered.wait()
        row = await engine._find("s", one.fold)
        assert row is not None
        assert row.id == late[0]
        assert await engine._queue.requeue(row)
        assert not await engine._queue.requeue(row), "another was first"
        assert (await engine.wait("s", one.fold, LONG)).completed
        go.set()
        await until(lambda: _is_discarded(engine._queue, late[0]))
    assert len(maker.jobs) == 1


async def test_what_is_made_already_is_not_begun_again(dbos_address, store, link):
    log, one, maker = store.log(), job(), Maker(held=True)
    await begin(log)
    async with working(dbos_address, store, maker) as worker, asking(dbos_address, log) as engine:
        await engine.start(one)
        await maker.called()
        await engine._queue.requeue_all(worker.executor)  # as if others took it for dead
        await until(lambda: true(len(worker._making) == 2))
        maker.let_go()
        assert (await engine.wait("s", one.fold, LONG)).completed
        await until(lambda: is_gone(link, log, one))
        await until(lambda: true(not worker._making))
    assert len(maker.jobs) == 1


async def test_queues_that_engines_make_get_the_limits_of_the_workers(dbos_address, store, link):
    log = store.log()
    bound = Bound(2, 1)
    limits = Limits(Bounds(bound, bound), polling=0.02)
    for name in ("s", "t"):
        await begin(log, name)
    async with asking(dbos_address, log) as engine:
        await engine.start(job(model="one:model"))
        async with working(dbos_address, store, Maker(), limits=limits, sweep=0.05):
            assert await _limit(link, "one:model") == 2
            await engine.start(job("t", model="other:model"))
            await until(lambda: _is_limited(link, "other:model", 2))


class Panic(BaseException):
    """What native code raises when it breaks down."""


@pytest.mark.parametrize("error", [Panic("broken"), SystemExit(3)])
async def test_whatever_a_make_raises_is_an_end(dbos_address, store, error):
    log, one, calls = store.log(), job(), []
    await begin(log)

    async def make(job, steps):  # noqa: ARG001 - it is a `make`
        calls.append(job)
        raise error

    async with working(dbos_address, store, make), asking(dbos_address, log) as engine:
        await engine.start(one)
        ended = await engine.wait("s", one.fold, LONG)
    assert ended.reason is not None
    assert len(calls) == 1


def test_a_queue_names_its_model():
    assert model_in("default", queue_of("default", "waiting", "a/b")) == "a/b"
    assert model_in("default", queue_of("default", "background", "")) == ""
    assert model_in("default", queue_of("other", "background", "a")) is None


async def test_a_fold_is_put_into_its_queue_once(dbos_address, store, link):
    log, one = store.log('it\'s "mine"'), job('a "name"\\ of é')
    queue = FoldQueue(dbos_address, QUICK, POOL, VERSION)
    try:
        assert await queue.put(log.tenant, one, "background")
        assert not await queue.put(log.tenant, one, "background")
    finally:
        await queue.close()
    assert (await status(link, log, one))[:2] == ("ENQUEUED", 0)


async def test_more_are_put_at_once_than_there_are_connections(dbos_address, store, link):
    log, jobs = store.log(), [job(f"s{at}") for at in range(20)]
    queue = FoldQueue(dbos_address, QUICK, POOL, VERSION)
    try:
        put = await asyncio.gather(*(queue.put(log.tenant, one, "background") for one in jobs))
    finally:
        await queue.close()
    assert put == [True] * 20
    for one in jobs:
        assert (await status(link, log, one))[0] == "ENQUEUED"


async def test_a_call_that_was_canceled_leaves_no_connection_behind(dbos_address, link):
    queue = FoldQueue(dbos_address, QUICK, POOL, VERSION)

    async def running():
        return await link.run(
            "SELECT query FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = 'refold queue'"
        )

    async def is_closed():
        return not await running()

    asking = asyncio.create_task(queue._execute("SELECT pg_sleep(1)"))
    await until(running)
    asking.cancel()
    await asyncio.wait({asking})
    await queue.close()
    await until(is_closed)


async def test_who_waits_and_is_alone_is_told_once(dbos_address, store, monkeypatch, caplog):
    monkeypatch.setattr(engines, "_WARN_AFTER", 0.2)
    log, one = store.log(), job()
    await begin(log)
    async with asking(dbos_address, log) as engine:
        await engine.start(one)
        for _ in range(2):
            assert await engine.wait("s", one.fold, 1.0) is None
    told = [record.getMessage() for record in caplog.records if "worker" in record.getMessage()]
    assert len(told) == 1
    assert "refold worker" in told[0]


async def test_who_has_workers_is_told_nothing(dbos_address, store, monkeypatch, caplog):
    monkeypatch.setattr(engines, "_WARN_AFTER", 0.2)
    log, one, maker = store.log(), job(), Maker(held=True)
    await begin(log)
    async with working(dbos_address, store, maker), asking(dbos_address, log) as engine:
        await engine.start(one)
        assert await engine.wait("s", one.fold, 1.0) is None
        maker.let_go()
    assert not [record for record in caplog.records if "refold worker" in record.getMessage()]


async def _limit(link, model):
    name = queue_of("default", "background", model)
    rows = await link.run(
        "SELECT concurrency FROM refold_dbos.queues WHERE name = %(name)s", {"name": name}
    )
    return rows[0][0] if rows else None


async def _is_limited(link, model, most):
    return await _limit(link, model) == most


async def _is_discarded(queue, workflow):
    return not await queue._workflows(workflow_ids=[workflow], status=["PENDING", "SUCCESS"])
