"""How the API matches and guards its routes, and what they depend on.

A session's name may contain a slash, so a path is split before it is decoded: `%2F` stays within
its segment. The caller is authenticated before the body is read. Every error is problem+json.
A route says who may call it by the annotation of one parameter: `Reader`, `Writer`, `Admin` or
`Operator`.
"""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import AbstractAsyncContextManager
from typing import Annotated, Any, ClassVar, Final, Literal, cast, get_args, get_type_hints
from urllib.parse import unquote

from fastapi import Depends, Path, Request, Response, Security
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException
from starlette.routing import Match

from refold.errors import InvalidInput, RefoldError, SessionNotFound
from refold.gateway.outcome import Outcome
from refold.log import DEFAULT_TENANT, Log
from refold.log.entry import LONGEST_NAME, check_name
from refold.service import problem
from refold.service.callers import Caller, caller_of
from refold.service.service import Service
from refold.session import Session

Role = Literal["read", "write", "admin"]
_BEARER: Final = HTTPBearer(
    scheme_name="key",
    description="A key of this service: `Authorization: Bearer rfk_…`.",
    auto_error=False,
)
_MAX_SHOWN_NAME: Final = 40
_MAX_SHOWN_ERROR: Final = 120
_SLASH: Final = "\uffff"
"""Marks a slash within a segment; no name may contain it."""
_MAX_PATH: Final = 8_192
"""Bytes of a path; every possible id is shorter."""


class _CallerWith:
    """Depends on a caller with a role, which `Route` has checked."""

    def __init__(self, role: Role, *, operator: bool = False) -> None:
        self.role: Role = role
        self.operator = operator

    async def __call__(
        self, request: Request, _key: Annotated[object, Security(_BEARER)] = None
    ) -> Caller:
        return cast("Caller", request.state.caller)


Reader = Annotated[Caller, Depends(_CallerWith("read"))]
Writer = Annotated[Caller, Depends(_CallerWith("write"))]
Admin = Annotated[Caller, Depends(_CallerWith("admin"))]
Operator = Annotated[Caller, Depends(_CallerWith("admin", operator=True))]
"""An administrator of the default tenant, who may see and limit all tenants."""


def _caller_for(endpoint: Callable[..., Any]) -> _CallerWith:
    for hint in get_type_hints(endpoint, include_extras=True).values():
        for dependency in get_args(hint):
            call = getattr(dependency, "dependency", None)
            if isinstance(call, _CallerWith):
                return call
    raise TypeError(f"{endpoint.__name__} says nothing of who may call it.")


def _service(request: Request) -> Service:
    return cast("Service", request.app.state.service)


def _log(request: Request) -> Log:
    # Not the guarded log: an export or a forget may take longer than its deadline.
    caller = cast("Caller", request.state.caller)
    return _service(request).store.log(caller.tenant)


def _session_name(
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
    except InvalidInput:  # no session can have this name
        raise SessionNotFound(
            f"There is no session {session[:_MAX_SHOWN_NAME]!r}.",
            "GET /api/v1/sessions lists them.",
        ) from None
    return session


ServiceDep = Annotated[Service, Depends(_service)]
CallerLog = Annotated[Log, Depends(_log)]
"""The log of the caller's own tenant; routes have no way to another's."""
SessionName = Annotated[str, Depends(_session_name)]


def using(service: Service, caller: Caller, name: str) -> AbstractAsyncContextManager[Session]:
    """The caller's session, open and locked: do not wait for a model within."""
    return service.sessions.using(caller.tenant, name)


class Route(APIRoute):
    """Authenticates the caller and checks the role before the body is read."""

    headers: ClassVar[Mapping[str, str]] = problem.SAFE
    """Of every answer that has no other value of its own."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **how: Any) -> None:  # noqa: ANN401 - FastAPI's own
        self._caller = _caller_for(endpoint)
        how["openapi_extra"] = {"x-role": self._caller.role}
        if self._caller.operator:
            how["openapi_extra"]["x-tenant"] = DEFAULT_TENANT
        how["operation_id"] = endpoint.__name__
        super().__init__(path, endpoint, **how)

    def matches(self, scope: MutableMapping[str, Any]) -> tuple[Match, MutableMapping[str, Any]]:
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
        handle: Callable[[Request], Awaitable[Response]] = super().get_route_handler()
        needed = self._caller

        async def handler(request: Request) -> Response:
            try:
                caller = await self.authenticate(request)
                caller.require(needed.role)
                if needed.operator:
                    caller.require_operator()
                request.state.caller = caller
                response = await handle(request)
            except RequestValidationError as error:
                response = self.refuse(request, _invalid(error))
            except (RefoldError, HTTPException) as error:
                response = self.refuse(request, error)
            for name, value in self.headers.items():
                response.headers.setdefault(name, value)
            return response

        return handler

    async def authenticate(self, request: Request) -> Caller:
        """Who calls; raises if nobody who may."""
        return await caller_of(request)

    def refuse(self, request: Request, error: Exception) -> Response:
        """The answer to an error."""
        return problem.answer(error, Outcome.of(request.scope))


def _segmented(scope: MutableMapping[str, Any]) -> str | None:
    """The decoded path with slashes within a segment marked; None if no route can match."""
    raw: bytes = scope.get("raw_path") or b""
    if not raw:
        return scope["path"]
    if len(raw) > _MAX_PATH:
        return None
    text = raw.partition(b"?")[0].decode("latin-1")
    segments = [unquote(each, errors="replace") for each in text.split("/")]
    if any(_SLASH in segment for segment in segments):
        return None
    return "/".join(segment.replace("/", _SLASH) for segment in segments)


def _invalid(error: RequestValidationError) -> InvalidInput:
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    return InvalidInput(
        f"{place[:_MAX_SHOWN_ERROR]}: {str(first['msg'])[:_MAX_SHOWN_ERROR]}.",
        "Correct the request; its schema is in /api/v1/openapi.json.",
    )
