"""What is done with a whole store now and then: scrubbing it, looking at its condition."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import psycopg

from refold.stores.postgres.connection import Address, Pool, connect
from refold.stores.postgres.failing import explained
from refold.stores.postgres.migrate import SQL, check_schema, shipped
from refold.stores.postgres.scrub import Scrubbed, scrub
from refold.stores.postgres.transaction import Connection, execute

T = TypeVar("T")
_LONG = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Condition:
    """What a store is like, as the role that connects finds it."""

    schema: int
    partitions: int
    role: str
    isolated: bool
    """Whether the server keeps tenants apart for this role; not for one that may do everything."""
    tenant: str | None
    """The one that this role is bound to, if it is bound."""


async def condition(address: str) -> Condition:
    """Look whether the store can be used from here with this version, and what it is like."""
    where = Address(address)

    async def look(connection: Connection) -> Condition:
        await check_schema(connection, where, shipped())
        [found] = await (await execute(connection, SQL["condition"])).fetchall()
        return Condition(*found)

    return await _connected(where, look)


async def scrubbed(address: str) -> Scrubbed:
    """Take the bytes of what was forgotten off the disk (see `scrub`)."""
    return await _connected(Address(address), scrub)


async def _connected(address: Address, work: Callable[[Connection], Awaitable[T]]) -> T:
    try:
        connection = await connect(address, Pool(statement=_LONG))
        try:
            return await work(connection)
        finally:
            await connection.close()
    except psycopg.Error as error:
        raise explained(address, error) from error
