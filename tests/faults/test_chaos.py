"""Workers are killed, PostgreSQL is restarted, and the summarizer does what it likes.

Whatever happens: each fold that began has one end and is installed at most once, no answer that
the log has is paid for again, no two workers make one fold at once, and nothing stays stuck. See
`chaos_checks`. `make chaos` does it for ten minutes.
"""

import asyncio
import os
import signal
from collections import Counter
from time import monotonic, sleep

import psycopg
import pytest
from chaos_checks import (
    intervals,
    objections_to_calls,
    objections_to_log,
    objections_to_workers,
)
from chaos_children import FOLD, SESSIONS, SWEEP, TENANTS, ChaosNursery, store_at
from chaos_hosts import sessions, tenants
from chaos_journal import CALLING, Journal, lines_of
from chaos_processes import Chaos, has_ended, prepared
from needed import need_postgres
from nursery import Child
from postgres_inspection import check_sessions

from refold.engine.dbos.database import OWN_SCHEMA, SCHEMA
from refold.engine.dbos.worker import GRACE
from refold.engine.fold_runner import STOP_TIMEOUT
from refold.log import CODEC, FoldCompleted, FoldFailed, FoldStepped
from refold.testing.postgres import Cluster

SECONDS = float(os.environ.get("REFOLD_CHAOS", "0"))
WORKERS = 4
ROLE = "app"
STRAY = 10.0
BUSY = 45.0
STUCK = GRACE + 2 * SWEEP + STRAY + FOLD + STOP_TIMEOUT + BUSY
"""Seconds after the last fault in which every fold has ended.

A dead worker is known by the grace and a look before and after it; what a broken connection lost
on its way to a living one, after a while. Then it is made, for as long as one may take, and a
`make` may take to stop. The rest is for a busy machine.
"""


@pytest.fixture
def cluster():
    need_postgres()
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def nursery():
    started = ChaosNursery()
    yield started
    started.close()


class Workers(Chaos):
    """The workers, killed and replaced, and the server, restarted."""

    def __init__(self, nursery: ChaosNursery, cluster: Cluster, address: str, journal):
        self.nursery = nursery
        self.address = address
        self.journal = journal
        super().__init__(cluster, WORKERS, seed=7)

    def start(self, at: int, number: int) -> tuple[str, Child]:  # noqa: ARG002 - all are alike
        name = f"worker-{number}"
        child = self.nursery.start(
            "work", address=self.address, journal=self.journal, executor=name
        )
        return name, child

    def restart(self, nth: int) -> None:  # noqa: ARG002 - each time the same
        self.cluster.restart("immediate")

    def killed(self, name: str) -> None:  # noqa: ARG002 - all are alike
        self.figures["kills"] += 1

    def check_in_vain(self, at: int) -> None:
        reports = self.living[at][1].all()
        assert "works" not in reports, reports[-1]["failed"]

    def gone(self, name: str) -> None:
        Journal(self.journal, name).gone()

    def stop(self) -> None:
        """All are still there: none has ended by itself."""
        for _, child in self.living:
            assert child.kill() == -signal.SIGKILL, child.all()


@pytest.mark.skipif(not SECONDS, reason="it wants a machine to itself: make chaos")
@pytest.mark.timeout(SECONDS + 300)
async def test_chaos_leaves_no_fold_half_twice_or_stuck(cluster, nursery, tmp_path):
    owner, address = await prepared(cluster, ROLE)
    journal = tmp_path / "journal"
    names = tenants(TENANTS)
    hosts = [
        nursery.start("host", address=address, tenants=some, seed=seed)
        for seed, some in enumerate((names[::2], names[1::2]))
    ]
    chaos = Workers(nursery, cluster, address, journal)
    assert [host.next() for host in hosts] == ["talks"] * 2
    chaos.reign(SECONDS)

    last_fault = monotonic()
    asked = _stopped(hosts, last_fault + STUCK, owner)
    async with store_at(address) as store:
        await _settled(store, names, last_fault + STUCK, owner)
    settled = round(monotonic() - last_fault, 1)
    chaos.stop()
    _wait_until_gone(owner)
    async with store_at(address) as store:
        await _check(store, names, journal, {**asked, **chaos.figures, "s to settle": settled})
    _check_tables(owner)


def _wait_until_gone(address):
    """A server goes on for a moment with what a killed client had asked for."""
    with psycopg.connect(address, autocommit=True) as db:
        while db.execute("SELECT 1 FROM pg_stat_activity WHERE usename = %s", (ROLE,)).fetchall():
            sleep(0.05)


def _stopped(hosts, until, address):
    """Let the hosts look after what they left, and end; what they asked for."""
    for host in hosts:
        os.kill(host.pid, signal.SIGTERM)
    while not all(has_ended(host.pid) for host in hosts):
        if monotonic() > until:
            for host in hosts:
                os.kill(host.pid, signal.SIGUSR1)
            said = [host.next() for host in hosts if not has_ended(host.pid)]
            raise AssertionError((said, _left(address)))
        sleep(0.1)
    asked: Counter[str] = Counter()
    for host in hosts:
        for figures in host.all():
            assert "failed" not in figures, figures["failed"]
            asked.update(figures)
        assert host.wait() == 0
    return asked


async def _settled(store, names, until, address):
    """Wait until no fold is under way."""
    left = [(name, one) for name in names for one in sessions(name, SESSIONS)]
    while left:
        assert monotonic() < until, (left, _left(address))
        left = [
            (name, one)
            for name, one in left
            if (await store.log(name).visible(one, last=0)).outline.running
        ]
        await asyncio.sleep(0.2)


async def _check(store, names, journal, figures):
    lines = lines_of(journal)
    entries = []
    wrong = []
    for name in names:
        log = store.log(name)
        await check_sessions(log)
        for one in sessions(name, SESSIONS):
            there = await log.read(one)
            wrong += [f"{one}: {what}" for what in objections_to_log(there)]
            entries += there
    wrong += [*objections_to_calls(lines, entries), *objections_to_workers(lines)]
    shown = _shown(figures, lines, entries)
    print("\n" + ", ".join(f"{name}: {value}" for name, value in shown.items()))  # noqa: T201
    assert wrong == []
    assert shown["completed"] > SECONDS / 3
    assert shown["taken over"] > SECONDS / 60


def _shown(figures, lines, entries):
    values = [CODEC.decode(entry) for entry in entries]
    reasons = Counter(v.reason.split(":")[0] for v in values if isinstance(v, FoldFailed))
    made = intervals(lines)
    calls = Counter(
        (one.fold, one.step) for one in lines if (one.what, one.kind) == ("begin", CALLING)
    )
    return {
        **figures,
        "completed": sum(isinstance(v, FoldCompleted) for v in values),
        "failed": dict(reasons),
        "taken over": sum(len({who for _, _, who in one}) > 1 for one in made.values()),
        "most often begun": max(map(len, made.values())),
        "calls": sum(calls.values()),
        "calls that a kill cost": sum(n - 1 for n in calls.values()),
        "recorded": sum(isinstance(v, FoldStepped) for v in values),
    }


def _check_tables(address):
    """The engine's own tables hold nothing that waits."""
    assert _left(address) == []


def _left(address):
    """What waits or is under way, where, since when, and how often it was begun."""
    with psycopg.connect(address) as db:
        return db.execute(
            "SELECT status, worker, attempts, queue, (now() - queued_at)::text"  # noqa: S608 - our own names
            f" FROM {OWN_SCHEMA}.folds LEFT JOIN {SCHEMA}.workflow_status ON workflow_uuid = id"
        ).fetchall()
