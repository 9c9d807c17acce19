"""What a worker takes from the queues while it may not, and what was put back meanwhile."""

# pyright: reportOptionalMemberAccess=false, reportOptionalSubscript=false
# pyright: reportOptionalIterable=false
# None fails a test just as well.

# ruff: noqa: F811, F401 - fixtures are imported

import asyncio

import pytest

pytest.importorskip("dbos", reason="the extra `dbos` is not installed")

from dbos_servers import dbos, dbos_address
from dbos_working import LONG, QUICK, asking, has_ended, job, link, status, store, until, working
from engines import begin

from refold.engine.dbos import Bound, Bounds, Limits
from refold.engine.dbos.names import model_in, queue_of
from refold.testing.engine import Maker


async def test_who_is_fenced_takes_nothing(dbos_address, store, link):
    """And burns no attempt of what others could make."""
    log, one, maker = store.log(), job(), Maker()
    await begin(log)
    async with (
        working(dbos_address, store, maker) as worker,
        asking(dbos_address, log) as engine,
    ):
        worker._lost()
        await engine.start(one)
        await asyncio.sleep(0.4)
        assert (await status(link, log, one))[:2] == ("ENQUEUED", 0)
        await worker._back()
        assert (await engine.wait("s", one.fold, LONG)).completed
    assert len(maker.jobs) == 1


async def test_what_another_has_taken_meanwhile_is_not_made(dbos_address, store, link):
    """Between DBOS, which took it from the queue, and the worker, who has not begun it yet."""
    log, one, maker = store.log(), job(), Maker()
    await begin(log)
    asked, go, late = asyncio.Event(), asyncio.Event(), []
    async with working(dbos_address, store, maker) as worker, asking(dbos_address, log) as engine:
        work = worker.work

        async def slow(*given):
            late.append(asyncio.current_task())
            asked.set()
            await go.wait()
            await work(*given)

        worker.work = slow  # pyright: ignore[reportAttributeAccessIssue]
        await engine.start(one)
        async with asyncio.timeout(LONG):
            await asked.wait()
        await link.run(
            "UPDATE refold_dbos.workflow_status SET executor_id = 'other', owner_xid = 'another'"
        )
        worker._door.beware()
        go.set()
        await until(lambda: _has_ended(late))
        assert not maker.jobs


async def test_what_is_made_already_is_not_begun_again(dbos_address, store):
    log, one, maker = store.log(), job(), Maker(held=True)
    await begin(log)
    async with working(dbos_address, store, maker) as worker, asking(dbos_address, log) as engine:
        await engine.start(one)
        await maker.called()
        await worker._door.put_back(list)  # as if another had taken us for dead
        await asyncio.sleep(0.4)
        assert len(maker.jobs) == 1
        maker.let_go()
        assert (await engine.wait("s", one.fold, LONG)).completed


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


async def _limit(link, model):
    name = queue_of("default", "background", model)
    rows = await link.run(
        "SELECT concurrency FROM refold_dbos.queues WHERE name = %(name)s", {"name": name}
    )
    return rows[0][0] if rows else None


async def _is_limited(link, model, most):
    return await _limit(link, model) == most


async def _has_ended(tasks):
    return bool(tasks) and all(task.done() for task in tasks)
