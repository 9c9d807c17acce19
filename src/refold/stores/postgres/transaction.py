"""What the functions of this package work in: a transaction, and whose rows it may touch.

Statements name their values `$1`, `$2`, … Whole numbers go as `bigint`, texts as `text`, bytes as
`bytea`, ids as `uuid`, and lists of these as arrays.
"""

from asyncio import timeout
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, ClassVar

from psycopg import AsyncConnection, AsyncRawCursor, Error
from psycopg.pq import TransactionStatus
from psycopg.sql import Literal

from refold.stores.reach import Reach

Row = tuple[Any, ...]
Values = Sequence[object]
Connection = AsyncConnection[Row]


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
        """The rows a statement gives."""
        return await (await self._execute(sql, values)).fetchall()

    async def one(self, sql: str, values: Values = ()) -> Row | None:
        """The first row a statement gives, if it gives any."""
        return await (await self._execute(sql, values)).fetchone()

    async def run(self, sql: str, values: Values = ()) -> int:
        """Run a statement; how many rows it touched."""
        return (await self._execute(sql, values)).rowcount

    async def together(self, *work: tuple[str, Values]) -> list[list[Row]]:
        """The rows of several statements, on one way to the server; none for those without."""
        await self._begin()
        async with timeout(self._limit):
            async with self.connection.pipeline():
                cursors = [await execute(self.connection, sql, values) for sql, values in work]
            return [await one.fetchall() if one.description else [] for one in cursors]

    async def end(self) -> None:
        """End it, and let go of what it saw."""
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
        """Make it durable, for all to see."""
        if self._begun:
            await self._execute("COMMIT", ())


async def execute(connection: Connection, sql: str, values: Values = ()) -> AsyncRawCursor[Row]:
    """Run one statement, and get its answer in the binary form."""
    return await AsyncRawCursor(connection).execute(sql.encode(), values, binary=True)


async def give_up(connection: Connection) -> None:
    """Leave whatever transaction the connection is in, or the connection itself."""
    status = connection.pgconn.transaction_status
    if status in {TransactionStatus.INTRANS, TransactionStatus.INERROR}:
        with suppress(Error):
            await execute(connection, "ROLLBACK")
            return
    if status != TransactionStatus.IDLE:
        await connection.close()
