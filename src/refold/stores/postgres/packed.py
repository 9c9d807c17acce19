"""One statement with values that are packed here, and not by the driver.

The driver looks at each value, and makes a cursor, to find out what we know already. For an append
that takes about as long as all else the client does.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

from psycopg import OperationalError, generators
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGresult

from refold.stores.postgres.transaction import Connection

whole_number: Final = Struct("!q").pack
"""A whole number as `bigint`."""
truth: Final = (b"\0", b"\1")
"""False and true as `boolean`."""
_NO_SUCH_STATEMENT: Final = "26000"
_IS_PREPARED: Final = "42P05"


class Statement(NamedTuple):
    """A statement that gives one whole number, or nothing; all its values go in binary form."""

    name: bytes
    sql: bytes
    formats: list[int]


def statement(name: str, sql: str, values: int) -> Statement:
    """A statement of so many values."""
    return Statement(f"refold_{name}".encode(), sql.encode(), [Format.BINARY] * values)


class Packed:
    """Runs such statements, each prepared once on each connection where that is wanted."""

    def __init__(self, *, prepare: bool) -> None:
        self._prepare = prepare
        self._prepared: WeakKeyDictionary[Connection, set[bytes]] = WeakKeyDictionary()

    async def run(
        self, connection: Connection, what: Statement, values: Sequence[bytes | None]
    ) -> int | None:
        """What the statement gives."""
        pgconn = connection.pgconn
        if not self._prepare:
            pgconn.send_query_params(
                what.sql, values, param_formats=what.formats, result_format=Format.BINARY
            )
            return _number(connection, await _answer(connection))
        if what.name not in self._prepared.get(connection, ()):
            await self._make(connection, what)
        pgconn.send_query_prepared(what.name, values, what.formats, Format.BINARY)
        result = await _answer(connection)
        if _code(result) != _NO_SUCH_STATEMENT:
            return _number(connection, result)
        # After some statements, such as a rollback, the driver lets go of all that is prepared.
        await self._make(connection, what)
        pgconn.send_query_prepared(what.name, values, what.formats, Format.BINARY)
        return _number(connection, await _answer(connection))

    async def _make(self, connection: Connection, what: Statement) -> None:
        connection.pgconn.send_prepare(what.name, what.sql)
        result = await _answer(connection)
        if _code(result) != _IS_PREPARED:  # by a call that was cancelled before it noted that
            _check(connection, result)
        self._prepared.setdefault(connection, set()).add(what.name)


async def _answer(connection: Connection) -> PGresult:
    results = await connection.wait(generators.execute(connection.pgconn))
    if not results:
        raise OperationalError("the server gave no answer")
    return results[-1]


def _code(result: PGresult) -> str | None:
    if result.status != ExecStatus.FATAL_ERROR:
        return None
    return error_from_result(result).sqlstate


def _check(connection: Connection, result: PGresult) -> None:
    if result.status == ExecStatus.FATAL_ERROR:
        raise error_from_result(result, encoding=connection.info.encoding)


def _number(connection: Connection, result: PGresult) -> int | None:
    _check(connection, result)
    value = result.get_value(0, 0)
    return None if value is None else int.from_bytes(value, signed=True)
