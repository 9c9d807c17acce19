"""How a route of the API is matched, guarded and answered, whatever it does.

A session's name may hold a slash. So a path is taken apart before it is decoded, and `%2F` stays
within its segment. Who asks is known before the body is read. Every error is problem+json.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final
from urllib.parse import unquote

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.routing import Match

from refold.errors import InvalidInput, RefoldError
from refold.service import problem
from refold.service.api.asking import Role, role_of
from refold.service.callers import caller_of

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
