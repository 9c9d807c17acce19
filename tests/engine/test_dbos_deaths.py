"""Workers that are killed: others finish what they made, and pay for no step twice."""

# pyright: reportOptionalMemberAccess=false, reportOptionalSubscript=false
# pyright: reportOptionalIterable=false
# None fails a test just as well.

# ruff: noqa: F811, F401 - fixtures are imported

import asyncio
import multiprocessing
import os
import signal
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from uuid import uuid4

import pytest

pytest.importorskip("dbos", reason="the extra `dbos` is not installed")

from dbos_servers import dbos, dbos_address
from dbos_workers import preload
from dbos_working import Link
from engines import begin
from word_scan import tables_with

from refold.engine.dbos import DbosEngine, Limits, Worker
from refold.fold.job import Job
from refold.log import CODEC, FoldCompleted, FoldStarted, FoldStepped, Span
from refold.stores.postgres import PostgresStore
from refold.testing.crash import FOLD_POINTS

LONG = 60.0
GRACE = 0.5
ELSEWHERE = {"fold.started", "fold.locked", "fold.resumed", "fold.failed"}
"""Where no worker is, or none that has something left to do."""
POINTS = [point for point in FOLD_POINTS if point not in ELSEWHERE]
STEPS = ("one", "two")
_FORKS = multiprocessing.get_context("forkserver")


def _work(*given):
    asyncio.run(_worked(*given))


async def _worked(address, file, point, grace, how):
    """Make folds, write down what is done, and die or stop at a point where there is one."""

    def reach(where):
        if where == point:
            os.kill(os.getpid(), how)

    def done(name):
        with Path(file).open("a", encoding="utf-8") as notes:
            notes.write(f"{name} {os.getpid()}\n")

    def make_of(_):
        async def make(job, steps):  # noqa: ARG001 - it is a `make`
            done("made")

            async def work(name):
                done(name)
                return name

            return [await steps.step(name, lambda name=name: work(name)) for name in STEPS]

        return make

    async with (
        PostgresStore(address) as store,
        Worker(
            address,
            store.log,
            make_of,
            limits=Limits(polling=0.05),
            grace=grace,
            sweep=0.1,
            reach=reach,
        ),
    ):
        await asyncio.Event().wait()


@pytest.fixture
def spawn(dbos_address, tmp_path):
    preload()
    processes = []

    def spawn(point=None, grace=GRACE, how=signal.SIGKILL):
        args = (dbos_address, str(tmp_path / "notes"), point, grace, how)
        process = _FORKS.Process(target=_work, args=args, daemon=True)
        process.start()
        processes.append(process)
        return process

    yield spawn
    for process in processes:
        process.kill()
        process.join()


def _notes(tmp_path):
    lines = (tmp_path / "notes").read_text(encoding="utf-8").split("\n")
    return [line.split(" ")[0] for line in lines if line]


@pytest.mark.parametrize("point", POINTS)
async def test_another_worker_finishes_it(dbos_address, spawn, tmp_path, point):
    """By itself: nobody asks."""
    dying = spawn(point)
    async with (
        PostgresStore(dbos_address) as store,
        DbosEngine(store.log(), dbos_address) as engine,
    ):
        log = store.log()
        await begin(log)
        one = Job("s", uuid4(), (Span(2, 4),), "soft")
        assert await engine.start(one)
        await asyncio.to_thread(dying.join, LONG)
        assert dying.exitcode == -signal.SIGKILL
        spawn()
        async with asyncio.timeout(LONG):
            while (await log.visible("s", last=0)).outline.running:  # noqa: ASYNC110 - of a server
                await asyncio.sleep(0.05)
        told = [CODEC.decode(entry) for entry in await log.read("s")][5:]
        steps = [value.name for value in told if isinstance(value, FoldStepped)]
        kinds = [type(value) for value in told if not isinstance(value, FoldStepped)]
        assert kinds == [FoldStarted, FoldCompleted]
        assert steps == [*STEPS], "each result is recorded once"
    notes = _notes(tmp_path)
    assert [note for note in notes if note in STEPS] == [*STEPS], "none was paid for twice"
    assert notes.count("made") == (1 if point == "fold.completed" else 2)


@pytest.mark.parametrize("point", ["fold.stepping", "fold.made"])
async def test_a_worker_that_is_paused_loses_its_fold(dbos_address, spawn, tmp_path, point):
    """It stays connected. When it goes on, it changes nothing."""
    paused = spawn(point, how=signal.SIGSTOP)
    async with (
        PostgresStore(dbos_address) as store,
        DbosEngine(store.log(), dbos_address) as engine,
    ):
        log = store.log()
        await begin(log)
        one = Job("s", uuid4(), (Span(2, 4),), "soft")
        assert await engine.start(one)
        stat = Path(f"/proc/{paused.pid}/stat")
        async with asyncio.timeout(LONG):
            while stat.read_text().rpartition(")")[2].split()[0] != "T":  # noqa: ASYNC110, ASYNC240 - of a process
                await asyncio.sleep(0.05)
        spawn()
        async with asyncio.timeout(LONG):
            while (await log.visible("s", last=0)).outline.running:  # noqa: ASYNC110 - of a server
                await asyncio.sleep(0.05)
        ended = await log.read("s")
        os.kill(paused.pid, signal.SIGCONT)
        other = Job("s", uuid4(), (Span(2, 4),), "soft")
        await asyncio.sleep(4 * GRACE)
        assert await log.read("s") == ended
        assert await engine.start(other)
        assert (await engine.wait("s", other.fold, LONG)).completed, "both go on"
    steps = [note for note in _notes(tmp_path) if note in STEPS]
    assert len(steps) <= 2 * len(STEPS) + 1, "none that was recorded was paid for again"


async def test_two_workers_share_the_work_and_no_fold(dbos_address, spawn, tmp_path):
    for _ in range(2):
        spawn(grace=60.0)  # a busy machine lets a worker stand still for longer than the other one
    async with (
        PostgresStore(dbos_address) as store,
        DbosEngine(store.log(), dbos_address) as engine,
    ):
        log, jobs = store.log(), []
        for at in range(20):
            await begin(log, f"s{at}")
            jobs.append(Job(f"s{at}", uuid4(), (Span(2, 4),), "soft"))
            assert await engine.start(jobs[-1])
        ended = [await engine.wait(one.session, one.fold, LONG) for one in jobs]
    assert all(one is not None and one.completed for one in ended)
    assert _notes(tmp_path).count("made") == 20


async def test_forgetting_reaches_the_engines_tables(dbos, dbos_address, spawn):
    """DBOS's tables hold no name to begin with; ours lose it in the transaction that forgets."""
    everything = dbos.address(dbos_address.rpartition("/")[2])
    async with PostgresStore(dbos_address) as store, AsyncExitStack() as stack:
        log, jobs = store.log(), {}
        for tenant, name in (
            ("stranger", "zebra"),
            ("default", "zebra"),
            ("default", "yak"),
            ("default", "xerus"),
        ):
            whose = store.log(tenant)
            await begin(whose, name)
            engine = await stack.enter_async_context(DbosEngine(whose, dbos_address))
            jobs[tenant, name] = one = Job(name, uuid4(), (Span(2, 4),), "soft")
            assert await engine.start(one)
        for name in ("stranger", "zebra", "yak", "xerus"):
            assert not any("refold_dbos" in one for one in tables_with(everything, name))
        assert await _queued(dbos_address) == set(jobs)
        await log.forget("zebra")
        assert await _queued(dbos_address) == set(jobs) - {("default", "zebra")}
        await log.forget("yak", Span(3, 3))
        assert await _queued(dbos_address) == {("stranger", "zebra"), ("default", "xerus")}
        spawn()
        assert (await engine.wait("xerus", jobs["default", "xerus"].fold, LONG)).completed
        async with asyncio.timeout(LONG):
            while await _queued(dbos_address):  # noqa: ASYNC110 - of a server
                await asyncio.sleep(0.05)
            while await _active(dbos_address):  # noqa: ASYNC110 - what was forgotten leaves the queue
                await asyncio.sleep(0.05)


async def _queued(address):
    link = Link(address)
    rows = await link.run("SELECT tenant, session FROM refold_engine.folds")
    await link.close()
    return set(rows)


async def _active(address):
    link = Link(address)
    rows = await link.run(
        "SELECT status FROM refold_dbos.workflow_status WHERE status IN ('ENQUEUED', 'PENDING')"
    )
    await link.close()
    return rows
