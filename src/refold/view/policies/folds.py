"""Summaries in the place of what was folded."""

from collections.abc import Iterator

from refold.log import PartRef
from refold.view.board import Board
from refold.wire import Insert

SUMMARY = "[Summary of {count} earlier messages]\n{text}"


def folds(board: Board) -> Iterator[Insert]:
    """A summary before the first entry that each fold stands for."""
    for fold in board.sheet.foldings:
        count = sum(len(span) for span in fold.spans)
        yield Insert(
            fold.spans[0].first,
            "prompt",
            SUMMARY.format(count=count, text=fold.text),
            "summary",
            sources=(PartRef(fold.seq, 0),),
        )
