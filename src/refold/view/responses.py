"""Responses that are several messages: which rows are one, and which of them go together.

Reasoning and what it led to, up to the next reasoning, are sent together or not at all: a provider
refuses the one without the other.
"""

from collections.abc import Iterator, Sequence

from refold.view.row import Row
from refold.view.sheet import Sheet


def responses(sheet: Sheet, start: int = 0) -> Iterator[range]:
    """The rows of each response, from row `start` on, which begins a step."""
    rows, first = sheet.rows, start
    for at in range(start, len(rows) + 1):
        if at == len(rows) or not rows[at].goes_on:
            if first < at and rows[first].role == "assistant":
                yield range(first, at)
            first = at


def groups(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """The rows of one response that go together; each alone before the first reasoning."""
    group: list[Row] = []
    for row in rows:
        thinks = row.has("thought")
        if group and (not group[0].has("thought") or (thinks and not group[-1].has("thought"))):
            yield group
            group = []
        group.append(row)
    if group:
        yield group


def with_row(sheet: Sheet, at: int) -> list[Row]:
    """What goes together with a row; with the answers to its calls, where it has some."""
    step = [sheet.rows[one] for one in sheet.step(sheet.steps[at])]
    response = [row for row in step if row.role == "assistant"]
    group = next(one for one in groups(response) if sheet.rows[at] in one)
    return step if len(group) > 1 and any(row.has("call") for row in group) else group
