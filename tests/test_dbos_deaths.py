"""Workers that are killed: others finish what they made, and pay for no step twice."""

# pyright: reportOptionalMemberAccess=false, reportOptionalSubscript=false
# pyright: reportOptionalIterable=false
# None fails a test just as well.

# ruff: noqa: F811, F401 - fixtures are imported

import asyncio
import multiprocessing
import os
import signal
from contextlib import AsyncExitStack
from pathlib import Path
from uuid import uuid4

import pytest

pytest.importorskip("dbos", reason="the extra `dbos` is not installed")

from dbos_servers import dbos, dbos_address
from dbos_workers import preload
from engines import begin

from refold.engine.dbos import DbosEngine, Limits, Worker
from refold.engine.dbos.link import Link
from refold.engine.dbos.names import workflow_id
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


async def _worked(address, file, point, grace):
    """Make folds, write down what is done, and die at a point where there is one."""

    def reach(where):
        if where == point:
            os.kill(os.getpid(), signal.SIGKILL)

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

    def spawn(point=None, grace=GRACE):
        args = (dbos_address, str(tmp_path / "notes"), point, grace)
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


async def test_forgetting_reaches_the_engines_tables(dbos_address, spawn):
    async with PostgresStore(dbos_address) as store, AsyncExitStack() as stack:
        log, ids, jobs = store.log(), {}, {}
        for tenant, name in (("other", "s"), ("default", "s"), ("default", "t"), ("default", "u")):
            whose = store.log(tenant)
            await begin(whose, name)
            engine = await stack.enter_async_context(DbosEngine(whose, dbos_address))
            jobs[name] = one = Job(name, uuid4(), (Span(2, 4),), "soft")
            assert await engine.start(one)
            ids[tenant, name] = workflow_id(tenant, name, one.fold)
        await log.forget("s")
        assert await _ids(dbos_address) == {*ids.values()} - {ids["default", "s"]}
        spawn()
        for name in ("t", "u"):
            assert (await engine.wait(name, jobs[name].fold, LONG)).completed
        await log.forget("t")
        await log.forget("u", Span(3, 3))
        assert await _ids(dbos_address) == {ids["other", "s"]}


async def _ids(address):
    link = Link(address)
    tables = ("workflow_status", "workflow_input")
    found = [
        {row[0] for row in await link.run(f"SELECT workflow_uuid FROM refold_dbos.{table}")}  # noqa: S608 - our own
        for table in tables
    ]
    await link.close()
    assert found[0] == found[1]
    return found[0]
