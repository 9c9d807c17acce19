"""What a fold is made of: the messages of its spans, and the summaries of earlier folds in them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from refold.errors import InvalidMessage
from refold.fold.quoting import sound
from refold.fold.summary import Summary, parse
from refold.log import CODEC, MAIN_SCOPE, Entry, FoldCompleted, Message, Outline, PartRef, Span
from refold.log.span import intersect, subtract, union
from refold.wire import Role, Shape, Wire


class Passage(NamedTuple):
    """One folded message."""

    seq: int
    role: Role
    shapes: tuple[Shape, ...]
    delegated: bool = False
    """Whether it is the work of a delegation."""

    def ref(self, nth: int) -> PartRef:
        """The name of one of its parts."""
        return PartRef(self.seq, nth)


@dataclass(frozen=True, slots=True)
class Earlier:
    """A fold that lies in the spans of a new one."""

    seq: int
    summary: Summary
    last: int = 0
    """The newest entry that it stands for."""


@dataclass(frozen=True, slots=True)
class Material:
    """What a fold is made of, in order."""

    passages: tuple[Passage, ...]
    earlier: tuple[Earlier, ...] = ()

    @property
    def messages(self) -> int:
        """How many messages a fold of it stands for."""
        return len(self.passages) + sum(one.summary.messages for one in self.earlier)


def needed(spans: tuple[Span, ...], outline: Outline) -> tuple[Span, ...]:
    """What must be read for a fold over these spans: not what lies beneath an earlier fold.

    The entries of those folds themselves are read instead.
    """
    inside = [fold for fold in outline.folds if not subtract(fold.spans, spans)]
    bare = subtract(spans, (span for fold in inside for span in fold.spans))
    # A fold's own entry may lie in the new spans: each is read once.
    return union((*bare, *(Span(fold.seq, fold.seq) for fold in inside)))


def gather(
    entries: Iterable[Entry], spans: tuple[Span, ...], outline: Outline, wire: Wire
) -> Material:
    """The material among these entries."""
    passages: list[Passage] = []
    earlier: list[Earlier] = []
    folds = {fold.seq: fold for fold in outline.folds if not subtract(fold.spans, spans)}
    for entry in sorted(entries, key=lambda one: one.seq):
        match CODEC.decode(entry):
            case Message(payload) if intersect((Span(entry.seq, entry.seq),), spans):
                passages += _passage(entry, payload, wire)
            case FoldCompleted(summary=summary) if entry.seq in folds:
                last = folds[entry.seq].spans[-1].last
                earlier.append(Earlier(entry.seq, parse(summary), last))
            case _:
                pass
    return Material(tuple(passages), tuple(earlier))


def _passage(entry: Entry, payload: bytes, wire: Wire) -> Iterable[Passage]:
    try:
        role, shapes, _ = wire.describe(payload)
    except InvalidMessage:  # what nobody can read, nobody can quote; the log keeps it
        return
    yield Passage(entry.seq, role, tuple(map(_sound, shapes)), entry.scope != MAIN_SCOPE)


def _sound(shape: Shape) -> Shape:
    """The part without lone surrogates, which are no text and could not be kept."""
    if shape.text.isascii():
        return shape
    return shape._replace(text=sound(shape.text))
