"""Makes DBOS's tables in a schema of their own, and lets a forget reach them."""

import asyncio
from collections.abc import Sequence
from importlib.resources import files
from typing import Final

import psycopg
from psycopg.sql import SQL, Identifier
from sqlalchemy.exc import SQLAlchemyError

from refold.engine.dbos.link import checked, connected, refused
from refold.engine.dbos.names import SCHEMA
from refold.errors import StoreFailed

_LOG_IS_HERE: Final = "SELECT to_regprocedure('refold.forget_folds(text, uuid[])')"
_GRANTS: Final = (
    "GRANT USAGE ON SCHEMA {schema} TO {role}",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}",
    "GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {role}",
)


async def prepare(address: str, roles: Sequence[str] = ()) -> None:
    """Make or migrate the tables that folds are queued in; it may be repeated.

    The roles see the names of all tenants' sessions that have folds under way, and no word of them.

    Args:
        address: The database, as who owns the store.
        roles: Who may queue folds and run workers.
    """
    try:
        await asyncio.to_thread(_tables, checked(address))
        async with await connected(address, "refold prepare") as db:
            there = await db.execute(_LOG_IS_HERE)
            if (await there.fetchone()) != (None,):
                await db.execute(files("refold.engine.dbos").joinpath("forget.sql").read_bytes())
            for role in roles:
                for grant in _GRANTS:
                    await db.execute(
                        SQL(grant).format(schema=Identifier(SCHEMA), role=Identifier(role))
                    )
    except (psycopg.Error, SQLAlchemyError) as error:
        fix = "Check that it runs, and prepare them as the database's owner."
        raise StoreFailed(
            f"The engine's tables cannot be made. {refused(error).what}", fix
        ) from error


def _tables(address: str) -> None:
    # DBOS migrates where it is launched, or by a program of its own; this is what both call.
    from dbos._serialization import DefaultSerializer  # noqa: PLC0415
    from dbos._sys_db import SystemDatabase  # noqa: PLC0415

    database = SystemDatabase.create(
        system_database_url=address,
        engine_kwargs={"pool_size": 1},
        engine=None,
        schema=SCHEMA,
        serializer=DefaultSerializer(),
        executor_id=None,
        use_listen_notify=False,
    )
    try:
        database.run_migrations()
    finally:
        database.destroy()
