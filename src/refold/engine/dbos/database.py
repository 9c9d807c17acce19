"""The engine's database: names in DBOS's tables, connections, setup and errors."""

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

VERSION: Final = "refold-fold-1"
"""The version of the fold's workflow. Raise it when a fold that older code began could not be
finished by newer code: workers take only folds of their own version."""
WORKFLOW: Final = "refold.fold"
SCHEMA: Final = "refold_dbos"
"""The schema of DBOS's tables, in the same database as the log or in another."""
OWN_SCHEMA: Final = "refold_engine"
"""The schema of the engine's own tables, next to DBOS's."""
POOL: Final = "default"
"""The default pool of workers."""

Connection = psycopg.AsyncConnection[tuple[Any, ...]]
Priority = Literal["waiting", "background"]
"""Whether somebody waits for a fold: each model has a queue for either."""
_PARTITION_DIGITS: Final = 32
_NO_MODEL: Final = "(log)"
_TIMEOUT: Final = 10
_KEEPALIVE: Final[dict[str, Any]] = {
    "connect_timeout": _TIMEOUT,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 1_000 * _TIMEOUT,
    # The server, too, must notice soon when a machine disappears silently.
    "options": "-c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3",
}
_PREPARE_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtextextended('refold prepare', 0))"
_GRANTS: Final = (
    "GRANT USAGE ON SCHEMA {schema} TO {role}",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}",
    "GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {role}",
)


def application(pool: str) -> str:
    """What DBOS calls the workers of a pool."""
    return "refold" if pool == POOL else f"refold-{pool}"


def version_of(pool: str, version: str = VERSION) -> str:
    """The version's name in DBOS, which allows each name for one application only."""
    return version if pool == POOL else f"{version}.{pool}"


def partition_of(tenant: str) -> str:
    """A tenant's partition of a queue. DBOS's tables hold no tenant names."""
    return sha256(tenant.encode()).hexdigest()[:_PARTITION_DIGITS]


def queue_of(pool: str, priority: Priority, model: str) -> str:
    """The queue of a model's folds; with an empty model, of folds that need none."""
    return f"{queue_prefix(pool, priority)}{model or _NO_MODEL}"


def model_in(pool: str, queue: str) -> str | None:
    """The model of a queue; None when it is not the pool's."""
    priorities: tuple[Priority, Priority] = ("waiting", "background")
    for priority in priorities:
        prefix = queue_prefix(pool, priority)
        if queue.startswith(prefix):
            model = queue.removeprefix(prefix)
            return "" if model == _NO_MODEL else model
    return None


def queue_prefix(pool: str, priority: Priority) -> str:
    """What the names of the pool's queues with this priority begin with."""
    return f"{application(pool)}/{priority}/"


async def connect(address: str, name: str) -> Connection:
    """A connection that commits each statement by itself."""
    return await psycopg.AsyncConnection.connect(
        address, autocommit=True, application_name=name, prepare_threshold=None, **_KEEPALIVE
    )


def connection_pool(address: str, name: str, connections: int) -> sqlalchemy.Engine:
    """A pool for use in threads, which connects when it is first used."""
    return sqlalchemy.create_engine(
        sqlalchemy.make_url(_check_address(address)).set(drivername="postgresql+psycopg"),
        connect_args={"application_name": name, **_KEEPALIVE},
        pool_size=connections,
        max_overflow=0,
        pool_use_lifo=True,  # few connections are opened where few are needed
    )


def _check_address(address: str) -> str:
    try:
        conninfo_to_dict(address)
        sqlalchemy.make_url(address)
    except (psycopg.Error, ArgumentError, ValueError):  # may quote the password: not repeated
        raise InvalidInput(
            "The address of the engine's database cannot be read.",
            "Give it as postgresql://user@host/database.",
        ) from None
    return address


def database_error(error: BaseException) -> StoreFailed:
    # SQLAlchemy's error repeats the statement and its values; the driver's does not.
    cause = (isinstance(error, DBAPIError) and error.orig) or error
    lines = str(cause).strip().splitlines() or [type(cause).__name__]
    return StoreFailed(
        f"The engine's database refused: {lines[0].rstrip('.')}.",
        "Check that it runs, and that `refold store migrate` has prepared it.",
    )


async def prepare(address: str, roles: Sequence[str] = ()) -> None:
    """Create or migrate the tables that folds are queued in; it may be repeated.

    The roles can read the names of sessions with running folds, of all tenants, but no content.

    Args:
        address: The database, as its owner.
        roles: The database roles that may queue folds and run workers.
    """
    try:
        await asyncio.to_thread(DBOS.migrate, _check_address(address), schema=SCHEMA)
        async with await connect(address, "refold prepare") as db, db.transaction():
            await db.execute(_PREPARE_LOCK)
            await db.execute(files("refold.engine.dbos").joinpath("tables.sql").read_bytes())
            for schema, role, grant in product((SCHEMA, OWN_SCHEMA), roles, _GRANTS):
                await db.execute(
                    SQL(grant).format(schema=Identifier(schema), role=Identifier(role))
                )
    except (psycopg.Error, SQLAlchemyError) as error:
        raise StoreFailed(
            f"The engine's tables cannot be made. {database_error(error).what}",
            "Check that it runs, and prepare them as the database's owner.",
        ) from error
