"""What a replay cost, how well it used the cache, and whether its views were legal."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, sqrt

from refold.lab.replay import Replay

_MILLION = 1_000_000
_Z = 1.959964  # 95 %


@dataclass(frozen=True, slots=True)
class Prices:
    """Dollars for a million tokens."""

    input: float = 3.0
    output: float = 15.0
    cache_read: float = 0.30
    cache_write: float = 3.75


@dataclass(frozen=True, slots=True)
class Share:
    """How many of how many."""

    found: int
    of: int

    @property
    def rate(self) -> float:
        """The share; 1 of nothing, for nothing was lost."""
        return self.found / self.of if self.of else 1.0

    @property
    def interval(self) -> tuple[float, float]:
        """Where the true share lies, with 95 % confidence (Wilson)."""
        if not self.of:
            return 0.0, 1.0
        n, rate, square = self.of, self.rate, _Z * _Z
        middle = (rate + square / (2 * n)) / (1 + square / n)
        half = _Z * sqrt(rate * (1 - rate) / n + square / (4 * n * n)) / (1 + square / n)
        low = 0.0 if not self.found else middle - half
        return low, 1.0 if self.found == n else middle + half


def pooled(shares: Iterable[Share]) -> Share:
    """The shares of several recordings as one."""
    every = list(shares)
    return Share(sum(one.found for one in every), sum(one.of for one in every))


def sent(replay: Replay) -> int:
    """IN: the tokens of all requests."""
    return sum(request.sent for request in replay.requests)


def cached(replay: Replay) -> int:
    """The tokens of all requests that the one before them began with too."""
    return sum(request.cached for request in replay.requests)


def peak(replay: Replay) -> int:
    """PEAK: the tokens of the largest request."""
    return max((request.sent for request in replay.requests), default=0)


def fit(replay: Replay, limit: int) -> int:
    """FIT@L: the requests before one exceeds the limit."""
    sizes = [request.sent for request in replay.requests]
    return next((at for at, size in enumerate(sizes) if size > limit), len(sizes))


def cache_hits(replay: Replay) -> float:
    """CHR: the tokens a request shares with the one before it, of all that were sent."""
    total = sent(replay)
    return cached(replay) / total if total else 0.0


def cost(replay: Replay, prices: Prices, *, cached: bool = True) -> float:
    """Dollars, the policy's own model calls included; `cached=False` is without a prompt cache."""
    total = 0.0
    for request in replay.requests:
        spent = request.spent
        read, new = request.cached + spent.cached, request.new + spent.new
        if cached:
            total += read * prices.cache_read + new * prices.cache_write
        else:
            total += (read + new) * prices.input
        total += (request.output + spent.output) * prices.output
    return total / _MILLION


def orphaned(replay: Replay) -> int:
    """ORPH: the requests that hold half of a pair whose other half the policy took away."""
    return sum(request.orphans > 0 for request in replay.requests)


def unanswered(replay: Replay) -> int:
    """The requests that hold a call which the recording never answered."""
    return sum(request.unanswered > 0 for request in replay.requests)


def overhead(replay: Replay) -> tuple[float, float]:
    """OVH: the milliseconds that the policy added to a request, p50 and p95."""
    times = sorted(request.milliseconds for request in replay.requests)
    return _percentile(times, 50), _percentile(times, 95)


def _percentile(ordered: Sequence[float], percent: int) -> float:
    return ordered[ceil(len(ordered) * percent / 100) - 1] if ordered else 0.0
