"""Who asks, in which role, and what of the service a route works with."""

from asyncio import Event, Task
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Annotated, Any, Final, Literal, Protocol, cast, get_args, get_type_hints

from fastapi import Depends, Path, Request, Security
from fastapi.security import HTTPBearer

from refold.engine import Engine
from refold.errors import InvalidInput, SessionNotFound
from refold.log import Log, Store
from refold.log.names import LONGEST_NAME, check_name
from refold.service.callers import Caller
from refold.service.keyring import Keyring
from refold.service.vault import Vault
from refold.session import Session

Role = Literal["read", "write", "admin"]
_BEARER: Final = HTTPBearer(
    scheme_name="key",
    description="A key of this service: `Authorization: Bearer rfk_…`.",
    auto_error=False,
)
_SHOWN: Final = 40


class Sessions(Protocol):
    """The sessions that the service has open, of all tenants."""

    def log(self, tenant: str) -> Log:
        """The tenant's log."""
        ...

    def engine(self, tenant: str) -> Engine:
        """What makes the tenant's folds."""
        ...

    async def drop(self, tenant: str, name: str) -> None:
        """Let go of a session that was forgotten."""
        ...

    def using(self, tenant: str, name: str) -> AbstractAsyncContextManager[Session]:
        """The session, open for as long as it is used. Raises SessionNotFound.

        Nobody else goes on with it meanwhile, so do not wait for a model within.
        """
        ...


class Service(Protocol):
    """What the API needs of the service around it, at `app.state.service`."""

    @property
    def store(self) -> Store:
        """Where everything is kept, without a deadline."""
        ...

    @property
    def sessions(self) -> Sessions:
        """The open sessions."""
        ...

    @property
    def keyring(self) -> Keyring:
        """The keys of all tenants."""
        ...

    @property
    def vault(self) -> Vault:
        """Providers' keys, of all tenants."""
        ...

    @property
    def local(self) -> bool:
        """Whether only this machine reaches the service."""
        ...

    @property
    def tasks(self) -> "set[Task[Any]]":
        """What goes on after its request was answered."""
        ...

    @property
    def draining(self) -> Event:
        """Is set when the service is about to stop."""
        ...


class _In:
    """A role that a route needs."""

    def __init__(self, role: Role) -> None:
        self.role: Role = role

    async def __call__(
        self, request: Request, _key: Annotated[object, Security(_BEARER)] = None
    ) -> Caller:
        """Who asks; the route has made sure of the role."""
        return cast("Caller", request.state.caller)


Reader = Annotated[Caller, Depends(_In("read"))]
Writer = Annotated[Caller, Depends(_In("write"))]
Admin = Annotated[Caller, Depends(_In("admin"))]


def role_of(endpoint: Callable[..., Any]) -> Role:
    """The role that who calls the endpoint must have: each endpoint names its caller's."""
    for hint in get_type_hints(endpoint, include_extras=True).values():
        for one in get_args(hint):
            call = getattr(one, "dependency", None)
            if isinstance(call, _In):
                return call.role
    raise TypeError(f"{endpoint.__name__} says nothing of who may call it.")


def _service(request: Request) -> Service:
    return cast("Service", request.app.state.service)


def _log(request: Request) -> Log:
    """The store's own log: an export or a forget may take longer than a request waits for it."""
    caller = cast("Caller", request.state.caller)
    return _service(request).store.log(caller.tenant)


def _name(
    session: Annotated[
        str,
        Path(
            description=f"The session's name, at most {LONGEST_NAME} characters; "
            "a slash in it is written %2F.",
            examples=["support-42"],
        ),
    ],
) -> str:
    try:
        check_name(session)
    except InvalidInput:  # nothing can be so named
        raise SessionNotFound(f"There is no session {session[:_SHOWN]!r}.", LIST) from None
    return session


LIST: Final = "GET /api/v1/sessions lists them."
OfService = Annotated[Service, Depends(_service)]
OfLog = Annotated[Log, Depends(_log)]
"""The caller's own log; there is no way to another's."""
SessionName = Annotated[str, Depends(_name)]


def using(service: Service, caller: Caller, name: str) -> AbstractAsyncContextManager[Session]:
    """The caller's session of that name."""
    return service.sessions.using(caller.tenant, name)
