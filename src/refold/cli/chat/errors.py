"""Why a turn failed, and what to do about it."""

import json
import os
import re
from contextlib import suppress
from http import HTTPStatus
from typing import cast

from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError, UnexpectedModelBehavior, UserError

from refold.errors import PromptTooLarge, RefoldError, WindowExceeded
from refold.fold.secrets import without_secrets

_MAX_CHARS = 300  # of a provider's message
_MAX_DEPTH = 4  # of a provider's message within its answer
_KEYS = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD)S?(?:_|\d|$)", re.IGNORECASE)
"""Names of environment variables that nobody else should read."""
_MIN_KEY = 8  # characters of a key; a shorter value may be a word
_TOO_LONG = (
    "Go on with another prompt: this one is left out of the context, and the model sees one line "
    "in its place. /undo removes that line too. To have the model read it, save it as a file in "
    "this folder and name the file."
)


def describe_error(error: Exception, model: str) -> tuple[str, str, str]:
    """What happened, what to do, and a code for programs."""
    what, fix, code = _describe(error, model)
    return without_keys(what), without_keys(fix), code


def _describe(error: Exception, model: str) -> tuple[str, str, str]:  # noqa: PLR0911 - one a kind
    match error:
        case PromptTooLarge():
            return error.what, _TOO_LONG, error.code
        case WindowExceeded():
            return error.what, f"{error.fix} /undo takes the prompt back.", error.code
        case RefoldError():
            return error.what, error.fix, error.code
        case ModelHTTPError(status_code=status):
            what = f"{model} answered {status}: {_short(_answer(error))}"
            return what, _fix(status), "provider"
        case ModelAPIError():
            what = f"{model} could not be reached: {_short(str(error))}"
            return what, "Check the connection and the address, then try again.", "provider"
        case UnexpectedModelBehavior() | UserError():
            return _short(error.message), "Try again, or choose another /model.", "model"
        case _:
            what = f"{type(error).__name__}: {_short(str(error))}"
            return (
                what,
                "The log has everything up to here. Try again, or look at the tool.",
                "failed",
            )


def without_keys(text: str) -> str:
    """The text without the environment's keys: some providers repeat them."""
    values = (value.strip() for name, value in os.environ.items() if _KEYS.search(name))
    keys = {value for value in values if len(value) >= _MIN_KEY}
    for key in sorted(keys, key=len, reverse=True):
        text = text.replace(key, "…")
    return text


def _fix(status: int) -> str:
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return "Check its key; `refold doctor` shows which one is used."
    if status == HTTPStatus.NOT_FOUND:
        return "Check the model's name, or choose another: /model."
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return "Its limit is reached: wait a moment and try again, or choose another /model."
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return "The fault is the provider's: try again in a moment."
    return "Look at what it says; /explain shows what was sent."


def _answer(error: ModelHTTPError) -> str:
    if message := _message(error.body):
        return message
    try:
        return f"{HTTPStatus(error.status_code).phrase}."
    except ValueError:
        return "it does not say why."


def _message(body: object, depth: int = 0) -> str:
    """The message for people in the body of an answer, which may be JSON or a web page."""
    if depth > _MAX_DEPTH:
        return ""
    if isinstance(body, str):
        start = body.lstrip()[:1]
        if start == "<":
            return ""
        if start and start in "{[":
            with suppress(ValueError):
                return _message(json.loads(body), depth + 1)
        return body.strip()
    values: list[object] = []
    if isinstance(body, list):
        values = cast("list[object]", body)
    elif isinstance(body, dict):
        fields = cast("dict[str, object]", body)
        values = [fields.get(name) for name in ("error", "message", "detail")]
    return next((text for value in values if (text := _message(value, depth + 1))), "")


def _short(text: str) -> str:
    line = " ".join(without_secrets(without_keys(text)).split())
    return line if len(line) <= _MAX_CHARS else f"{line[:_MAX_CHARS]}…"
