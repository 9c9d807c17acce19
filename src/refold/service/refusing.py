"""What the service says instead of an answer, in the provider's shape on the gateway's paths."""

from collections.abc import Collection
from typing import Final

from starlette.responses import Response

from refold.gateway.dialects import DIALECTS
from refold.gateway.dialects.dialect import Dialect
from refold.gateway.passed_paths import V1
from refold.service import problem

_USUAL: Final = "/v1/chat/completions"


def refused(error: Exception, dialect: Dialect | None) -> Response:
    """An error on an address of the gateway; clients of most servers read OpenAI's shape."""
    problem.tell(error)
    code, what, fix = problem.words_of(error)
    shape = dialect or DIALECTS[_USUAL]
    status = problem.status_of(error)
    body = shape.refusal(status, code, f"{what} {fix}")
    return Response(body, status, problem.headers_of(error), "application/json")


def refused_at(path: str, error: Exception, prefixes: Collection[str] = (V1,)) -> Response:
    """An error at any address."""
    prefix = next((one for one in prefixes if path.startswith(f"{one}/")), None)
    if prefix is None:
        return problem.answer(error)
    path = V1 + path.removeprefix(prefix)
    found = (one for at, one in DIALECTS.items() if path == at or path.startswith(f"{at}/"))
    return refused(error, next(found, None))
