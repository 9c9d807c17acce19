"""What a view must read of a session, however long the session is, and from which forks.

The outline is a small state derived from the control entries: which entries are on the line (after
rewinds and clears), which folds replace which spans, what is pinned, which folds have started and
not ended, and the newest request record. A store keeps it with the session's head and updates it
with each control entry, so that opening a session reads what its view needs and nothing else. All
of it can be replayed from the log.

A fork copies nothing: it reads its first entries from other sessions, one segment each, and the
rest from itself. Segments are flat: a fork of a fork points straight at the sessions that hold the
entries, so reading through forty forks costs what reading one does. To keep the list short, a fork
that would point at more than `MAX_SEGMENTS` copies the cheapest neighbors into itself.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from uuid import UUID

from pydantic import TypeAdapter

from refold.errors import WrittenByNewer
from refold.log.codec import CODEC, Body
from refold.log.entry import Entry, PartRef, Span, spans_of, subtract, take_last, union
from refold.log.kinds import (
    KINDS,
    Cleared,
    FoldCompleted,
    FoldFailed,
    FoldStarted,
    FoldUndone,
    Forgotten,
    Opened,
    Origin,
    Pinned,
    Requested,
    Rewound,
    Titled,
    Unknown,
    Unpinned,
    Value,
)

OUTLINE_VERSION = 1
"""Raised when the same entries yield another outline: older ones are then replayed."""

CONTROL_KINDS = frozenset(kind.KIND for kind in KINDS if kind.CONTROL)
REPLAYED_KINDS = frozenset({Rewound.KIND, FoldUndone.KIND})
"""The kinds whose effect depends on the control entries before them."""
MAX_SEGMENTS = 32


@dataclass(frozen=True, slots=True)
class Folded:
    """A fold that stands for spans, and the entry that holds its summary."""

    seq: int
    fold: UUID
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Running:
    """A fold that was started and has not ended."""

    seq: int
    fold: UUID


@dataclass(frozen=True, slots=True)
class Outline:
    """Which entries a view of the session is made of."""

    title: str | None = None
    origin: Origin | None = None
    line: tuple[Span, ...] = ()
    """What a view may show of the entries before `since`."""
    since: int = 1
    """From here to the head, every entry is on the line."""
    folds: tuple[Folded, ...] = ()
    """The folds that no later fold stands for, oldest first."""
    pins: tuple[PartRef, ...] = ()
    watched: tuple[PartRef, ...] = ()
    """Of the pins, those that no person made."""
    running: tuple[Running, ...] = ()
    record: int | None = None
    """The newest request record."""
    version: int = OUTLINE_VERSION

    def on_line(self, head: int) -> tuple[Span, ...]:
        """The entries on the line when `head` is the newest."""
        return (*self.line, Span(self.since, head)) if head >= self.since else self.line

    def needed(self, head: int, last: int | None = None) -> tuple[Span, ...]:
        """What a view reads: the opening, folds, pins, the newest request record, and the rest.

        The rest is what no fold stands for; `last` bounds how many of the newest of it.
        """
        bare = subtract(self.on_line(head), (s for fold in self.folds for s in fold.spans))
        always = [1, *(fold.seq for fold in self.folds), *(pin.seq for pin in self.pins)]
        if self.record is not None:
            always.append(self.record)
        return union((*(bare if last is None else take_last(bare, last)), *spans_of(always)))


def chain_of(record: Entry) -> tuple[int, ...]:
    """The earlier request records that a request record is a difference to."""
    match CODEC.decode(record):
        case Requested(chain=chain):
            return chain
        case _:
            return ()


def dump(outline: Outline) -> bytes:
    return _ADAPTER.dump_json(outline)


def load(data: bytes) -> Outline | None:
    """A stored outline, or None when it is of an older version and must be replayed."""
    version = _VERSION.validate_json(data).version
    if version > OUTLINE_VERSION:
        raise WrittenByNewer("The session's outline was written by a newer Refold.")
    return _ADAPTER.validate_json(data) if version == OUTLINE_VERSION else None


@dataclass(frozen=True, slots=True)
class _Versioned:
    version: int


_ADAPTER = TypeAdapter(Outline)
_VERSION = TypeAdapter(_Versioned)


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of entries and the session that holds them, by the key its store knows it under."""

    source: int
    first: int
    last: int

    @property
    def span(self) -> Span:
        return Span(self.first, self.last)

    def __len__(self) -> int:
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class Fork:
    """What a new fork points at, and what it must first copy into itself."""

    segments: tuple[Segment, ...]
    copies: tuple[Segment, ...] = ()


def within(segments: Sequence[Segment], span: Span) -> tuple[Segment, ...]:
    return tuple(
        Segment(segment.source, max(segment.first, span.first), min(segment.last, span.last))
        for segment in segments
        if segment.first <= span.last and span.first <= segment.last
    )


def plan_fork(segments: Sequence[Segment], at: int, child: int) -> Fork:
    """How a new session `child` reads the first `at` entries of a session with these segments."""
    shared = list(within(segments, Span(1, at)))
    copies: list[Segment] = []
    while len(shared) > MAX_SEGMENTS:
        costs = [0 if segment.source == child else len(segment) for segment in shared]
        index = min(range(len(shared) - 1), key=lambda i: costs[i] + costs[i + 1])
        pair = shared[index : index + 2]
        copies += [segment for segment in pair if segment.source != child]
        shared[index : index + 2] = [replace(pair[0], source=child, last=pair[1].last)]
    return Fork(tuple(shared), tuple(copies))


def advance(outline: Outline, entry: Entry) -> Outline:
    """The outline after one more entry of a kind that needs no replay."""
    value = effect(entry)
    return outline if value is None else _apply(outline, entry.seq, value)


def replay(controls: Iterable[Entry]) -> Outline:
    """The outline after these control entries, the first of the session first.

    Request records may come without their bodies.
    """
    return Replay(controls).outline


class Replay:
    """A replay that can be continued: the outline after each of a session's control entries.

    A rewind needs the state of any earlier moment, so every moment is kept. The line, which grows
    with each rewind, is shared between them: otherwise a file of nothing but rewinds would take
    memory and time quadratic in its size.
    """

    def __init__(self, controls: Iterable[Entry] = ()) -> None:
        self._states: list[_State] = [_State()]
        self._line: tuple[_Line | None, tuple[Span, ...]] = (None, ())
        """The last line that was built, so that the next one costs one copy."""
        for entry in controls:
            self.take(entry)

    def take(self, entry: Entry) -> None:
        value = effect(entry)
        if value is not None:
            self._states.append(self._next(entry.seq, value))

    @property
    def outline(self) -> Outline:
        now = self._states[-1]
        if now.line is None:
            return now.outline
        last, spans = self._line
        if now.line is not last:
            spans = (*spans, now.line.span) if now.line.before is last else now.line.spans()
            self._line = (now.line, spans)
        return replace(now.outline, line=spans)

    @property
    def folds(self) -> int:
        """How many folds are on the line, including those that a later one covers."""
        return len(self._states[-1].folds)

    def _next(self, seq: int, value: Value) -> "_State":
        now = self._states[-1]
        folds, line = now.folds, now.line
        match value:
            case Rewound(to):
                return self._rewind(seq, to)
            case FoldUndone(fold):
                folds = tuple(folded for folded in folds if folded.fold != fold)
                return _State(seq, replace(now.outline, folds=_topmost(folds)), folds, line)
            case FoldCompleted(fold, spans):
                folds = (*folds, Folded(seq, fold, union(spans)))
            case Cleared():
                folds, line = (), None
            case _:
                pass
        return _State(seq, _apply(now.outline, seq, value), folds, line)

    def _rewind(self, seq: int, to: int) -> "_State":
        now = self._states[-1].outline
        then = self._states[bisect_right(self._states, to, key=lambda state: state.seq) - 1]
        line, since = then.line, then.outline.since
        if to >= since:  # a rewind stands between this span and the one before it
            line = _Line(line, Span(since, to))
        outline = replace(then.outline, since=seq + 1, title=now.title, running=now.running)
        return _State(seq, outline, then.folds, line)


class _Line(NamedTuple):
    """The line at some moment: that of an earlier one, and one more span after it."""

    before: "_Line | None"
    span: Span

    def spans(self) -> tuple[Span, ...]:
        spans: list[Span] = []
        line: _Line | None = self
        while line is not None:
            spans.append(line.span)
            line = line.before
        return tuple(reversed(spans))


class _State(NamedTuple):
    """A moment of a replay: the outline, and every fold on the line, topmost or not."""

    seq: int = 0
    outline: Outline = Outline()
    """Without its line."""
    folds: tuple[Folded, ...] = ()
    line: _Line | None = None


def _apply(outline: Outline, seq: int, value: Value) -> Outline:  # noqa: PLR0911 - one case a kind
    match value:
        case Opened(title=title) | Titled(title):
            origin = value.origin if isinstance(value, Opened) else outline.origin
            return replace(outline, title=title, origin=origin)
        case Cleared():
            kept = Outline(outline.title, outline.origin, running=outline.running)
            return replace(kept, since=seq + 1)
        case FoldStarted(fold):
            return replace(outline, running=(*outline.running, Running(seq, fold)))
        case FoldFailed(fold):
            return replace(outline, running=_without_fold(outline.running, fold))
        case FoldCompleted(fold, spans):
            folds = (*outline.folds, Folded(seq, fold, union(spans)))
            running = _without_fold(outline.running, fold)
            return replace(outline, folds=_topmost(folds), running=running)
        case Pinned(parts, by_session):
            if by_session:
                new = [part for part in parts if not _has(outline.pins, part)]
                watched = _with(outline.watched, new)
            else:  # what a person pins is the person's, whoever pinned it before
                watched = _without(outline.watched, parts)
            return replace(outline, pins=_with(outline.pins, parts), watched=watched)
        case Unpinned(parts):
            pins, watched = _without(outline.pins, parts), _without(outline.watched, parts)
            return replace(outline, pins=pins, watched=watched)
        case Requested():
            return replace(outline, record=seq)
        case _:
            return outline


# Pins are kept in order: sorting thousands of them again with each entry would take long.


def _index(parts: Sequence[PartRef], part: PartRef) -> int:
    return bisect_left(parts, (part.seq, part.index), key=lambda other: (other.seq, other.index))


def _has(parts: Sequence[PartRef], part: PartRef) -> bool:
    index = _index(parts, part)
    return index < len(parts) and parts[index] == part


def _with(parts: tuple[PartRef, ...], added: Iterable[PartRef]) -> tuple[PartRef, ...]:
    pins = list(parts)
    for part in added:
        if not _has(pins, part):
            pins.insert(_index(pins, part), part)
    return tuple(pins)


def _without(parts: tuple[PartRef, ...], removed: Iterable[PartRef]) -> tuple[PartRef, ...]:
    pins = list(parts)
    for part in removed:
        if _has(pins, part):
            del pins[_index(pins, part)]
    return tuple(pins)


def _topmost(folds: tuple[Folded, ...]) -> tuple[Folded, ...]:
    topmost: list[Folded] = []
    covered: tuple[Span, ...] = ()
    for fold in reversed(folds):
        if bare := subtract(fold.spans, covered):
            topmost.append(fold)
            covered = union((*covered, *bare))
    return tuple(reversed(topmost))


def _without_fold(running: tuple[Running, ...], fold: UUID) -> tuple[Running, ...]:
    return tuple(run for run in running if run.fold != fold)


def effect(entry: Entry) -> Value | None:
    """What the entry does to the outline; a forgotten one still did what its kept fields say."""
    kind = CODEC.kind(entry.kind)
    if kind is None or entry.version > kind.VERSION:
        return None
    if kind is Requested:
        return None if entry.forgotten else Requested((), None, "", "")
    match CODEC.decode(entry):
        case Forgotten(name, kept):
            try:
                return _EFFECTS_OF_TOMBSTONES[name](kept)
            except (KeyError, TypeError, ValueError):  # of another kind, or nothing was kept
                return None
        case Unknown():
            return None
        case value:
            return value


def _fold(kept: Body) -> UUID:
    return UUID(str(kept["fold"]))


_PARTS = TypeAdapter(tuple[PartRef, ...])
_EFFECTS_OF_TOMBSTONES: dict[str, Callable[[Body], Value]] = {
    Rewound.KIND: lambda kept: Rewound(int(str(kept["to"]))),
    Cleared.KIND: lambda _: Cleared(),
    FoldStarted.KIND: lambda kept: FoldStarted(_fold(kept), (), ""),
    FoldCompleted.KIND: lambda kept: FoldFailed(_fold(kept), ""),
    FoldFailed.KIND: lambda kept: FoldFailed(_fold(kept), ""),
    FoldUndone.KIND: lambda kept: FoldUndone(_fold(kept)),
    Pinned.KIND: lambda kept: Pinned(
        _PARTS.validate_python(kept["parts"]), watched=kept.get("watched") is True
    ),
    Unpinned.KIND: lambda kept: Unpinned(_PARTS.validate_python(kept["parts"])),
}
"""What forgotten control entries still do: a fold whose summary was erased has ended, no more."""
