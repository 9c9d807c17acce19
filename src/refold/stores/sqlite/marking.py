"""Marks: keys by which entries are found again."""

from collections.abc import Sequence

from refold.log.marking import Mark, Marked, check_newest
from refold.stores.sql import statements
from refold.stores.sqlite.rows import LAST_SEQ, SessionRow, place
from refold.stores.sqlite.transaction import Reading, Writing

SQL = statements("refold.stores.sqlite", "sql/marks.sql")


def check_marks(tx: Writing, session: str, row: SessionRow | None, mark: Mark) -> None:
    """Refuse a mark if the session's newest is elsewhere; nobody can put one until we commit."""
    newest = None
    if row is not None:
        ends = place(row.key, 1), place(row.key, LAST_SEQ)
        newest = tx.db.execute(SQL["newest"], ends).fetchone()[0]
    check_newest(session, mark, newest or 0)


def put_mark(tx: Writing, key: int, seq: int, mark: bytes) -> None:
    """Put a mark on an entry of the session with this key."""
    tx.db.execute(SQL["put"], (place(key, seq), mark))


def drop_marks(tx: Writing, first: int, last: int) -> None:
    """Take the marks off the entries at these places."""
    tx.db.execute(SQL["drop"], (first, last))


def marked(tx: Reading, keys: Sequence[bytes]) -> list[Marked]:
    """The entries with any of these keys, those marked last first."""
    # One value for all keys, each as long as the others: there is no limit to how many.
    values = {"tenant": tx.tenant, "count": len(keys), "keys": b"".join(keys)}
    return [Marked(*found) for found in tx.db.execute(SQL["marked"], values)]
