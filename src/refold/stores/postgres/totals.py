"""The totals in their tables: what an append books, totals by day, and counting again.

An append goes to the server as one call, so what it books is worked out before, by the accounts as
this process knows them. The server compares their version, and appends nothing if it is another.
"""

from collections.abc import Collection, Sequence

from refold.log.entry import Entry, spans_of
from refold.log.kinds import Requested
from refold.log.protocol import Total, Totals
from refold.stores.postgres.connection import Reading, Row, Values, Writing
from refold.stores.postgres.read import (
    Database,
    Name,
    SessionRow,
    find_session,
    packed,
    read,
    unpacked,
)
from refold.stores.sql import statements
from refold.stores.totals import Basis, Booking, KnownAccounts, Line, answered

SQL = statements("refold.stores.postgres", "sql/totals.sql")


async def accounts_of(
    store: Database, name: Name, row: SessionRow, entries: Sequence[Entry]
) -> KnownAccounts:
    """The accounts of a session, read if this process does not know them or when it was asked."""
    known, requests = store.cache.accounts(name, row.key), answered(entries)
    if known is not None and known.sent.keys() >= {*requests}:
        return known

    async def look(tx: Reading) -> KnownAccounts:
        found = await tx.first(SQL["accounts"], (tx.tenant, row.key))
        version, state = found or (0, b"")
        spans = spans_of(requests)
        records = await read(tx, row, spans, is_whole=False) if spans else []
        sent = {each.seq: each.at for each in records if each.kind == Requested.KIND}
        return KnownAccounts(row.key, version, state, sent)

    return await store.read(name[0], look)


def booked(known: KnownAccounts, booking: Booking) -> Values:
    """What the server is given with an append."""
    return (known.version, booking.state, *_columns(booking.lines))


async def count_later(tx: Writing, keys: Collection[int]) -> None:
    """Note that what the totals of these sessions rest on has changed."""
    await tx.run(SQL["count_later"], (tx.tenant, sorted(keys)))


async def begin_uncounted(tx: Writing, key: int) -> None:
    await tx.run(SQL["add_uncounted"], (tx.tenant, key))


async def drop_totals(tx: Writing, key: int) -> None:
    await tx.run(SQL["drop_state"], (tx.tenant, key))
    await tx.run(SQL["drop_lines"], (tx.tenant, key))


async def count_all_later(tx: Writing) -> None:
    """Have all counted again; a process of an older version forgets sessions, but not totals."""
    await tx.run(SQL["drop_lost_states"], (tx.tenant,))
    await tx.run(SQL["drop_lost_lines"], (tx.tenant,))
    await tx.run(SQL["count_all_later"], (tx.tenant,))


async def totals(tx: Reading, first: int, last: int) -> Totals:
    values = (tx.tenant, first, last)
    rows = tuple(map(_total, await tx.all(SQL["by_day"], values)))
    [(sessions,)] = await tx.all(SQL["sessions"], values)
    return Totals(rows, sessions, await uncounted_sessions(tx))


async def dearest(tx: Reading, first: int, last: int, limit: int, *, every: bool) -> list[Total]:
    return [*map(_total, await tx.all(SQL["dearest"], (tx.tenant, first, last, limit, every)))]


async def uncounted_sessions(tx: Reading) -> int:
    [(number,)] = await tx.all(SQL["uncounted"], (tx.tenant,))
    return number


async def some_uncounted(tx: Reading, limit: int) -> list[str]:
    return [name for (name,) in await tx.all(SQL["some_uncounted"], (tx.tenant, limit))]


async def count_basis(tx: Reading, session: str) -> Basis | None:
    row = await find_session(tx, session)
    return None if row is None else (row.key, row.revision, row.state.head)


async def put_count(tx: Writing, session: str, basis: Basis, booking: Booking) -> bool:
    if await tx.first(SQL["hold"], (tx.tenant, session)) != basis:
        return False
    key = basis[0]
    await tx.run(SQL["drop_lines"], (tx.tenant, key))
    await tx.run(SQL["put_state"], (tx.tenant, key, booking.state))
    await tx.run(SQL["add_lines"], (tx.tenant, key, *_columns(booking.lines)))
    return True


def _columns(lines: Sequence[Line]) -> Values:
    return (
        [line.day for line in lines],
        [packed(line.model) for line in lines],
        [packed(line.key) for line in lines],
        [float(value) for line in lines for value in line.receipt.sums],
    )


def _total(row: Row) -> Total:
    day, model, key, session, *sums = row
    return Total(day, unpacked(model), unpacked(key), session, tuple(sums))
