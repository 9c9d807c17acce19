"""Why a turn failed, in words that say what to do."""

import json
import os
import re
from http import HTTPStatus
from typing import Any, cast

from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError, UnexpectedModelBehavior, UserError

from refold.errors import PromptTooLarge, RefoldError, WindowExceeded
from refold.fold.secrets import without_secrets

_UNAUTHORISED = {401, 403}
_UNKNOWN = 404
_TOO_MANY = 429
_FAULT = 500
_MOST = 300
"""Characters of what a provider says."""
_KEYS = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD)S?(?:_|\d|$)", re.IGNORECASE)
"""Names of environment variables that nobody else should read."""
_SHORTEST = 8
"""Characters of a key; a shorter value may be a word."""
_TOO_LONG = (
    "Go on with another prompt: this one is left out of the context, and the model sees one line "
    "in its place. /undo removes that line too. To have the model read it, save it as a file in "
    "this folder and name the file."
)
_DEPTH = 4
"""How deep in its answer a provider's message may lie."""


def told(error: Exception, model: str) -> tuple[str, str, str]:
    """What happened, what to do, and a code for programs."""
    what, fix, code = _told(error, model)
    return unkeyed(what), unkeyed(fix), code


def unkeyed(text: str) -> str:
    """The text without the keys that the environment has: some providers repeat them."""
    named = (value.strip() for name, value in os.environ.items() if _KEYS.search(name))
    for value in sorted({one for one in named if len(one) >= _SHORTEST}, key=len, reverse=True):
        text = text.replace(value, "…")
    return text


def _told(error: Exception, model: str) -> tuple[str, str, str]:
    match error:
        case RefoldError():
            return error.what, _advice(error), error.code
        case ModelHTTPError(status_code=status):
            what = f"{model} answered {status}: {_short(_answer(error))}"
            return what, _fix(status), "provider"
        case ModelAPIError():
            what = f"{model} could not be reached: {_short(str(error))}"
            return what, "Check the connection and the address, then say it again.", "provider"
        case UnexpectedModelBehavior() | UserError():
            return _short(error.message), "Say it again, or choose another /model.", "model"
        case _:
            what = f"{type(error).__name__}: {_short(str(error))}"
            return what, "What was said is kept. Say it again, or look at the tool.", "failed"


def _advice(error: RefoldError) -> str:
    """What to do, with what the chat has for it."""
    match error:
        case PromptTooLarge():
            return _TOO_LONG
        case WindowExceeded():
            return f"{error.fix} /undo takes the prompt back."
        case _:
            return error.fix


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


def _answer(error: ModelHTTPError) -> str:
    """What the provider says; in its place, what the status means."""
    if said := _message(error.body):
        return said
    try:
        return f"{HTTPStatus(error.status_code).phrase}."
    except ValueError:
        return "it does not say why."


def _message(body: object, depth: int = 0) -> str:
    """The words for people in the body of an answer; empty where there are none."""
    if depth > _DEPTH:
        return ""
    if isinstance(body, str):
        return _message_in(body, depth)
    if isinstance(body, list):
        return next(
            (said for one in cast("list[Any]", body) if (said := _message(one, depth + 1))), ""
        )
    if not isinstance(body, dict):
        return ""
    fields = cast("dict[str, Any]", body)
    places = (fields.get(name) for name in ("error", "message", "detail"))
    return next((said for place in places if (said := _message(place, depth + 1))), "")


def _message_in(text: str, depth: int) -> str:
    """The message in a text, which may be JSON or a page for a browser."""
    start = text.lstrip()[:1]
    if start == "<":
        return ""
    if start and start in "{[":
        try:
            return _message(json.loads(text), depth + 1)
        except ValueError:
            pass
    return text.strip()


def _short(text: str) -> str:
    line = " ".join(without_secrets(unkeyed(text)).split())
    return line if len(line) <= _MOST else f"{line[:_MOST]}…"
