"""Errors as HTTP answers: `application/problem+json`, a status for each kind, and no secrets.

Our own errors are meant for callers. Anything else is a bug: it is logged, and callers learn only
that the service failed. On the gateway's paths, errors have the shape of the provider's.
"""

import json
import logging
import math
import traceback
from collections.abc import Collection, Mapping
from http import HTTPStatus
from typing import Final

from pydantic import JsonValue
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Scope

from refold import errors
from refold.errors import LimitReached, RefoldError
from refold.gateway.dialects import DIALECTS
from refold.gateway.dialects.dialect import Dialect
from refold.gateway.outcome import Outcome
from refold.gateway.upstream import V1
from refold.service.content_coding import ACCEPTED
from refold.service.keys import without_secrets

MEDIA_TYPE: Final = "application/problem+json"
SAFE: Final[Mapping[str, str]] = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
"""Headers of all answers that the service itself makes."""
_STATUS: Final[Mapping[type[RefoldError], int]] = {
    errors.InvalidInput: 422,
    errors.SessionNotFound: 404,
    errors.SessionForgotten: 404,
    errors.ArtifactNotFound: 404,
    errors.ApiKeyNotFound: 404,
    errors.SessionExists: 409,
    errors.LogError: 409,
    errors.WrittenByNewer: 503,
    errors.StoreError: 503,
    errors.ViewTooLarge: 422,
    errors.WindowExceeded: 422,
    errors.UnknownFormat: 409,
    errors.Unrebuildable: 410,
    errors.FoldError: 409,
    errors.NoModel: 409,
    errors.TransferError: 422,
    errors.KeyNeeded: 401,
    errors.RoleNeeded: 403,
    errors.SessionOwned: 403,
    errors.NotLocal: 403,
    errors.NotPassedOn: 403,
    errors.ReferenceUnknown: 404,
    errors.NoProviderKey: 401,
    errors.LimitReached: 429,
    errors.RequestTooLarge: 413,
    errors.HeadersTooLarge: 431,
    errors.RequestTooSlow: 408,
    errors.RequestTooDeep: 400,
    errors.TooManySteps: 400,
    errors.InvalidEncoding: 400,
    errors.InvalidFraming: 400,
    errors.UnsupportedEncoding: 415,
    errors.NoWebSockets: 426,
    errors.Draining: 503,
    errors.OffloadLost: 503,
    errors.UpstreamUnreachable: 502,
    errors.MasterKeyWrong: 503,
}
_NOT_FOR_CALLERS: Final = (errors.StoreError, errors.MasterKeyWrong, errors.WrittenByNewer)
"""For the operator: callers learn nothing about files and servers."""
_UNAVAILABLE_FIX: Final = (
    "Retry after the seconds in Retry-After. If it keeps failing, ask this gateway's operator to "
    "check its store; with `serve.fail_open` it passes requests on without one."
)
_DEFAULT_DIALECT: Final = "/v1/chat/completions"
_LOGGER: Final = logging.getLogger("refold.service")


def status_of(error: Exception) -> int:
    """The HTTP status; 500 for a bug."""
    if isinstance(error, HTTPException):
        return error.status_code
    kinds = (kind for kind in type(error).__mro__ if issubclass(kind, RefoldError))
    return next((_STATUS[kind] for kind in kinds if kind in _STATUS), 500)


def words_of(error: Exception) -> tuple[str, str, str]:
    """The code, what happened and what to do, as callers may read them."""
    if isinstance(error, errors.StoreUnavailable):
        what = "Refold's store is unavailable, so the request was not carried out."
        return error.code, what, _UNAVAILABLE_FIX
    if isinstance(error, _NOT_FOR_CALLERS):
        what = "The service cannot reach or read what it keeps."
        return error.code, what, "Retry in a moment; the service's log says why."
    if isinstance(error, RefoldError) and status_of(error) != HTTPStatus.INTERNAL_SERVER_ERROR:
        return error.code, without_secrets(error.what), without_secrets(error.fix)
    if isinstance(error, HTTPException):
        what = f"{HTTPStatus(error.status_code).phrase}."
        code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "-").replace("'", "")
        return code, what, "See /api/v1/openapi.json for what there is."
    return "fault", "The service failed at this.", "Who runs it finds why in its log."


def headers_of(error: Exception) -> dict[str, str]:
    headers = dict(SAFE)
    if isinstance(error, HTTPException):
        headers |= error.headers or {}
    if isinstance(error, LimitReached | errors.StoreUnavailable):
        headers["Retry-After"] = str(max(1, math.ceil(error.retry_after)))
    elif status_of(error) == HTTPStatus.SERVICE_UNAVAILABLE:
        headers["Retry-After"] = "1"
    elif isinstance(error, errors.UnsupportedEncoding):
        headers["Accept-Encoding"] = ACCEPTED
    elif isinstance(error, errors.NoWebSockets):
        headers["Upgrade"] = "HTTP/1.1"  # RFC 9110: a 426 names what would do
    elif isinstance(error, errors.KeyNeeded):
        headers["WWW-Authenticate"] = 'Bearer realm="refold"'
    return headers


def problem(error: Exception) -> dict[str, JsonValue]:
    code, what, fix = words_of(error)
    status = status_of(error)
    return {
        "type": f"urn:refold:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": what,
        "fix": fix,
        "code": code,
    }


def answer(error: Exception, outcome: Outcome | None = None) -> Response:
    log_error(error)
    if outcome is not None:
        note_failure(outcome, error)
    body = json.dumps(problem(error), ensure_ascii=True).encode()
    return Response(body, status_of(error), headers_of(error), MEDIA_TYPE)


def note_failure(outcome: Outcome, error: Exception) -> None:
    """Note for the access log why a request failed.

    The words of a client's mistake may repeat what it sent: only those of ours are noted.
    """
    code, what, _ = words_of(error)
    outcome.fail(code, what if status_of(error) >= HTTPStatus.INTERNAL_SERVER_ERROR else "")


def log_error(error: Exception) -> None:
    """Log what callers do not learn."""
    if isinstance(error, errors.StoreUnavailable):
        return  # the guard has logged the outage, once
    if isinstance(error, _NOT_FOR_CALLERS):
        _LOGGER.error("%s: %s", error.code, without_secrets(str(error)))
    elif status_of(error) == HTTPStatus.INTERNAL_SERVER_ERROR:
        # Not as `exc_info`: its formatter would show secrets that the error repeats.
        _LOGGER.error("%s", without_secrets("".join(traceback.format_exception(error))))


def refused(error: Exception, dialect: Dialect | None, outcome: Outcome) -> Response:
    """The answer to an error on a path of the gateway; most clients read OpenAI's shape."""
    log_error(error)
    note_failure(outcome, error)
    code, what, fix = words_of(error)
    shape = dialect or DIALECTS[_DEFAULT_DIALECT]
    status = status_of(error)
    body = shape.refusal(status, code, f"{what} {fix}")
    return Response(body, status, headers_of(error), "application/json")


def refused_at(scope: Scope, error: Exception, prefixes: Collection[str] = (V1,)) -> Response:
    """The answer to an error on any path."""
    # Not `request.url`, which depends on the Host header.
    path, outcome = scope["path"], Outcome.of(scope)
    prefix = next((prefix for prefix in prefixes if path.startswith(f"{prefix}/")), None)
    if prefix is None:
        return answer(error, outcome)
    path = V1 + path.removeprefix(prefix)
    dialects = (
        dialect for at, dialect in DIALECTS.items() if path == at or path.startswith(f"{at}/")
    )
    return refused(error, next(dialects, None), outcome)
