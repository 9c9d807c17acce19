"""Who asks: the tenant, the key and its roles."""

from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, cast
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection, Request

from refold.errors import KeyNeeded, NotLocal, RoleNeeded, StoreError
from refold.log import DEFAULT_TENANT
from refold.service.kept import ROLES, Key, Role
from refold.service.keyring import Keyring
from refold.service.secrets import secret_in
from refold.settings import Settings

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
