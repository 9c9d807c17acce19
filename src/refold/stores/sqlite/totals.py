"""The totals in their tables: booked with each append, read by day, counted again where needed."""

from collections.abc import Sequence
from typing import Any

from refold.log.entry import Draft, Entry, Span
from refold.log.kinds import Requested
from refold.log.protocol import Total, Totals
from refold.models.accounts import Line
from refold.stores.sql import statements
from refold.stores.sqlite.read import Reading, SessionRow, Writing, find_session, read
from refold.stores.totals import Basis, Booking, answered, book, counted

SQL = statements("refold.stores.sqlite", "sql/totals.sql")


def add_to_totals(
    tx: Writing, row: SessionRow, entries: Sequence[Entry], drafts: Sequence[Draft]
) -> None:
    """Book what was appended to a session, in the same transaction."""
    new = counted(entries, drafts)
    if not new:
        return
    found = tx.db.execute(SQL["state"], (row.key,)).fetchone()
    state = b"" if found is None else found[0]
    if state is None:  # it will be counted from its log
        return
    sent: dict[int, int] = {}
    for request in answered(new):
        for entry in read(tx, row, Span(request, request), is_whole=False):
            if entry.kind == Requested.KIND:
                sent[request] = entry.at
    booking = book(state, new, sent)
    if booking.state != state:
        tx.db.execute(SQL["put_state"], (row.key, tx.tenant, booking.state))
    _add_lines(tx, row.key, booking.lines)


def count_later(tx: Writing, key: int) -> None:
    """Note that what a session's totals rest on has changed."""
    tx.db.execute(SQL["count_later"], (key,))


def begin_uncounted(tx: Writing, key: int) -> None:
    tx.db.execute(SQL["put_state"], (key, tx.tenant, None))


def count_forks_later(tx: Writing, session: str) -> None:
    """Note that the forks of a session that is forgotten share their entries with nobody now."""
    tx.db.execute(SQL["count_forks_later"], (tx.tenant, session))


def drop_totals(tx: Writing, key: int) -> None:
    tx.db.execute(SQL["drop_state"], (key,))
    tx.db.execute(SQL["drop_lines"], (key,))


def count_all_later(tx: Writing) -> None:
    tx.db.execute(SQL["count_all_later"], (tx.tenant,))


def totals(tx: Reading, first: int, last: int) -> Totals:
    values = (tx.tenant, first, last)
    rows = tuple(map(_total, tx.db.execute(SQL["by_day"], values)))
    sessions = tx.db.execute(SQL["sessions"], values).fetchone()[0]
    return Totals(rows, sessions, uncounted_sessions(tx))


def dearest(tx: Reading, first: int, last: int, limit: int) -> list[Total]:
    return [*map(_total, tx.db.execute(SQL["dearest"], (tx.tenant, first, last, limit)))]


def uncounted_sessions(tx: Reading) -> int:
    return tx.db.execute(SQL["uncounted"], (tx.tenant,)).fetchone()[0]


def some_uncounted(tx: Reading, limit: int) -> list[str]:
    return [name for (name,) in tx.db.execute(SQL["some_uncounted"], (tx.tenant, limit))]


def count_basis(tx: Reading, session: str) -> Basis | None:
    row = find_session(tx, session)
    return None if row is None else (row.key, row.revision, row.state.head)


def put_count(tx: Writing, session: str, basis: Basis, booking: Booking) -> bool:
    if count_basis(tx, session) != basis:
        return False
    key = basis[0]
    tx.db.execute(SQL["drop_lines"], (key,))
    tx.db.execute(SQL["put_state"], (key, tx.tenant, booking.state))
    _add_lines(tx, key, booking.lines)
    return True


def _total(row: tuple[Any, ...]) -> Total:
    day, model, key, session, *sums = row
    return Total(day, model, key, session, tuple(sums))


def _add_lines(tx: Writing, key: int, lines: Sequence[Line]) -> None:
    for line in lines:
        where = tx.tenant, line.day, key, line.model, line.key
        tx.db.execute(SQL["add_line"], (*where, *line.receipt.sums))
