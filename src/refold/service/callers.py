"""Who calls the service, and how much a key and a tenant may ask for in this process."""

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Final, Protocol, cast
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection, Request

from refold.errors import KeyNeeded, LimitReached, NotLocal, RoleNeeded, StoreError
from refold.log import DEFAULT_TENANT
from refold.service.keys import PREFIX, ROLES, Key, Keyring, Role, secret_in
from refold.service.quotas import Quotas
from refold.settings import Settings
from refold.settings.serve import LimitSettings

LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})
"""Names of this machine."""
_OTHER_SITES: Final = frozenset({"cross-site", "same-site"})
_KEY_HEADERS: Final = ("authorization", "x-api-key", "api-key", "x-goog-api-key")
_MAX_BUCKETS: Final = 20_000
_RETRY_AFTER: Final = 1.0
_FORWARDED: Final = frozenset({"forwarded", "via", "x-forwarded-for", "x-real-ip"})


@dataclass(frozen=True, slots=True)
class Caller:
    tenant: str
    key: str
    """The id of the key; empty where none is needed."""
    roles: frozenset[Role]
    stale: bool = False
    """Whether the key was checked against keys read before the store failed."""

    def may(self, role: Role) -> bool:
        return role in self.roles or "admin" in self.roles

    def require(self, role: Role) -> None:
        if not self.may(role):
            raise RoleNeeded(f"This needs a key with the role {role!r}.")

    def require_operator(self) -> None:
        """Refuse administrators of one tenant: what concerns all of them is the operator's."""
        if self.tenant != DEFAULT_TENANT or not self.may("admin"):
            raise RoleNeeded(
                f"This needs a key with the role 'admin' of the tenant {DEFAULT_TENANT!r}."
            )


class Gatekeeper(Protocol):
    """The parts of the service, at `app.state.service`, that decide about a request."""

    keyring: Keyring
    local: bool
    settings: Settings
    limits: "Limits"
    quotas: Quotas


ANYBODY: Final = Caller(DEFAULT_TENANT, "", frozenset(ROLES))
"""The caller of a service without keys, on the machine that it runs on."""


async def caller_of(request: Request, *, max_stale: float = 0.0) -> Caller:
    """Authenticate and count a request, once.

    While the store is unavailable, keys that were read up to `max_stale` seconds ago are valid.

    Raises:
        KeyNeeded: The key is missing or not valid.
        NotLocal: There are no keys, and the request is not from a program on this machine.
        LimitReached: There are too many requests.
    """
    caller = cast("Caller | None", getattr(request.state, "caller", None))
    if caller is not None:
        return caller
    service = cast("Gatekeeper", request.app.state.service)
    keyring, local = service.keyring, service.local
    caller = await authenticate(request, keyring, local=local, max_stale=max_stale)
    request.state.caller = caller
    service.limits.admit(caller)
    return caller


async def gateway_caller(request: Request) -> Caller:
    """The caller of a gateway route: a key with the role `use`, of a tenant with quota left.

    The request holds a slot from now on; the middleware releases it when the request ends.
    """
    service = cast("Gatekeeper", request.app.state.service)
    serve = service.settings.serve
    max_stale = serve.times.stale_keys if serve.fail_open else 0.0
    caller = await caller_of(request, max_stale=max_stale)
    caller.require("use")
    service.quotas.check(caller.tenant)
    request.state.slot = service.limits.admit_model(caller)
    return caller


async def authenticate(
    request: HTTPConnection, keyring: Keyring, *, local: bool, max_stale: float = 0.0
) -> Caller:
    """The caller, by the keys on this keyring; `local`: only this machine reaches the service.

    Raises:
        StoreError: The keys cannot be read. A key that was not read before is never accepted.
    """
    secret = secret_in(request.headers)
    try:
        key = None if secret is None else await keyring.find(secret)
        if secret is None:
            await keyring.refresh_if_stale()
    except StoreError:
        key = None if secret is None else keyring.find_cached(secret)
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
        raise KeyNeeded(
            f"The key that came is not one of this service's: those begin with {PREFIX}."
            if any(request.headers.get(name, "").strip() for name in _KEY_HEADERS)
            else "This needs a key of the service."
        )
    check_local(request)
    return ANYBODY


def check_local(request: HTTPConnection) -> None:
    """Refuse what a web page sends through a browser on this machine.

    A page may have its own name point to this machine: then the host is that name. A forwarded
    request may have come from anywhere.
    """
    headers = request.headers
    addresses = (f"//{headers.get('host', '')}", headers.get("origin", "//localhost"))
    local = all(map(_is_local, addresses))
    forwarded = headers.get("sec-fetch-site") in _OTHER_SITES or not _FORWARDED.isdisjoint(headers)
    if not local or forwarded:
        raise NotLocal("Without keys, the service answers programs of this machine only.")


def _is_local(address: str) -> bool:
    try:
        return urlsplit(address).hostname in LOCAL
    except ValueError:
        return False


# Rate limits.


class Bucket:
    """A token bucket of one minute's capacity. It may be overdrawn: then refilling takes longer."""

    __slots__ = ("_level", "_rate", "_updated")

    def __init__(self, per_minute: float, now: float) -> None:
        self._rate = per_minute / 60
        self._level = per_minute
        self._updated = now

    def wait(self, amount: float, now: float) -> float:
        """Seconds until this much is available."""
        self._fill(now)
        return max(0.0, (amount - self._level) / self._rate)

    def take(self, amount: float, now: float) -> None:
        self._fill(now)
        self._level -= amount

    def _fill(self, now: float) -> None:
        self._level = min(self._rate * 60, self._level + max(0.0, now - self._updated) * self._rate)
        self._updated = now


class Buckets:
    """A bucket for each name; the least recently used ones are dropped. 0 means no limit."""

    def __init__(
        self, per_minute: float, tick: Callable[[], float], max_buckets: int = _MAX_BUCKETS
    ) -> None:
        self._per_minute = per_minute
        self._tick = tick
        self._max_buckets = max_buckets
        self._buckets: OrderedDict[Hashable, Bucket] = OrderedDict()

    def wait(self, name: Hashable, amount: float = 1.0) -> float:
        if not self._per_minute:
            return 0.0
        return self._bucket(name).wait(min(amount, self._per_minute), self._tick())

    def take(self, name: Hashable, amount: float = 1.0) -> None:
        if self._per_minute:
            self._bucket(name).take(amount, self._tick())

    def _bucket(self, name: Hashable) -> Bucket:
        bucket = self._buckets.get(name)
        if bucket is None:
            bucket = self._buckets[name] = Bucket(self._per_minute, self._tick())
            if len(self._buckets) > self._max_buckets:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(name)
        return bucket


_Name = tuple[str, str]
"""A tenant and a key, or a tenant alone."""


class Slot:
    """A request to a model that is under way; releasing it twice changes nothing."""

    def __init__(self, under_way: "Counter[_Name]", name: _Name) -> None:
        self._under_way: Counter[_Name] | None = under_way
        self._name = name

    def release(self) -> None:
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
        names = _names(caller)
        _check("tokens", names, self._tokens)
        under_way = self._under_way[names[0]]
        if self._streams and self._counts(caller, "streams") and under_way >= self._streams:
            raise LimitReached("Too many requests with this key are under way.", _RETRY_AFTER)
        self._under_way[names[0]] += 1
        return Slot(self._under_way, names[0])

    def _counts(self, caller: Caller, *limits: str) -> bool:
        """Whether these limits apply to the caller.

        Without keys nobody can be crowded out, so only limits that somebody has set apply.
        """
        return bool(caller.key) or not self._set.isdisjoint(limits)

    def used(self, caller: Caller, tokens: int) -> None:
        """Take the tokens of an answer, overdrawing if need be."""
        for name, (buckets, _) in zip(_names(caller), self._tokens, strict=True):
            buckets.take(name, tokens)


def _check(what: str, names: Iterable[_Name], rates: Iterable[tuple[Buckets, str]]) -> None:
    for name, (buckets, whose) in zip(names, rates, strict=True):
        if (wait := buckets.wait(name)) > 0:
            raise LimitReached(f"Too many {what} {whose} in a minute.", wait)


def _names(caller: Caller) -> tuple[_Name, _Name]:
    """The key and the tenant; without a key, both are the tenant."""
    return (caller.tenant, caller.key), (caller.tenant, "")
