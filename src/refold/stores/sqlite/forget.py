"""Erasing entries, and everything that was derived from them, from the store's files too.

First the entries are made unreadable, in one transaction that also notes that an erasure is
pending. Then the file is scrubbed of what SQLite leaves behind in its index, its free pages and its
write-ahead log. After a crash in between, the next open finishes it.
"""

import sqlite3
from collections.abc import Iterator
from itertools import groupby
from uuid import UUID

from refold.errors import ErasureUnfinished, StoreCorrupt
from refold.log.admit import dependents, tombstone
from refold.log.entry import Entry, Span, intersect, spans_of, subtract
from refold.log.erasure_list import Forgotten, ForgottenEntries, ForgottenSession
from refold.log.outline import Segment, dump, replay
from refold.log.protocol import Erased
from refold.stores.forget_journal import ForgetJournal
from refold.stores.sql import Reach, SessionSpans, statements
from refold.stores.sqlite.append import drop_marks
from refold.stores.sqlite.read import (
    LAST_SEQ,
    MINUTE,
    Reading,
    Row,
    SessionRow,
    Writing,
    controls,
    drop_data,
    drop_unclaimed,
    ends,
    entries_in,
    entry_of,
    find_session,
    key_of,
    require_session,
    segments,
    seq_of,
    whole,
)
from refold.stores.sqlite.search import SQL_INDEX, check_words, unindex
from refold.stores.sqlite.totals import count_later, drop_totals

SQL = statements("refold.stores.sqlite", "sql/forget.sql")
_BATCH = 500


def forget(tx: Writing, journal: ForgetJournal, session: str, span: Span | None) -> Erased:
    check_words(tx)
    row = require_session(tx, session)
    own = Span(row.own_from, LAST_SEQ)
    named = SessionSpans()
    entries: list[Entry] = []
    for segment in segments(tx, row, span or own):
        named.add(segment.source, _living(tx, segment))
        entries += entries_in(tx, segment)
    derived = _erase(tx, named)
    removed_at = _remove_session(tx, session, row) if span is None else None
    journal.record(tx.tenant, session, entries, removed_at=removed_at)
    tx.db.execute(SQL["begin_erasure"])
    tx.reach("forget.erased")
    return Erased(session, sum(map(len, named.segments())), derived)


def maybe_unused(tx: Reading, before: int) -> list[str]:
    found = tx.db.execute(SQL["maybe_unused"], (tx.tenant, before // MINUTE))
    return [name for (name,) in found]


def expire(tx: Writing, journal: ForgetJournal, session: str, before: int) -> bool:
    """Remove a session if it is unused; its living forks keep what they read."""
    check_words(tx)
    row = find_session(tx, session)
    if row is None or row.state.updated_at >= before:
        return False
    journal.record(tx.tenant, session, removed_at=_remove_session(tx, session, row))
    tx.db.execute(SQL["begin_erasure"])
    tx.reach("expire.erased")
    return True


def erasure_pending(db: sqlite3.Connection) -> bool:
    """Whether forgotten bytes may still lie in the file."""
    return _pending_erasure(db) != 0


def scrub(db: sqlite3.Connection, reach: Reach) -> None:
    """Leave no forgotten byte in the index, the free pages or the write-ahead log."""
    try:
        pending = _pending_erasure(db)
        drop_unclaimed(db)
        db.execute(SQL_INDEX["merge_words"])
        reach("scrub.merged")
        db.execute("VACUUM")
        reach("scrub.vacuumed")
        if db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            raise ErasureUnfinished("Another reader holds on to an older state of the store.")
    except sqlite3.Error as error:
        raise ErasureUnfinished(f"The store could not be rewritten: {error}.") from error
    # Unless another process has forgotten more since: that is not scrubbed yet.
    db.execute(SQL["end_erasure"], (pending,))


def forgotten(tx: Reading) -> list[Forgotten]:
    entries = tx.db.execute(SQL["forgotten_entries"])
    found: list[Forgotten] = [
        ForgottenEntries(tenant, session, tuple((seq, UUID(bytes=id_)) for *_, seq, id_ in some))
        for (tenant, session), some in groupby(entries, key=lambda row: row[:2])
    ]
    for tenant, session, at, first in tx.db.execute(SQL["forgotten_sessions"]):
        successor = UUID(bytes=first) if first else None
        found.append(ForgottenSession(tenant, session, at, successor))
    return found


def _living(tx: Writing, segment: Segment) -> tuple[Span, ...]:
    places = tx.db.execute(SQL["living_places"], ends(segment))
    return spans_of(seq_of(found) for (found,) in places)


def _erase(tx: Writing, named: SessionSpans) -> int:
    """Make tombstones of the named entries and their dependents; how many dependents there are."""
    erased = SessionSpans(dict(named.by_key))
    derived: set[UUID] = set()
    while True:
        _add_copies(tx, erased)
        readers = _readers(tx, erased)
        found = [pair for row in readers for pair in _dependents(tx, row, erased)]
        if not found:
            break
        derived |= {entry.id for _, entry in found}
        for key, entry in found:
            erased.add(key, [Span(entry.seq, entry.seq)])
    for segment in erased.segments():
        for row in _batches(tx, SQL["living_entries"], segment):
            left = tombstone(_release(tx, row))
            tx.db.execute(SQL["erase"], (left.body, left.scope, row[0]))
        drop_marks(tx, *ends(segment))
    for row in readers:
        outline = replay(controls(tx, row))
        tx.db.execute(SQL["set_outline"], (dump(outline), row.key))
        count_later(tx, row.key)
    return len(derived)


def _add_copies(tx: Writing, erased: SessionSpans) -> None:
    """Add the copies that forks have made of the entries, and what they were copied from."""
    todo = erased.segments()
    while todo:
        segment = todo.pop()
        values = {"key": segment.source, "first": segment.first, "last": segment.last}
        for other, first, last in tx.db.execute(SQL["copies"], values).fetchall():
            copied = intersect([segment.span], [Span(first, last)])
            new = subtract(copied, erased.get(other))
            erased.add(other, new)
            todo += [Segment(other, piece.first, piece.last) for piece in new]


def _readers(tx: Writing, erased: SessionSpans) -> list[SessionRow]:
    keys = {
        reader
        for segment in erased.segments()
        for (reader,) in tx.db.execute(
            SQL["readers"], (segment.source, segment.last, segment.first)
        )
    }
    names = [_name(tx, key) for key in keys | {*erased.by_key}]
    rows = [find_session(tx, name) for name in names if name is not None]
    return [row for row in rows if row is not None]


def _name(tx: Writing, key: int) -> str | None:
    found = tx.db.execute(SQL["name"], (key,)).fetchone()
    return found[0] if found else None


def _dependents(tx: Writing, row: SessionRow, erased: SessionSpans) -> list[tuple[int, Entry]]:
    """The entries this session reads that rest on an erased one and are not erased themselves."""
    lost: list[Span] = []
    derived: dict[int, tuple[int, Entry]] = {}
    for segment in segments(tx, row):
        lost += intersect([segment.span], erased.get(segment.source))
        for found in tx.db.execute(SQL["derived"], ends(segment)):
            entry = entry_of(found)
            derived[entry.seq] = segment.source, entry
    entries = [entry for _, entry in derived.values()]
    return [derived[entry.seq] for entry in dependents(lost, entries)] if lost else []


def _remove_session(tx: Writing, session: str, row: SessionRow) -> int:
    """Remove a session's name and every entry that no living session reads; when it was removed."""
    # Not before its newest entry, though the clock was set back since.
    forgotten_at = max(tx.now, row.state.updated_at)
    tx.db.execute(SQL["add_tombstone"], (tx.tenant, session, forgotten_at))
    sources = [source for (source,) in tx.db.execute(SQL["sources"], (row.key,))]
    tx.db.execute(SQL["unname"], (row.key,))
    drop_totals(tx, row.key)
    tx.db.execute(SQL["orphan_forks"], (tx.tenant, session))
    tx.db.execute(SQL["drop_segments"], (row.key,))
    drop_marks(tx, *ends(Segment(row.key, 1, LAST_SEQ)))
    for key in {row.key, *sources}:
        if _name(tx, key) is None:
            _sweep(tx, key)
    return forgotten_at


def _sweep(tx: Writing, key: int) -> None:
    """Remove the entries of a nameless session that no fork reads, and an empty session itself."""
    still_read = [Span(first, last) for first, last in tx.db.execute(SQL["still_read"], (key,))]
    for span in subtract([Span(1, LAST_SEQ)], still_read):
        for row in _batches(tx, SQL["all_entries"], Segment(key, span.first, span.last)):
            _release(tx, row)
            tx.db.execute(SQL["drop_entry"], (row[0],))
    if not still_read:
        tx.db.execute(SQL["drop_copies"], {"key": key})
        tx.db.execute(SQL["drop_session"], (key,))


def _release(tx: Writing, row: Row) -> Entry:
    """Take an entry out of the index and drop its uses of artifacts; the entry, read whole."""
    entry = entry_of(row)
    [complete] = whole(tx, [entry])
    indexed = tx.db.execute(SQL_INDEX["progress"], (key_of(row[0]),)).fetchone()[0]
    unindex(tx, row[0], complete, indexed)
    for hash_ in entry.artifacts:
        left = tx.db.execute(SQL["drop_use"], (tx.tenant, hash_)).fetchone()
        if left is None:
            raise StoreCorrupt(f"An entry refers to artifact {hash_}, which is not there.")
        key, uses = left
        if uses == 0:
            tx.db.execute(SQL["drop_artifact"], (key,))
            tx.db.execute(SQL["drop_artifact_data"], (key,))
            drop_data(tx, key)
    return complete


def _batches(tx: Writing, statement: str, segment: Segment) -> Iterator[Row]:
    """The rows of a segment, read in batches because they are changed meanwhile."""
    first, last = ends(segment)
    while rows := tx.db.execute(statement, (first, last, _BATCH)).fetchall():
        yield from rows
        first = rows[-1][0] + 1
        if first > last:
            return


def _pending_erasure(db: sqlite3.Connection) -> int:
    """The number of the newest erasure that is not finished; 0 for none."""
    found = db.execute(SQL_INDEX["fact"], ("erasing",)).fetchone()
    return found[0] if found else 0
