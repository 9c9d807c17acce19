"""What the processes of the chaos test do: workers, and hosts. See `nursery`."""

import asyncio
import signal
import sys
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import chaos_hosts
from chaos_journal import Journal, noted
from chaos_summarizer import NAMES, Chaotic
from nursery import Nursery, serve_tests
from postgres_writers import opened
from sessions import Quarter

from refold.engine.dbos import Bound, Bounds, DbosEngine, Limits, Worker
from refold.fold.compactor import Compactor, read_context
from refold.fold.job import Job, Make, Steps
from refold.fold.material import Material
from refold.fold.summary import Summary
from refold.fold.write.by_model import ByModel, Choice
from refold.log import Log
from refold.stores.postgres import Pool, PostgresStore

Report = Callable[[Any], None]

TENANTS = 4
SESSIONS = 9
"""Of each tenant."""
LIMITS = Limits(model=Bounds(Bound(24, 12), Bound(24, 12)), polling=0.2)
SWEEP = 1.0
FOLD = 6.0
"""Seconds that making a fold may take."""


def store_at(address: str) -> PostgresStore:
    return PostgresStore(address, pool=Pool(max_size=4), wait=60.0)


def work(report: Report, address: str, journal: str, executor: str) -> None:
    """A worker, until it is killed."""
    written = Journal(journal, executor)
    summarizers = {name: Chaotic(name) for name in NAMES}

    async def write(material: Material, job: Job, steps: Steps) -> Summary:
        # A new one for each fold: it would soon leave a summarizer alone that fails so often.
        async def choose(job, material):  # noqa: ARG001 - by its name alone
            return Choice((summarizers[read_context(job.context).summarizer],))

        asking = ByModel(choose)
        return await asking(material, job, steps)

    def make(log: Log) -> Make:
        return noted(Compactor(log, Quarter(), write), written)

    async def live() -> None:
        async with (
            opened(store_at(address)) as store,
            Worker(
                address,
                store.log,
                make,
                limits=LIMITS,
                models=NAMES,
                executor=executor,
                sweep=SWEEP,
                limit=FOLD,
            ),
        ):
            report("works")
            await asyncio.Event().wait()

    asyncio.run(live())


def host(report: Report, address: str, tenants: list[str], seed: int) -> None:
    """A host of some tenants, until it is told to stop; then it settles what it left."""

    async def live() -> None:
        stop = chaos_hosts.told_to_stop()
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, _tell_where, report)
        random = Random(seed)  # noqa: S311 - what is asked for, no secret
        async with opened(store_at(address)) as store:
            hosts = [_host(store, address, tenant, random) for tenant in tenants]
            await asyncio.gather(*(one.open() for one in hosts))
            report("talks")
            await asyncio.gather(*(one.talk(stop) for one in hosts))
            await asyncio.gather(*(one.settle() for one in hosts))
            for one in hosts:
                report(dict(one.figures))

    asyncio.run(live())


def _tell_where(report: Report) -> None:
    """Say where each task is, of a process that does not come to its end."""
    frames = [frame for task in asyncio.all_tasks() for frame in task.get_stack()]
    places = Counter(f"{frame.f_code.co_qualname}:{frame.f_lineno}" for frame in frames)
    report({"failed": f"it does not end: {places}"})


def _host(store: PostgresStore, address: str, tenant: str, random: Random) -> chaos_hosts.Host:
    log = store.log(tenant)
    engine = DbosEngine(log, address, limits=LIMITS)
    return chaos_hosts.Host(log, engine, chaos_hosts.sessions(tenant, SESSIONS), random)


class ChaosNursery(Nursery):
    """Starts processes that have imported DBOS before they begin."""

    def __init__(self):
        super().__init__(__file__, strict=False)


if __name__ == "__main__":
    serve_tests(sys.modules[__name__])  # the usual children know nothing of DBOS
