"""The body that goes out: as it came where nothing is to be changed, else with the view's messages.

Clients change what they send again in ways that do not matter to the conversation: they move cache
marks, leave out thoughts. What is shown of a message is the client's own form of it, not the one
that was logged when it first came.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
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
from refold.wire.fingerprint import similar_arguments
from refold.wire.history_pairing import Sent, pair_shown

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


def rendered(
    dialect: Dialect, asked: Asked, sheet: Sheet, request: Request
) -> tuple[bytes, set[int]]:
    """The body of a request, and the entries that the client sends in another form than logged.

    Raises:
        NotTheirs: What the view holds is not, or not up to its end, the client's.
    """
    layout = request.plan.layout
    theirs = aligned(dialect, asked.messages, sheet)
    check_theirs(dialect, asked, sheet, theirs)
    differing = _rewritten(dialect, asked.messages, sheet, theirs)
    if _untouched(layout, sheet) and len(theirs) == len(asked.messages):
        return asked.raw, differing
    edited = {ref.seq for ref in layout.changes}
    rows = [
        _as_sent(sheet.wire, row, asked.messages[theirs[row.seq]], edited)
        for row in sheet.rows
        if row.seq in theirs  # else it is a thought that the client leaves out
    ]
    edits: Edits = {}
    messages = assemble(sheet.wire, rows, layout, edits)
    sources = _sources(messages, rows, edits, theirs)
    return dialect.body(asked, marked_again(asked.messages, sources)), differing


def _untouched(layout: Layout, sheet: Sheet) -> bool:
    """Whether nothing is shortened. Calls without answers and the like are the client's affair."""
    reasons = {one.reason for one in (*layout.gone, *layout.changes.values(), *layout.inserts)}
    return not sheet.foldings and reasons <= _LEFT_ALONE


def aligned(dialect: Dialect, messages: Sequence[bytes], sheet: Sheet) -> dict[int, int]:
    """Which of the client's messages each row is, by its seq."""
    rows = sheet.rows
    if len(rows) == len(messages) and all(
        row.payload == message for row, message in zip(rows, messages, strict=True)
    ):
        return {row.seq: index for index, row in enumerate(rows)}
    theirs = [_sent(dialect, message) for message in messages]
    shown = [_sent(dialect, row.payload) for row in rows]

    def similar(one: bytes, other: bytes) -> bool:
        return _similar_calls(sheet.wire, one, other)

    return {rows[row].seq: index for index, row in pair_shown(theirs, shown, similar)}


def _rewritten(
    dialect: Dialect, messages: Sequence[bytes], sheet: Sheet, theirs: Mapping[int, int]
) -> set[int]:
    """The answers that the client sends back in another form than the log has."""
    return {
        row.seq
        for row in sheet.rows
        if row.role == "assistant"
        and row.seq in theirs
        and dialect.likeness(row.payload) != dialect.likeness(messages[theirs[row.seq]])
    }


def _sent(dialect: Dialect, payload: bytes) -> Sent:
    facts = dialect.form.seen(payload)
    return Sent(b"" if facts.blank else facts.likeness, facts.known_by, payload)


def _similar_calls(wire: Wire, one: bytes, other: bytes) -> bool:
    """Whether two messages with calls of the same names may be one that a client rewrote."""
    first, second = (
        [shape for shape in wire.describe(payload).shapes if shape.kind == "call"]
        for payload in (one, other)
    )
    return len(first) == len(second) and all(
        mine.tool == theirs.tool and similar_arguments(mine.text, theirs.text)
        for mine, theirs in zip(first, second, strict=True)
    )


def check_theirs(
    dialect: Dialect, asked: Asked, sheet: Sheet, theirs: Mapping[int, int] | None = None
) -> None:
    """Check that the client sent all that the view holds, and that its newest message is there.

    Raises:
        NotTheirs: It is not so.
    """
    theirs = aligned(dialect, asked.messages, sheet) if theirs is None else theirs
    said = (
        at for at in reversed(range(len(asked.messages))) if not dialect.blank(asked.messages[at])
    )
    newest = next(said, None)
    if newest is not None and newest not in theirs.values():
        raise NotTheirs
    if any(row.seq not in theirs and not dialect.blank(row.payload) for row in sheet.rows):
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
