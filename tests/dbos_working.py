"""Workers in the test's own process, and what tests of them look at."""

import asyncio
from contextlib import asynccontextmanager
from uuid import uuid4

import pytest

from refold.engine.dbos import DbosEngine, Limits, Worker
from refold.engine.dbos.link import Link
from refold.engine.dbos.names import workflow_id
from refold.engine.ends import running
from refold.fold.job import Job
from refold.fold.run import context
from refold.log import Span
from refold.stores.memory import MemoryStore
from refold.view import Fold

LONG = 60.0
NEVER = 3_600.0
QUICK = Limits(polling=0.02)


def job(name="s", *, trigger="soft", model="", at_once=False):
    given = context(Fold(), {}, model=model, summariser=model, at_once=at_once)
    return Job(name, uuid4(), (Span(2, 4),), trigger, context=given)


class Busy:
    """Makes folds, each for a moment, and knows how many it made at once."""

    def __init__(self, together=1):
        """The first fold takes until so many are made at once, however long that is."""
        self.now, self.most, self.order = {}, {}, []
        self._together, self._met = together, asyncio.Event()

    async def __call__(self, job, steps):  # noqa: ARG002 - it is a `make`
        whose = job.session[0]
        self.now[whose] = self.now.get(whose, 0) + 1
        self.most[whose] = max(self.most.get(whose, 0), self.now[whose])
        self.most["all"] = max(self.most.get("all", 0), sum(self.now.values()))
        self.order.append(job.fold)
        if self.most["all"] >= self._together:
            self._met.set()
        async with asyncio.timeout(LONG):
            await self._met.wait()
        await asyncio.sleep(0.15)
        self.now[whose] -= 1
        return "made"


@pytest.fixture
async def link(dbos_address):
    link = Link(dbos_address)
    yield link
    await link.close()


@pytest.fixture
def store():
    return MemoryStore()


@asynccontextmanager
async def working(address, store, make, **how):
    """A worker in this process."""
    how = {"limits": QUICK, "grace": 0, "sweep": NEVER, "patience": 0.0, **how}
    async with Worker(address, store.log, lambda _: make, **how) as worker:
        yield worker


@asynccontextmanager
async def asking(address, log, **how):
    """An engine over a log."""
    async with DbosEngine(log, address, **{"limits": QUICK, "grace": 0, "look": 0.1, **how}) as one:
        yield one


async def status(link, log, one):
    rows = await link.run(
        "SELECT status, recovery_attempts, queue_name FROM refold_dbos.workflow_status"
        " WHERE workflow_uuid = %(id)s",
        {"id": workflow_id(log.tenant, one.session, one.fold)},
    )
    return rows[0] if rows else None


async def until(so):
    """Return when it is so."""
    async with asyncio.timeout(LONG):
        while not await so():  # noqa: ASYNC110 - of a server
            await asyncio.sleep(0.02)


async def has_ended(log, name):
    return not await running(log, name)


async def made(maker, times, what="jobs"):
    return len(getattr(maker, what)) == times


async def no_look():
    pass


async def no_close(*_):
    raise AssertionError


async def lock_is_held(address):
    link = Link(address)
    try:
        rows = await link.run("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")
    except Exception:  # noqa: BLE001 - it is not up yet
        return False
    finally:
        await link.close()
    return rows[0][0] == 1


async def true(value):
    return bool(value)


async def has_status(link, log, one, wanted):
    found = await status(link, log, one)
    return found is not None and found[0] == wanted


async def is_gone(link, log, one):
    return await status(link, log, one) is None
