"""Erasing entries, and everything that was derived from them, from the store's files too.

First the entries are made unreadable, in one transaction that also notes that an erasure is under
way. Then the file is scrubbed of what SQLite leaves behind in its index, its free pages and its
write-ahead log. A crash in between is finished at the next open.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from uuid import UUID

from refold.errors import ErasureUnfinished, StoreCorrupt
from refold.log.admit import fallen, tombstone
from refold.log.entry import Entry, Span, intersect, spans_of, subtract, union
from refold.log.forgotten import Forgotten, ForgottenEntries, ForgottenSession
from refold.log.outline import Segment, dump, replay
from refold.log.protocol import Erased
from refold.stores.sql import Reach, statements
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
    entry_of,
    find_session,
    key_of,
    place,
    segments,
    seq_of,
    the_session,
    whole,
)
from refold.stores.sqlite.search import SQL_INDEX as INDEX
from refold.stores.sqlite.search import check_words, merge, unindex

SQL = statements("refold.stores.sqlite", "sql/forget.sql")
_AT_ONCE = 500
_ERASING = "erasing"


def forget(tx: Writing, session: str, span: Span | None) -> Erased:
    """Make the entries unreadable."""
    check_words(tx)
    row = the_session(tx, session)
    own = Span(row.own_from, LAST_SEQ)
    named = _Gone()
    for segment in segments(tx, row, span or own):
        named.add(segment.source, _living(tx, segment))
    derived = _erase(tx, named)
    if span is None:
        _bury(tx, session, row)
    tx.db.execute(SQL["begin_erasure"])
    tx.reach("forget.erased")
    return Erased(session, sum(len(one) for _, one in named.spans()), derived)


def maybe_unused(tx: Reading, before: int) -> list[str]:
    """The sessions that may not have been used since then."""
    found = tx.db.execute(SQL["maybe_unused"], (tx.tenant, before // MINUTE))
    return [name for (name,) in found]


def expire(tx: Writing, session: str, before: int) -> bool:
    """Let go of a session, if it is unused; its living forks keep what they read."""
    check_words(tx)
    row = find_session(tx, session)
    if row is None or row.state.updated_at >= before:
        return False
    _bury(tx, session, row)
    tx.db.execute(SQL["begin_erasure"])
    tx.reach("expire.erased")
    return True


def erasure_under_way(db: sqlite3.Connection) -> bool:
    """Whether forgotten bytes may still lie in the file."""
    return _erasing(db) != 0


def scrub(db: sqlite3.Connection, reach: Reach) -> None:
    """Leave no forgotten byte in the index, the free pages or the write-ahead log."""
    try:
        under_way = _erasing(db)
        drop_unclaimed(db)
        merge(db)
        reach("scrub.merged")
        db.execute("VACUUM")
        reach("scrub.vacuumed")
        if db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            raise ErasureUnfinished("Another reader holds on to an older state of the store.")
    except sqlite3.Error as error:
        raise ErasureUnfinished(f"The store could not be rewritten: {error}.") from error
    # Unless another process has forgotten more since: that is not scrubbed yet.
    db.execute(SQL["end_erasure"], (under_way,))


def forgotten(tx: Reading) -> list[Forgotten]:
    """What was forgotten, of all tenants."""
    entries = tx.db.execute(SQL["forgotten_entries"])
    found: list[Forgotten] = [
        ForgottenEntries(tenant, session, tuple((seq, UUID(bytes=id_)) for *_, seq, id_ in some))
        for (tenant, session), some in groupby(entries, key=lambda row: row[:2])
    ]
    for tenant, session, at, first in tx.db.execute(SQL["forgotten_sessions"]):
        successor = UUID(bytes=first) if first else None
        found.append(ForgottenSession(tenant, session, at, successor))
    return found


@dataclass(slots=True)
class _Gone:
    """Spans to erase, by the session that holds them."""

    by_key: dict[int, tuple[Span, ...]] = field(default_factory=dict[int, tuple[Span, ...]])

    def add(self, key: int, spans: Iterable[Span]) -> None:
        if more := tuple(spans):
            self.by_key[key] = union((*self.by_key.get(key, ()), *more))

    def spans(self) -> Iterator[tuple[int, Span]]:
        for key, spans in self.by_key.items():
            for span in spans:
                yield key, span


def _living(tx: Writing, segment: Segment) -> tuple[Span, ...]:
    """The entries of a segment that are not forgotten yet."""
    places = tx.db.execute(SQL["living_places"], ends(segment))
    return spans_of(seq_of(at) for (at,) in places)


def _erase(tx: Writing, named: _Gone) -> int:
    """Make tombstones of the named entries and of all that rests on them; how many those are."""
    gone = _Gone(dict(named.by_key))
    derived: set[UUID] = set()
    while True:
        _add_copies(tx, gone)
        readers = _readers(tx, gone)
        found = [(key, entry) for row in readers for key, entry in _fallen(tx, row, gone)]
        if not found:
            break
        derived |= {entry.id for _, entry in found}
        for key, entry in found:
            gone.add(key, [Span(entry.seq, entry.seq)])
    for key, span in list(gone.spans()):
        _make_tombstones(tx, key, span)
    for row in readers:
        outline = replay(controls(tx, row))
        tx.db.execute(SQL["set_outline"], (dump(outline), row.key))
    return len(derived)


def _add_copies(tx: Writing, gone: _Gone) -> None:
    """Go along with the copies that forks have made, and with what they were copied from."""
    todo = list(gone.spans())
    while todo:
        key, span = todo.pop()
        ends = {"key": key, "first": span.first, "last": span.last}
        for other, first, last in tx.db.execute(SQL["copies"], ends).fetchall():
            there = intersect([span], [Span(first, last)])
            new = subtract(there, gone.by_key.get(other, ()))
            gone.add(other, new)
            todo += [(other, piece) for piece in new]


def _readers(tx: Writing, gone: _Gone) -> list[SessionRow]:
    """The sessions that read any of the spans."""
    keys = {
        reader
        for key, span in gone.spans()
        for (reader,) in tx.db.execute(SQL["readers"], (key, span.last, span.first))
    }
    names = [_name(tx, key) for key in keys | {*gone.by_key}]
    rows = [find_session(tx, name) for name in names if name is not None]
    return [row for row in rows if row is not None]


def _name(tx: Writing, key: int) -> str | None:
    found = tx.db.execute(SQL["name"], (key,)).fetchone()
    return found[0] if found else None


def _fallen(tx: Writing, row: SessionRow, gone: _Gone) -> list[tuple[int, Entry]]:
    """The entries this session reads that rest on a gone one and are not gone themselves."""
    lost: list[Span] = []
    derived: dict[int, tuple[int, Entry]] = {}
    for segment in segments(tx, row):
        span = Span(segment.first, segment.last)
        lost += intersect([span], gone.by_key.get(segment.source, ()))
        for found in tx.db.execute(SQL["derived"], _ends(segment.source, span)):
            entry = entry_of(found)
            derived[entry.seq] = segment.source, entry
    entries = [entry for _, entry in derived.values()]
    return [derived[entry.seq] for entry in fallen(lost, entries)] if lost else []


def _make_tombstones(tx: Writing, key: int, span: Span) -> None:
    for row in _all(tx, SQL["living_entries"], key, span):
        left = tombstone(_released(tx, row))
        tx.db.execute(SQL["erase"], (left.body, left.scope, row[0]))
    drop_marks(tx, *_ends(key, span))


def _bury(tx: Writing, session: str, row: SessionRow) -> None:
    """Let go of a session's name and of every entry that no living session reads."""
    # Not before its newest entry, though the clock was set back since.
    forgotten_at = max(tx.now, row.state.updated_at)
    tx.db.execute(SQL["add_tombstone"], (tx.tenant, session, forgotten_at))
    sources = [source for (source,) in tx.db.execute(SQL["sources"], (row.key,))]
    tx.db.execute(SQL["unname"], (row.key,))
    tx.db.execute(SQL["orphan_forks"], (tx.tenant, session))
    tx.db.execute(SQL["drop_segments"], (row.key,))
    drop_marks(tx, *_ends(row.key, Span(1, LAST_SEQ)))
    for key in {row.key, *sources}:
        if _name(tx, key) is None:
            _sweep(tx, key)


def _sweep(tx: Writing, key: int) -> None:
    """Remove the entries of a nameless session that no fork reads, and it with the last of them."""
    still_read = [Span(first, last) for first, last in tx.db.execute(SQL["still_read"], (key,))]
    for span in subtract([Span(1, LAST_SEQ)], still_read):
        for row in _all(tx, SQL["all_entries"], key, span):
            _released(tx, row)
            tx.db.execute(SQL["drop_entry"], (row[0],))
    if not still_read:
        tx.db.execute(SQL["drop_copies"], {"key": key})
        tx.db.execute(SQL["drop_session"], (key,))


def _released(tx: Writing, row: Row) -> Entry:
    """The entry, read whole, no longer indexed and no longer using its artifacts."""
    entry = entry_of(row)
    [complete] = whole(tx, [entry])
    indexed = tx.db.execute(INDEX["progress"], (key_of(row[0]),)).fetchone()[0]
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


def _all(tx: Writing, statement: str, key: int, span: Span) -> Iterator[Row]:
    """The rows of a span, some at a time, while they are being changed."""
    first, last = _ends(key, span)
    while rows := tx.db.execute(statement, (first, last, _AT_ONCE)).fetchall():
        yield from rows
        first = rows[-1][0] + 1
        if first > last:
            return


def _ends(key: int, span: Span) -> tuple[int, int]:
    return place(key, span.first), place(key, span.last)


def _erasing(db: sqlite3.Connection) -> int:
    """A number that stands for the newest erasure which is not finished; 0 for none."""
    found = db.execute(INDEX["fact"], (_ERASING,)).fetchone()
    return found[0] if found else 0
