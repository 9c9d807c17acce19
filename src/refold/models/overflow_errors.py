"""What errors of Pydantic AI's models say: in words for people, and whether it was the length.

Pydantic AI knows the most common refusals for length (`ModelContextWindowExceededError`). Others
come as any other error of the model, or as an empty answer, and the limit is never parsed. This
module finds these, and the limit. It also finds answers that a full window cut off.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from http import HTTPStatus
from typing import Final, cast

from pydantic_ai import ModelResponse
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    UnexpectedModelBehavior,
)
from pydantic_ai.messages import TextPart, ThinkingPart

from refold.fold.secrets import without_secrets
from refold.models.overflow import Overflow, overflow_of, refused_otherwise

__all__ = ["filled", "is_disconnect", "overflow_in", "short", "words_of"]

MAX_WORDS: Final = 300  # characters of a provider's message
_MAX_NESTED: Final = 4  # of a provider's message within its answer

_WINDOW_FULL: Final = "model_context_window_exceeded"
"""The stop reason of Anthropic, Bedrock and Z.ai for it."""
_EMPTY: Final = "ended without content"
"""Pydantic AI's message for an empty stream."""
_SLACK: Final = 16  # tokens before the window's end at which servers stop
_NEAR: Final = 0.8
"""From this share of the window on, a request by our estimate may have filled it."""
_MAX_DEPTH: Final = 10  # of causes and groups


def overflow_in(
    error: BaseException, *, window: int | None = None, sent: int = 0
) -> Overflow | None:
    """What an error says of the request's length; None if that was not the reason.

    A group, such as a `FallbackModel` raises, has the overflow of its first model that had one.

    Args:
        error: What the request raised.
        window: The model's window, if it is known.
        sent: How many tokens were sent; an empty stream is an overflow only if they come near the
            window.
    """
    for nested in _nested(error):
        overflow = _overflow(nested)
        empty = isinstance(nested, UnexpectedModelBehavior) and _EMPTY in nested.message
        if overflow is None and empty and _near(sent, window):
            overflow = Overflow(window)
        if overflow is not None:
            return overflow
    return None


def filled(response: ModelResponse, window: int | None, sent: int) -> bool:
    """Whether an answer ended because the window was full, not because it was complete.

    Args:
        response: The answer.
        window: The model's window, if it is known. Without it, only the provider's reason counts.
        sent: How many tokens were sent; used if the answer does not report its usage.
    """
    if (response.provider_details or {}).get("finish_reason") == _WINDOW_FULL:
        return True
    empty = not any(
        part.has_content() if isinstance(part, TextPart | ThinkingPart) else True
        for part in response.parts
    )
    if window is None or not (empty or response.finish_reason == "length"):
        return False
    used = response.usage.input_tokens + response.usage.output_tokens
    return used >= window - _SLACK if used else _near(sent, window)


def short(text: str) -> str:
    """The beginning of a text as one line without secrets."""
    line = " ".join(without_secrets(text).split())
    return line if len(line) <= MAX_WORDS else f"{line[:MAX_WORDS]}…"


def words_of(error: ModelAPIError, model: str, shorten: Callable[[str], str] = short) -> str:
    """What a model did instead of answering, in a sentence for people."""
    if isinstance(error, ModelHTTPError):
        return f"{model} answered {error.status_code}: {shorten(_answer(error))}"
    return f"{model} could not be reached: {shorten(str(error))}"


def is_disconnect(error: BaseException) -> bool:
    """Whether an error came of the connection, and not of anything that the provider said."""
    # Each client library has its own class for it, and some providers bring a library of their own.
    kinds = (kind for nested in _nested(error) for kind in type(nested).__mro__)
    return any(kind is OSError or kind.__name__ == "TransportError" for kind in kinds)


def _answer(error: ModelHTTPError) -> str:
    if message := _message(error.body):
        return message
    try:
        return f"{HTTPStatus(error.status_code).phrase}."
    except ValueError:
        return "it does not say why."


def _message(body: object, depth: int = 0) -> str:
    """The message for people in the body of an answer, which may be JSON or a web page."""
    if depth > _MAX_NESTED:
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


def _nested(error: BaseException, depth: int = 0) -> Iterator[BaseException]:
    """The error, the errors of its group, and its causes."""
    yield error
    if depth == _MAX_DEPTH:
        return
    if isinstance(error, BaseExceptionGroup):
        for inner in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from _nested(inner, depth + 1)
    elif error.__cause__ is not None:
        yield from _nested(error.__cause__, depth + 1)


def _overflow(error: BaseException) -> Overflow | None:
    if isinstance(error, UnexpectedModelBehavior):
        return overflow_of(None, error.body)
    if not isinstance(error, ModelAPIError):
        return None
    status = error.status_code if isinstance(error, ModelHTTPError) else None
    refusal = (status, error.body, "" if error.body else error.message)
    overflow = overflow_of(*refusal)
    if overflow is None and isinstance(error, ModelContextWindowExceededError):
        return None if refused_otherwise(*refusal) else Overflow()
    return overflow


def _near(sent: int, window: int | None) -> bool:
    return window is not None and sent >= _NEAR * window
