"""Rows of the tables, and the values they stand for."""

import json
from asyncio import Lock
from typing import Any, Final, NamedTuple
from uuid import UUID
from weakref import WeakValueDictionary

from refold.log.artifact import Hole
from refold.log.entry import Entry
from refold.log.span import Span
from refold.log.state import State

LAST_SEQ: Final = (1 << 63) - 1
MINUTE: Final = 60_000
_MOST_KNOWN: Final = 10_000

Row = tuple[int, int, UUID, int, str, int, bytes, bytes, str | None, str | None, bool]
"""An entry as the statements select it: session, seq, id, at, kind, version, body, scope, rests_on,
artifacts, forgotten."""


class SessionRow(NamedTuple):
    """A session as it lies in its table."""

    key: int
    state: State
    own_from: int
    forked_from: str | None
    revision: int
    """Raised by every change that is no append."""
    indexed: int
    """Up to where its entries were indexed when it was read; this may have moved since."""

    @property
    def forked_at(self) -> int | None:
        """The last entry it shares with the session it was forked from."""
        return None if self.forked_from is None else self.own_from - 1


Name = tuple[str, str]
"""A tenant and the name of one of its sessions."""


class KnownSessions:
    """Session rows as this process last saw them.

    They may be out of date: what is decided by them is written only if the session still has the
    head and the revision they say.
    """

    def __init__(self) -> None:
        self._rows: dict[Name, SessionRow] = {}
        self._deciding: WeakValueDictionary[Name, Lock] = WeakValueDictionary()

    def get(self, name: Name) -> SessionRow | None:
        """The session's row, if it is known."""
        return self._rows.get(name)

    def put(self, name: Name, row: SessionRow) -> None:
        """The row as it is now."""
        if len(self._rows) >= _MOST_KNOWN and name not in self._rows:
            del self._rows[next(iter(self._rows))]
        self._rows[name] = row

    def learn(self, name: Name, row: SessionRow) -> None:
        """The row as it was read; what was written meanwhile may be newer."""
        there = self._rows.get(name)
        if there is None or there.key != row.key or _age(there) < _age(row):
            self.put(name, row)

    def drop(self, name: Name) -> None:
        """The row is not what it was."""
        self._rows.pop(name, None)

    def deciding(self, name: Name) -> Lock:
        """Held by the one in this process who reads the session and decides what to append."""
        return self._deciding.setdefault(name, Lock())

    def clear(self) -> None:
        """Nothing is known any more."""
        self._rows.clear()


def _age(row: SessionRow) -> tuple[int, int]:
    return row.revision, row.state.head


def entry_of(row: tuple[Any, ...]) -> Entry:
    """The entry of a row (see `Row`)."""
    _, seq, id_, at, kind, version, body, scope, rests_on, artifacts, forgotten = row
    holes, attached = _artifacts(artifacts)
    return Entry(
        seq,
        id_,
        at,
        kind,
        version,
        body,
        unpacked(scope),
        tuple(Span(first, last) for first, last in json.loads(rests_on)) if rests_on else (),
        holes,
        attached,
        forgotten,
    )


def rests_on_of(entry: Entry) -> str | None:
    """The column that says what an entry rests on."""
    return _json([[span.first, span.last] for span in entry.rests_on]) if entry.rests_on else None


def artifacts_of(entry: Entry) -> str | None:
    """The column that says which artifacts an entry refers to."""
    if not entry.holes and not entry.attached:
        return None
    holes = [[hole.offset, hole.length, hole.hash, hole.form] for hole in entry.holes]
    return _json([holes, list(entry.attached)])


def packed(text: str) -> bytes:
    """A text that may hold any character at all, as its column keeps it; a hash too."""
    return text.encode("utf-8", "surrogatepass")


def unpacked(column: bytes) -> str:
    """The text of such a column."""
    return column.decode("utf-8", "surrogatepass")


def _artifacts(column: str | None) -> tuple[tuple[Hole, ...], tuple[str, ...]]:
    if column is None:
        return (), ()
    holes, attached = json.loads(column)
    return tuple(Hole(*hole) for hole in holes), tuple(attached)


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
