"""How control entries move the outline: one by one, or all of them again from the first."""

from collections.abc import Callable, Iterable
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
from refold.log.span import PartRef, subtract, union

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
    states: list[_State] = [_State()]
    for entry in controls:
        value = effect(entry)
        if value is not None:
            states.append(_replayed(states, entry.seq, value))
    return states[-1].outline


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
            return _pinned(outline, {*parts}, watched=watched)
        case Unpinned(parts):
            left, passing = {*outline.pins} - {*parts}, {*outline.watched} - {*parts}
            return replace(outline, pins=tuple(sorted(left)), watched=tuple(sorted(passing)))
        case Requested():
            return replace(outline, record=seq)
        case _:
            return outline


def _pinned(outline: Outline, parts: set[PartRef], *, watched: bool) -> Outline:
    """What a person pins is the person's, whoever pinned it before."""
    before, passing = {*outline.pins}, {*outline.watched}
    passing = passing | (parts - before) if watched else passing - parts
    return replace(outline, pins=tuple(sorted(before | parts)), watched=tuple(sorted(passing)))


def _topmost(folds: tuple[Folded, ...]) -> tuple[Folded, ...]:
    """The folds that no later one stands for."""
    return tuple(
        fold
        for at, fold in enumerate(folds)
        if subtract(fold.spans, (s for later in folds[at + 1 :] for s in later.spans))
    )


def _but(running: tuple[Running, ...], fold: UUID) -> tuple[Running, ...]:
    return tuple(one for one in running if one.fold != fold)


class _State(NamedTuple):
    """A moment of a replay: the outline, and every fold on the line, topmost or not."""

    seq: int = 0
    outline: Outline = Outline()
    folds: tuple[Folded, ...] = ()


def _replayed(states: list[_State], seq: int, value: Value) -> _State:
    now = states[-1]
    folds = now.folds
    match value:
        case Rewound(to):
            return _rewound(states, seq, to)
        case FoldUndone(fold):
            folds = tuple(one for one in folds if one.fold != fold)
            return _State(seq, replace(now.outline, folds=_topmost(folds)), folds)
        case FoldCompleted(fold, spans):
            folds = (*folds, Folded(seq, fold, union(spans)))
        case Cleared():
            folds = ()
        case _:
            pass
    return _State(seq, _advanced(now.outline, seq, value), folds)


def _rewound(states: list[_State], seq: int, to: int) -> _State:
    then = next(state for state in reversed(states) if state.seq <= to)
    outline = replace(
        then.outline,
        line=union(then.outline.on_line(to)),
        since=seq + 1,
        title=states[-1].outline.title,
        running=states[-1].outline.running,
    )
    return _State(seq, outline, then.folds)


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
