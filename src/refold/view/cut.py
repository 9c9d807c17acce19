"""Where the past is cut: one function for every rule that leaves out a middle.

A cut falls between steps, so no call loses its result, and the latest prompt is never in what is
cut out.
"""

from typing import NamedTuple

from refold.view.profiles import Keep
from refold.view.view_input import Row, ViewInput, weight

_STRETCH = 1.5
"""By how much more than asked may stay, to begin with a turn."""


class Cut(NamedTuple):
    """The rows between the head that stays and the tail that stays."""

    head: int
    """The first row after the head."""
    tail: int
    """The row that the tail begins with."""
    rows: tuple[int, ...]
    """What is cut out: the rows between, without the latest prompt."""


def cut(inputs: ViewInput, keep: Keep) -> Cut:
    """The rows that go, and what stays before and after them."""
    tail = _tail(inputs, keep)
    head = min(_head(inputs, keep), tail)
    head = inputs.steps[head] if head < len(inputs.rows) else head
    return Cut(head, tail, tuple(at for at in range(head, tail) if at != inputs.prompt))


def first_run(inputs: ViewInput) -> int:
    """The row after the first run: after the first response that says something, its step whole."""
    for at, row in enumerate(inputs.rows):
        if row.role == "assistant" and row.has("text"):
            return inputs.step(inputs.steps[at]).stop
    return 0


def _head(inputs: ViewInput, keep: Keep) -> int:
    if keep.head == "none":
        return 0
    end = first_run(inputs)
    if inputs.foldings:  # what was kept before the first fold is the head, and stays it
        first = inputs.at(min(fold.spans[0].first for fold in inputs.foldings))
        end = min(end or first, first)  # the answer that ended it may be folded by now
    if keep.head_tokens and sum(map(weight, inputs.rows[:end])) > keep.head_tokens:
        return _prompt_end(inputs, end)
    return end


def _prompt_end(inputs: ViewInput, end: int) -> int:
    """The row after the first prompt, for a first run that is too long to keep."""
    return next((at + 1 for at in range(end) if inputs.rows[at].has("prompt")), 0)


def _tail(inputs: ViewInput, keep: Keep) -> int:
    """The row that the tail begins with; the step that is under way is always in it."""
    rows = inputs.rows
    if not rows:
        return 0
    if keep.unit == "turns":
        there = inputs.turns
        kept = max(keep.least, len(there) - int(len(there) * (1 - keep.amount)))
        at = there[-kept] if 0 < kept <= len(there) else 0
    elif keep.unit == "messages":
        at = max(0, len(rows) - max(keep.least, int(keep.amount)))
    elif keep.unit == "tokens":
        at = _newest(inputs, int(keep.amount))
        at = _to_turn(inputs, at, keep) if keep.snap == "turn" else at
    else:
        at = len(rows)
    open_step = inputs.steps[-1]
    return open_step if at >= open_step else inputs.steps[at]


def _newest(inputs: ViewInput, tokens: int) -> int:
    """The first of the newest rows that fit."""
    at = len(inputs.rows)
    while at and (size := weight(inputs.rows[at - 1])) <= tokens:
        tokens -= size
        at -= 1
    return at


def _to_turn(inputs: ViewInput, at: int, keep: Keep) -> int:
    """The turn that holds the row, if that is not much more; else the next, if not much less."""
    before = next((turn for turn in reversed(inputs.turns) if turn <= at), None)
    if before is not None and _tokens(inputs.rows[before:]) <= _STRETCH * keep.amount:
        return before
    after = next((turn for turn in inputs.turns if turn > at), None)
    if after is not None and _tokens(inputs.rows[after:]) * _STRETCH >= keep.amount:
        return after
    return at


def _tokens(rows: list[Row]) -> int:
    return sum(map(weight, rows))
