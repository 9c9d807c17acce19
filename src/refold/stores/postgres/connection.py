"""Connections to the server: how they are made, and what they may take."""

from contextlib import suppress
from dataclasses import dataclass
from shlex import join
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.array import ListBinaryDumper
from psycopg.types.numeric import Int8BinaryDumper
from psycopg.types.string import StrBinaryDumper

from refold.errors import InvalidInput
from refold.stores.address import is_clear
from refold.stores.postgres.transaction import Connection, Row

_ALIVE: Final = {"keepalives": 1, "keepalives_idle": 30, "keepalives_interval": 10}
_NOTICED: Final = (
    "-c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3"
)
"""How the server notices that a client is gone, with whatever it has locked."""
_STATEMENTS: Final = 500  # how many a connection keeps prepared; we have fewer
_SLACK: Final = 5.0
_CANCEL: Final = 1.0
"""Seconds for the server to take a request to cancel."""


@dataclass(frozen=True, slots=True)
class Pool:
    """How many connections a store has, and how long things may take; times are in seconds.

    With `prepare=False` the store works behind a pooler that gives each transaction another
    connection (pgbouncer in transaction mode): nothing is prepared, and no setting is sent at the
    start of a connection. Then let the role itself limit its statements:
    `ALTER ROLE … SET statement_timeout = '30s'`.
    """

    least: int = 1
    most: int = 10
    queue: int = 1_000
    """How many may wait for a connection; who comes then is refused at once."""
    wait: float = 10.0
    """How long to wait for a connection."""
    connect: float | None = None
    """How long the server may take to take a new connection; as long as `wait` if None."""
    statement: float = 30.0
    """How long one statement may take."""
    prepare: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.least <= self.most or self.most < 1:
            raise InvalidInput(f"No pool has from {self.least} to {self.most} connections.")
        times = self.wait, self.statement, self.wait if self.connect is None else self.connect
        if self.queue < 1 or min(times) <= 0:
            raise InvalidInput("A pool's queue and times must be greater than 0.")

    @property
    def limit(self) -> float:
        """When to give up waiting for a server that should have given up by itself."""
        return self.statement + _SLACK


class Address:
    """Where a database is, and how it is shown: without a user, a password or other secrets."""

    def __init__(self, address: str) -> None:
        parts = _parts(address)
        self.conninfo = address
        self.options = str(parts.get("options", ""))
        host, port = parts.get("host", "localhost"), parts.get("port", 5432)
        self.shown = f"postgresql://{host}:{port}/{parts.get('dbname', '')}"
        self.createdb = _createdb(parts)

    def __str__(self) -> str:
        return self.shown


def _createdb(parts: dict[str, Any]) -> str:
    """The command that makes the database."""
    where = [(option, parts.get(name)) for option, name in (("-h", "host"), ("-p", "port"))]
    words = [word for option, value in where if value for word in (option, str(value))]
    name = [str(parts["dbname"])] if parts.get("dbname") else []
    return join(["createdb", *words, "-E", "UTF8", "-T", "template0", *name])


def _parts(address: str) -> dict[str, Any]:
    with suppress(psycopg.Error):  # which repeats the address, and perhaps a password in it
        if is_clear(address):
            return conninfo_to_dict(address)
    raise InvalidInput(
        "The store's address is not one of PostgreSQL.",
        "Write it as postgresql://user@host:5432/database; characters such as @, : or / "
        "in a password need a % and their code.",
    )


def parameters(address: Address, pool: Pool) -> dict[str, Any]:
    """What a connection is made with, beside the address."""
    made: dict[str, Any] = {
        "autocommit": True,
        "connect_timeout": max(2, round(pool.wait if pool.connect is None else pool.connect)),
        "prepare_threshold": 2 if pool.prepare else None,
        "tcp_user_timeout": round(pool.limit * 1000),
        "fallback_application_name": "refold",
        **_ALIVE,
    }
    if pool.prepare:
        timeout = f"-c statement_timeout={round(pool.statement * 1000)}"
        given = f"{_NOTICED} {timeout} {address.options}"
        made["options"] = given.strip()  # what comes later is what holds
    return made


class SwiftConnection(AsyncConnection[Row]):
    """A connection that is given up soon when its server does not even take a request to cancel.

    A statement that is canceled asks the server to stop, and waits for that. A server that hangs
    would keep the connection, and its place in the pool, for ten seconds.
    """

    async def cancel_safe(self, *, timeout: float = 30.0) -> None:  # noqa: ASYNC109 - psycopg's own
        """See psycopg; the connection is closed if the server does not answer."""
        try:
            await super().cancel_safe(timeout=min(timeout, _CANCEL))
        except BaseException:
            self.pgconn.finish()
            raise


async def configure(connection: Connection) -> None:
    """Send values in one form each, so that one statement is prepared once."""
    connection.prepared_max = _STATEMENTS
    connection.adapters.register_dumper(int, Int8BinaryDumper)
    connection.adapters.register_dumper(str, StrBinaryDumper)
    connection.adapters.register_dumper(list, ListBinaryDumper)


async def connect(address: Address, pool: Pool) -> Connection:
    """A connection of its own, outside the pool."""
    made = await SwiftConnection.connect(address.conninfo, **parameters(address, pool))
    await configure(made)
    return made
