"""The engine's database: its address, its tables, its errors."""

import asyncio
from collections.abc import Sequence
from importlib.resources import files
from itertools import product
from typing import Any, Final

import psycopg
import sqlalchemy
from dbos import DBOS
from psycopg.conninfo import conninfo_to_dict
from psycopg.sql import SQL, Identifier
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from refold.engine.dbos.names import OWN_SCHEMA, SCHEMA
from refold.errors import InvalidInput, StoreFailed

Connection = psycopg.AsyncConnection[tuple[Any, ...]]
_PATIENCE: Final = 10
_ALIVE: Final[dict[str, Any]] = {
    "connect_timeout": _PATIENCE,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 1_000 * _PATIENCE,
    # The server must notice soon, too, when a machine is gone without a word.
    "options": "-c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3",
}
_ONE_AT_A_TIME: Final = "SELECT pg_advisory_xact_lock(hashtextextended('refold prepare', 0))"
_GRANTS: Final = (
    "GRANT USAGE ON SCHEMA {schema} TO {role}",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}",
    "GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {role}",
)


async def connected(address: str, name: str) -> Connection:
    """A connection that commits each statement by itself."""
    return await psycopg.AsyncConnection.connect(
        address, autocommit=True, application_name=name, prepare_threshold=None, **_ALIVE
    )


def pooled(address: str, name: str, connections: int) -> sqlalchemy.Engine:
    """A pool for use in threads, which connects when it is first used."""
    return sqlalchemy.create_engine(
        sqlalchemy.make_url(checked(address)).set(drivername="postgresql+psycopg"),
        connect_args={"application_name": name, **_ALIVE},
        pool_size=connections,
        max_overflow=0,
        pool_use_lifo=True,  # few connections are opened where few are needed
    )


def checked(address: str) -> str:
    """The address, if it is one. What is wrong with it is not repeated: it may hold a password."""
    try:
        conninfo_to_dict(address)
        sqlalchemy.make_url(address)
    except (psycopg.Error, ArgumentError, ValueError):
        raise InvalidInput(
            "The address of the engine's database cannot be read.",
            "Give it as postgresql://user@host/database.",
        ) from None
    return address


def refused(error: BaseException) -> StoreFailed:
    """What the engine's database says, in our words."""
    # SQLAlchemy's error repeats the statement and its values; the driver's does not.
    cause = (isinstance(error, DBAPIError) and error.orig) or error
    lines = str(cause).strip().splitlines() or [type(cause).__name__]
    return StoreFailed(
        f"The engine's database refused: {lines[0].rstrip('.')}.",
        "Check that it runs, and that `refold store migrate` has prepared it.",
    )


async def prepare(address: str, roles: Sequence[str] = ()) -> None:
    """Create or migrate the tables that folds are queued in; it may be repeated.

    The roles see the names of all tenants' sessions that have folds under way, and no word of them.

    Args:
        address: The database, as its owner.
        roles: Who may queue folds and run workers.
    """
    try:
        await asyncio.to_thread(DBOS.migrate, checked(address), schema=SCHEMA)
        async with await connected(address, "refold prepare") as db, db.transaction():
            await db.execute(_ONE_AT_A_TIME)
            await db.execute(files("refold.engine.dbos").joinpath("tables.sql").read_bytes())
            for schema, role, grant in product((SCHEMA, OWN_SCHEMA), roles, _GRANTS):
                await db.execute(
                    SQL(grant).format(schema=Identifier(schema), role=Identifier(role))
                )
    except (psycopg.Error, SQLAlchemyError) as error:
        raise StoreFailed(
            f"The engine's tables cannot be made. {refused(error).what}",
            "Check that it runs, and prepare them as the database's owner.",
        ) from error
