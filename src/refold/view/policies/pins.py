"""Pinned parts whose place is folded, quoted where they stood."""

from collections.abc import Iterator

from refold.view.desk import Desk
from refold.wire import Insert


def pins(desk: Desk) -> Iterator[Insert]:
    """A quotation for each; pinned parts that are still shown simply stay."""
    for quote in desk.sheet.pinned:
        yield Insert(
            quote.seq + 1, "prompt", f"[Pinned]\n{quote.text}", "pinned", sources=quote.sources
        )
