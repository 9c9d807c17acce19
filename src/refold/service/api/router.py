"""The router of the API: all of its routes, and what every one of them may answer."""

from typing import Any, Final

from fastapi import APIRouter

from refold.service import problem
from refold.service.api.events import router as events_router
from refold.service.api.folds import router as folds_router
from refold.service.api.keys import router as keys_router
from refold.service.api.requests import router as views_router
from refold.service.api.requests import router_usage as usage_router
from refold.service.api.schemas import Problem
from refold.service.api.search import (
    router as searching_router,
)
from refold.service.api.search import (
    router_exporting as exporting_router,
)
from refold.service.api.sessions import (
    router as sessions_router,
)
from refold.service.api.sessions import (
    router_artifacts as artifacts_router,
)
from refold.service.api.sessions import (
    router_entries as entries_router,
)
from refold.service.api.sessions import (
    router_pins as pins_router,
)

PREFIX: Final = "/api/v1"
_CONTENT: Final = {problem.MEDIA_TYPE: {"schema": Problem.model_json_schema()}}
_ERRORS: Final = {
    400: "The body is no JSON.",
    401: "A valid key is needed.",
    403: "The key has not the role that this needs.",
    404: "There is no such thing; another tenant's is as if it never was.",
    409: "It does not go with how things stand.",
    410: "What it was made of was forgotten.",
    413: "The body is too large.",
    422: "What was asked cannot be.",
    429: "Too much at once; `Retry-After` says when to ask again.",
    500: "The service failed at this.",
    503: "The service is about to stop, or cannot reach its store.",
}
ERRORS: Final[dict[int | str, dict[str, Any]]] = {
    status: {"description": words, "content": _CONTENT} for status, words in _ERRORS.items()
}
"""What any route may answer instead, always as problem+json."""

router = APIRouter(prefix=PREFIX, responses=ERRORS)
for _router in (
    sessions_router,
    entries_router,
    views_router,
    folds_router,
    pins_router,
    artifacts_router,
    searching_router,
    exporting_router,
    usage_router,
    events_router,
    keys_router,
):
    router.include_router(_router)
