"""Which paths are passed on to an upstream.

What a path says is taken apart by others than us: a server that decodes it once more, or takes a
backslash for a slash, must not get to another place than we saw.
"""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Final
from urllib.parse import unquote

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
_TIMES: Final = 3
"""How often a path may be decoded on its way."""
_LONGEST: Final = 8_192


def check_path(path: str, query: str) -> None:
    """Refuse a path that may lead elsewhere, and one that has a key of ours."""
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
