"""Secrets: how the service's own are made and known again, and how none is ever shown."""

import logging
import re
import secrets
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

PREFIX: Final = "rfk_"
_SECRET: Final = re.compile(r"rfk_([a-z0-9]{12})_([A-Za-z0-9_-]{43})")
_LONGEST: Final = len(PREFIX) + 12 + 1 + 43
_SHOWN: Final = "…"
_HIDDEN: Final = (
    re.compile(r"rfk_[A-Za-z0-9]+_[A-Za-z0-9_-]+"),
    re.compile(r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{8,}"),
    re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}"),
    re.compile(r"(?<=://)[^/\s@]+(?=@)"),
)


def new_id() -> str:
    """The id of a new key: no secret."""
    return secrets.token_hex(6)


def new_secret(key: str) -> str:
    """A new secret for the key of this id."""
    return f"{PREFIX}{key}_{secrets.token_urlsafe(32)}"


def hash_of(secret: str) -> str:
    """All that is kept of a secret. It is as random as the hash is long, so no salt is needed."""
    return sha256(secret.encode()).hexdigest()


def is_secret(text: str) -> bool:
    """Whether it has the form of one of ours."""
    return len(text) == _LONGEST and _SECRET.fullmatch(text) is not None


def secret_in(headers: Mapping[str, str]) -> str | None:
    """The service's own key among the headers of a request, if one came.

    It is in `Refold-Key`, or where the clients of the providers put theirs.
    """
    given = headers.get("refold-key")
    if given is not None:
        return given.strip()
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and bearer.strip().startswith(PREFIX):
        return bearer.strip()
    other = headers.get("x-api-key", "").strip()
    return other if other.startswith(PREFIX) else None


def without_secrets(text: str) -> str:
    """The text as it may be shown: nothing in it that looks like a key or a password."""
    for one in _HIDDEN:
        text = one.sub(_SHOWN, text)
    return text


class NoSecrets(logging.Filter):
    """Takes secrets out of what is logged, tracebacks included."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Every record passes, without its secrets."""
        record.msg, record.args = without_secrets(record.getMessage()), ()
        if record.exc_info and record.exc_info[0] is not None:
            formatter = logging.Formatter()
            record.exc_text = without_secrets(formatter.formatException(record.exc_info))
            record.exc_info = None
        return True
