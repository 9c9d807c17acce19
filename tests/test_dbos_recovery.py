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
    asking,
    has_ended,
    has_status,
    is_gone,
    job,
    link,
    lock_is_held,
    no_close,
    no_look,
    status,
    store,
    true,
    until,
    working,
)
from engines import begin, values

from refold.engine.dbos.link import Link
from refold.engine.dbos.pulse import Pulse
from refold.engine.dbos.sweeping import Sweeper
from refold.engine.dbos.tables import LOCK, Tables
from refold.log import Author, FoldFailed
from refold.testing.engine import Maker


async def test_a_fold_is_made_once_though_the_server_restarts(dbos, dbos_address, store):
    """All locks are free then; who sweeps takes nobody for dead before they may be taken again."""
    log, one, maker = store.log(), job(), Maker(held=True)
    await begin(log)
    link = Link(dbos_address)
    sweeper = Sweeper(Tables(link), "other", grace=5.0, every=0.05, look=no_look, close=no_close)
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
        await link.close()
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
            worker._pulse._known -= 2.0  # as when the loop is blocked so long
            await asyncio.sleep(0.02)
        maker.let_go()
        assert (await engine.wait("s", one.fold, LONG)).completed
    assert len(maker.jobs) == 2


async def test_coming_back_may_take_long(dbos_address):
    """The lock is held meanwhile, and the worker knows that."""
    lost, back = [], []

    async def come_back():
        await asyncio.sleep(2.5)
        back.append(None)

    pulse = Pulse(
        dbos_address,
        "me",
        grace=4.0,
        lost=lambda: lost.append(None),
        back=come_back,
        stop=lambda _: None,
    )
    await pulse.begin()
    pulse.keep()
    while not lost:
        pulse._known -= 4.0  # until it looks: a beat may have come first
        await asyncio.sleep(0.02)
    await until(lambda: true(back))
    await asyncio.sleep(0.6)
    await pulse.end()
    assert (len(lost), len(back)) == (1, 1)


async def test_a_loop_that_was_blocked_for_a_while_loses_nothing(dbos_address):
    """Its connection was there all the time, and so was the lock."""
    lost = []
    pulse = Pulse(
        dbos_address,
        "me",
        grace=4.0,
        lost=lambda: lost.append(None),
        back=lambda: asyncio.sleep(0),
        stop=lambda _: None,
    )
    await pulse.begin()
    pulse.keep()
    await asyncio.sleep(0.3)
    time.sleep(3.0)  # noqa: ASYNC251 - that is what is tested
    await asyncio.sleep(1.0)
    assert pulse.is_sure()
    await pulse.end()
    assert not lost


async def test_a_worker_that_hangs_and_stays_connected_is_dead(dbos_address, store, link):
    """It holds its lock as long as its connection is there, but says nothing."""
    log, one = store.log(), job()
    await begin(log)
    hangs, speaks = (Link(dbos_address, f"refold worker {name}") for name in ("hangs", "speaks"))
    pid = await speaks.run("SELECT pg_backend_pid()")
    key = LOCK.format(executor="'hangs'::text")
    await hangs.run(f"SELECT pg_advisory_lock({key})")

    async def has_ended_meanwhile():
        assert await speaks.run("SELECT pg_backend_pid()") == pid
        return await has_ended(log, "s")

    async with asking(dbos_address, log) as engine:
        await engine.start(one)
        await link.run(
            "UPDATE refold_dbos.workflow_status SET status = 'PENDING',"
            " started_at_epoch_ms = 1, executor_id = 'hangs'"
        )
        async with working(dbos_address, store, Maker(), grace=1.0, sweep=0.1):
            await until(has_ended_meanwhile)
    for other in (hangs, speaks):
        await other.close()


async def test_what_was_lost_between_the_queue_and_the_worker_is_found(
    dbos_address, store, link, monkeypatch
):
    monkeypatch.setattr("refold.engine.dbos.worker._STRAY", 0.2)
    log, one = store.log(), job()
    await begin(log)
    async with asking(dbos_address, log) as engine:
        await engine.start(one)
        async with working(dbos_address, store, Maker(), pool="another", sweep=0.05) as worker:
            await link.run(
                "UPDATE refold_dbos.workflow_status SET status = 'PENDING',"
                " started_at_epoch_ms = 1, executor_id = %(mine)s",
                {"mine": worker.executor},
            )
            await until(lambda: has_status(link, log, one, "ENQUEUED"))


async def test_what_dies_too_often_is_closed(dbos_address, store, link):
    log, one = store.log(), job()
    await begin(log)
    async with asking(dbos_address, log) as engine:
        await engine.start(one)
        await link.run("UPDATE refold_dbos.workflow_status SET recovery_attempts = 3")
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
    monkeypatch.setattr("refold.engine.dbos.sweeping.KEPT", 0.0)
    monkeypatch.setattr("refold.engine.dbos.sweeping._SELDOM", 1)
    log, one = store.log(), job()
    await begin(log)
    async with asking(dbos_address, log) as engine:
        await engine.start(one)
        async with working(dbos_address, store, Maker(), sweep=0.1):
            assert await engine.wait("s", one.fold, LONG)
            await until(lambda: is_gone(link, log, one))
        assert (await engine.wait("s", one.fold, LONG)).completed
        assert await engine.recover("s") == ()
