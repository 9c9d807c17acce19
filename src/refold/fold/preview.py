"""What a fold would do, before it is done: what goes, what stays, what is lost, what it saves."""

from typing import NamedTuple

from refold.fold.boundary import Boundary
from refold.fold.identifiers import identifiers
from refold.fold.summary import Summary
from refold.log import Span
from refold.view import Counter
from refold.view.budget import PER_MESSAGE

MOST_NAMES = 20


class Preview(NamedTuple):
    """A fold that has not been made."""

    spans: tuple[Span, ...]
    messages: int
    """That would be folded."""
    kept: int
    """Messages that stay."""
    before: int
    """Tokens of the view now."""
    after: int
    """Tokens of the view then."""
    text: str
    """What would be shown instead."""
    lost: int
    """How many names would be found in the log only."""
    names: tuple[str, ...]
    """The weightiest of them."""
    cost_before: float | None = None
    """Dollars that one more request costs now, its prefix cached."""
    cost_after: float | None = None
    """Dollars that it costs then; the first one, which the cache does not know, more."""
    cost_once: float | None = None
    """Dollars of that first request."""

    @property
    def freed(self) -> int:
        """Tokens that the view would have fewer."""
        return self.before - self.after


def preview(
    boundary: Boundary, summary: Summary, tokens: int, messages: int, counter: Counter
) -> Preview:
    """What folding this to that summary would do to a view of so many tokens and messages."""
    shown = sum(counter.text(one.text) + PER_MESSAGE for one in summary.shown)
    told = {*identifiers(summary.text)}
    gone = [one.name for one in summary.ledger if one.name not in told]
    return Preview(
        boundary.spans,
        boundary.messages,
        messages - boundary.messages,
        tokens,
        tokens - boundary.tokens + shown,
        summary.text,
        len(gone),
        tuple(gone[:MOST_NAMES]),
    )
