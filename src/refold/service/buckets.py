"""Rates: a bucket that fills evenly, and is taken from."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final

_MOST: Final = 20_000


class Bucket:
    """Holds as much as a minute brings. It may be overdrawn: then it takes longer."""

    __slots__ = ("_at", "_held", "_rate")

    def __init__(self, per_minute: float, now: float) -> None:
        self._rate = per_minute / 60
        self._held = per_minute
        self._at = now

    def wait(self, amount: float, now: float) -> float:
        """Seconds until this much is there; 0 if it is."""
        self._fill(now)
        return max(0.0, (amount - self._held) / self._rate)

    def take(self, amount: float, now: float) -> None:
        """Take this much, there or not."""
        self._fill(now)
        self._held -= amount

    def _fill(self, now: float) -> None:
        self._held = min(self._rate * 60, self._held + max(0.0, now - self._at) * self._rate)
        self._at = now


class Buckets:
    """A bucket for each of any number of names, of which those used last are kept."""

    def __init__(self, per_minute: float, tick: Callable[[], float], most: int = _MOST) -> None:
        """Make them; at 0 per minute there is no limit."""
        self._per_minute = per_minute
        self._tick = tick
        self._most = most
        self._buckets: OrderedDict[Hashable, Bucket] = OrderedDict()

    def wait(self, name: Hashable, amount: float = 1.0) -> float:
        """Seconds until this much is there."""
        if not self._per_minute:
            return 0.0
        return self._bucket(name).wait(min(amount, self._per_minute), self._tick())

    def take(self, name: Hashable, amount: float = 1.0) -> None:
        """Take this much, there or not."""
        if self._per_minute:
            self._bucket(name).take(amount, self._tick())

    def _bucket(self, name: Hashable) -> Bucket:
        found = self._buckets.get(name)
        if found is None:
            found = self._buckets[name] = Bucket(self._per_minute, self._tick())
            if len(self._buckets) > self._most:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(name)
        return found
