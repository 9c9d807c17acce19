"""How a route of the API is matched, guarded and answered, whatever it does.

A session's name may hold a slash. So a path is taken apart before it is decoded, and `%2F` stays
within its segment. Who asks is known before the body is read. Every error is problem+json.
"""

from asyncio import Event, Task
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import AbstractAsyncContextManager
from typing import Annotated, Any, Final, Literal, Protocol, cast, get_args, get_type_hints
from urllib.parse import unquote

from fastapi import Depends, Path, Request, Response, Security
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException
from starlette.routing import Match

from refold.engine import Engine
from refold.errors import InvalidInput, RefoldError, SessionNotFound
from refold.log import Log, Store
from refold.log.entry import LONGEST_NAME, check_name
from refold.service import problem
from refold.service.callers import Caller, caller_of
from refold.service.keys import Keyring
from refold.service.vault import Vault
from refold.session import Session

# Who asks, in which role, and what of the service a route works with.

Role = Literal["read", "write", "admin"]
_BEARER: Final = HTTPBearer(
    scheme_name="key",
    description="A key of this service: `Authorization: Bearer rfk_…`.",
    auto_error=False,
)
_SHOWN_ASKING: Final = 40


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
        raise SessionNotFound(f"There is no session {session[:_SHOWN_ASKING]!r}.", LIST) from None
    return session


LIST: Final = "GET /api/v1/sessions lists them."
OfService = Annotated[Service, Depends(_service)]
OfLog = Annotated[Log, Depends(_log)]
"""The caller's own log; there is no way to another's."""
SessionName = Annotated[str, Depends(_name)]


def using(service: Service, caller: Caller, name: str) -> AbstractAsyncContextManager[Session]:
    """The caller's session of that name."""
    return service.sessions.using(caller.tenant, name)


_SLASH: Final = "\uffff"
"""Stands for a slash within a segment; no name may hold it."""
_LONGEST: Final = 8_192
"""Bytes of a path; every id there can be is shorter."""
_SHOWN: Final = 120
"""Characters of what was wrong that are told."""


class Route(APIRoute):
    """A route of the API."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **how: Any) -> None:  # noqa: ANN401 - FastAPI's own
        self._role: Role = role_of(endpoint)
        how["openapi_extra"] = {"x-role": self._role}
        how["operation_id"] = endpoint.__name__
        super().__init__(path, endpoint, **how)

    def matches(self, scope: MutableMapping[str, Any]) -> tuple[Match, MutableMapping[str, Any]]:
        """Whether the path is this route's, segment by segment."""
        path = _segmented(scope)
        if path is None:
            return Match.NONE, {}
        match, child = super().matches({**scope, "path": path})
        if "path_params" in child:
            child["path_params"] = {
                name: value.replace(_SLASH, "/") if isinstance(value, str) else value
                for name, value in child["path_params"].items()
            }
        return match, child

    def get_route_handler(self) -> Callable[[Request], Any]:
        """The handler, with who asks known first and every error told as a problem."""
        handle: Callable[[Request], Awaitable[Response]] = super().get_route_handler()
        role = self._role

        async def handled(request: Request) -> Response:
            try:
                caller = await caller_of(request)
                caller.require(role)
                request.state.caller = caller
                response = await handle(request)
            except RequestValidationError as error:
                return problem.answer(_told(error))
            except (RefoldError, HTTPException) as error:
                return problem.answer(error)
            for name, value in problem.SAFE.items():
                response.headers.setdefault(name, value)
            return response

        return handled


def _segmented(scope: MutableMapping[str, Any]) -> str | None:
    """The path, decoded, with slashes within a segment marked; None for one that cannot be."""
    raw: bytes = scope.get("raw_path") or b""
    if not raw:
        return scope["path"]
    if len(raw) > _LONGEST:
        return None
    text = raw.partition(b"?")[0].decode("latin-1")
    segments = [unquote(one, errors="replace") for one in text.split("/")]
    if any(_SLASH in one for one in segments):
        return None
    return "/".join(one.replace("/", _SLASH) for one in segments)


def _told(error: RequestValidationError) -> InvalidInput:
    """What was wrong with what was asked, without repeating it."""
    first = error.errors()[0]
    place = ".".join(str(one) for one in first["loc"])
    return InvalidInput(
        f"{place[:_SHOWN]}: {str(first['msg'])[:_SHOWN]}.",
        "Correct the request; /api/v1/openapi.json says what it may hold.",
    )
