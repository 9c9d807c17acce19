"""What a fold would cost and save before the next request, as far as the session knows.

`refold.fold.economics` decides; the figures for it are put together here: what would be sent with
and without the fold, whether the cache still has it, what the model's tokens cost.
"""

from typing import Final

from refold.fold.debt import Move, NextRequest
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
    request, kept = _next_request(live, where, size, live.idle)
    after = size - where.tokens + _shown(live, where, values)
    outlook = Outlook(
        request,
        kept,
        after,
        summary=_summary(live, size, tariff, cold=request.cold),
        rereads=tariff.rates.cost(after + _REREAD, after),
    )
    pace = live.previous.plan.pace if live.previous else Pace()
    return weigh(outlook, pace, tariff, trigger.savings)


def price_of(
    live: LiveView, where: Boundary, before: int, after: int, summary: float | None = None
) -> float | None:
    """Dollars that folding this boundary adds to the next request; None if no price is known.

    Args:
        live: The session's view.
        where: What is folded.
        before: Tokens of the next request without the fold.
        after: The same with it.
        summary: What the summary costs; by default, about what the session's model would take.
    """
    tariff = tariff_of(live.setup)
    if not tariff.in_dollars:
        return None
    request, kept = _next_request(live, where, before, live.idle_now)
    if summary is None:
        summary = _summary(live, before, tariff, cold=request.cold)
    return Move(kept, after, summary).price(request, tariff.rates)


def _next_request(
    live: LiveView, where: Boundary, size: int, idle: float
) -> tuple[NextRequest, int]:
    """The next request without a fold, and how many tokens of its beginning a fold leaves."""
    seconds = live.setup.profile.trigger.cache_seconds
    floor, previous = live.thresholds.floor, live.previous
    head = _tokens_before(live, where)
    cold = previous is None or live.other_model or bool(seconds and idle > seconds)
    sent = previous.plan.account.sent if previous else 0
    if previous and any(fold.seq > previous.seq for fold in live.view.inputs.foldings):
        sent = floor + head
    return NextRequest(size, min(sent, size), live.session_tokens + floor, cold), floor + head


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
