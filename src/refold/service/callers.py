"""Who asks: the tenant, the key and its roles."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection, Request

from refold.errors import KeyNeeded, NotLocal, RoleNeeded
from refold.log import DEFAULT_TENANT
from refold.service.kept import ROLES, Role
from refold.service.keyring import Keyring
from refold.service.secrets import secret_in

if TYPE_CHECKING:
    from refold.service.serving import Service

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

    def may(self, role: Role) -> bool:
        """Whether this role is the caller's; an admin has all."""
        return role in self.roles or "admin" in self.roles

    def require(self, role: Role) -> None:
        """Refuse who has not this role."""
        if not self.may(role):
            raise RoleNeeded(f"This needs a key with the role {role!r}.")


ANYBODY: Final = Caller(DEFAULT_TENANT, "", frozenset(ROLES))
"""Who asks a service that has no keys, from the machine that it runs on."""


async def caller_of(request: Request) -> Caller:
    """Who asks; raises KeyNeeded, or NotLocal where there are no keys, or LimitReached."""
    found = cast("Caller | None", getattr(request.state, "caller", None))
    if found is not None:
        return found
    service = cast("Service", request.app.state.service)
    caller = await known(request, service.keyring, local=service.local)
    request.state.caller = caller
    service.limits.admit(caller)
    return caller


async def gateway_caller(request: Request) -> Caller:
    """Who asks a model, if there is anything left of what the tenant may use.

    The request holds a slot from now on, which is released when it has ended.
    """
    caller = await caller_of(request)
    caller.require("use")
    service = cast("Service", request.app.state.service)
    service.quotas.check(caller.tenant)
    request.state.slot = service.limits.admit_model(caller)
    return caller


async def known(request: HTTPConnection, keyring: Keyring, *, local: bool) -> Caller:
    """Who asks, by the keys on this keyring; `local`: nobody else reaches the service."""
    secret = secret_in(request.headers)
    if secret is not None:
        key = await keyring.find(secret)
        if key is None:
            raise KeyNeeded("The key is not valid: unknown, expired or revoked.")
        return Caller(key.tenant, key.id, key.roles)
    await keyring.current()
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
