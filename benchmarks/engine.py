"""Folds on DBOS with a summarizer that answers at once, beside bare workflows that do nothing.

Both take turns on one server that flushes to the disk, asked for in the same way, so many at a
time. What is timed begins with the first that is asked for and ends when all have ended. Each turn
has workers and a database of its own; what they do first, when their connections and plans are
new, is not counted.

Bare has the same settings, where there are any, and DBOS's own ways for the rest:

* the same queues, two lanes for each of two models, with the same limits and polling;
* the same tables, and key of a part of the queue; both refuse ids used twice;
* neither listens for DBOS's notifications;
* both are enqueued by DBOS's client. A fold also has a row of ours, written in the same
  transaction, claimed by its worker and removed at its end;
* the lock, the beat, the sweeper and the measures of our workers are part of what is measured.

A fold has one step, whose result is recorded: as when a model is asked once.
"""

import asyncio
import multiprocessing
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from statistics import median
from time import perf_counter
from uuid import uuid4

import psycopg

from benchmarks import engine_bare, engine_folds
from benchmarks.figures import Figure
from refold.engine.dbos.database import SCHEMA
from refold.testing.postgres import Cluster, programs

TENANT = "default"
EMPTY = "empty"
AT_ONCE = 8
WARMING = 48
_PATIENCE = 120.0
_LEFT = f"SELECT count(*) FROM {SCHEMA}.workflow_status WHERE status <> 'SUCCESS'"  # noqa: S608 - our own name
_CONTEXT = multiprocessing.get_context("forkserver")

Ask = Callable[[str], Awaitable[None]]


def figures(*, quick: bool) -> list[Figure]:
    if programs() is None:
        print("PostgreSQL is not installed: there is nothing to measure.", file=sys.stderr)
        return []
    _CONTEXT.set_forkserver_preload(
        ["__main__", "benchmarks.engine_bare", "benchmarks.engine_folds"]
    )
    with Cluster(durable=True) as cluster:
        cluster.execute(f"CREATE ROLE {engine_folds.ROLE} LOGIN")
        asyncio.run(engine_folds.prepare(cluster.database(EMPTY)))
        return [one for workers in (1, 2, 4) for one in _figures(cluster, workers, quick=quick)]


def _figures(cluster: Cluster, workers: int, *, quick: bool) -> list[Figure]:
    turns, folds = (1, 60) if quick else (4, 300)
    ratios: list[float] = []
    paces: list[tuple[float, float]] = []
    for turn in range(turns):
        works = [_bare, _folds] if turn % 2 else [_folds, _bare]
        times = {work: work(cluster, f"{workers}_{turn}", workers, folds) for work in works}
        ratios.append(times[_bare] / times[_folds])
        paces.append((folds / times[_bare], folds / times[_folds]))
    label = f"{workers} worker{'s' if workers > 1 else ''}"
    bare, ours = map(median, zip(*paces, strict=True))
    return [
        Figure(f"folds ÷ bare workflows that do nothing, {label}", median(ratios), 0.7),
        Figure(f"folds a second, {label}", ours),
        Figure(f"bare workflows a second, {label}", bare),
    ]


def _bare(cluster: Cluster, name: str, workers: int, count: int) -> float:
    address = _database(cluster, f"bare_{name}")
    queues = engine_folds.queues("bare")

    async def timed() -> float:
        asking = engine_bare.Asking(address, list(queues)[-1])

        async def ask(session: str) -> None:
            await asking.ask(TENANT, session, str(uuid4()))

        try:
            return await _timed(address, ask, workers, count)
        finally:
            asking.close()

    with _working(engine_bare.work, workers, address, queues):
        return asyncio.run(timed())


def _folds(cluster: Cluster, name: str, workers: int, count: int) -> float:
    address = _database(cluster, f"folds_{name}")

    async def timed() -> float:
        async with engine_folds.asking(address, WARMING * workers + count) as ask:
            return await _timed(address, ask, workers, count)

    with _working(engine_folds.work, workers, address):
        took = asyncio.run(timed())
    asyncio.run(engine_folds.check(address, WARMING * workers + count))
    return took


def _database(cluster: Cluster, name: str) -> str:
    cluster.database(name, like=EMPTY)
    return cluster.address(name, user=engine_folds.ROLE)


async def _timed(address: str, ask: Ask, workers: int, count: int) -> float:
    first = WARMING * workers
    await _until_done(address, ask, range(first))
    began = perf_counter()
    await _until_done(address, ask, range(first, first + count))
    return perf_counter() - began


async def _until_done(address: str, ask: Ask, sessions: range) -> None:
    """Ask for all, so many at a time, and wait until each has been done."""
    there = asyncio.Semaphore(AT_ONCE)

    async def one(at: int) -> None:
        async with there:
            await ask(engine_folds.session(at))

    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as db:
        await asyncio.gather(*map(one, sessions))
        async with asyncio.timeout(_PATIENCE):
            while await (await db.execute(_LEFT)).fetchone() != (0,):  # noqa: ASYNC110 - other processes
                await asyncio.sleep(0.02)


@contextmanager
def _working(
    life: Callable[..., None], workers: int, address: str, *more: object
) -> Iterator[None]:
    """While so many workers live."""
    started: list[BaseProcess] = []
    try:
        ready = [_CONTEXT.Event() for _ in range(workers)]
        for nth, begun in enumerate(ready):
            worker = _CONTEXT.Process(
                target=life, args=(address, f"worker-{nth}", *more, begun), daemon=True
            )
            worker.start()
            started.append(worker)
        if not all(begun.wait(_PATIENCE) for begun in ready):
            raise RuntimeError("A worker does not begin.")
        yield
    finally:
        for worker in started:
            worker.kill()
            worker.join()
