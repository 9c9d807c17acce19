"""What requests use and cost, and what they would have cost unmanaged."""

from typing import NamedTuple

from refold.models.catalogue import Prices

_MILLION = 1_000_000


class Usage(NamedTuple):
    """The tokens of one request, as its provider counts them."""

    input: int
    """All that was sent, cached or not."""
    output: int = 0
    cache_read: int = 0
    """Of the input, what the provider's cache had."""
    cache_write: int = 0
    """Of the input, what was put into it."""


def cost_of(usage: Usage, prices: Prices) -> float | None:
    """Dollars; None where a price that it needs is unknown."""
    if prices.input is None or (usage.output and prices.output is None):
        return None
    plain = max(0, usage.input - usage.cache_read - usage.cache_write)
    read = prices.input if prices.cache_read is None else prices.cache_read
    write = prices.input if prices.cache_write is None else prices.cache_write
    total = plain * prices.input + usage.cache_read * read + usage.cache_write * write
    return (total + usage.output * (prices.output or 0)) / _MILLION


def unmanaged(usage: Usage, counted: int, whole: int, before: int) -> Usage:
    """What the request had used if it had sent everything.

    `counted` is what we counted of what was sent, `whole` of everything, `before` of everything at
    the request before, which a cache would have had. The provider's own count sets the scale.
    """
    scale = usage.input / counted if counted else 1.0
    total, known = round(whole * scale), round(before * scale)
    if not (usage.cache_read or usage.cache_write):
        return Usage(total, usage.output)
    return Usage(total, usage.output, min(known, total), max(0, total - known))
