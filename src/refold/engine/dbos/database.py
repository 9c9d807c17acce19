"""The engine's database: its address, its tables, its errors."""

import asyncio
from collections.abc import Sequence
from hashlib import sha256
from importlib.resources import files
from itertools import product
from typing import Any, Final, Literal

import psycopg
import sqlalchemy
from dbos import DBOS
from psycopg.conninfo import conninfo_to_dict
from psycopg.sql import SQL, Identifier
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from refold.errors import InvalidInput, StoreFailed

# What things are called in DBOS's tables: applications, queues, versions.

VERSION: Final = "refold-fold-1"
"""The version of the fold's workflow. Raise it when a fold that older code began could not be
finished by newer code: workers take only folds of their own version."""
WORKFLOW: Final = "refold.fold"
SCHEMA: Final = "refold_dbos"
"""The schema of DBOS's tables, in the same database as the log or in another."""
OWN_SCHEMA: Final = "refold_engine"
"""The schema of the engine's own tables, beside DBOS's."""
POOL: Final = "default"
"""The workers that folds go to, unless others are named."""

Lane = Literal["waiting", "background"]
_DIGITS: Final = 32
_NO_MODEL: Final = "(log)"


def application(pool: str) -> str:
    """What DBOS calls the workers of a pool."""
    return "refold" if pool == POOL else f"refold-{pool}"


def version_of(pool: str, version: str = VERSION) -> str:
    """The version as DBOS knows it, which takes each name for one application only."""
    return version if pool == POOL else f"{version}.{pool}"


def partition_of(tenant: str) -> str:
    """The part of a queue that is a tenant's. DBOS's tables hold no name of a tenant."""
    return sha256(tenant.encode()).hexdigest()[:_DIGITS]


def queue_of(pool: str, lane: Lane, model: str) -> str:
    """The queue of a model's folds; of those that no model writes, where it is empty."""
    return f"{lane_of(pool, lane)}{model or _NO_MODEL}"


def model_in(pool: str, queue: str) -> str | None:
    """The model of a queue; None when it is not the pool's."""
    lanes: tuple[Lane, Lane] = ("waiting", "background")
    for lane in lanes:
        prefix = lane_of(pool, lane)
        if queue.startswith(prefix):
            model = queue.removeprefix(prefix)
            return "" if model == _NO_MODEL else model
    return None


def lane_of(pool: str, lane: Lane) -> str:
    """What the names of a lane's queues begin with."""
    return f"{application(pool)}/{lane}/"


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
