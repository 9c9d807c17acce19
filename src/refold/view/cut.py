"""Where the past is cut: one function for every rule that leaves out a middle.

A cut falls between steps, so no call loses its result, and it never takes out the latest prompt.
"""

from typing import NamedTuple

from refold.view.profiles import Keep, Trigger
from refold.view.view_input import Row, ViewInput, weight

_STRETCH = 1.5
"""How much more than the amount may stay, to begin with a turn."""
_LEAST_MESSAGES = 4
"""Messages that stay, no matter how low their limit is."""


class Cut(NamedTuple):
    """The rows between the head that stays and the tail that stays."""

    head: int
    """The first row after the head."""
    tail: int
    """The row that the tail begins with."""
    rows: tuple[int, ...]
    """What is cut out: the rows between, without the latest prompt."""


def cut(inputs: ViewInput, keep: Keep, trigger: Trigger | None = None) -> Cut:
    """Cut out the middle; the tail takes at most half of each limit set in `trigger`."""
    tail = _tail(inputs, keep, trigger)
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


def _tail(inputs: ViewInput, keep: Keep, trigger: Trigger | None) -> int:
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
    if trigger is not None and keep.unit in ("messages", "tokens"):  # turns: a share of them
        index = max(index, _half_of_limits(inputs, trigger))
    open_step = inputs.steps[-1]
    start = open_step if index >= open_step else inputs.steps[index]
    # A late result, after its call's step was closed, goes with what closed it: otherwise it
    # would join that step, which may stay, once everything between them is folded.
    while start < open_step and rows[start].has("return") and not rows[start].has("prompt"):
        start += 1
    return start


def _half_of_limits(inputs: ViewInput, trigger: Trigger) -> int:
    """The first row that a tail of half of each limit may begin with."""
    rows, turns, first = inputs.rows, inputs.turns, 0
    if trigger.messages:
        first = len(rows) - max(_LEAST_MESSAGES, trigger.messages // 2)
    if trigger.turns:
        kept = trigger.turns + 1 - (trigger.turns + 1) // 2
        first = max(first, turns[-kept] if kept <= len(turns) else 0)
    if trigger.tokens:
        index, tokens = len(rows), trigger.tokens // 2
        while index and (tokens := tokens - weight(rows[index - 1])) >= 0:
            index -= 1
        first = max(first, index)
    return first


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
