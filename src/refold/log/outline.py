"""What a view must read of a session, however long the session is.

The outline is a small state folded from the control entries: which entries are on the line (after
rewinds and clears), which folds stand for which spans, what is pinned, which folds have started and
not ended, and the newest request record. A store keeps it beside the session's head and moves it
with each control entry, so that opening a session reads what its view needs and nothing else.

It holds nothing that `refold.log.replaying` could not make again from the log.
"""

from dataclasses import dataclass
from uuid import UUID

from pydantic import TypeAdapter

from refold.errors import WrittenByNewer
from refold.log.codec import CODEC
from refold.log.entry import Entry
from refold.log.kinds import KINDS, Requested
from refold.log.span import PartRef, Span, newest, spans_of, subtract, union

OUTLINE_VERSION = 1
"""Raised when the same entries yield another outline: older ones are then replayed."""

CONTROL_KINDS = frozenset(kind.KIND for kind in KINDS if kind.CONTROL)


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


@dataclass(frozen=True, slots=True)
class _Versioned:
    version: int


_ADAPTER = TypeAdapter(Outline)
_VERSION = TypeAdapter(_Versioned)
