"""The totals in their tables: booked with each append, read by day, counted again where needed."""

from collections.abc import Sequence
from typing import Any

from refold.log.entry import Draft, Entry, Span
from refold.log.kinds import Requested
from refold.log.protocol import Total, Totals
from refold.stores.sql import statements
from refold.stores.sqlite.read import Reading, SessionRow, Writing, find_session, read
from refold.stores.totals import Basis, Booking, KnownAccounts, Line, answered, counted

SQL = statements("refold.stores.sqlite", "sql/totals.sql")


def add_to_totals(
    tx: Writing, row: SessionRow, entries: Sequence[Entry], drafts: Sequence[Draft]
) -> None:
    """Book what was appended to a session, in the same transaction."""
    known, new = tx.cache.accounts(row.key), counted(entries, drafts)
    if not new:
        if known is not None:
            tx.cache.stage_accounts(known.after(row.key, None, entries))
        return
    known = _with_sent(tx, row, known or _read_known(tx, row.key), new)
    booking = known.booking(new)
    if booking is not None and known.state is not None:
        if booking.state != known.state:
            tx.db.execute(SQL["put_state"], (row.key, tx.tenant, booking.state))
        _add_lines(tx, row.key, booking.lines)
    tx.cache.stage_accounts(known.after(row.key, booking, entries))


def _read_known(tx: Reading, key: int) -> KnownAccounts:
    found = tx.db.execute(SQL["state"], (key,)).fetchone()
    return KnownAccounts(key, 0, b"" if found is None else found[0], {})


def _with_sent(
    tx: Reading, row: SessionRow, known: KnownAccounts, new: Sequence[Entry]
) -> KnownAccounts:
    """The accounts with the times of the requests that these entries answer."""
    unknown = [request for request in answered(new) if request not in known.sent]
    if known.state is None or not unknown:
        return known
    sent = {**known.sent}
    for request in unknown:
        for entry in read(tx, row, Span(request, request), is_whole=False):
            if entry.kind == Requested.KIND:
                sent[request] = entry.at
    return known._replace(sent=sent)


def count_later(tx: Writing, key: int) -> None:
    """Note that what a session's totals rest on has changed."""
    tx.cache.drop_accounts()
    tx.db.execute(SQL["count_later"], (key,))


def begin_uncounted(tx: Writing, key: int) -> None:
    tx.cache.drop_accounts()
    tx.db.execute(SQL["put_state"], (key, tx.tenant, None))


def drop_totals(tx: Writing, key: int) -> None:
    tx.cache.drop_accounts()
    tx.db.execute(SQL["drop_state"], (key,))
    tx.db.execute(SQL["drop_lines"], (key,))


def count_all_later(tx: Writing) -> None:
    """Have all counted again; a process of an older version forgets sessions, but not totals."""
    tx.cache.drop_accounts()
    tx.db.execute(SQL["drop_lost_states"], (tx.tenant,))
    tx.db.execute(SQL["drop_lost_lines"], (tx.tenant,))
    tx.db.execute(SQL["count_all_later"], (tx.tenant,))


def totals(tx: Reading, first: int, last: int) -> Totals:
    values = (tx.tenant, first, last)
    rows = tuple(map(_total, tx.db.execute(SQL["by_day"], values)))
    sessions = tx.db.execute(SQL["sessions"], values).fetchone()[0]
    return Totals(rows, sessions, uncounted_sessions(tx))


def dearest(tx: Reading, first: int, last: int, limit: int, *, every: bool) -> list[Total]:
    values = tx.tenant, first, last, limit, int(every)
    return [*map(_total, tx.db.execute(SQL["dearest"], values))]


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
    tx.cache.drop_accounts()
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
