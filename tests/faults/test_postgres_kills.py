"""Many processes write to one PostgreSQL; they are killed, and so is the server. Nothing is lost.

`make postgres-faults` does it at its full size, on a server that flushes to the disk.
"""

import os
import selectors
import signal
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from random import Random
from time import monotonic

import postgres_writers
import pytest
import writers
from postgres_children import PostgresNursery
from postgres_inspection import check_sessions, check_tables, entries_of
from scenarios import drafts
from test_kill import Writer

from refold.stores.postgres.migrate import migrate
from refold.testing.postgres import Cluster, programs

KILLS = int(os.environ.get("REFOLD_POSTGRES_KILLS", "12"))
RESTARTS = int(os.environ.get("REFOLD_POSTGRES_RESTARTS", "2"))
DURABLE = "REFOLD_POSTGRES_KILLS" in os.environ
ROLE = "app"
_MOST_SILENT = 180.0  # seconds; beyond what any writer is patient for


@pytest.fixture
def cluster():
    if programs() is None and os.environ.get("REFOLD_POSTGRES") != "required":
        pytest.skip("PostgreSQL is not installed")
    with Cluster(durable=DURABLE) as cluster:
        yield cluster


@pytest.fixture
def children():
    nursery = PostgresNursery()
    yield nursery
    nursery.close()


class Crowd:
    """All writers, killed and replaced."""

    def __init__(self, nursery: PostgresNursery, address: str, random: Random):
        self.nursery = nursery
        self.address = address
        self.random = random
        self.figures: Counter[str] = Counter()
        self.slowest = (0.0, -1)
        """How long it took a writer at most to write after a restart, and which one that was."""
        self.selector = selectors.DefaultSelector()
        self.writers = [Writer(self._start(number, 0)) for number in range(writers.WRITERS)]

    def _start(self, writer: int, number: int):
        child = self.nursery.start("write", address=self.address, writer=writer, number=number)
        self.selector.register(child.reports, selectors.EVENT_READ, writer)
        return child

    def listen(self, reports: int):
        """Hear at least so many reports."""
        while reports > 0:
            ready = self.selector.select(_MOST_SILENT)
            assert ready, "nobody writes any more"
            for key, _ in ready:
                writer = self.writers[key.data]
                heard = writer.child.available()
                assert heard, f"writer {key.data} ended with {writer.child.wait()}"
                self._hear(writer, heard)
                reports -= len(heard)

    def kill_one(self):
        number = self.random.randrange(writers.WRITERS)
        writer = self.writers[number]
        assert writer.child.kill() == -signal.SIGKILL
        self._bury(writer)
        self.figures["kills"] += 1
        self.figures["in mid-write"] += bool(writer.unacknowledged())
        writer.child = self._start(number, writer.next_number())
        writer.is_at_work = False

    def all_at_work(self):
        """Wait until each has written something since it was last looked at."""
        for writer in self.writers:
            writer.is_at_work = False
        began = monotonic()
        idle = set(range(writers.WRITERS))
        while idle:
            self.listen(1)
            for at in [at for at in idle if self.writers[at].is_at_work]:
                idle.remove(at)
                self.slowest = max(self.slowest, (monotonic() - began, at))

    def stop(self):
        """Let each finish what it is writing, and what its predecessor left."""
        self.all_at_work()
        for writer in self.writers:
            os.kill(writer.child.pid, signal.SIGTERM)
        for writer in self.writers:
            self._bury(writer)
            assert writer.child.wait() == 0

    def _hear(self, writer: Writer, reports: list):
        for report in reports:
            assert isinstance(report, list), report["failed"]
            kind, number, at, _, *rest = report
            if kind == "intent":
                writer.intend((number, at))
                continue
            first, last, repeated, conflicts = rest
            writer.acknowledge((number, at), first, last)
            self.figures["repeated"] += repeated
            self.figures["conflicts"] += conflicts

    def _bury(self, writer: Writer):
        self._hear(writer, writer.child.all())
        self.selector.unregister(writer.child.reports)
        writer.child.reports.close()


@pytest.mark.timeout(3_600)
async def test_no_kill_and_no_restart_loses_or_doubles_an_entry(cluster, children):
    cluster.execute(f"CREATE ROLE {ROLE} LOGIN")
    owner = cluster.database("log")
    await migrate(owner, roles=[ROLE])
    address = cluster.address("log", user=ROLE)
    opening = drafts("shared", writers.OPENING)
    async with postgres_writers.store_at(address) as store:
        await store.log().append(writers.SHARED, opening, expected=0)
    random = Random(KILLS)  # noqa: S311 - which is killed when; the rest is up to the machine
    crowd = Crowd(children, address, random)
    crowd.all_at_work()
    crowd.slowest = (0.0, -1)
    _fail(crowd, cluster, random)
    crowd.stop()

    async with postgres_writers.store_at(address) as store:
        log = store.log()
        await check_sessions(log)
        assert await log.search("word", limit=1)
        found = await entries_of(log)
    check_tables(owner)
    acknowledged = _check_acknowledged(crowd, found)
    assert sum(map(len, found.values())) == acknowledged + len(opening)
    figures = {
        **crowd.figures,
        "acknowledged": acknowledged,
        "s at most until writer {1} wrote again".format(*crowd.slowest): round(crowd.slowest[0], 1),
    }
    print("\n" + ", ".join(f"{value} {name}" for name, value in figures.items()))  # noqa: T201
    assert crowd.figures["in mid-write"] > KILLS / 4
    assert crowd.figures["restarts"] == RESTARTS


def _fail(crowd, cluster, random):
    """Kill writers one after the other, and the server now and then, both at once."""
    with ThreadPoolExecutor(1) as thread:
        for nth in range(1, KILLS + 1):
            if nth * RESTARTS // KILLS > (nth - 1) * RESTARTS // KILLS:
                restarting = thread.submit(cluster.restart, "immediate")
                crowd.kill_one()
                restarting.result()
                crowd.figures["restarts"] += 1
                crowd.all_at_work()  # each has found the server again, by itself
            else:
                crowd.listen(random.randint(1, 60))
                crowd.kill_one()


def _check_acknowledged(crowd, found):
    """Each entry is where its writer was told, as its writer made it; how many those are."""
    count = 0
    for number, writer in enumerate(crowd.writers):
        assert not writer.unacknowledged()
        places = defaultdict(list)
        for (operation, at), (first, last) in sorted(writer.acknowledged.items()):
            append = writers.operation(number, operation)[at]
            entries = found[append.session][first - 1 : last]
            assert [_draft_fields(entry) for entry in entries] == [
                _draft_fields(draft) for draft in append.drafts
            ]
            places[append.session].append(first)
            count += len(append.drafts)
        assert all(firsts == sorted(firsts) for firsts in places.values())
    return count


def _draft_fields(one):
    return one.id, one.at, one.kind, one.version, one.body, one.scope, one.rests_on
