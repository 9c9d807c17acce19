"""What the writers do that share one PostgreSQL: the operations of `writers`, over its store.

Nothing here is caught but a conflict. So a writer that ends by itself was let down by the store.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic

import writers
from scenarios import TODAY

from refold.errors import StoreFailed
from refold.stores.postgres import Pool, PostgresStore

PATIENCE = 120.0
"""Seconds that a writer may wait for a server that is restarted, again and again."""


def store_at(address: str) -> PostgresStore:
    """A store whose clock stands still, as that of the drafts."""
    return PostgresStore(address, pool=Pool(max_size=3), wait=PATIENCE, clock=lambda: TODAY)


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


async def write(report: writers.Report, address: str, writer: int, number: int) -> None:
    """Write from operation `number` on, until told to stop."""
    async with opened(store_at(address)) as store:
        await writers.write_to(store.log(), report, writer, number, search_every=50)
