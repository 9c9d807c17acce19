"""Large tool results of earlier turns, replaced by a short reference.

The reference names the part, so that recall can read it back, and the names that it mentioned most,
so that a model still knows what it has seen.
"""

from collections.abc import Iterator

from refold.view.board import Board
from refold.view.names import mentioning
from refold.view.profiles import Archive
from refold.wire import Part, Replace


def archive(
    board: Board, values: Archive, end: int, enough: int, start: int = 0
) -> Iterator[tuple[Part, Replace]]:
    """Archive results before row `end`, the oldest first, until the total is low enough."""
    if not values.min_chars:
        return
    for row in board.sheet.rows[start:end]:
        for part in row.parts:
            if board.total <= enough:
                return
            if part.kind == "return" and part.chars > values.min_chars and board.free(part):
                text = board.sheet.text(part)
                change = reference(part, text, values)
                if len(change.applied(text)) < len(text):
                    yield part, change


def reference(part: Part, text: str, values: Archive) -> Replace:
    """What stands for an archived result."""
    mentions = mentioning(text[values.excerpt :], values.names)
    mark = f"[…archived: {part.chars} chars, part {part.seq}.{part.nth}{mentions}]"
    lead = "\n" if values.excerpt else ""
    return Replace(values.excerpt, lead + mark, 0, "archived")
