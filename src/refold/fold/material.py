"""What a fold is made of, and what it would stand for in the view."""

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
from refold.view.view_input import ViewInput, weight
from refold.wire import Role, Shape, Wire


class Passage(NamedTuple):
    seq: int
    role: Role
    shapes: tuple[Shape, ...]
    delegated: bool = False
    """Whether it belongs to a delegated agent's work."""

    def ref(self, index: int) -> PartRef:
        return PartRef(self.seq, index)


@dataclass(frozen=True, slots=True)
class Earlier:
    """A fold that lies in the spans of a new one."""

    seq: int
    summary: Summary
    last: int = 0
    """The newest entry that it stands for."""


@dataclass(frozen=True, slots=True)
class Material:
    """The messages of a fold's spans, and the earlier folds among them, in order."""

    passages: tuple[Passage, ...]
    earlier: tuple[Earlier, ...] = ()

    @property
    def messages(self) -> int:
        """How many messages a fold of it stands for."""
        return len(self.passages) + sum(fold.summary.messages for fold in self.earlier)


def needed(spans: tuple[Span, ...], outline: Outline) -> tuple[Span, ...]:
    """What to read for a fold over these spans.

    Of earlier folds only their own entries are read, not the messages beneath them.
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
    for entry in sorted(entries, key=lambda entry: entry.seq):
        match CODEC.decode(entry):
            case Message(payload) if intersect((Span(entry.seq, entry.seq),), spans):
                try:
                    role, shapes, _ = wire.describe(payload)
                except InvalidMessage:  # it cannot be quoted; the log keeps it
                    continue
                shapes = tuple(shape._replace(text=sound(shape.text)) for shape in shapes)
                passages.append(Passage(entry.seq, role, shapes, entry.scope != MAIN_SCOPE))
            case FoldCompleted(summary=summary) if entry.seq in folds:
                last = folds[entry.seq].spans[-1].last
                earlier.append(Earlier(entry.seq, parse(summary), last))
            case _:
                pass
    return Material(tuple(passages), tuple(earlier))


class Boundary(NamedTuple):
    """What would be folded, and how much of the view that is."""

    spans: tuple[Span, ...] = ()
    messages: int = 0
    tokens: int = 0
    """Of its messages, and of the summaries of earlier folds among them."""
    earlier: tuple[int, ...] = ()
    """The entries of those folds."""
    whole: int = 0
    """What all of it would cost in a request, with the messages beneath those folds."""


def boundary(inputs: ViewInput, keep: Keep) -> Boundary:
    """The middle of the view, with the earlier folds that lie in it.

    A step with a part that must stay (system content, the latest prompt) stays whole.
    """
    return _between(inputs, cut(inputs, keep), inputs.prompt)


def everything(inputs: ViewInput) -> Boundary:
    """The whole conversation, for users who want to continue from the summary alone."""
    return _between(inputs, Cut(0, len(inputs.rows), tuple(range(len(inputs.rows)))), None)


def _between(inputs: ViewInput, where: Cut, prompt: int | None) -> Boundary:
    rows = inputs.rows
    staying = {
        inputs.steps[index]
        for index in range(where.head, where.tail)
        if index == prompt or any(part.fixed for part in rows[index].parts)
    }
    going = [index for index in where.rows if inputs.steps[index] not in staying]
    if not going:
        return Boundary()
    first = rows[where.head - 1].seq + 1 if where.head else 2
    last = rows[where.tail].seq - 1 if where.tail < len(rows) else inputs.head
    # A step stays with all that lies between its messages, such as a delegated agent's work.
    steps = map(inputs.step, sorted(staying))
    held = tuple(Span(rows[step[0]].seq, rows[step[-1]].seq) for step in steps)
    spans = intersect(subtract((Span(first, last),), held), inputs.outline.on_line(inputs.head))
    inside = [fold for fold in inputs.foldings if not subtract(fold.spans, spans)]
    # Folds that reach beyond these spans keep standing for their own messages.
    beyond = (fold for fold in inputs.foldings if fold not in inside)
    spans = subtract(spans, (span for fold in beyond for span in fold.spans))
    shown = sum(
        inputs.counter.text(text) + PER_MESSAGE for fold in inside for _, text in fold.shown
    )
    tokens = sum(weight(rows[index]) for index in going)
    return Boundary(
        spans,
        len(going),
        tokens + shown,
        tuple(fold.seq for fold in inside),
        tokens + sum(fold.tokens for fold in inside),
    )
