"""How a worker looks at its queues, and who says that there is no worker at all."""

# ruff: noqa: F811, F401 - fixtures are imported

import asyncio
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

pytest.importorskip("dbos", reason="the extra `dbos` is not installed")

from dbos_servers import dbos, dbos_address
from dbos_working import QUICK, asking, job, link, status, store, working
from engines import begin

from refold.engine.dbos import engine as engines
from refold.engine.dbos import polling
from refold.engine.dbos.names import POOL, VERSION
from refold.engine.dbos.polling import Polling
from refold.engine.dbos.queueing import Queueing
from refold.testing.engine import Maker


class Tables:
    """DBOS's tables, with two queues of which some hold something."""

    def __init__(self):
        self.filled, self.looks, self.read, self.taken = set(), 0, [], []
        self.engine = SimpleNamespace(begin=self._begin)

    @contextmanager
    def _begin(self):
        self.looks += 1
        yield SimpleNamespace(execute=lambda _: [(name,) for name in self.filled])

    def get_queue(self, name):
        self.read.append(name)
        return SimpleNamespace(name=name, _polling_interval_sec=60.0)

    def start_queued_workflows(self, queue):
        self.taken.append(queue.name)
        return ["one"], None

    def start_queued_partitioned_workflows(self, queue):
        self.taken.append(queue.name)
        return ["one"]

    def get_queue_partitions(self, name):
        self.taken.append(name)
        return ["tenant"]

    def count_pending_queue_workflows(self, name):
        self.taken.append(name)
        return 3


@pytest.fixture
def tables(monkeypatch):
    found = Tables()
    monkeypatch.setattr(polling, "_get_dbos_instance", lambda: SimpleNamespace(_sys_db=found))
    return found


def _asked(tables, name):
    queue = tables.get_queue(name)
    return (
        tables.start_queued_workflows(queue)[0],
        tables.start_queued_partitioned_workflows(queue),
        tables.get_queue_partitions(name),
        tables.count_pending_queue_workflows(name),
    )


def test_one_look_tells_for_all_queues(tables):
    tables.filled = {"full"}
    Polling(lambda: False).begin()
    assert _asked(tables, "full") == (["one"], ["one"], ["tenant"], 3)
    assert _asked(tables, "empty") == ([], [], [], 0)
    assert tables.looks == 1
    assert set(tables.taken) == {"full"}


def test_what_came_since_is_found_by_the_next_look(tables, monkeypatch):
    Polling(lambda: False).begin()
    assert _asked(tables, "late") == ([], [], [], 0)
    tables.filled = {"late"}
    now = polling.monotonic() + 61.0
    monkeypatch.setattr(polling, "monotonic", lambda: now)
    assert _asked(tables, "late") == (["one"], ["one"], ["tenant"], 3)


def test_limits_are_read_now_and_then(tables, monkeypatch):
    Polling(lambda: False).begin()
    for _ in range(3):
        tables.get_queue("one")
    assert tables.read == ["one"]
    now = polling.monotonic() + 2.0
    monkeypatch.setattr(polling, "monotonic", lambda: now)
    tables.get_queue("one")
    assert tables.read == ["one", "one"]


def test_nothing_is_taken_while_it_is_held(tables):
    tables.filled = {"full"}
    held = [True]
    Polling(lambda: held[0]).begin()
    assert _asked(tables, "full") == ([], [], [], 0)
    assert not tables.looks
    held[0] = False
    assert _asked(tables, "full") == (["one"], ["one"], ["tenant"], 3)


def test_queues_of_dbos_itself_are_looked_at_as_ever(tables):
    """Nobody asks for their limits, and no look finds them."""
    Polling(lambda: False).begin()
    own = SimpleNamespace(name="internal")
    assert tables.start_queued_workflows(own) == (["one"], None)


async def test_a_fold_is_put_into_its_queue_once(dbos_address, store, link):
    log, one = store.log('it\'s "mine"'), job('a "name"\\ of é')
    queueing = Queueing(dbos_address, QUICK, POOL, VERSION)
    try:
        assert await queueing.put(log.tenant, one, "background")
        assert not await queueing.put(log.tenant, one, "background")
    finally:
        await queueing.close()
    assert (await status(link, log, one))[:2] == ("ENQUEUED", 0)


async def test_more_are_put_at_once_than_there_are_connections(dbos_address, store, link):
    log, jobs = store.log(), [job(f"s{at}") for at in range(20)]
    queueing = Queueing(dbos_address, QUICK, POOL, VERSION)
    try:
        put = await asyncio.gather(*(queueing.put(log.tenant, one, "background") for one in jobs))
    finally:
        await queueing.close()
    assert put == [True] * 20
    for one in jobs:
        assert (await status(link, log, one))[0] == "ENQUEUED"


async def test_who_waits_and_is_alone_is_told_once(dbos_address, store, monkeypatch, caplog):
    monkeypatch.setattr(engines, "_ALONE", 0.2)
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
    monkeypatch.setattr(engines, "_ALONE", 0.2)
    log, one, maker = store.log(), job(), Maker(held=True)
    await begin(log)
    async with working(dbos_address, store, maker), asking(dbos_address, log) as engine:
        await engine.start(one)
        assert await engine.wait("s", one.fold, 1.0) is None
        maker.let_go()
    assert not [record for record in caplog.records if "refold worker" in record.getMessage()]
