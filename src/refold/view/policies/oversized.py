"""Prompts that no request could hold, each replaced by one line that says where it can be read.

The latest prompt is always sent verbatim, so a request with one that is too long is refused. From
the next prompt on it is an earlier one: without this policy it would stay in the way, because
fitting leaves out everything else first.
"""

from collections.abc import Iterator

from refold.view.budget import PER_MESSAGE
from refold.view.desk import Desk
from refold.view.row import Row
from refold.wire import Change, Drop, Insert, Part, Replace

_LINE = (
    "[The user's message here was too long for the context window ({chars:,} characters) and is "
    "left out. It is kept in the log as entry {seq}.]"
)


def oversized(
    desk: Desk, room: int, *, prompt_follows: bool = False
) -> Iterator[tuple[Part, Change]]:
    """Replace each earlier prompt that exceeds the room for prompts.

    With `prompt_follows` nobody asks the model to answer the latest prompt any more: it counts as
    an earlier one.
    """
    sheet = desk.sheet
    latest = None if prompt_follows else sheet.prompt
    for at, row in enumerate(sheet.rows[desk.start :], desk.start):
        if at != latest and exceeds(desk, row, room):
            yield from _replaced(desk, row)


def exceeds(desk: Desk, row: Row, room: int) -> bool:
    """Whether the prompt in this row is too long for any request with this room for messages."""
    # Most prompts are short: only a long one is worth adding up what else must be sent.
    if row.tokens <= room // 2 or not row.has("prompt"):
        return False
    tokens = sum(part.tokens for part in row.parts if part.kind == "prompt") + PER_MESSAGE
    left = room - _needed(desk, row)
    # Where not even the line would fit, something else is too large.
    return tokens > left >= desk.cost(Insert(row.seq, "prompt", _line(row), "oversized"))


def _line(row: Row) -> str:
    chars = sum(part.chars for part in row.parts if part.kind == "prompt")
    return _LINE.format(chars=chars, seq=row.seq)


def _needed(desk: Desk, row: Row) -> int:
    """The tokens of everything beside the prompt that no request may leave out."""
    sheet = desk.sheet
    held = sum(
        part.tokens
        for other in sheet.rows
        for part in other.parts
        if desk.held(part) and not (other is row and part.kind == "prompt")
    )
    quotes = (Insert(one.seq, "prompt", one.text, "pinned") for one in sheet.pinned)
    return held + sum(map(desk.cost, quotes))


def _replaced(desk: Desk, row: Row) -> Iterator[tuple[Part, Change]]:
    prompts = [part for part in row.parts if part.kind == "prompt"]
    if not all(map(desk.free, prompts)):  # pinned, or decided before
        return
    first, *rest = prompts
    yield first, Replace(0, _line(row), 0, "oversized")
    for part in rest:
        yield part, Drop("oversized")
