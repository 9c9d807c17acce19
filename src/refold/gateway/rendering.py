"""The body that goes out: as it came where nothing is to be changed, else with the view's messages.

Clients change what they send again in ways that do not matter to the conversation: they move cache
marks, leave out thoughts. What is shown of a message is the client's own form of it, not the one
that was logged when it first came.
"""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
from typing import Final

from refold.errors import InvalidMessage
from refold.gateway.dialects.asked import Asked
from refold.gateway.dialects.cache_marks import marked_again, without_marks
from refold.gateway.dialects.dialect import Dialect
from refold.view import Request, Sheet
from refold.view.assemble import Edits, assemble
from refold.view.plan import Layout
from refold.view.row import Row
from refold.wire import Kind, Wire

_LEFT_ALONE: Final = frozenset(
    {
        "empty",
        "late",
        "off the line",
        "opening",
        "orphan",
        "parted",
        "scope",
        "unanswered",
    }
)
"""Reasons for edits that are not made where nothing else is edited: the provider says best what it
takes, and what is off the line was never sent."""


class NotTheirs(Exception):
    """The view is not of what the client sent: others went on in the session meanwhile."""


def rendered(dialect: Dialect, asked: Asked, sheet: Sheet, request: Request) -> bytes:
    """The body of a request.

    Raises:
        NotTheirs: What the view holds is not, or not up to its end, the client's.
    """
    layout = request.plan.layout
    theirs = aligned(dialect, asked.messages, sheet.rows)
    check_theirs(dialect, asked, sheet, theirs)
    if _untouched(layout, sheet) and len(theirs) == len(asked.messages):
        return asked.raw
    edited = {ref.seq for ref in layout.changes}
    rows = [
        _as_sent(sheet.wire, row, asked.messages[theirs[row.seq]], edited)
        for row in sheet.rows
        if row.seq in theirs  # else it is a thought that the client leaves out
    ]
    edits: Edits = {}
    messages = assemble(sheet.wire, rows, layout, edits)
    return dialect.body(
        asked, marked_again(asked.messages, _sources(messages, rows, edits, theirs))
    )


def _untouched(layout: Layout, sheet: Sheet) -> bool:
    """Whether nothing is shortened. Calls without answers and the like are the client's affair."""
    reasons = {one.reason for one in (*layout.gone, *layout.changes.values(), *layout.inserts)}
    return not sheet.foldings and reasons <= _LEFT_ALONE


def aligned(dialect: Dialect, messages: Sequence[bytes], rows: Sequence[Row]) -> dict[int, int]:
    """Which of the client's messages each row is, by its seq.

    What is folded lies between the messages; thoughts that the client leaves out, between the rows.
    """
    like = dialect.likeness

    def same(row: int, message: int) -> bool:
        payload, theirs = rows[row].payload, messages[message]
        return payload == theirs or like(payload) == like(theirs)

    if len(rows) == len(messages) and all(same(at, at) for at in range(len(rows))):
        return {row.seq: at for at, row in enumerate(rows)}
    said = [at for at, message in enumerate(messages) if like(message)]
    shown = [at for at, row in enumerate(rows) if like(row.payload)]
    pairs = _paired(said, shown, same)
    # What identifies nothing is known by what it stands between.
    bounds = [(-1, -1), *sorted(pairs), (len(rows), len(messages))]
    for (row, message), (next_row, next_message) in pairwise(bounds):
        between = zip(range(row + 1, next_row), range(message + 1, next_message), strict=False)
        pairs += [
            (one, two)
            for one, two in between
            if not like(rows[one].payload) and not like(messages[two])
        ]
    return {rows[row].seq: message for row, message in pairs}


def _paired(
    said: Sequence[int], shown: Sequence[int], same: Callable[[int, int], bool]
) -> list[tuple[int, int]]:
    """Rows and messages that are the same: from both ends as far as they agree, then between."""
    short = min(len(said), len(shown))
    last = 0
    while last < short and same(shown[-1 - last], said[-1 - last]):
        last += 1
    first = 0
    while first < short - last and same(shown[first], said[first]):
        first += 1
    pairs = [*zip(shown[:first], said[:first], strict=True)]
    pairs += zip(shown[len(shown) - last :], said[len(said) - last :], strict=True)
    left = iter(reversed(said[first : len(said) - last]))
    for row in reversed(shown[first : len(shown) - last]):
        message = next((one for one in left if same(row, one)), None)
        if message is not None:
            pairs.append((row, message))
    return pairs


def check_theirs(
    dialect: Dialect, asked: Asked, sheet: Sheet, theirs: Mapping[int, int] | None = None
) -> None:
    """Check that the client sent all that the view holds, and that its newest message is there.

    Raises:
        NotTheirs: It is not so.
    """
    theirs = aligned(dialect, asked.messages, sheet.rows) if theirs is None else theirs
    said = (
        at for at in reversed(range(len(asked.messages))) if dialect.likeness(asked.messages[at])
    )
    newest = next(said, None)
    if newest is not None and newest not in theirs.values():
        raise NotTheirs
    if any(row.seq not in theirs and dialect.likeness(row.payload) for row in sheet.rows):
        raise NotTheirs


def _as_sent(wire: Wire, row: Row, payload: bytes, edited: AbstractSet[int]) -> Row:
    """The row with the client's form of its message, where edits mean the same there."""
    if row.seq in edited and _kinds(wire, payload) != [part.kind for part in row.parts]:
        return row._replace(payload=without_marks(row.payload))
    return row._replace(payload=payload)


def _kinds(wire: Wire, payload: bytes) -> list[Kind]:
    try:
        return [one.kind for one in wire.describe(payload).shapes]
    except InvalidMessage:
        return []


def _sources(
    messages: Sequence[bytes], rows: Sequence[Row], edits: Edits, theirs: dict[int, int]
) -> list[tuple[int | None, bytes]]:
    """The messages, each with the place of the client's that it stands for."""
    places: dict[int, int] = {}
    for row in rows:
        if row.seq in theirs:
            made = edits[row.seq].message if row.seq in edits else row.payload
            places[id(made)] = theirs[row.seq]
    return [(places.get(id(message)), message) for message in messages]
