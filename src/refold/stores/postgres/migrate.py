"""Numbered migrations, applied by one command; gaps, changes and newer schemas are refused."""

import logging
from collections.abc import Sequence
from typing import Any, Final, LiteralString, cast

import psycopg
from psycopg import sql

from refold.errors import InvalidInput, NotAStore, StoreOutdated
from refold.log.entry import check_name
from refold.stores.postgres.connection import (
    Address,
    Connection,
    execute,
    stranger,
    with_connection,
)
from refold.stores.sql import (
    Migration,
    Reach,
    check_applied,
    check_shipped,
    onwards,
    shipped_in,
    statements,
)

SQL: Final = statements("refold.stores.postgres", "sql/migrate.sql")
PARTITIONS: Final = 16
"""How many parts the large tables have, if nothing else is said; it is decided once."""
_MAX_PARTITIONS: Final = 1_024
_MISSING: Final = {"42P01", "3F000"}
_LOGGER: Final = logging.getLogger("refold.stores")
_warned: set[str] = set()


def shipped() -> tuple[Migration, ...]:
    return shipped_in("refold.stores.postgres")


async def migrate(  # noqa: PLR0913 - all but the address have a default
    address: str,
    partitions: int = PARTITIONS,
    *,
    roles: Sequence[str] = (),
    tenant: str | None = None,
    migrations: Sequence[Migration] | None = None,
    reach: Reach = onwards,
) -> list[Migration]:
    """Bring the store to the newest schema, one transaction for each step; the steps taken.

    `partitions` counts for a new store. The `roles` are given what a store needs, and no more; with
    `tenant` they are bound to it for good, and never see another. Any number of processes may do
    this at once, and stores may be open meanwhile.
    """
    if tenant is not None:
        check_name(tenant, "tenant")
    if not 1 <= partitions <= _MAX_PARTITIONS:
        raise InvalidInput(f"No store has {partitions} partitions.")
    steps = shipped() if migrations is None else migrations
    check_shipped(steps)
    where = Address(address)

    async def work(connection: Connection) -> list[Migration]:
        [(encoding,)] = await _all(connection, SQL["encoding"])
        if encoding != "UTF8":
            raise NotAStore(
                f"The database {where} holds its text in {encoding}.",
                "Make one with ENCODING 'UTF8' (and TEMPLATE template0).",
            )
        applied: list[Migration] = []
        while step := await _apply_next(connection, where, steps, partitions, reach):
            applied.append(step)
        for role in roles:
            await _grant(connection, role, tenant)
        return applied

    return await with_connection(where, work)


async def check_schema(
    connection: Connection, address: Address, migrations: Sequence[Migration]
) -> None:
    """Refuse a database whose schema is not the one this version works with."""
    try:
        applied = await _applied(connection)
    except psycopg.Error as error:
        if error.sqlstate not in _MISSING:
            raise
        raise StoreOutdated(f"The database {address} is not a store yet.") from error
    check_applied(applied, str(address), migrations)
    if len(applied) < len(migrations):
        raise StoreOutdated(
            f"The store {address} has schema {len(applied)}; this Refold needs {len(migrations)}."
        )


async def warn_if_not_kept(connection: Connection, address: Address) -> None:
    """Warn, once for each address, if the server lets this role see every tenant's rows."""
    [(is_free,)] = await _all(connection, SQL["is_free"])
    if is_free and str(address) not in _warned:
        _warned.add(str(address))
        _LOGGER.warning(
            "The store %s is used by a role that may do everything: the server does not keep it to "
            "its tenant. Use one that has nothing but LOGIN: `refold store migrate --role …`.",
            address,
        )


async def _apply_next(
    connection: Connection,
    address: Address,
    migrations: Sequence[Migration],
    partitions: int,
    reach: Reach,
) -> Migration | None:
    """Apply the first migration that is missing; another process may be doing the same."""
    async with connection.transaction():
        await execute(connection, SQL["lock"])
        if not await _all(connection, SQL["schema"]):
            await execute(connection, SQL["make_schema"])
            await execute(connection, SQL["make_record"])
        elif not await _all(connection, SQL["record"]):
            raise stranger(address)
        applied = await _applied(connection)
        check_applied(applied, str(address), migrations)
        if len(applied) == len(migrations):
            return None
        migration = migrations[len(applied)]
        await connection.execute(migration.script.encode(), prepare=False)
        await execute(connection, SQL["make_partitions"], (partitions,))
        if await _all(connection, SQL["knows_samples"]):
            await execute(connection, SQL["keep_no_samples"])
        record = migration.number, migration.name, migration.digest
        await execute(connection, SQL["add_record"], record)
        reach("migrate.written")
    reach("migrate.committed")
    return migration


async def _grant(connection: Connection, role: str, tenant: str | None) -> None:
    """Grant a role the use of the store. One that is bound to a tenant stays so."""
    async with connection.transaction():
        await execute(connection, SQL["lock"])
        await _check_role(connection, role, tenant)
        for statement in SQL["grant"].split(";"):
            granted = sql.SQL(cast("LiteralString", statement)).format(role=sql.Identifier(role))
            await connection.execute(granted)
        await execute(connection, SQL["list_role"], (role, tenant))


async def _check_role(connection: Connection, role: str, tenant: str | None) -> None:
    """Refuse a role that does not exist, and to bind one that cannot be bound."""
    found = await (await execute(connection, SQL["role"], (role,))).fetchone()
    if found is None:
        raise InvalidInput(
            f"The server has no role {role!r}.", "Create it first: CREATE ROLE … LOGIN."
        )
    if found[0] and tenant is not None:
        raise InvalidInput(
            f"The role {role!r} cannot be bound: it may do everything, or the store is its own.",
            "Bind a role that has nothing but LOGIN.",
        )


async def _applied(connection: Connection) -> list[tuple[int, str]]:
    return [(number, digest) for number, digest in await _all(connection, SQL["applied"])]


async def _all(connection: Connection, statement: str) -> list[tuple[Any, ...]]:
    return await (await execute(connection, statement)).fetchall()
