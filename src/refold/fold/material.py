"""What a fold is made of, and what it would stand for in the view."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from refold.errors import InvalidMessage
from refold.fold.summary import Summary, parse, sound
from refold.log import CODEC, MAIN_SCOPE, Entry, FoldCompleted, Message, Outline, PartRef, Span
from refold.log.entry import intersect, subtract, union
from refold.view.budget import PER_MESSAGE
from refold.view.cut import Cut, cut
from refold.view.plan import Plan
from refold.view.profiles import Keep, Trigger
from refold.view.view_input import ViewInput, weight
from refold.wire import Drop, Role, Shape, Wire


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
    state: tuple[str, ...] = ()
    """See `Summary.state`; that of the earlier folds is included."""
    beside: tuple[Passage, ...] = ()
    """What was said before the fold and is not folded by it, or lies under an earlier fold that
    quotes it: evidence too."""
    kept: tuple[Passage, ...] = ()
    """What requests go on showing beside the fold: the head before it, and what came after."""
    result_chars: int = 2_500
    """How many characters of a tool result a summarizer reads, from both ends."""

    @property
    def messages(self) -> int:
        """How many messages a fold of it stands for."""
        return len(self.passages) + sum(fold.summary.messages for fold in self.earlier)

    @property
    def shown(self) -> int:
        """How many of its messages a request shows, counting summaries that are messages."""
        return len(self.passages) + sum(f.summary.placement == "own" for f in self.earlier)


def top_level(material: Material) -> Material | None:
    """The material that delegated agents may see; None if they may see all of it."""
    passages = tuple(passage for passage in material.passages if not passage.delegated)
    if len(passages) == len(material.passages) and not any(
        fold.summary.for_delegates for fold in material.earlier
    ):
        return None
    earlier = (
        replace(fold, summary=fold.summary.for_delegates or fold.summary)
        for fold in material.earlier
    )
    return replace(material, passages=passages, earlier=tuple(earlier))


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
    state: list[str] = []
    folds = {fold.seq: fold for fold in outline.folds if not subtract(fold.spans, spans)}
    for entry in sorted(entries, key=lambda entry: entry.seq):
        match CODEC.decode(entry):
            case Message(payload) if intersect((Span(entry.seq, entry.seq),), spans):
                passage = passage_of(entry, payload, wire)
                if passage is not None:
                    passages.append(passage)
                    main = entry.scope == MAIN_SCOPE
                    state += state_of(wire, payload, passage.shapes) if main else ()
            case FoldCompleted(summary=summary) if entry.seq in folds:
                last = folds[entry.seq].spans[-1].last
                earlier.append(Earlier(entry.seq, parse(summary), last))
                state += earlier[-1].summary.state
            case _:
                pass
    return Material(tuple(passages), tuple(earlier), tuple(state))


def passage_of(entry: Entry, payload: bytes, wire: Wire) -> Passage | None:
    """The message of an entry; None if it cannot be read, and so not be quoted."""
    try:
        role, shapes, _ = wire.describe(payload)
    except InvalidMessage:
        return None
    shapes = tuple(shape._replace(text=sound(shape.text)) for shape in shapes)
    return Passage(entry.seq, role, shapes, entry.scope != MAIN_SCOPE)


def beside(material: Material, spans: tuple[Span, ...], outline: Outline) -> tuple[Span, ...]:
    """What to read as evidence beside the material.

    The messages before the fold that stay in the view, and those under earlier folds that their
    summaries quote, or that disagree with what they say.
    """
    before = outline.on_line(spans[-1].last) if spans else ()
    folded = (span for fold in outline.folds for span in fold.spans)
    kept = subtract(before, (*spans, *folded))
    cited = entries_behind(material.earlier)
    return union((*kept, *(Span(seq, seq) for seq in cited)))


def kept(spans: tuple[Span, ...], head: int | None, outline: Outline) -> tuple[Span, ...]:
    """What a view at this head shows besides a fold of these spans."""
    line = outline.on_line(head or (spans[-1].last if spans else 0))
    return subtract(line, (*spans, *(span for fold in outline.folds for span in fold.spans)))


def entries_behind(earlier: Iterable[Earlier]) -> set[int]:
    """The entries that the claims of earlier folds quote, and those that disagree with one."""
    return {
        seq
        for fold in earlier
        for section in fold.summary.sections
        for claim in section.claims
        for seq in claim.entries
    }


def state_of(wire: Wire, payload: bytes, shapes: Sequence[Shape]) -> Iterator[str]:
    """The message with only the parts that must stay by themselves, if it has any."""
    if any(shape.apart for shape in shapes):
        others = {nth: Drop("folded") for nth, shape in enumerate(shapes) if not shape.apart}
        message = wire.edit(payload, others)
        if message is not None:
            yield message.decode()


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


def boundary(inputs: ViewInput, keep: Keep, trigger: Trigger | None = None) -> Boundary:
    """The middle of the view, with the earlier folds that lie in it.

    A step with a part that must stay (system content, the latest prompt) stays whole. See `cut`.
    """
    return _between(inputs, cut(inputs, keep, trigger), inputs.prompt)


def left_out(inputs: ViewInput, plan: Plan | None) -> Boundary:
    """What fixed limits took out of the newest request, with everything before it."""
    omissions = plan.layout.omissions if plan else ()
    last = max((each.span.last for each in omissions if each.reason == "window"), default=0)
    tail = inputs.at(last + 1)
    return _between(inputs, Cut(0, tail, tuple(range(tail))), inputs.prompt)


def everything(inputs: ViewInput) -> Boundary:
    """The whole conversation, for users who want to continue from the summary alone."""
    return _between(inputs, Cut(0, len(inputs.rows), tuple(range(len(inputs.rows)))), None)


def _between(inputs: ViewInput, where: Cut, prompt: int | None) -> Boundary:
    rows = inputs.rows
    staying = {
        inputs.steps[index]
        for index in range(where.head, where.tail)
        if index == prompt or any(part.fixed and not part.apart for part in rows[index].parts)
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
