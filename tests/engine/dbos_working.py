"""Workers in the test's own process, and what tests of them look at."""

import asyncio
from contextlib import asynccontextmanager
from uuid import uuid4

import psycopg
import pytest

from refold.engine.dbos import DbosEngine, Limits, Worker
from refold.engine.protocol import running
from refold.fold.compactor import context
from refold.fold.job import Job
from refold.log import Span
from refold.stores.memory import MemoryStore
from refold.view import Fold

LONG = 60.0
NEVER = 3_600.0
QUICK = Limits(polling=0.02)


def job(name="s", *, trigger="soft", model="", at_once=False):
    given = context(Fold(), {}, model=model, summarizer=model, at_once=at_once)
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


class Link:
    """Runs statements, each committed by itself."""

    def __init__(self, address, name="test"):
        self._address, self._name, self._db = address, name, None

    async def run(self, statement, values=None):
        if self._db is None:
            self._db = await psycopg.AsyncConnection.connect(
                self._address, autocommit=True, application_name=self._name
            )
        done = await self._db.execute(statement, values)
        return await done.fetchall() if done.description else []

    async def close(self):
        if self._db is not None:
            await self._db.close()


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
    """Of a fold in the queue: its workflow's status, its attempts and its queue."""
    rows = await link.run(
        "SELECT status, attempts, queue FROM refold_engine.folds"
        " LEFT JOIN refold_dbos.workflow_status ON workflow_uuid = id"
        " WHERE tenant = %(tenant)s AND session = %(session)s AND fold = %(fold)s",
        {"tenant": log.tenant, "session": one.session, "fold": one.fold},
    )
    return rows[0] if rows else None


async def claimed_by(link, executor):
    """Have all folds claimed by a worker, as if DBOS had delivered them to it."""
    await link.run("UPDATE refold_engine.folds SET worker = %(it)s", {"it": executor})
    await link.run(
        "UPDATE refold_dbos.workflow_status SET status = 'PENDING', started_at_epoch_ms = 1,"
        " executor_id = %(it)s",
        {"it": executor},
    )


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


async def is_gone(link, log, one):
    return await status(link, log, one) is None
