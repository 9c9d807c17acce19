"""Why a fold failed, in words that may stay in the log for good."""

from refold.errors import RefoldError
from refold.fold.secrets import without_secrets

CANCELLED = "cancelled"
INTERRUPTED = "interrupted"
LONGEST = 300
_LOOKED_AT = 4_000


def reason_of(error: BaseException) -> str:
    """The error's type and what it says, on one short line, without what looks like a secret."""
    said = " ".join(without_secrets(_said(error)[:_LOOKED_AT]).split())
    text = f"{type(error).__name__}: {said}" if said else type(error).__name__
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _said(error: BaseException) -> str:
    if isinstance(error, RefoldError):
        return error.what
    try:
        return str(error).encode(errors="replace").decode()
    except Exception:  # noqa: BLE001 - an error that cannot be told is still an error
        return ""
