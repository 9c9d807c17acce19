"""How much a key and a tenant may ask for at once and in a minute, in this process."""

import time
from collections import Counter
from collections.abc import Callable, Iterable

from refold.errors import LimitReached
from refold.service.buckets import Buckets
from refold.service.callers import Caller
from refold.settings.serve import LimitSettings

_AGAIN = 1.0
_Name = tuple[str, str]
_Bound = tuple[Buckets, str]
"""What is left of a rate, and whose it is in words."""


class Slot:
    """A request to a model that is under way; it is released once."""

    def __init__(self, under_way: "Counter[_Name]", name: _Name) -> None:
        self._under_way: Counter[_Name] | None = under_way
        self._name = name

    def release(self) -> None:
        """It has ended; a second time changes nothing."""
        if self._under_way is None:
            return
        self._under_way[self._name] -= 1
        if not self._under_way[self._name]:
            del self._under_way[self._name]
        self._under_way = None


class Limits:
    """Admits requests, or says when to ask again."""

    def __init__(self, settings: LimitSettings, tick: Callable[[], float] = time.monotonic) -> None:
        self._streams = settings.streams
        self._set = settings.model_fields_set
        self._requests = (
            (Buckets(settings.key_requests, tick), "with this key"),
            (Buckets(settings.tenant_requests, tick), "of this tenant"),
        )
        self._tokens = (
            (Buckets(settings.key_tokens, tick), "with this key"),
            (Buckets(settings.tenant_tokens, tick), "of this tenant"),
        )
        self._under_way: Counter[_Name] = Counter()

    @property
    def under_way(self) -> int:
        """Requests to models that have not ended."""
        return self._under_way.total()

    def admit(self, caller: Caller) -> None:
        """Count a request; raises LimitReached, and then it is not counted."""
        if not self._counts(caller, "key_requests", "tenant_requests"):
            return
        names = _names(caller)
        _check("requests", names, self._requests)
        for name, (buckets, _) in zip(names, self._requests, strict=True):
            buckets.take(name)

    def admit_model(self, caller: Caller) -> Slot:
        """Admit a request to a model, which has not been counted in tokens yet."""
        names = _names(caller)
        _check("tokens", names, self._tokens)
        under_way = self._under_way[names[0]]
        if self._streams and self._counts(caller, "streams") and under_way >= self._streams:
            raise LimitReached("Too many requests with this key are under way.", _AGAIN)
        self._under_way[names[0]] += 1
        return Slot(self._under_way, names[0])

    def _counts(self, caller: Caller, *limits: str) -> bool:
        """Whether these limits are for the caller.

        Where no key is needed there is nobody to be crowded out: only what somebody has set counts.
        """
        return bool(caller.key) or not self._set.isdisjoint(limits)

    def used(self, caller: Caller, tokens: int) -> None:
        """Take the tokens of an answer, more than there are if need be."""
        for name, (buckets, _) in zip(_names(caller), self._tokens, strict=True):
            buckets.take(name, tokens)


def _check(what: str, names: Iterable[_Name], bounds: Iterable[_Bound]) -> None:
    for name, (buckets, whose) in zip(names, bounds, strict=True):
        wait = buckets.wait(name)
        if wait > 0:
            raise LimitReached(f"Too many {what} {whose} in a minute.", wait)


def _names(caller: Caller) -> tuple[_Name, _Name]:
    """The key and the tenant; without a key, both are the tenant."""
    return (caller.tenant, caller.key), (caller.tenant, "")
