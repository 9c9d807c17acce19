"""What a fold would cost and save before the next request, as far as the session knows.

`refold.fold.economics` decides; the figures for it are put together here: what would be sent with
and without the fold, whether the cache still has it, what the model's tokens cost.
"""

from typing import Final

from refold.fold.debt import NextRequest
from refold.fold.economics import Outlook, Tariff, Worth, weigh
from refold.fold.material import Boundary
from refold.models.experience import Setup
from refold.session.live_view import LiveView
from refold.view import Fold, Pace
from refold.view.budget import PER_MESSAGE
from refold.view.view_input import weight

_FIRST_SHARE: Final = 0.25
"""Of what it stands for, what a session's first fold is taken to show."""
_REREAD: Final = 1_000
"""Tokens that are likely to be read again after a fold, in a request of their own."""
_ANSWER: Final = 1_200
"""Tokens of a summary by a model, about."""


def tariff_of(setup: Setup) -> Tariff:
    prices = setup.prices
    return Tariff.of(prices.input, prices.cache_read, prices.cache_write, prices.output)


def worth_of(live: LiveView, where: Boundary, size: int, values: Fold) -> Worth:
    """What folding this boundary is worth before a request of so many tokens."""
    trigger, tariff = live.setup.profile.trigger, tariff_of(live.setup)
    floor, previous = live.thresholds.floor, live.previous
    head = _tokens_before(live, where)
    after = size - where.tokens + _shown(live, where, values)
    idle = trigger.cache_seconds and live.idle > trigger.cache_seconds
    cold = previous is None or live.other_model or bool(idle)
    kept = previous.plan.account.sent if previous else 0
    if previous and any(fold.seq > previous.seq for fold in live.view.inputs.foldings):
        kept = floor + head
    rates = tariff.rates
    outlook = Outlook(
        NextRequest(size, min(kept, size), live.session_tokens + floor, cold),
        floor + head,
        after,
        summary=_summary(live, size, tariff, cold=cold),
        rereads=rates.cost(after + _REREAD, after),
    )
    pace = previous.plan.pace if previous else Pace()
    return weigh(outlook, pace, tariff, trigger.savings)


def _tokens_before(live: LiveView, where: Boundary) -> int:
    """Tokens of the messages before what is folded: they stay, in the cache too."""
    if not where.spans:
        return 0
    inputs = live.view.inputs
    return sum(map(weight, inputs.rows[: inputs.at(where.spans[0].first)]))


def _shown(live: LiveView, where: Boundary, values: Fold) -> int:
    """Tokens that the fold will show: as many as the newest one, or a share of what it replaces."""
    counter = live.setup.counter
    shown = [
        sum(counter.text(text) + PER_MESSAGE for _, text in fold.shown)
        for fold in live.view.inputs.foldings
        if fold.seq in where.earlier
    ]
    first = min(values.max_tokens, int(_FIRST_SHARE * where.tokens))
    return max(shown, default=first)


def _summary(live: LiveView, size: int, tariff: Tariff, *, cold: bool) -> float:
    """What a model takes for the summary; one that a request waits for is written by the log."""
    profile = live.setup.profile
    if (
        cold
        or not live.has_summarizer
        or not (profile.summarizer or profile.fold.writer == "model")
    ):
        return 0.0
    return tariff.rates.cost(size, size) + tariff.output * _ANSWER
