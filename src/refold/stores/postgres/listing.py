"""The list of sessions."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from refold.log.pages import END, last_shown, page_after
from refold.log.protocol import SessionInfo, SessionPage
from refold.stores.postgres.read import info, session_of
from refold.stores.postgres.rows import MINUTE
from refold.stores.postgres.search import sessions_with
from refold.stores.postgres.transaction import Reading, Row
from refold.stores.sql import statements

SQL = statements("refold.stores.postgres", "sql/list.sql")
_AT_ONCE: Final = 1_000
_FEW: Final = 1_000
_UPDATED_AT: Final = 6
_AFTER_ALL: Final = "\U0010ffff"  # of what may follow in a name, which is printable


class _Wanted(NamedTuple):
    """Which sessions to list."""

    keys: Sequence[int]
    prefix: str | None
    """Those whose names begin so, too; none where they are among the keys."""


async def sessions(tx: Reading, search: str | None, limit: int, page: str | None) -> SessionPage:
    """A page of the sessions, last used first."""
    wanted = None if search is None else await _wanted(tx, search)
    at, key = last_shown(page)
    after = _within(at, END[0]), _within(key, END[1])
    many = max(0, min(limit, _AT_ONCE)) + 1
    shown: list[SessionInfo] = []
    last = ""
    while True:
        rows = await _newest(tx, wanted, after, many)
        for name, *columns in rows:
            if len(shown) >= limit:
                return SessionPage(tuple(shown), last or None)
            shown.append(info(await session_of(tx, tuple(columns)), name))
            after = columns[_UPDATED_AT], columns[0]
            last = page_after(*after)
        if len(rows) < many:
            return SessionPage(tuple(shown))


async def _wanted(tx: Reading, search: str) -> _Wanted:
    keys = await sessions_with(tx, search)
    if not search.isprintable():  # then no name begins so
        return _Wanted(list(keys), None)
    if len(keys) <= _FEW:
        names = search, search + _AFTER_ALL, _FEW + 1
        named = {key for (key,) in await tx.all(SQL["named"], (tx.tenant, *names))}
        if len(named) <= _FEW:
            return _Wanted(list(keys | named), None)
    return _Wanted(list(keys), search)


async def _newest(
    tx: Reading, wanted: _Wanted | None, after: tuple[int, int], many: int
) -> list[Row]:
    """The next sessions; few are looked up and sorted, of many the first in the list are found."""
    place = after[0] // MINUTE, *after, many
    if wanted is None:
        return await tx.all(SQL["newest"], (tx.tenant, *place))
    if wanted.prefix is None:
        return await tx.all(SQL["newest_of_few"], (tx.tenant, *after, many, wanted.keys))
    return await tx.all(SQL["newest_of_many"], (tx.tenant, *place, wanted.keys, wanted.prefix))


def _within(number: int, most: int) -> int:
    return max(-most, min(number, most))
