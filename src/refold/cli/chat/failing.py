"""Why a turn failed, in words that say what to do."""

from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelHTTPError,
    UnexpectedModelBehavior,
    UserError,
)

from refold.errors import RefoldError
from refold.fold.secrets import without_secrets

_UNAUTHORISED = {401, 403}
_UNKNOWN = 404
_TOO_MANY = 429
_FAULT = 500
_MOST = 300
"""Characters of what a provider says."""


def told(error: Exception, model: str) -> tuple[str, str, str]:
    """What happened, what to do, and a code for programs."""
    match error:
        case RefoldError():
            return error.what, error.fix, error.code
        case ModelHTTPError(status_code=status):
            return f"{model} answered {status}: {_short(error.message)}", _fix(status), "provider"
        case ModelAPIError():
            what = f"{model} could not be reached: {_short(str(error))}"
            return what, "Check the connection and the address, then say it again.", "provider"
        case UnexpectedModelBehavior() | UserError():
            return _short(str(error)), "Say it again, or choose another /model.", "model"
        case _:
            what = f"{type(error).__name__}: {_short(str(error))}"
            return what, "What was said is kept. Say it again, or look at the tool.", "failed"


def _fix(status: int) -> str:
    if status in _UNAUTHORISED:
        return "Check its key; `refold doctor` shows which one is used."
    if status == _UNKNOWN:
        return "Check the model's name, or choose another: /model."
    if status == _TOO_MANY:
        return "Its limit is reached: wait a moment and say it again, or choose another /model."
    if status >= _FAULT:
        return "The fault is the provider's: say it again in a moment."
    return "Look at what it says; /explain shows what was sent."


def _short(text: str) -> str:
    line = " ".join(without_secrets(text).split())
    return line if len(line) <= _MOST else f"{line[:_MOST]}…"
