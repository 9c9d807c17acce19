"""What a view must read of a session, however long the session is.

The outline is a small state folded from the control entries: which entries are on the line (after
rewinds and clears), which folds stand for which spans, what is pinned, which folds have started and
not ended, and the newest request record. A store keeps it beside the session's head and moves it
with each control entry, so that opening a session reads what its view needs and nothing else.

It holds nothing that `replay` could not make again from the log.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from uuid import UUID

from pydantic import TypeAdapter

from refold.errors import InvalidEntry, WrittenByNewer
from refold.log.codec import CODEC, Body
from refold.log.entry import Entry
from refold.log.kinds import (
    KINDS,
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
from refold.log.span import PartRef, Span, newest, spans_of, subtract, union

OUTLINE_VERSION = 1
"""Raised when the same entries yield another outline: older ones are then replayed."""

CONTROL_KINDS = frozenset(kind.KIND for kind in KINDS if kind.CONTROL)
REPLAYED_KINDS = frozenset({Rewound.KIND, FoldUndone.KIND})
"""The kinds whose effect only the control entries before them can tell."""


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
        return union((*(bare if last is None else newest(bare, last)), *spans_of(always)))


def advance(outline: Outline, entry: Entry) -> Outline:
    """The outline after one more entry of a kind that needs no replay."""
    value = _effect(entry)
    return outline if value is None else _advanced(outline, entry.seq, value)


def replay(controls: Iterable[Entry]) -> Outline:
    """The outline after these control entries, the first of the session first.

    Request records may come without their bodies.
    """
    states: list[_State] = [_State()]
    for entry in controls:
        value = _effect(entry)
        if value is not None:
            states.append(_replayed(states, entry.seq, value))
    return states[-1].outline


def chain_of(record: Entry) -> tuple[int, ...]:
    """The earlier request records that a request record is a difference to."""
    match CODEC.decode(record):
        case Requested(chain=chain):
            return chain
        case _:
            return ()


def dump(outline: Outline) -> bytes:
    """The outline as a store keeps it."""
    return _ADAPTER.dump_json(outline)


def load(data: bytes) -> Outline | None:
    """A stored outline, or None when it is of an older version and must be replayed."""
    version = _VERSION.validate_json(data).version
    if version > OUTLINE_VERSION:
        raise WrittenByNewer("The session's outline was written by a newer Refold.")
    return _ADAPTER.validate_json(data) if version == OUTLINE_VERSION else None


def check(outline: Outline, entry: Entry, controls: Iterable[Entry]) -> None:
    """Refuse a control entry that has no meaning where it would be placed."""
    head = entry.seq - 1
    match _effect(entry):
        case Rewound(to) if not 1 <= to <= head:
            raise InvalidEntry(f"Nothing is at {to}: the session has entries 1 to {head}.")
        case Pinned(parts) | Unpinned(parts) if any(part.seq > head for part in parts):
            raise InvalidEntry(f"A pinned part is beyond the head, {head}.")
        case FoldStarted(fold, spans):
            if any(running.fold == fold for running in outline.running):
                raise InvalidEntry(f"Fold {fold} has started already.")
            if not entry.forgotten:
                _check_spans(outline, head, spans)
        case FoldCompleted(fold, spans):
            _check_running(outline, fold)
            _check_spans(outline, head, spans)
        case FoldFailed(fold):
            _check_running(outline, fold)
        case FoldUndone(fold):
            _check_standing(outline, fold, controls)
        case _:
            pass


def _check_standing(outline: Outline, fold: UUID, controls: Iterable[Entry]) -> None:
    if any(one.fold == fold for one in outline.folds):
        return
    for entry in controls:  # one that is forgotten stands no more, but may have when this was said
        if (
            entry.kind == FoldCompleted.KIND
            and entry.forgotten
            and str(fold) in entry.body.decode()
        ):
            return
    raise InvalidEntry(
        f"Fold {fold} does not stand in the view.",
        "Take back the folds that stand over it first.",
    )


def _check_running(outline: Outline, fold: UUID) -> None:
    if not any(running.fold == fold for running in outline.running):
        raise InvalidEntry(
            f"Fold {fold} is not running: it was never started, or has ended.",
            "End each started fold once.",
        )


def _check_spans(outline: Outline, head: int, spans: tuple[Span, ...]) -> None:
    if not spans or subtract(spans, outline.on_line(head)):
        raise InvalidEntry(
            "The fold would stand for entries that are not on the session's line.",
            "Read the session again and fold what its view holds now.",
        )


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
            return replace(outline, folds=topmost(folds), running=_but(outline.running, fold))
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


def topmost(folds: tuple[Folded, ...]) -> tuple[Folded, ...]:
    """The folds that no later one stands for."""
    return tuple(
        fold
        for at, fold in enumerate(folds)
        if subtract(fold.spans, (s for later in folds[at + 1 :] for s in later.spans))
    )


def _but(running: tuple[Running, ...], fold: UUID) -> tuple[Running, ...]:
    return tuple(one for one in running if one.fold != fold)


@dataclass(frozen=True, slots=True)
class _State:
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
            return _State(seq, replace(now.outline, folds=topmost(folds)), folds)
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


def _effect(entry: Entry) -> Value | None:
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


@dataclass(frozen=True, slots=True)
class _Versioned:
    version: int


_ADAPTER = TypeAdapter(Outline)
_VERSION = TypeAdapter(_Versioned)
