"""What is held for one tenant: its sessions, their entries, artifacts and marks."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from uuid import UUID

from refold.engine.locks import LockTable
from refold.log.admit import missing
from refold.log.artifact import Artifact, lower
from refold.log.entry import Entry
from refold.log.kinds import Requested
from refold.log.outline import CONTROL_KINDS
from refold.log.protocol import SessionInfo
from refold.log.state import State
from refold.log.text import Searched, text_of
from refold.stores.memory.marks import MemoryMarks


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
