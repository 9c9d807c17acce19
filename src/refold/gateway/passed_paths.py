"""Which paths are passed on to an upstream.

What a path says is taken apart by others than us: a server that decodes it once more, or takes a
backslash for a slash, must not get to another place than we saw. So a request is routed by its
path as it came, before anything is decoded, and what is passed on is that same path.
"""

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote

from refold.errors import InvalidInput, NotPassedOn

OWN_SECRET: Final = re.compile(r"rfk_[a-z0-9]{12}_[A-Za-z0-9_-]{43}")
"""A key of the service itself: it never leaves."""
ANSWERING: Final = (
    "POST /v1/chat/completions",
    "POST /v1/completions",
    "POST /v1/responses",
    "POST /v1/responses/input_tokens",
    "POST /v1/messages",
    "POST /v1/messages/count_tokens",
    "POST /v1/embeddings",
    "POST /v1/moderations",
    "POST /v1/rerank",
    "GET /v1/models",
    "GET /v1/models/*",
    "HEAD /v1/models",
    "HEAD /v1/models/*",
)
"""What may be asked with a key that is not the client's own: answers of models, whose use is
counted. Files, stored answers and batches are its owner's, and a key may be several tenants'."""
V1: Final = "/v1"
"""The prefix of the gateway's paths; an upstream may have another one besides."""
_RESERVED: Final = ("/v1", "/api", "/healthz", "/readyz", "/metrics")
"""Paths of the service: no upstream can have these, or anything beneath them, as its prefix."""
_PREFIX: Final = re.compile(r"(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9._~-]+)+")
_PATH: Final = re.compile(r"(?:[A-Za-z0-9/._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})+")
"""What RFC 3986 allows in a path: no fragment, no backslash, no lone percent sign."""
_QUERY: Final = re.compile(r"[!\x22\x24-\x7e]*")
_TIMES: Final = 3
"""How often a path may be decoded on its way."""
_LONGEST: Final = 8_192


class Target(NamedTuple):
    """A request target beneath one of the gateway's prefixes."""

    prefix: str
    path: str
    """As it came, not decoded, with `/v1` in place of the prefix."""
    query: str


def prefix_of(path: str) -> str:
    """The prefix under which clients reach an upstream with this path in its `base_url`.

    Clients of some servers send no `/v1`: `/backend-api/codex/responses`. Empty where the path is
    empty, one of the service's own, or not plain enough to be compared as it is.
    """
    path = path.rstrip("/")
    own = any(path == one or path.startswith(f"{one}/") for one in _RESERVED)
    return "" if own or not _PREFIX.fullmatch(path) else path


def target_of(scope: Mapping[str, Any], prefixes: Iterable[str] = (V1,)) -> Target | None:
    """The target of a request, if its raw path begins with one of the prefixes, literally."""
    raw: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
    path = raw.partition(b"?")[0].decode("latin-1")
    query: bytes = scope.get("query_string", b"")
    for prefix in prefixes:
        if path.startswith(f"{prefix}/"):
            return Target(prefix, V1 + path.removeprefix(prefix), query.decode("latin-1"))
    return None


def check_path(path: str, query: str) -> None:
    """Refuse a path that may lead elsewhere, and one that has a key of ours."""
    if not _PATH.fullmatch(path) or not _QUERY.fullmatch(query):
        raise InvalidInput(
            "The request's target is not a valid path and query.",
            "Percent-encode it as RFC 3986 says, and send no fragment.",
        )
    decoded = path
    for _ in range(_TIMES):
        decoded = unquote(decoded)
    segments = decoded.replace("\\", "/").split("/")
    climbs = any(one.partition(";")[0].strip() in {".", ".."} for one in segments)
    if climbs or not decoded.isprintable() or len(path) > _LONGEST:
        raise InvalidInput("The path leads nowhere.", "Ask for a path beneath /v1 as it is.")
    if OWN_SECRET.search(path + unquote(query)) or OWN_SECRET.search(decoded):
        raise InvalidInput(
            "A key of this service is in the address, where others may read it.",
            "Send it as `Authorization: Bearer rfk_…`, and rotate it: refold keys rotate.",
        )


def check_allowed(method: str, path: str, more: Iterable[str]) -> None:
    """Refuse what is not to be asked with a key that is not the client's own."""
    asked = f"{method} {path}"
    if not any(fnmatchcase(asked, one) for one in (*ANSWERING, *more)):
        raise NotPassedOn(f"{method} {path[:100]} is not passed on with the service's own key.")
