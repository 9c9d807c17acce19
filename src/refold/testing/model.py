"""A log as plain lists: what every store is held against.

It is written to be read, not to be fast, and shares no code with the log it judges.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from refold.log import (
    Cleared,
    Draft,
    FoldCompleted,
    FoldFailed,
    FoldStarted,
    FoldUndone,
    Marked,
    Opened,
    Pinned,
    Requested,
    Rewound,
    Span,
    Titled,
    Unpinned,
    Value,
)


@dataclass(eq=False, slots=True)
class ModelEntry:
    draft: Draft
    value: Value
    forgotten: bool = False


@dataclass(slots=True)
class Line:
    seqs: list[int] = field(default_factory=list[int])
    folds: list[tuple[int, UUID, set[int]]] = field(
        default_factory=list[tuple[int, UUID, set[int]]]
    )
    pins: set[int] = field(default_factory=set[int])
    record: int | None = None

    def active_folds(self) -> list[tuple[int, UUID, set[int]]]:
        return [
            fold
            for at, fold in enumerate(self.folds)
            if fold[2] - {seq for later in self.folds[at + 1 :] for seq in later[2]}
        ]


@dataclass(slots=True)
class ModelSession:
    name: str
    entries: list[ModelEntry]
    used: int
    own_from: int = 1

    @property
    def title(self) -> str | None:
        title = None
        for kept in self.entries:
            if isinstance(kept.value, Opened | Titled) and not kept.forgotten:
                title = kept.value.title
        return title

    def line(self, head: int | None = None) -> Line:
        line = Line()
        for seq, kept in enumerate(self.entries[:head], 1):
            match kept.value:
                case Rewound(to):
                    line = self.line(to)
                    continue
                case Cleared():
                    line = Line()
                    continue
                case FoldCompleted(fold, spans) if not kept.forgotten:
                    line.folds.append((seq, fold, seqs_of(spans)))
                case FoldUndone(fold):
                    line.folds = [one for one in line.folds if one[1] != fold]
                case Pinned(parts):
                    line.pins |= {part.seq for part in parts}
                case Unpinned(parts):
                    line.pins -= {part.seq for part in parts}
                case Requested() if not kept.forgotten:
                    line.record = seq
                case _:
                    pass
            line.seqs.append(seq)
        return line

    def running(self) -> set[UUID]:
        running: set[UUID] = set()
        for kept in self.entries:
            match kept.value:
                case FoldStarted(fold):
                    running.add(fold)
                case FoldCompleted(fold) | FoldFailed(fold):
                    running.discard(fold)
                case _:
                    pass
        return running

    def visible(self, last: int | None = None) -> list[int]:
        line = self.line()
        active_folds = line.active_folds()
        folded = {seq for _, _, spans in active_folds for seq in spans}
        bare = [seq for seq in line.seqs if seq not in folded]
        seen = {1, *(bare if last is None else bare[max(0, len(bare) - last) :]), *line.pins}
        seen |= {seq for seq, _, _ in active_folds}
        if line.record is not None:
            record = self.entries[line.record - 1].value
            seen |= {line.record, *(record.chain if isinstance(record, Requested) else ())}
        return sorted(seen)


class ModelLog:
    def __init__(self) -> None:
        self.sessions: dict[str, ModelSession] = {}
        self.buried: set[str] = set()
        self.marks: list[tuple[bytes, str, int]] = []
        """Keys with the session and the seq they are on, in the order they were put."""

    def append(self, name: str, drafted: Sequence[tuple[Value, Draft]]) -> None:
        session = self.sessions.setdefault(name, ModelSession(name, [], 0))
        for value, draft in drafted:
            session.entries.append(ModelEntry(draft, value))
            session.used = draft.at

    def fork(self, name: str, new: str, at: int, now: int) -> None:
        shared = self.sessions[name].entries[:at]
        self.sessions[new] = ModelSession(new, shared, now, at + 1)

    def forget(self, kept: Iterable[ModelEntry]) -> None:
        gone = {one for one in kept if not one.forgotten}
        while fallen := {
            one for session in self.sessions.values() for one in _fallen(session, gone)
        }:
            gone |= fallen
        for one in gone:
            one.forgotten = True
        self.marks = [
            (key, name, seq)
            for key, name, seq in self.marks
            if not self.sessions[name].entries[seq - 1].forgotten
        ]

    def bury(self, name: str) -> None:
        del self.sessions[name]
        self.buried.add(name)
        self.marks = [mark for mark in self.marks if mark[1] != name]

    def newest_marks(self, name: str) -> tuple[int, int]:
        """The session's newest marked entry and the one before; 0 where there is none."""
        seqs = [0, 0, *sorted(seq for _, session, seq in self.marks if session == name)]
        return seqs[-1], seqs[-2]

    def marked(self) -> list[Marked]:
        return [Marked(*mark, *self.newest_marks(mark[1])) for mark in reversed(self.marks)]

    def newest_first(self) -> list[str]:
        """The sessions by their last use; of equals, the one made last comes first."""
        made = list(self.sessions)
        return sorted(
            made, key=lambda name: (self.sessions[name].used, made.index(name)), reverse=True
        )


def seqs_of(spans: Iterable[Span]) -> set[int]:
    return {seq for span in spans for seq in range(span.first, span.last + 1)}


def _fallen(session: ModelSession, gone: set[ModelEntry]) -> Iterator[ModelEntry]:
    lost = {seq for seq, kept in enumerate(session.entries, 1) if kept in gone}
    for kept in session.entries:
        if kept not in gone and not kept.forgotten and seqs_of(kept.draft.rests_on) & lost:
            yield kept
