"""The router of the API: all of its routes, and the errors that every one of them may answer."""

from typing import Any, Final

from fastapi import APIRouter

from refold.service import problem
from refold.service.api import costs, events, folds, keys, requests, search, sessions
from refold.service.api.schemas import Problem

PREFIX: Final = "/api/v1"
_CONTENT: Final = {problem.MEDIA_TYPE: {"schema": Problem.model_json_schema()}}
_ERRORS: Final = {
    400: "The body is not valid JSON.",
    401: "A valid key is needed.",
    403: "The key lacks the required role.",
    404: "Not found, or it belongs to another tenant.",
    409: "Conflicts with the session's current state.",
    410: "Something it was made of was forgotten.",
    413: "The body is too large.",
    422: "The request is not valid.",
    429: "Too many requests; `Retry-After` says when to try again.",
    500: "The service failed.",
    503: "The service is stopping, or cannot reach its store.",
}
ERRORS: Final[dict[int | str, dict[str, Any]]] = {
    status: {"description": words, "content": _CONTENT} for status, words in _ERRORS.items()
}
"""What any route may answer instead, always as problem+json."""

router = APIRouter(prefix=PREFIX, responses=ERRORS)
for _router in (
    sessions.router,
    sessions.entries_router,
    requests.router,
    folds.router,
    sessions.pins_router,
    sessions.artifacts_router,
    search.router,
    search.export_router,
    requests.usage_router,
    costs.router,
    events.router,
    keys.router,
):
    router.include_router(_router)
