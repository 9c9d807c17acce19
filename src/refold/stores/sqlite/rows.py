"""Rows of the tables, and the values they stand for."""

import json
import sqlite3
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from refold.errors import StoreCorrupt
from refold.log.artifact import Hole
from refold.log.entry import Entry
from refold.log.lineage import Segment
from refold.log.outline import CONTROL_KINDS
from refold.log.span import Span
from refold.log.state import State
from refold.stores.sql import statements

SEQ_BITS = 32
LAST_SEQ = (1 << SEQ_BITS) - 1
MINUTE = 60_000
_MOST_KNOWN = 10_000
_DATA_VERSION = statements("refold.stores.sqlite", "sql/append.sql")["data_version"]

Row = tuple[int, bytes, int, str, int, bytes, str, str | None, str | None, int]
"""An entry as the statements select it: place, id, at, kind, version, body, scope, rests_on,
artifacts, forgotten."""


def place(key: int, seq: int) -> int:
    """Where an entry lies: its session's entries are a run of places."""
    return key << SEQ_BITS | seq


def key_of(place: int) -> int:
    """The session that holds the entry at a place."""
    return place >> SEQ_BITS


def seq_of(place: int) -> int:
    """The seq of the entry at a place."""
    return place & LAST_SEQ


def ends(segment: Segment) -> tuple[int, int]:
    """The places of a segment's first and last entry."""
    return place(segment.source, segment.first), place(segment.source, segment.last)


class SessionRow(NamedTuple):
    """A session as it lies in its table."""

    key: int
    state: State
    used: int
    own_from: int
    forked_from: str | None
    revision: int
    unindexed: bool

    @property
    def forked_at(self) -> int | None:
        """The last entry it shares with the session it was forked from."""
        return None if self.forked_from is None else self.own_from - 1


Name = tuple[str, str]
"""A tenant and the name of one of its sessions."""


class KnownSessions:
    """Session rows as the writer's connection last saw them.

    They are good until another connection commits, which SQLite tells us for the asking; that
    spares an append from reading its session again.
    """

    def __init__(self) -> None:
        self._rows: dict[Name, SessionRow] = {}
        self._staged: dict[Name, SessionRow] = {}
        self._version = -1

    def begin(self, db: sqlite3.Connection) -> None:
        """A transaction has begun: let go of what others may have changed."""
        version = db.execute(_DATA_VERSION).fetchone()[0]
        if version != self._version or len(self._rows) > _MOST_KNOWN:
            self._rows.clear()
            self._version = version
        self._staged.clear()

    def get(self, name: Name) -> SessionRow | None:
        """The session's row, if it is known."""
        return self._staged.get(name) or self._rows.get(name)

    def put(self, name: Name, row: SessionRow) -> None:
        """The row as this transaction leaves it."""
        self._staged[name] = row

    def keep(self, name: Name, row: SessionRow) -> None:
        """The row as a statement that was a transaction of its own has left it."""
        self._rows[name] = row

    def commit(self) -> None:
        """The transaction was committed."""
        self._rows.update(self._staged)
        self._staged.clear()

    def clear(self) -> None:
        """Nothing is known any more."""
        self._rows.clear()
        self._staged.clear()


def _is_text(body: bytes) -> bool:
    """Whether it can be what was written, which is JSON: SQLite keeps no sums of its pages."""
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def entry_of(row: Row) -> Entry:
    """The entry of a row."""
    at_place, id_, at, kind, version, body, scope, rests_on, artifacts, forgotten = row
    holes, attached = _artifacts(artifacts)
    if not _is_text(body):
        raise StoreCorrupt("An entry of a session is damaged.")
    return Entry(
        seq_of(at_place),
        UUID(bytes=id_),
        at,
        kind,
        version,
        body,
        scope,
        tuple(Span(first, last) for first, last in json.loads(rests_on)) if rests_on else (),
        holes,
        attached,
        bool(forgotten),
    )


def row_of(entry: Entry, key: int, messages: int) -> Sequence[object]:
    """The columns of an entry, in the order of `add_entry`."""
    return (
        place(key, entry.seq),
        entry.id.bytes,
        entry.at,
        entry.kind,
        entry.version,
        entry.scope,
        messages,
        int(entry.kind in CONTROL_KINDS),  # an int: sqlite3 is slow with booleans
        int(entry.forgotten),
        _json([[span.first, span.last] for span in entry.rests_on]) if entry.rests_on else None,
        _json(_artifact_columns(entry)) if entry.holes or entry.attached else None,
        entry.body,
    )


def _artifact_columns(entry: Entry) -> list[list[object]]:
    holes = [[hole.offset, hole.length, hole.hash, hole.form] for hole in entry.holes]
    return [list(holes), list(entry.attached)]


def _artifacts(column: str | None) -> tuple[tuple[Hole, ...], tuple[str, ...]]:
    if column is None:
        return (), ()
    holes, attached = json.loads(column)
    return tuple(Hole(*hole) for hole in holes), tuple(attached)


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
