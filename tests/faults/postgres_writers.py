"""What the writers do that share one PostgreSQL: the operations of `writers`, over its store.

Nothing here is caught but a conflict. So a writer that ends by itself was let down by the store.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any

import writers
from scenarios import TODAY

from refold.errors import Conflict, StoreFailed
from refold.log import Log
from refold.stores.postgres import Pool, PostgresStore

PATIENCE = 120.0
"""Seconds that a writer may wait for a server that is restarted, again and again."""
_POLITE = 3  # conflicts after which a writer goes wherever the head is, so that none starves
Report = Callable[[Any], None]


def store_at(address: str) -> PostgresStore:
    """A store whose clock stands still, as that of the drafts."""
    return PostgresStore(address, pool=Pool(most=3), wait=PATIENCE, clock=lambda: TODAY)


@asynccontextmanager
async def opened(store: PostgresStore) -> AsyncIterator[PostgresStore]:
    """The store, as soon as its server is there: one that is away is told at once."""
    until = monotonic() + PATIENCE
    while True:
        try:
            await store.open()
        except StoreFailed:
            if monotonic() > until:
                raise
            await asyncio.sleep(0.1)
        else:
            break
    try:
        yield store
    finally:
        await store.close()


async def write(report: Report, address: str, writer: int, number: int) -> None:
    """Write from operation `number` on, until told to stop."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    heads: dict[str, int] = {}
    async with opened(store_at(address)) as store:
        log = store.log()
        while not stop.is_set():
            if writer == 2 and number % 50 == 49:  # so that kills meet the word index too
                await log.search("word")
            appends = writers.operation(writer, number)
            await asyncio.gather(
                *(
                    _write_one(report, log, (number, at), one, heads)
                    for at, one in enumerate(appends)
                )
            )
            number += 1


async def _write_one(
    report: Report,
    log: Log,
    which: tuple[int, int],
    append: writers.Append,
    heads: dict[str, int],
) -> None:
    what = (*which, append.session)
    report(["intent", *what])
    conflicts = 0
    while True:
        anywhere = append.anywhere or conflicts > _POLITE
        expected = None if anywhere else heads.get(append.session, 0)
        try:
            done = await log.append(append.session, append.drafts, expected=expected)
        except Conflict:
            conflicts += 1
            heads[append.session] = await log.head(append.session)
        else:
            break
    heads[append.session] = done.last
    report(["ack", *what, done.first, done.last, done.repeated, conflicts])
