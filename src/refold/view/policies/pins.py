"""Pinned parts whose place is folded, quoted where they stood."""

from collections.abc import Iterator

from refold.view.board import Board
from refold.wire import Insert


def pins(board: Board) -> Iterator[Insert]:
    """A quotation for each; pinned parts that are still shown simply stay."""
    for quote in board.sheet.pinned:
        yield Insert(
            quote.seq + 1, "prompt", f"[Pinned]\n{quote.text}", "pinned", sources=quote.sources
        )
