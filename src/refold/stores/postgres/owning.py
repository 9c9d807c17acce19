"""What is done with a whole store now and then: scrubbing it, looking at its condition."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

import psycopg
from psycopg.errors import InsufficientPrivilege

from refold.errors import StoreFailed
from refold.log.forgotten import Forgotten, ForgottenEntries, ForgottenSession
from refold.stores.postgres.connection import Address, Pool, connect
from refold.stores.postgres.failing import explained
from refold.stores.postgres.migrate import SQL, check_schema, shipped
from refold.stores.postgres.scrub import Scrubbed, scrub, to_scrub
from refold.stores.postgres.transaction import Connection, execute
from refold.stores.sql import statements

T = TypeVar("T")
_LONG = 24 * 3600.0
_FORGOTTEN = statements("refold.stores.postgres", "sql/forgotten.sql")


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
    to_scrub: tuple[str, ...] | None = None
    """Where the server still has bytes of what was forgotten; None if the role may not see that."""


@dataclass(frozen=True, slots=True)
class Access:
    """What the role that connects may do."""

    database: str
    """The database, as it may be shown."""
    read_only: bool
    """Whether the server takes no writes: a standby, or set to read only."""
    lacking: tuple[str, ...]
    """The tables that the role may not read and write as a store must."""


async def access(address: str) -> Access:
    """Look what the role may do with the store."""
    where = Address(address)

    async def look(connection: Connection) -> Access:
        [(read_only, lacking)] = await (await execute(connection, SQL["access"])).fetchall()
        return Access(str(where), read_only, tuple(lacking))

    return await _connected(where, look)


async def condition(address: str) -> Condition:
    """Look whether the store can be used from here with this version, and what it is like."""
    where = Address(address)

    async def look(connection: Connection) -> Condition:
        await check_schema(connection, where, shipped())
        [found] = await (await execute(connection, SQL["condition"])).fetchall()
        return Condition(*found, to_scrub=await to_scrub(connection))

    return await _connected(where, look)


async def scrubbed(address: str, *, wait: float = 10.0, wal: bool = True) -> Scrubbed:
    """Take the bytes of what was forgotten off the disk (see `scrub`)."""
    return await _connected(Address(address), lambda db: scrub(db, wait=wait, wal=wal))


async def forgotten(address: str) -> list[Forgotten]:
    """What was forgotten, of all tenants. The role must be one that may see all of them."""
    return await _connected(Address(address), _forgotten)


async def _forgotten(connection: Connection) -> list[Forgotten]:
    found: list[Forgotten] = []
    try:
        async with connection.transaction():
            await execute(connection, _FORGOTTEN["one_moment"])
            await execute(connection, _FORGOTTEN["see_all_tenants"])
            entries, sessions = [
                await (await execute(connection, _FORGOTTEN[name])).fetchall()
                for name in ("forgotten_entries", "forgotten_sessions")
            ]
    except InsufficientPrivilege as error:
        raise StoreFailed(
            f"The role may not see what all tenants have forgotten: {error.diag.message_primary}.",
            "Use the role that makes the backups: a superuser, or one with BYPASSRLS.",
        ) from error
    for (tenant, session), some in groupby(entries, key=lambda row: row[:2]):
        places = tuple((seq, id_) for *_, seq, id_ in some)
        found.append(ForgottenEntries(tenant, session, places))
    found += [ForgottenSession(*row) for row in sessions]
    return found


async def _connected(address: Address, work: Callable[[Connection], Awaitable[T]]) -> T:
    try:
        connection = await connect(address, Pool(statement=_LONG))
        try:
            return await work(connection)
        finally:
            await connection.close()
    except psycopg.Error as error:
        raise explained(address, error) from error
