"""Why a fold failed, in words that may stay in the log for good."""

import re

from refold.errors import RefoldError

CANCELLED = "cancelled"
INTERRUPTED = "interrupted"
LONGEST = 300
_LOOKED_AT = 4_000

_SECRETS = (
    (re.compile(r"(\w://)[^/\s@]+@"), r"\1…@"),
    (re.compile(r"\b(bearer|basic)\s+[^\s\"',;]+", re.IGNORECASE), r"\1 …"),
    (
        re.compile(
            r"([\w-]*(?:key|token|secret|passw(?:or)?d|authorization|credential|cookie)s?"
            r"[\"']?\s*[:=]\s*)(?:\"[^\"]*\"?|'[^']*'?|[^\s,;&]+)",
            re.IGNORECASE,
        ),
        r"\1…",
    ),
    (re.compile(r"\b(?:sk|pk|rk|gh[a-z]|xox[a-z]|hf|glpat|AKIA|AIza)[-_*\w]{8,}"), "…"),
    (re.compile(r"(?=[\w+=-]*\d)[\w+=-]{32,}"), "…"),
)
"""Addresses with a password, headers, named secrets, keys as providers make them, and whatever
else is too long for a word."""


def reason_of(error: BaseException) -> str:
    """The error's type and what it says, on one short line, without what looks like a secret."""
    said = " ".join(without_secrets(_said(error)[:_LOOKED_AT]).split())
    text = f"{type(error).__name__}: {said}" if said else type(error).__name__
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def without_secrets(text: str) -> str:
    """The text with an ellipsis for everything that looks like a secret."""
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text


def _said(error: BaseException) -> str:
    if isinstance(error, RefoldError):
        return error.what
    try:
        return str(error).encode(errors="replace").decode()
    except Exception:  # noqa: BLE001 - an error that cannot be told is still an error
        return ""
