"""What is held for one tenant: its sessions, their entries, artifacts and marks."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from uuid import UUID

from refold.engine.locks import LockTable
from refold.log.admit import fallen, missing, tombstone
from refold.log.artifact import Artifact, lower
from refold.log.entry import Entry, Marked, spans_of
from refold.log.kinds import Requested
from refold.log.outline import CONTROL_KINDS, replay
from refold.log.protocol import SessionInfo, State
from refold.log.text import Searched, text_of

# The marks of one tenant's entries, in memory.


class MemoryMarks:
    """Keys, and the entries they are on."""

    def __init__(self) -> None:
        self._keys: dict[str, dict[int, bytes]] = {}
        self._places: dict[bytes, dict[tuple[str, int], int]] = {}
        self._put = count(1)

    def newest(self, session: str) -> int:
        """The session's newest marked entry; 0 if there is none."""
        return next(reversed(self._keys.get(session, {})), 0)

    def put(self, session: str, seq: int, key: bytes) -> None:
        """Mark an entry, which is newer than those marked before."""
        self._keys.setdefault(session, {})[seq] = key
        self._places.setdefault(key, {})[session, seq] = next(self._put)

    def of(self, session: str) -> Collection[int]:
        """The session's marked entries."""
        return list(self._keys.get(session, ()))

    def drop(self, session: str, seqs: Iterable[int]) -> None:
        """Take the marks off these entries; those that have one."""
        keys = self._keys.get(session, {})
        for seq in seqs:
            key = keys.pop(seq, None)
            if key is not None:
                del self._places[key][session, seq]
                if not self._places[key]:
                    del self._places[key]
        if not keys:
            self._keys.pop(session, None)

    def found(self, keys: Iterable[bytes]) -> list[Marked]:
        """The entries with any of these keys, those marked last first."""
        rows = [
            (put, Marked(key, session, seq, *self._newest_two(session)))
            for key in keys
            for (session, seq), put in self._places.get(key, {}).items()
        ]
        return [row for _, row in sorted(rows, reverse=True)]

    def _newest_two(self, session: str) -> tuple[int, int]:
        seqs = reversed(self._keys[session])
        return next(seqs), next(seqs, 0)


@dataclass(slots=True, eq=False)
class Row:
    """An entry as it lies here; forks hold the same row."""

    entry: Entry
    searched: Searched | None = None
    """Its words, once someone has looked for them."""


@dataclass(slots=True, eq=False)
class HeldSession:
    """A session with its rows, those that it shares included."""

    key: int
    name: str
    state: State
    rows: list[Row]
    own_from: int = 1
    forked_from: str | None = None
    forked_at: int | None = None
    places: dict[UUID, Row] = field(init=False)
    """The rows by the ids of their entries."""
    steering: list[Row] = field(init=False)
    """The rows of control entries."""

    def __post_init__(self) -> None:
        rows, self.rows = self.rows, []
        self.places, self.steering = {}, []
        self.add(rows)

    def add(self, rows: Iterable[Row]) -> None:
        """Add rows at the end."""
        for row in rows:
            self.rows.append(row)
            self.places[row.entry.id] = row
            if row.entry.kind in CONTROL_KINDS:
                self.steering.append(row)

    def info(self) -> SessionInfo:
        """The session as a list of sessions shows it."""
        return self.state.info(self.name, self.forked_from, self.forked_at)


@dataclass(slots=True)
class Tenant:
    """Everything of one tenant."""

    sessions: dict[str, HeldSession] = field(default_factory=dict[str, HeldSession])
    forgotten: dict[str, int] = field(default_factory=dict[str, int])
    """When sessions of these names were forgotten."""
    artifacts: dict[str, tuple[Artifact, int]] = field(
        default_factory=dict[str, tuple[Artifact, int]]
    )
    """By their hashes, each with the number of entries that refer to it."""
    keys: Iterator[int] = field(default_factory=lambda: count(1))
    marks: MemoryMarks = field(default_factory=MemoryMarks)
    locks: LockTable = field(default_factory=LockTable)

    def session(self, name: str) -> HeldSession:
        """The session of that name. Raises SessionNotFound or SessionForgotten."""
        there = self.sessions.get(name)
        if there is None:
            raise missing(name, self.forgotten.get(name, 0))
        return there

    def oldest_first(self) -> list[HeldSession]:
        """All sessions, in the order in which they were begun."""
        return sorted(self.sessions.values(), key=lambda there: there.key)

    def whole(self, entry: Entry) -> Entry:
        """The entry with what was lifted out of it."""
        if not entry.holes:
            return entry
        body = lower(entry.body, entry.holes, lambda hash_: self.artifacts[hash_][0].data)
        return entry._replace(body=body, holes=())

    def controls(self, there: HeldSession) -> list[Entry]:
        """The control entries, request records without what was lifted out of them."""
        return [
            row.entry if row.entry.kind == Requested.KIND else self.whole(row.entry)
            for row in there.steering
        ]

    def searched(self, row: Row) -> Searched:
        """The words of a row, counted once."""
        if row.searched is None:
            row.searched = Searched.of(text_of(self.whole(row.entry)))
        return row.searched

    def take(self, artifacts: Iterable[Artifact]) -> None:
        """Keep what entries refer to, each once."""
        for artifact in artifacts:
            there_already, uses = self.artifacts.get(artifact.hash, (artifact, 0))
            self.artifacts[artifact.hash] = (there_already, uses + 1)

    def release(self, entry: Entry) -> None:
        """Let go of what the entry referred to, where no other does."""
        for hash_ in entry.artifacts:
            artifact, uses = self.artifacts.pop(hash_)
            if uses > 1:
                self.artifacts[hash_] = (artifact, uses - 1)


# Erasing what is held: entries become tombstones, sessions go.


def erase(held: Tenant, rows: Sequence[Row]) -> int:
    """Make tombstones of the rows and of all that rests on them; how many those are."""
    gone = set(rows)
    while derived := {row for there in held.oldest_first() for row in _fallen(there, gone)}:
        gone |= derived
    for row in gone:
        left = tombstone(held.whole(row.entry))
        held.release(row.entry)
        row.entry, row.searched = left, None
    marks = held.marks
    for there in held.sessions.values():
        if not gone.isdisjoint(there.rows):
            seqs = marks.of(there.name)
            marks.drop(there.name, [seq for seq in seqs if there.rows[seq - 1] in gone])
            there.state = there.state._replace(outline=replay(held.controls(there)))
    return len(gone) - len(rows)


def bury(held: Tenant, there: HeldSession, now: int) -> None:
    """Let go of a session, and of the rows that no other session reads."""
    del held.sessions[there.name]
    held.marks.drop(there.name, held.marks.of(there.name))
    held.forgotten[there.name] = max(now, there.state.updated_at)
    for other in held.sessions.values():
        if other.forked_from == there.name:
            other.forked_from = other.forked_at = None
    read = {row for other in held.sessions.values() for row in other.rows}
    for row in there.rows:
        if row not in read:
            held.release(row.entry)


def _fallen(there: HeldSession, gone: set[Row]) -> list[Row]:
    seqs_gone = spans_of(row.entry.seq for row in there.rows if row in gone)
    if not seqs_gone:
        return []
    derived = [row.entry for row in there.rows if row.entry.rests_on and not row.entry.forgotten]
    return [there.rows[entry.seq - 1] for entry in fallen(seqs_gone, derived)]
