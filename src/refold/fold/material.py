"""What a fold is made of: the messages of its spans, and the summaries of earlier folds in them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from refold.errors import InvalidMessage
from refold.fold.summary import Summary, parse, sound
from refold.log import CODEC, MAIN_SCOPE, Entry, FoldCompleted, Message, Outline, PartRef, Span
from refold.log.entry import intersect, subtract, union
from refold.view.budget import PER_MESSAGE
from refold.view.cut import Cut, cut
from refold.view.profiles import Keep
from refold.view.view_input import Row, ViewInput, weight
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


# What a fold would stand for: the cut of the view, as spans of the log.


class Boundary(NamedTuple):
    """What would be folded, and what that takes up in the view now."""

    spans: tuple[Span, ...] = ()
    messages: int = 0
    tokens: int = 0
    """Of its messages, and of the summaries of earlier folds among them."""
    earlier: tuple[int, ...] = ()
    """The entries of those folds."""
    whole: int = 0
    """What all of it would cost in a request, with what those folds stand for."""


def boundary(inputs: ViewInput, keep: Keep) -> Boundary:
    """The middle of the sheet, with the earlier folds that lie in it.

    A step of which a part must stay (system content, the latest prompt) stays whole.
    """
    return _between(inputs, cut(inputs, keep), inputs.prompt)


def everything(inputs: ViewInput) -> Boundary:
    """All that was said, for a person who wants to go on with the summary alone."""
    return _between(inputs, Cut(0, len(inputs.rows), tuple(range(len(inputs.rows)))), None)


def _between(inputs: ViewInput, where: Cut, prompt: int | None) -> Boundary:
    rows = inputs.rows
    middle = range(where.head, where.tail)
    staying = {inputs.steps[at] for at in middle if at == prompt or _fixed(rows[at])}
    going = [at for at in where.rows if inputs.steps[at] not in staying]
    if not going:
        return Boundary()
    first = rows[where.head - 1].seq + 1 if where.head else 2
    last = rows[where.tail].seq - 1 if where.tail < len(rows) else inputs.head
    held = tuple(_whole(inputs, step) for step in sorted(staying))
    spans = intersect(subtract((Span(first, last),), held), inputs.outline.on_line(inputs.head))
    inside = [fold for fold in inputs.foldings if not subtract(fold.spans, spans)]
    beyond = (
        fold for fold in inputs.foldings if fold not in inside
    )  # they tell their part already
    spans = subtract(spans, (span for fold in beyond for span in fold.spans))
    told = sum(inputs.counter.text(text) + PER_MESSAGE for one in inside for _, text in one.shown)
    tokens = sum(weight(rows[at]) for at in going)
    return Boundary(
        spans,
        len(going),
        tokens + told,
        tuple(fold.seq for fold in inside),
        tokens + sum(fold.tokens for fold in inside),
    )


def _whole(inputs: ViewInput, step: int) -> Span:
    """A step with what lies between its messages: a delegate's work may be what holds it."""
    rows = inputs.step(step)
    return Span(inputs.rows[rows[0]].seq, inputs.rows[rows[-1]].seq)


def _fixed(row: Row) -> bool:
    return any(part.fixed for part in row.parts)
