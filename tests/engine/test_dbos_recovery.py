"""What was lost on the way is found: restarts, locks, queues, attempts."""

# pyright: reportOptionalMemberAccess=false, reportOptionalSubscript=false
# pyright: reportOptionalIterable=false
# None fails a test just as well.

# ruff: noqa: F811, F401 - fixtures are imported

import asyncio
import time

import pytest

pytest.importorskip("dbos", reason="the extra `dbos` is not installed")

from dbos_servers import dbos, dbos_address
from dbos_working import (
    LONG,
    QUICK,
    asking,
    claimed_by,
    has_ended,
    is_gone,
    job,
    link,
    lock_is_held,
    no_look,
    store,
    true,
    until,
    working,
)
from engines import begin, values

from refold.engine.dbos import recovery as leases
from refold.engine.dbos.database import POOL, VERSION
from refold.engine.dbos.metrics import FoldMetrics
from refold.engine.dbos.queue import LOCK, FoldQueue, WorkerState
from refold.engine.dbos.recovery import Sweeper, WorkerLease
from refold.log import Author, FoldFailed
from refold.testing.engine import Maker


async def test_a_fold_is_made_once_though_the_server_restarts(dbos, dbos_address, store):
    """All locks are free then; who sweeps takes nobody for dead before they may be taken again."""
    log, one, maker = store.log(), job(), Maker(held=True)
    await begin(log)
    queue = FoldQueue(dbos_address, QUICK, POOL, VERSION)
    sweeper = Sweeper(queue, FoldMetrics(), grace=5.0, every=0.05, on_sweep=no_look)
    async with asking(dbos_address, log, grace=5.0) as engine:
        async with working(dbos_address, store, maker, grace=5.0):
            await engine.start(one)
            await maker.called()
            sweeper.begin()
            await asyncio.to_thread(dbos.restart)
            await until(lambda: lock_is_held(dbos_address))
            await asyncio.sleep(0.5)
            maker.let_go()
            assert (await engine.wait("s", one.fold, LONG)).completed
        await sweeper.end()
        await queue.close()
    assert len(maker.jobs) == 1
    assert not maker.cancelled


async def test_a_worker_that_cannot_know_its_lock_makes_nothing(dbos_address, store, link):
    """And goes on by itself when it has it again."""
    log, one, maker = store.log(), job(), Maker(held=True)
    await begin(log)
    async with (
        asking(dbos_address, log, grace=2.0) as engine,
        working(dbos_address, store, maker, grace=2.0) as worker,
    ):
        await engine.start(one)
        await maker.called()
        key = LOCK.format(executor="%(executor)s::text")
        await link.run("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'")
        mine = {"executor": worker.executor}
        await link.run(f"SELECT pg_advisory_lock({key})", mine)
        await until(lambda: true(maker.cancelled))
        assert await values(log) == [one.started()], "it is not the end"
        maker.let_go()
        await asyncio.sleep(0.3)
        assert len(maker.jobs) == 1, "it makes nothing"
        await link.run(f"SELECT pg_advisory_unlock({key})", mine)
        assert (await engine.wait("s", one.fold, LONG)).completed
    assert len(maker.jobs) == 2


async def test_a_worker_that_stood_still_goes_on(dbos_address, store):
    """It did not know for a while that it held its lock, though it did."""
    log, one, maker = store.log(), job(), Maker(held=True)
    await begin(log)
    async with (
        asking(dbos_address, log, grace=2.0) as engine,
        working(dbos_address, store, maker, grace=2.0) as worker,
    ):
        await engine.start(one)
        await maker.called()
        while not maker.cancelled:
            worker._lease._confirmed -= 2.0  # as when the loop is blocked so long
            await asyncio.sleep(0.02)
        maker.let_go()
        assert (await engine.wait("s", one.fold, LONG)).completed
    assert len(maker.jobs) == 2


async def test_a_lease_that_was_not_known_is_known_again(dbos_address):
    """Whoever waits for that goes on by itself, and it was lost once."""
    lost = []
    lease = WorkerLease(
        dbos_address, "me", grace=4.0, lost=lambda: lost.append(None), stop=lambda _: None
    )
    await lease.begin()
    lease.keep()
    while not lost:
        lease._confirmed -= 4.0  # until it looks: a beat may have come first
        await asyncio.sleep(0.02)
    async with asyncio.timeout(LONG):
        await lease.wait_until_sure()
    await asyncio.sleep(0.6)
    await lease.end()
    assert len(lost) == 1


async def test_a_loop_that_was_blocked_for_a_while_loses_nothing(dbos_address):
    """Its connection was there all the time, and so was the lock."""
    lost = []
    lease = WorkerLease(
        dbos_address, "me", grace=4.0, lost=lambda: lost.append(None), stop=lambda _: None
    )
    await lease.begin()
    lease.keep()
    await asyncio.sleep(0.3)
    time.sleep(3.0)  # noqa: ASYNC251 - that is what is tested
    await asyncio.sleep(1.0)
    assert lease.is_sure()
    await lease.end()
    assert not lost


async def test_a_worker_that_hangs_and_stays_connected_is_dead(dbos_address, store, link):
    """It holds its lock as long as its connection is there, but its beat stands still."""
    log, jobs = store.log(), {name: job(name) for name in ("hangs", "beats")}
    for name in jobs:
        await begin(log, name)
        await link.run(
            f"SELECT pg_advisory_lock({LOCK.format(executor='%(name)s::text')})", {"name": name}
        )
        await link.run("INSERT INTO refold_engine.workers VALUES (%(name)s, 1)", {"name": name})

    async def has_ended_meanwhile():
        await link.run("UPDATE refold_engine.workers SET beat = beat + 1 WHERE executor = 'beats'")
        return await has_ended(log, "hangs")

    async with asking(dbos_address, log) as engine:
        for one in jobs.values():
            await engine.start(one)
        await claimed_by(link, "hangs")
        await link.run("UPDATE refold_engine.folds SET worker = session")
        async with working(dbos_address, store, Maker(), grace=1.0, sweep=0.1):
            await until(has_ended_meanwhile)
            assert not await has_ended(log, "beats")


def test_death_is_what_lasts_from_look_to_look(monkeypatch):
    """Looks may be rarer than the grace; one that comes much too late proves nothing."""
    now = [0.0]
    monkeypatch.setattr(leases, "monotonic", lambda: now[0])
    liveness = leases.Liveness(2.0, 3.0)
    gone, hangs = WorkerState("gone", 4, held=False), WorkerState("hangs", 7, held=True)

    def dead(at, *workers):
        now[0] = at
        return [worker.executor for worker in liveness.dead(workers)]

    assert dead(0.0, gone, hangs) == []
    assert dead(3.0, gone, hangs) == ["gone"]
    assert dead(6.0, gone, hangs) == ["gone", "hangs"]
    assert dead(9.0, gone._replace(beat=5), hangs._replace(beat=8)) == []
    assert dead(90.0, gone._replace(beat=5), hangs._replace(beat=8)) == [], "who slept knows little"
    assert dead(92.0, gone._replace(held=True), hangs._replace(beat=8)) == []


async def test_what_nobody_claims_is_queued_again(dbos_address, store, link, monkeypatch):
    """A connection broke between the queue and the worker, or DBOS's tables were lost."""
    monkeypatch.setattr("refold.engine.dbos.recovery.STRAY", 0.2)
    log, jobs = store.log(), [job(name) for name in ("delivered", "lost", "ended")]
    async with asking(dbos_address, log) as engine:
        for one in jobs:
            await begin(log, one.session)
            await engine.start(one)
        delivered, lost, ended = [await engine._find(one.session, one.fold) for one in jobs]
        for row, status in ((delivered, "PENDING"), (ended, "ERROR")):
            await link.run(
                "UPDATE refold_dbos.workflow_status SET status = %(status)s, executor_id = 'x',"
                " started_at_epoch_ms = 1 WHERE workflow_uuid = %(id)s",
                {"id": row.id, "status": status},
            )
        await engine._queue.discard([lost.id])
        async with working(dbos_address, store, Maker(), sweep=0.05):
            for one in jobs:
                await until(lambda one=one: has_ended(log, one.session))


async def test_the_folds_of_another_pool_are_left_alone(dbos_address, store, monkeypatch):
    """They wait for workers of their own, however long that takes."""
    monkeypatch.setattr("refold.engine.dbos.recovery.STRAY", 0.2)
    log, one, other = store.log(), job("s"), job("t")
    for name in ("s", "t"):
        await begin(log, name)
    async with (
        asking(dbos_address, log, pool="another") as another,
        asking(dbos_address, log) as engine,
    ):
        await another.start(one)
        before = await another._find("s", one.fold)
        async with working(dbos_address, store, Maker(), sweep=0.05):
            await asyncio.sleep(1.0)
            await engine.start(other)
            assert (await engine.wait("t", other.fold, LONG)).completed
        assert await another._find("s", one.fold) == before


async def test_a_workflow_without_a_fold_leaves_the_queue(dbos_address, store, link, monkeypatch):
    """It would count against the limits of its queue for ever."""
    monkeypatch.setattr("refold.engine.dbos.recovery.STRAY", 0.2)
    log, one = store.log(), job()
    await begin(log)
    async with asking(dbos_address, log) as engine:
        await engine.start(one)
        await claimed_by(link, "gone")
        await link.run("DELETE FROM refold_engine.folds")
        async with working(dbos_address, store, Maker(), sweep=0.05):
            await until(lambda: _is_empty(link))


async def _is_empty(link):
    return await link.run("SELECT count(*) FROM refold_dbos.workflow_status") == [(0,)]


async def test_what_dies_too_often_is_closed(dbos_address, store, link):
    log, one = store.log(), job()
    await begin(log)
    async with asking(dbos_address, log) as engine:
        await engine.start(one)
        await link.run("UPDATE refold_engine.folds SET attempts = 3")
        async with working(dbos_address, store, Maker(), sweep=0.05):
            await until(lambda: has_ended(log, "s"))
            await until(lambda: is_gone(link, log, one))
        ended = await engine.wait("s", one.fold, LONG)
    assert ended.reason == "interrupted too often"
    assert await values(log) == [one.started(), FoldFailed(one.fold, ended.reason)]


async def test_one_that_was_begun_and_never_queued_is_found(dbos_address, store):
    log, one = store.log(), job()
    await begin(log)
    draft = Author().draft(one.started())._replace(id=one.fold)
    await log.append("s", [draft], expected=None)
    async with asking(dbos_address, log) as engine, working(dbos_address, store, Maker()):
        (ended,) = await engine.recover("s")
    assert ended.completed


async def test_a_queue_that_was_lost_loses_no_fold(dbos, dbos_address, store):
    """DBOS's tables are not where a fold is remembered."""
    log, one = store.log(), job()
    await begin(log)
    async with asking(dbos_address, log) as engine:
        await engine.start(one)
        tables = "refold_dbos.workflow_status, refold_dbos.workflow_input"
        dbos.execute(f"TRUNCATE {tables} CASCADE", dbos_address.rpartition("/")[2])
        async with working(dbos_address, store, Maker()):
            assert [ended.fold for ended in await engine.recover("s")] == [one.fold]


async def test_what_has_ended_is_removed_after_a_while(dbos_address, store, link, monkeypatch):
    monkeypatch.setattr("refold.engine.dbos.recovery.RETENTION_SECONDS", 0.0)
    log, one = store.log(), job()
    await begin(log)
    async with asking(dbos_address, log) as engine:
        await engine.start(one)
        async with working(dbos_address, store, Maker(), sweep=0.1):
            assert await engine.wait("s", one.fold, LONG)
            await until(lambda: _is_empty(link))
        assert (await engine.wait("s", one.fold, LONG)).completed
        assert await engine.recover("s") == ()
