"""Where the demo's session is kept: nowhere, unless it is asked for."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from refold.cli.options import store_at
from refold.errors import SessionExists, SessionNotFound
from refold.log import Store
from refold.stores import MemoryStore


@asynccontextmanager
async def kept(address: str, session: str) -> AsyncGenerator[Store]:
    """The store at the address, without that session so far; without an address, in memory."""
    async with store_at(address, create=True) if address else MemoryStore() as store:
        if await _has(store, session):
            raise SessionExists(
                f"{address} has a session {session!r} already.",
                f"Read it (refold show {session} --store {address}), or name another store.",
            )
        yield store


async def _has(store: Store, session: str) -> bool:
    try:
        await store.log().info(session)
    except SessionNotFound:
        return False
    return True
