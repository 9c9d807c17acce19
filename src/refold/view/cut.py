"""Where the past is cut: one function for every rule that leaves out a middle.

A cut falls between steps, so no call loses its result, and it never takes out the latest prompt.
"""

from typing import NamedTuple

from refold.view.profiles import Keep
from refold.view.view_input import Row, ViewInput, weight

_STRETCH = 1.5
"""How much more than the amount may stay, to begin with a turn."""


class Cut(NamedTuple):
    """The rows between the head that stays and the tail that stays."""

    head: int
    """The first row after the head."""
    tail: int
    """The row that the tail begins with."""
    rows: tuple[int, ...]
    """What is cut out: the rows between, without the latest prompt."""


def cut(inputs: ViewInput, keep: Keep) -> Cut:
    tail = _tail(inputs, keep)
    head = min(_head(inputs, keep), tail)
    head = inputs.steps[head] if head < len(inputs.rows) else head
    return Cut(head, tail, tuple(row for row in range(head, tail) if row != inputs.prompt))


def _head(inputs: ViewInput, keep: Keep) -> int:
    if keep.head == "none":
        return 0
    # The first run ends with the first response that says something, its step whole.
    replies = (
        index
        for index, row in enumerate(inputs.rows)
        if row.role == "assistant" and row.has("text")
    )
    reply = next(replies, None)
    end = 0 if reply is None else inputs.step(inputs.steps[reply]).stop
    if inputs.foldings:  # what was kept before the first fold is the head, and stays it
        first = inputs.at(min(fold.spans[0].first for fold in inputs.foldings))
        end = min(end or first, first)  # the answer that ended it may be folded by now
    if keep.head_tokens and sum(map(weight, inputs.rows[:end])) > keep.head_tokens:
        return next((index + 1 for index in range(end) if inputs.rows[index].has("prompt")), 0)
    return end


def _tail(inputs: ViewInput, keep: Keep) -> int:
    """The row that the tail begins with; the open step is always in it."""
    rows = inputs.rows
    if not rows:
        return 0
    index = len(rows)
    if keep.unit == "turns":
        turns = inputs.turns
        count = max(keep.least, len(turns) - int(len(turns) * (1 - keep.amount)))
        index = turns[-count] if 0 < count <= len(turns) else 0
    elif keep.unit == "messages":
        index = max(0, len(rows) - max(keep.least, int(keep.amount)))
    elif keep.unit == "tokens":
        tokens = int(keep.amount)
        while index and (size := weight(rows[index - 1])) <= tokens:
            tokens -= size
            index -= 1
        index = _to_turn(inputs, index, keep) if keep.snap == "turn" else index
    open_step = inputs.steps[-1]
    return open_step if index >= open_step else inputs.steps[index]


def _to_turn(inputs: ViewInput, index: int, keep: Keep) -> int:
    """The turn that holds the row, if that is not much more; else the next, if not much less."""
    before = next((turn for turn in reversed(inputs.turns) if turn <= index), None)
    if before is not None and _tokens(inputs.rows[before:]) <= _STRETCH * keep.amount:
        return before
    after = next((turn for turn in inputs.turns if turn > index), None)
    if after is not None and _tokens(inputs.rows[after:]) * _STRETCH >= keep.amount:
        return after
    return index


def _tokens(rows: list[Row]) -> int:
    return sum(map(weight, rows))
