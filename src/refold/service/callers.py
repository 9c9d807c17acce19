"""Who asks: the tenant, the key and its roles."""

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, cast
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection, Request

from refold.errors import KeyNeeded, LimitReached, NotLocal, RoleNeeded, StoreError
from refold.log import DEFAULT_TENANT
from refold.service.keys import ROLES, Key, Keyring, Role, secret_in
from refold.settings import Settings
from refold.settings.serve import LimitSettings

LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})
"""How this machine calls itself."""
_ELSEWHERE: Final = frozenset({"cross-site", "same-site"})
_FORWARDED: Final = frozenset({"forwarded", "via", "x-forwarded-for", "x-real-ip"})


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks."""

    tenant: str
    key: str
    """The id of the key; empty where none is needed."""
    roles: frozenset[Role]
    stale: bool = False
    """Whether the key was checked against what was known before the store failed."""

    def may(self, role: Role) -> bool:
        """Whether this role is the caller's; an admin has all."""
        return role in self.roles or "admin" in self.roles

    def require(self, role: Role) -> None:
        """Refuse who has not this role."""
        if not self.may(role):
            raise RoleNeeded(f"This needs a key with the role {role!r}.")


class Limiter(Protocol):
    """Counts requests, and refuses those beyond a limit."""

    def admit(self, caller: Caller) -> None:
        """Count a request."""
        ...

    def admit_model(self, caller: Caller) -> Any:  # noqa: ANN401 - whatever is released at its end
        """Count a request to a model; what it holds until it has ended."""
        ...


class Quotas(Protocol):
    """Refuses tenants that have used up what they may."""

    def check(self, tenant: str) -> None:
        """Refuse a tenant that has."""
        ...


class Gatekeeper(Protocol):
    """What decides who may ask: the service, at `app.state.service`."""

    keyring: Keyring
    local: bool
    settings: Settings

    @property
    def limits(self) -> Limiter:
        """How much each key and tenant may ask."""
        ...

    @property
    def quotas(self) -> Quotas:
        """What each tenant may use in a day."""
        ...


ANYBODY: Final = Caller(DEFAULT_TENANT, "", frozenset(ROLES))
"""Who asks a service that has no keys, from the machine that it runs on."""


async def caller_of(request: Request, *, max_stale: float = 0.0) -> Caller:
    """Who asks; raises KeyNeeded, or NotLocal where there are no keys, or LimitReached.

    While the store is unavailable, keys that were read up to `max_stale` seconds ago are valid.
    """
    found = cast("Caller | None", getattr(request.state, "caller", None))
    if found is not None:
        return found
    service = cast("Gatekeeper", request.app.state.service)
    keyring, local = service.keyring, service.local
    caller = await known(request, keyring, local=local, max_stale=max_stale)
    request.state.caller = caller
    service.limits.admit(caller)
    return caller


async def gateway_caller(request: Request) -> Caller:
    """Who asks a model, if there is anything left of what the tenant may use.

    The request holds a slot from now on, which is released when it has ended.
    """
    service = cast("Gatekeeper", request.app.state.service)
    serve = service.settings.serve
    max_stale = serve.times.stale_keys if serve.fail_open else 0.0
    caller = await caller_of(request, max_stale=max_stale)
    caller.require("use")
    service.quotas.check(caller.tenant)
    request.state.slot = service.limits.admit_model(caller)
    return caller


async def known(
    request: HTTPConnection, keyring: Keyring, *, local: bool, max_stale: float = 0.0
) -> Caller:
    """Who asks, by the keys on this keyring; `local`: nobody else reaches the service.

    Raises:
        StoreError: The keys cannot be read. A key that was not read before is never let in.
    """
    secret = secret_in(request.headers)
    try:
        key = None if secret is None else await keyring.find(secret)
        if secret is None:
            await keyring.current()
    except StoreError:
        key = None if secret is None else keyring.known(secret)
        if keyring.age > max_stale or (secret is not None and key is None):
            raise
        return replace(_caller(request, key, keyring, local=local), stale=True)
    if secret is not None and key is None:
        raise KeyNeeded("The key is not valid: unknown, expired or revoked.")
    return _caller(request, key, keyring, local=local)


def _caller(request: HTTPConnection, key: Key | None, keyring: Keyring, *, local: bool) -> Caller:
    if key is not None:
        return Caller(key.tenant, key.id, key.roles)
    if keyring.any or not local:
        raise KeyNeeded("This needs a key of the service.")
    _check_local(request)
    return ANYBODY


def _check_local(request: HTTPConnection) -> None:
    """Refuse what a web page sends through the browser of whoever runs the service.

    A page may have its own name point to this machine: then the host is that name. What another
    server passed on may have come from anywhere.
    """
    headers = request.headers
    local = _is_local(f"//{headers.get('host', '')}") and _is_local(
        headers.get("origin", "//localhost")
    )
    through = headers.get("sec-fetch-site") in _ELSEWHERE or not _FORWARDED.isdisjoint(headers)
    if not local or through:
        raise NotLocal("Without keys, the service answers programs of this machine only.")


def _is_local(address: str) -> bool:
    try:
        return urlsplit(address).hostname in LOCAL
    except ValueError:
        return False


# Rates: a bucket that fills evenly, and is taken from.

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


# How much a key and a tenant may ask for at once and in a minute, in this process.

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
