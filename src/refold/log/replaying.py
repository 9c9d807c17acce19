"""How control entries move the outline: one by one, or all of them again from the first."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

from pydantic import TypeAdapter

from refold.log.codec import CODEC, Body
from refold.log.entry import Entry
from refold.log.kinds import (
    Cleared,
    FoldCompleted,
    FoldFailed,
    FoldStarted,
    FoldUndone,
    Forgotten,
    Opened,
    Pinned,
    Requested,
    Rewound,
    Titled,
    Unknown,
    Unpinned,
    Value,
)
from refold.log.outline import Folded, Outline, Running
from refold.log.span import PartRef, Span, subtract, union

REPLAYED_KINDS = frozenset({Rewound.KIND, FoldUndone.KIND})
"""The kinds whose effect only the control entries before them can tell."""


def advance(outline: Outline, entry: Entry) -> Outline:
    """The outline after one more entry of a kind that needs no replay."""
    value = effect(entry)
    return outline if value is None else _advanced(outline, entry.seq, value)


def replay(controls: Iterable[Entry]) -> Outline:
    """The outline after these control entries, the first of the session first.

    Request records may come without their bodies.
    """
    return Replay(controls).outline


class Replay:
    """A replay that can be continued: the outline after each of a session's control entries.

    A rewind needs the state of any earlier moment, so every moment is kept. What grows with each
    rewind, the line, is shared between them: else a file of nothing but rewinds would take memory
    and time by the square of its size.
    """

    def __init__(self, controls: Iterable[Entry] = ()) -> None:
        self._states: list[_State] = [_State()]
        self._line: tuple[_Line | None, tuple[Span, ...]] = (None, ())
        """The line that was last asked for, so that the next one costs one copy."""
        for entry in controls:
            self.take(entry)

    def take(self, entry: Entry) -> None:
        """Go on to the next control entry."""
        value = effect(entry)
        if value is not None:
            self._states.append(_replayed(self._states, entry.seq, value))

    @property
    def outline(self) -> Outline:
        """The outline after the entries so far."""
        now = self._states[-1]
        return replace(now.outline, line=self._spans(now.line)) if now.line else now.outline

    @property
    def folds(self) -> int:
        """How many folds are on the line, also those that a later one stands for."""
        return len(self._states[-1].folds)

    def _spans(self, line: "_Line") -> tuple[Span, ...]:
        known, spans = self._line
        if line is not known:
            one_more = line.before is known
            spans = (*spans, line.span) if one_more else tuple(_line_spans(line))[::-1]
            self._line = (line, spans)
        return spans


def _advanced(outline: Outline, seq: int, value: Value) -> Outline:  # noqa: PLR0911 - one case a kind
    match value:
        case Opened(title=title) | Titled(title):
            return replace(outline, title=title)
        case Cleared():
            return replace(Outline(outline.title, running=outline.running), since=seq + 1)
        case FoldStarted(fold):
            return replace(outline, running=(*outline.running, Running(seq, fold)))
        case FoldFailed(fold):
            return replace(outline, running=_but(outline.running, fold))
        case FoldCompleted(fold, spans):
            folds = (*outline.folds, Folded(seq, fold, union(spans)))
            return replace(outline, folds=_topmost(folds), running=_but(outline.running, fold))
        case Pinned(parts, watched):
            return _pinned(outline, parts, watched=watched)
        case Unpinned(parts):
            pins, watched = _without(outline.pins, parts), _without(outline.watched, parts)
            return replace(outline, pins=pins, watched=watched)
        case Requested():
            return replace(outline, record=seq)
        case _:
            return outline


def _pinned(outline: Outline, parts: Iterable[PartRef], *, watched: bool) -> Outline:
    """What a person pins is the person's, whoever pinned it before."""
    if watched:
        new = [part for part in parts if not _has(outline.pins, part)]
        passing = _with(outline.watched, new)
    else:
        passing = _without(outline.watched, parts)
    return replace(outline, pins=_with(outline.pins, parts), watched=passing)


# Parts stand in order. To sort them anew with each entry would take long where there are thousands.


def _place(parts: Sequence[PartRef], part: PartRef) -> int:
    return bisect_left(parts, (part.seq, part.index), key=lambda other: (other.seq, other.index))


def _has(parts: Sequence[PartRef], part: PartRef) -> bool:
    place = _place(parts, part)
    return place < len(parts) and parts[place] == part


def _with(parts: tuple[PartRef, ...], more: Iterable[PartRef]) -> tuple[PartRef, ...]:
    every = list(parts)
    for part in more:
        if not _has(every, part):
            every.insert(_place(every, part), part)
    return tuple(every)


def _without(parts: tuple[PartRef, ...], less: Iterable[PartRef]) -> tuple[PartRef, ...]:
    every = list(parts)
    for part in less:
        if _has(every, part):
            del every[_place(every, part)]
    return tuple(every)


def _topmost(folds: tuple[Folded, ...]) -> tuple[Folded, ...]:
    """The folds that no later one stands for."""
    found: list[Folded] = []
    covered: tuple[Span, ...] = ()
    for fold in reversed(folds):
        if bare := subtract(fold.spans, covered):
            found.append(fold)
            covered = union((*covered, *bare))
    return tuple(reversed(found))


def _but(running: tuple[Running, ...], fold: UUID) -> tuple[Running, ...]:
    return tuple(one for one in running if one.fold != fold)


class _Line(NamedTuple):
    """The line at some moment: that of an earlier one, and one more span after it."""

    before: "_Line | None"
    span: Span


class _State(NamedTuple):
    """A moment of a replay: the outline, and every fold on the line, topmost or not."""

    seq: int = 0
    outline: Outline = Outline()
    """Without its line."""
    folds: tuple[Folded, ...] = ()
    line: _Line | None = None


def _line_spans(line: _Line | None) -> Iterator[Span]:
    """The spans of a line, the last first."""
    while line is not None:
        yield line.span
        line = line.before


def _replayed(states: list[_State], seq: int, value: Value) -> _State:
    now = states[-1]
    folds, line = now.folds, now.line
    match value:
        case Rewound(to):
            return _rewound(states, seq, to)
        case FoldUndone(fold):
            folds = tuple(one for one in folds if one.fold != fold)
            return _State(seq, replace(now.outline, folds=_topmost(folds)), folds, line)
        case FoldCompleted(fold, spans):
            folds = (*folds, Folded(seq, fold, union(spans)))
        case Cleared():
            folds, line = (), None
        case _:
            pass
    return _State(seq, _advanced(now.outline, seq, value), folds, line)


def _rewound(states: list[_State], seq: int, to: int) -> _State:
    then = states[bisect_right(states, to, key=lambda state: state.seq) - 1]
    line, since = then.line, then.outline.since
    if to >= since:  # a rewind stands between this span and the one before it
        line = _Line(line, Span(since, to))
    outline = replace(
        then.outline,
        since=seq + 1,
        title=states[-1].outline.title,
        running=states[-1].outline.running,
    )
    return _State(seq, outline, then.folds, line)


def effect(entry: Entry) -> Value | None:
    """What the entry does to the outline; a forgotten one still did what its kept fields say."""
    kind = CODEC.kind(entry.kind)
    if kind is None or entry.version > kind.VERSION:
        return None
    if kind is Requested:
        return None if entry.forgotten else Requested((), None, "", "")
    match CODEC.decode(entry):
        case Forgotten(name, kept):
            return _left(name, kept)
        case Unknown():
            return None
        case value:
            return value


def _left(kind: str, kept: Body) -> Value | None:
    try:
        return _LEFT[kind](kept)
    except (KeyError, TypeError, ValueError):  # of another kind, or nothing was kept
        return None


def _fold(kept: Body) -> UUID:
    return UUID(str(kept["fold"]))


_PARTS = TypeAdapter(tuple[PartRef, ...])
_LEFT: dict[str, Callable[[Body], Value]] = {
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
"""What forgotten control entries still do: a fold whose summary is gone has ended, no more."""
