"""What a fold would stand for: the cut of the view, as spans of the log."""

from typing import NamedTuple

from refold.log import Span
from refold.log.span import intersect, subtract
from refold.view.budget import PER_MESSAGE
from refold.view.cut import Cut, cut
from refold.view.policy_values import Keep
from refold.view.row import Row, weight
from refold.view.sheet import Sheet


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


def boundary(sheet: Sheet, keep: Keep) -> Boundary:
    """The middle of the sheet, with the earlier folds that lie in it.

    A step of which a part must stay (system content, the latest prompt) stays whole.
    """
    return _between(sheet, cut(sheet, keep), sheet.prompt)


def everything(sheet: Sheet) -> Boundary:
    """All that was said, for a person who wants to go on with the summary alone."""
    return _between(sheet, Cut(0, len(sheet.rows), tuple(range(len(sheet.rows)))), None)


def _between(sheet: Sheet, where: Cut, prompt: int | None) -> Boundary:
    rows = sheet.rows
    middle = range(where.head, where.tail)
    staying = {sheet.steps[at] for at in middle if at == prompt or _fixed(rows[at])}
    going = [at for at in where.rows if sheet.steps[at] not in staying]
    if not going:
        return Boundary()
    first = rows[where.head - 1].seq + 1 if where.head else 2
    last = rows[where.tail].seq - 1 if where.tail < len(rows) else sheet.head
    held = tuple(_whole(sheet, step) for step in sorted(staying))
    spans = intersect(subtract((Span(first, last),), held), sheet.outline.on_line(sheet.head))
    inside = [fold for fold in sheet.foldings if not subtract(fold.spans, spans)]
    beyond = (fold for fold in sheet.foldings if fold not in inside)  # they tell their part already
    spans = subtract(spans, (span for fold in beyond for span in fold.spans))
    told = sum(sheet.counter.text(text) + PER_MESSAGE for one in inside for _, text in one.shown)
    tokens = sum(weight(rows[at]) for at in going)
    return Boundary(
        spans,
        len(going),
        tokens + told,
        tuple(fold.seq for fold in inside),
        tokens + sum(fold.tokens for fold in inside),
    )


def _whole(sheet: Sheet, step: int) -> Span:
    """A step with what lies between its messages: a delegate's work may be what holds it."""
    rows = sheet.step(step)
    return Span(sheet.rows[rows[0]].seq, sheet.rows[rows[-1]].seq)


def _fixed(row: Row) -> bool:
    return any(part.fixed for part in row.parts)
