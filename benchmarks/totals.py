"""Daily totals: what they add to an append, and how long a question takes however many sessions."""

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any
from unittest import mock

from benchmarks.figures import Figure
from benchmarks.log_work import BODY, in_turns
from benchmarks.postgres_log import CONNECTIONS
from refold.log import Author, Log, Message, Opened, Requested, Span, Store
from refold.stores import SqliteStore
from refold.stores.postgres import Pool, PostgresStore, migrate
from refold.testing.conformance.totals import usage
from refold.testing.postgres import Cluster, programs

_TURNS = 16
_EXTRA = 1.25
"""The bar of a turn with totals ÷ without: a prompt, a request record, an answer with its usage."""
_FAR = 3.0
"""The bar of a question about ten times as many sessions, of other days."""


def figures(*, quick: bool) -> list[Figure]:
    blocks, sessions = (10, 200) if quick else (60, 2_000)
    with tempfile.TemporaryDirectory(prefix="refold-bench-") as folder:
        store = SqliteStore(Path(folder) / "refold.db")
        patched = "refold.stores.sqlite.append.add_to_totals"
        found = asyncio.run(_figures("SQLite", store, patched, blocks, sessions))
    if programs() is None:
        print("PostgreSQL is not installed: its rows are left out.", file=sys.stderr)
        return found
    with Cluster(durable=True) as cluster:
        address = cluster.database("ours")
        asyncio.run(migrate(address))
        pool = Pool(min_size=CONNECTIONS, max_size=CONNECTIONS)
        patched = "refold.stores.postgres.append.counted"
        store = PostgresStore(address, pool=pool)
        return found + asyncio.run(_figures("PostgreSQL", store, patched, blocks, sessions))


async def _figures(
    what: str, store: Store, patched: str, blocks: int, sessions: int
) -> list[Figure]:
    async with store:
        log, ratios = store.log(), list[float]()
        for name in ("with", "without"):
            await log.append(name, [Author().draft(Opened("bench", "balanced"))], expected=0)
        for block in range(blocks):

            async def without() -> None:
                with mock.patch(patched, _nothing):
                    await _turns(log, "without")

            times = await in_turns(block, lambda: _turns(log, "with"), without)
            ratios.append(times[0] / times[1])
        return [
            Figure(
                f"a turn's appends, {what}, with totals ÷ without",
                median(ratios),
                _EXTRA,
                "at most",
            ),
            *await _questions(what, store.log("many"), sessions),
        ]


def _nothing(*_: Any) -> Sequence[Any]:  # noqa: ANN401 - in the place of functions
    return ()


async def _turns(log: Log, name: str) -> None:
    author, head = Author(), await log.head(name)
    for _ in range(_TURNS):
        await log.append(name, [author.draft(Message(BODY))], expected=head)
        record = author.draft(Requested((Span(1, 1),), [], "m", "digest"))
        await log.append(name, [record], expected=head + 1)
        answer = [author.draft(Message(BODY)), author.draft(usage(head + 2))]
        await log.append(name, answer, expected=head + 2)
        head += 4


async def _questions(what: str, log: Log, sessions: int) -> list[Figure]:
    """A question about one day, with few sessions in the store and with ten times as many."""
    times: list[float] = []
    day = Author().now() // 86_400_000
    for first, last in ((0, sessions // 10), (sessions // 10, sessions)):
        for number in range(first, last):
            author = Author()
            opened, used = author.draft(Opened("bench", "balanced")), author.draft(usage(0))
            if first:  # of earlier days
                earlier = 86_400_000 * (1 + number % 90)
                opened, used = (each._replace(at=each.at - earlier) for each in (opened, used))
            await log.append(f"session {number}", [opened, used], expected=0)
        took: list[float] = []
        for _ in range(20):
            start = perf_counter()
            await log.totals(day, day)
            took.append(perf_counter() - start)
        times.append(median(took))
    return [
        Figure(
            f"a day's costs, {what}, {sessions} sessions ÷ {sessions // 10}",
            times[1] / times[0],
            _FAR,
            "at most",
        ),
        Figure(f"a day's costs, {what}, ms", 1_000 * times[1]),
    ]
