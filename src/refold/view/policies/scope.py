"""Delegated work, told to the reader who delegated it."""

from collections.abc import Iterator

from refold.view.desk import Desk
from refold.wire import Insert


def scope(desk: Desk, first: int = 0) -> Iterator[Insert]:
    """A text for each result and message of a delegation, from the `first` quote on."""
    for quote in desk.sheet.quotes[first:]:
        if quote.seq <= desk.untold:
            continue
        place = desk.sheet.after_response(quote.seq)
        yield Insert(place, "prompt", quote.text, "delegated", sources=quote.sources)
