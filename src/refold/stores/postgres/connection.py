"""Transactions, connections and their limits, and PostgreSQL's errors in our words."""

import re
from asyncio import timeout
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from shlex import join
from typing import Any, ClassVar, Final, TypeVar

import psycopg
from psycopg import AsyncConnection, AsyncRawCursor, Error, InterfaceError, OperationalError
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from psycopg.sql import Literal
from psycopg.types.array import ListBinaryDumper
from psycopg.types.numeric import Int8BinaryDumper
from psycopg.types.string import StrBinaryDumper
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

from refold.errors import (
    InvalidInput,
    NotAStore,
    StoreBusy,
    StoreClosed,
    StoreCorrupt,
    StoreError,
    StoreFailed,
    StoreFull,
    StoreNotFound,
    StoreOutdated,
    StoreReadOnly,
)
from refold.stores.sql import Reach, is_clear

# What the functions of this package work in: a transaction, and whose rows it may touch.
#
# Statements name their values `$1`, `$2`, … Whole numbers go as `bigint`, texts as `text`, bytes as
# `bytea`, ids as `uuid`, and lists of these as arrays.

Row = tuple[Any, ...]
Values = Sequence[object]
Connection = AsyncConnection[Row]
T = TypeVar("T")


class Reading:
    """A transaction that reads one tenant's rows, all of them as they are at its beginning.

    It begins with its first statement. No statement may take longer than `limit` seconds.
    """

    BEGIN: ClassVar[bytes] = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    LIMITS: ClassVar[bytes] = b""

    def __init__(
        self, connection: Connection, tenant: str, now: int, reach: Reach, limit: float = 60.0
    ) -> None:
        self.connection = connection
        self.tenant = tenant
        self.now = now
        self.reach = reach
        self._limit = limit
        self._begun = False

    async def all(self, sql: str, values: Values = ()) -> list[Row]:
        return await (await self._execute(sql, values)).fetchall()

    async def first(self, sql: str, values: Values = ()) -> Row | None:
        return await (await self._execute(sql, values)).fetchone()

    async def run(self, sql: str, values: Values = ()) -> int:
        return (await self._execute(sql, values)).rowcount

    async def together(self, *work: tuple[str, Values]) -> list[list[Row]]:
        """The rows of several statements, in one round trip; none for those without rows."""
        await self._begin()
        async with timeout(self._limit):
            async with self.connection.pipeline():
                cursors = [await execute(self.connection, sql, values) for sql, values in work]
            return [await cursor.fetchall() if cursor.description else [] for cursor in cursors]

    async def end(self) -> None:
        if self._begun:
            await self._execute("ROLLBACK", ())

    async def _execute(self, sql: str, values: Values) -> AsyncRawCursor[Row]:
        await self._begin()
        async with timeout(self._limit):
            return await execute(self.connection, sql, values)

    async def _begin(self) -> None:
        if self._begun:
            return
        self._begun = True
        # Without values both statements go at once; a pipeline would do so too, but costs more.
        # The planner takes many small parts for much work, and compiling that takes far longer.
        tenant = Literal(self.tenant).as_bytes(self.connection)
        async with timeout(self._limit):
            await AsyncRawCursor(self.connection).execute(
                b"%b; SELECT set_config('refold.tenant', %b, true), set_config('jit', 'off', true)"
                b"%b" % (self.BEGIN, tenant, self.LIMITS),
                prepare=False,
            )


class Writing(Reading):
    """A transaction that may also write them.

    Each of its statements sees what was committed before that statement: who locks a row first
    reads it afterwards as nobody else can change it. Where the database is set to read only, it may
    not write either.
    """

    BEGIN = b"BEGIN ISOLATION LEVEL READ COMMITTED"
    # If we are gone without a word, the server lets go of what we hold before others give up.
    LIMITS = b", set_config('idle_in_transaction_session_timeout', '15s', true)"

    async def commit(self) -> None:
        if self._begun:
            await self._execute("COMMIT", ())


async def execute(connection: Connection, sql: str, values: Values = ()) -> AsyncRawCursor[Row]:
    """Run one statement, with its result in binary form."""
    return await AsyncRawCursor(connection).execute(sql.encode(), values, binary=True)


async def give_up(connection: Connection) -> None:
    """Roll back whatever transaction the connection is in, or close the connection."""
    status = connection.pgconn.transaction_status
    if status in {TransactionStatus.INTRANS, TransactionStatus.INERROR}:
        with suppress(Error):
            await execute(connection, "ROLLBACK")
            return
    if status != TransactionStatus.IDLE:
        await connection.close()


_KEEPALIVE: Final = {"keepalives": 1, "keepalives_idle": 30, "keepalives_interval": 10}
_KEEPALIVE_OF_SERVER: Final = (
    "-c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3"
)
"""How the server notices that a client is gone, with whatever it has locked."""
_STATEMENTS: Final = 500  # how many a connection keeps prepared; we have fewer
_SLACK: Final = 5.0
_DAY: Final = 24 * 3600.0
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

    min_size: int = 1
    max_size: int = 10
    queue: int = 1_000
    """How many may wait for a connection; further requests are refused at once."""
    wait: float = 10.0
    """How long to wait for a connection."""
    connect: float | None = None
    """How long the server may take to take a new connection; as long as `wait` if None."""
    statement: float = 30.0
    """How long one statement may take."""
    prepare: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.min_size <= self.max_size or self.max_size < 1:
            raise InvalidInput(f"No pool has from {self.min_size} to {self.max_size} connections.")
        times = self.wait, self.statement, self.wait if self.connect is None else self.connect
        if self.queue < 1 or min(times) <= 0:
            raise InvalidInput("A pool's queue and times must be greater than 0.")

    @property
    def limit(self) -> float:
        """When to stop waiting for a server that should have canceled the statement itself."""
        return self.statement + _SLACK


class Address:
    """Where a database is, and how it is shown: without a user, a password or other secrets."""

    def __init__(self, address: str) -> None:
        parts = _parts(address)
        self.conninfo = address
        self.options = str(parts.get("options", ""))
        host, port = parts.get("host", "localhost"), parts.get("port", 5432)
        self.shown = f"postgresql://{host}:{port}/{parts.get('dbname', '')}"
        where = [(option, parts.get(name)) for option, name in (("-h", "host"), ("-p", "port"))]
        words = [word for option, value in where if value for word in (option, str(value))]
        name = [str(parts["dbname"])] if parts.get("dbname") else []
        self.createdb = join(["createdb", *words, "-E", "UTF8", "-T", "template0", *name])
        """The command that makes the database."""

    def __str__(self) -> str:
        return self.shown


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
    """The connection parameters besides the address."""
    options: dict[str, Any] = {
        "autocommit": True,
        "connect_timeout": max(2, round(pool.wait if pool.connect is None else pool.connect)),
        "prepare_threshold": 2 if pool.prepare else None,
        "tcp_user_timeout": round(pool.limit * 1000),
        "fallback_application_name": "refold",
        **_KEEPALIVE,
    }
    if pool.prepare:
        timeout = f"-c statement_timeout={round(pool.statement * 1000)}"
        # The last value of an option wins, so the address can override ours.
        options["options"] = f"{_KEEPALIVE_OF_SERVER} {timeout} {address.options}".strip()
    return options


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
    """Send each type of value in one form, so that one statement is prepared once."""
    connection.prepared_max = _STATEMENTS
    connection.adapters.register_dumper(int, Int8BinaryDumper)
    connection.adapters.register_dumper(str, StrBinaryDumper)
    connection.adapters.register_dumper(list, ListBinaryDumper)


async def connect(address: Address, pool: Pool) -> Connection:
    connection = await SwiftConnection.connect(address.conninfo, **parameters(address, pool))
    await configure(connection)
    return connection


async def with_connection(address: Address, work: Callable[[Connection], Awaitable[T]]) -> T:
    """Do the work on a connection of its own, whose statements may take a day."""
    try:
        connection = await connect(address, Pool(statement=_DAY))
        try:
            return await work(connection)
        finally:
            await connection.close()
    except psycopg.Error as error:
        raise explained(address, error) from error


# PostgreSQL's errors in our words, and which of them to try again after.

_BY_CODE: Final[dict[str, tuple[type[StoreError], str, str | None]]] = {
    "25006": (
        StoreReadOnly,
        "cannot be written: it is a standby, or set to read only",
        "Use the address of the primary; if it is that, see its `default_transaction_read_only`.",
    ),
    "28000": (
        StoreFailed,
        "does not let us in",
        "Check the user in the address, and what the server's pg_hba.conf lets it do.",
    ),
    "28P01": (
        StoreFailed,
        "does not let us in",
        (
            "Check the user and the password. They come from the address, else from PGUSER and "
            "PGPASSWORD or ~/.pgpass."
        ),
    ),
    "3D000": (StoreNotFound, "is not there: the server has no such database", None),
    "3F000": (StoreOutdated, "has no tables yet", None),
    "42501": (
        StoreFailed,
        "refuses this role",
        (
            "Run `refold store migrate --role ROLE` as the owner of the schema, who lets other "
            "roles use the store. Only the owner can migrate and scrub."
        ),
    ),
    "42704": (StoreFailed, "knows no role of that name", "Create it first: CREATE ROLE … LOGIN."),
    "42883": (StoreOutdated, "lacks a function", None),
    "42P01": (StoreOutdated, "lacks a table", None),
    "53100": (StoreFull, "cannot grow: the server's disk is full", None),
    "53300": (StoreBusy, "has no connection left", "Use smaller pools, or a pooler before it."),
    "55P03": (StoreBusy, "is locked by another", None),
    "57014": (
        StoreBusy,
        "took longer than a statement may",
        "Try again; if it keeps failing, check the server's load, or raise `Pool(statement=…)`.",
    ),
    "XX001": (StoreCorrupt, "is damaged", None),
    "XX002": (StoreCorrupt, "is damaged", None),
}
_REFUSALS: Final = (
    (re.compile('database ".*" does not exist'), "3D000"),
    (re.compile('password|authentication|pg_hba.conf|role ".*" does not exist'), "28P01"),
    (re.compile("too many clients|connection slots|too many connections"), "53300"),
)
"""A refused connection has no code, only a message."""
_LOST: Final = ("08", "57P01", "57P02", "57P03", "57P05", "25P03")
_POOL_FIX: Final = (
    "Try again later; if it keeps failing, give `Pool(max_size=…)` more, or use fewer tasks."
)

_SILENT_FIX: Final = "See whether the server runs and how busy it is, then try again."
_STRANGE: Final = "42703"  # a table of our name that lacks our columns


def is_lost(error: BaseException) -> bool:
    """Whether the connection broke, rather than the request being at fault."""
    if isinstance(error, PoolTimeout | TooManyRequests | PoolClosed):
        return False
    if isinstance(error, InterfaceError):
        return True
    if not isinstance(error, psycopg.Error):
        return False
    code = error.sqlstate or _refusal_code(error)
    return code.startswith(_LOST) if code else isinstance(error, OperationalError)


def explained(where: object, error: BaseException) -> StoreError:
    match error:
        case TooManyRequests():
            return StoreBusy(f"Too many wait for the store {where}.", _POOL_FIX)
        case PoolTimeout():
            return StoreBusy(f"No connection to the store {where} came free in time.", _POOL_FIX)
        case PoolClosed():
            return StoreClosed(f"The store {where} is not open.")
        case TimeoutError():
            return StoreBusy(f"The store {where} does not answer.", _SILENT_FIX)
        case psycopg.Error():
            return _by_code(where, error)
        case _:
            return StoreFailed(f"The store {where} failed.")


def _by_code(where: object, error: psycopg.Error) -> StoreError:
    code = error.sqlstate or _refusal_code(error)
    if code == _STRANGE:
        return stranger(where)
    if code in _BY_CODE:
        kind, what, fix = _BY_CODE[code]
        if kind is StoreNotFound and isinstance(where, Address):
            fix = f"Check the address, or make the database: `{where.createdb}`."
        return kind(f"The store {where} {what}.", fix)
    # Only the first line of what the server says: others may repeat rows.
    message = error.diag.message_primary or str(error).partition("\n")[0]
    if is_lost(error):
        return unreachable(where, message)
    return StoreFailed(f"The store {where} failed: {message} ({code}).")


def _refusal_code(error: psycopg.Error) -> str:
    message = str(error)
    return next((code for words, code in _REFUSALS if words.search(message)), "")


def unreachable(where: object, why: str) -> StoreFailed:
    return StoreFailed(
        f"The store {where} cannot be reached: {why}.",
        "Check that the server runs, can be reached from here and has connections left for this "
        "role, then try again.",
    )


def stranger(where: object) -> NotAStore:
    return NotAStore(
        f"The database {where} has a schema `refold` of another program.",
        "Use another database.",
    )
