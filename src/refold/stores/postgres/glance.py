"""Reading a session by single calls, without a transaction around them.

Nearly every read is of a session that is no fork: its row, some of its entries, perhaps artifacts.
Entries never change unless the revision of their session does, so what the calls give belongs
together for as long as that is the same. Where it is not, or where there is more to read, the work
is done again in a transaction. That spares two or three ways to the server.
"""

from asyncio import timeout
from typing import Any, Final

from refold.log.span import Span
from refold.stores.postgres.read import SQL as READ
from refold.stores.postgres.rows import SessionRow
from refold.stores.postgres.transaction import Reading, Row, Values, execute
from refold.stores.sql import statements

SQL: Final = statements("refold.stores.postgres", "sql/glance.sql")
_MOST_ENTRIES: Final = 1_000
_KEY, _OWN_FROM, _REVISION = 0, 9, 11


class Changed(Exception):
    """The session is not what it was, or more is needed than calls can give."""


class Glance(Reading):
    """Reads one session by calls; raises Changed where a transaction is needed."""

    _known: tuple[int, int] | None = None

    def goes_by(self, row: SessionRow, span: Span | None) -> bool:
        """Whether the span can be read by what is known of its session.

        If that is not so any more, the calls give nothing.
        """
        if span is None or row.own_from > 1 or span.last > row.state.head:
            return False
        self._known = row.key, row.revision
        return True

    async def all(self, sql: str, values: Values = ()) -> list[Row]:
        """The rows a statement gives."""
        call, named = self._translated(sql, values)
        async with timeout(self._limit):
            rows = await (await execute(self.connection, call, named)).fetchall()
        if not rows:
            raise Changed
        return rows

    async def one(self, sql: str, values: Values = ()) -> Row | None:
        """The first row a statement gives."""
        row = (await self.all(sql, values))[0]
        if sql == READ["session"]:
            if row[_OWN_FROM] > 1:
                raise Changed
            self._known = row[_KEY], row[_REVISION]
        return row

    def _translated(self, sql: str, values: Values) -> tuple[str, Values]:
        """The call that does what the statement does."""
        if sql == READ["session"]:
            return SQL["session"], values
        if self._known is None:
            raise Changed
        if sql == READ["artifacts"]:
            return SQL["artifacts"], (self.tenant, *self._known, values[1])
        if sql == READ["entries"]:
            _, _, first, last = values
            return self._entries([first], [last])
        if sql == READ["entries_of_many"]:
            _, _, firsts, lasts = values
            return self._entries(firsts, lasts)
        raise Changed

    def _entries(self, firsts: Any, lasts: Any) -> tuple[str, Values]:  # noqa: ANN401 - lists of seqs
        if sum(lasts) - sum(firsts) > _MOST_ENTRIES or self._known is None:
            raise Changed
        return SQL["entries"], (self.tenant, *self._known, firsts, lasts)
