"""What the gateway itself refuses, said as the provider would say it.

Clients know their provider's errors: by these shapes they tell what to retry and what not.
"""

from typing import Final

from pydantic import JsonValue

from refold.wire.splice import encoded

_OPENAI: Final = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_exceeded"}
_ANTHROPIC: Final = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_OURS: Final = 500
"""From here on, it is not the client's fault."""


def openai_refusal(status: int, code: str, words: str) -> bytes:
    """An error as OpenAI's APIs and servers like them tell it."""
    otherwise = "server_error" if status >= _OURS else "invalid_request_error"
    kind = _OPENAI.get(status, otherwise)
    told: dict[str, JsonValue] = {"message": words, "type": kind, "param": None, "code": code}
    return encoded({"error": told})


def anthropic_refusal(status: int, code: str, words: str) -> bytes:  # noqa: ARG001 - it has none
    """An error as Anthropic's API tells it."""
    otherwise = "api_error" if status >= _OURS else "invalid_request_error"
    kind = _ANTHROPIC.get(status, otherwise)
    return encoded({"type": "error", "error": {"type": kind, "message": words}})
