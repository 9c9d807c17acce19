"""Many processes write to one PostgreSQL; they are killed, and so is the server. Nothing is lost.

`make postgres-faults` does it at its full size, on a server that flushes to the disk.
"""

from concurrent.futures import ThreadPoolExecutor
from random import Random

import postgres_children
import postgres_writers
import pytest
import writers
from amounts import seed_of, set_amount
from crowd import Crowd
from needed import need_postgres
from nursery import Nursery
from postgres_inspection import check_sessions, check_tables, entries_of
from scenarios import drafts

from refold.stores.postgres.migrate import migrate
from refold.testing.postgres import Cluster

KILLS = set_amount("REFOLD_POSTGRES_KILLS", few=12, quick=12, ci=12, nightly=200, thorough=400)
RESTARTS = set_amount("REFOLD_POSTGRES_RESTARTS", few=2, quick=2, ci=2, nightly=20, thorough=40)
DURABLE = KILLS >= 200
ROLE = "app"


@pytest.fixture
def cluster():
    need_postgres()
    with Cluster(durable=DURABLE) as cluster:
        yield cluster


@pytest.fixture
def children():
    nursery = Nursery(postgres_children.__file__)
    yield nursery
    nursery.close()


@pytest.mark.timeout(3_600)
async def test_no_kill_and_no_restart_loses_or_doubles_an_entry(cluster, children):
    cluster.execute(f"CREATE ROLE {ROLE} LOGIN")
    owner = cluster.database("log")
    await migrate(owner, roles=[ROLE])
    address = cluster.address("log", user=ROLE)
    opening = drafts("shared", writers.OPENING)
    async with postgres_writers.store_at(address) as store:
        await store.log().append(writers.SHARED, opening, expected=0)
    random = Random(seed_of("postgres kills"))  # noqa: S311 - which is killed when; the rest is up to the machine
    crowd = Crowd(
        lambda writer, number: children.start(
            "write", address=address, writer=writer, number=number
        ),
        random,
    )
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
    acknowledged = crowd.check(found)
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
