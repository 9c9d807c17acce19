"""Delegated work, told to the reader who delegated it."""

from collections.abc import Iterator

from refold.view.board import Board
from refold.wire import Insert


def scope(board: Board, first: int = 0) -> Iterator[Insert]:
    """A text for each result and message of a delegation, from the `first` quote on."""
    for quote in board.sheet.quotes[first:]:
        if quote.seq <= board.untold:
            continue
        place = board.sheet.after_response(quote.seq)
        yield Insert(place, "prompt", quote.text, "delegated", sources=quote.sources)
