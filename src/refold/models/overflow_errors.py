"""Overflows as Pydantic AI shows them: errors that it raises, and answers that a full window cut.

Pydantic AI knows the most common refusals for length (`ModelContextWindowExceededError`). The
others come as any error of the model's, or as an answer that says nothing; what they say of the
limit is never read. Both is done here.
"""

from collections.abc import Iterator
from typing import Final, cast

from pydantic_ai import ModelResponse
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    UnexpectedModelBehavior,
)
from pydantic_ai.messages import TextPart, ThinkingPart

from refold.models.overflow import Overflow, overflow_of, refused_otherwise

__all__ = ["filled", "overflow_in"]

_WINDOW_FULL: Final = "model_context_window_exceeded"
"""The stop reason of Anthropic, Bedrock and Z.ai for it."""

_EMPTY: Final = "ended without content"
"""What Pydantic AI says of a stream in which nothing came."""

_SLACK: Final = 16
"""How many tokens short of the window servers stop."""

_NEAR: Final = 0.8
"""From this share of the window on, an estimate may stand for a request that fills it."""

_DEEPEST: Final = 10
"""How many causes and groups deep an error is looked for."""


def overflow_in(
    error: BaseException, *, window: int | None = None, sent: int = 0
) -> Overflow | None:
    """What an error says of the request's length; None where that was not the reason.

    A group, as of a `FallbackModel`, has the overflow of the first model in it that had one.

    Args:
        error: What the request raised.
        window: The model's window, if it is known, and
        sent: how many tokens were sent: a stream in which nothing came is an overflow only where
            they come near the window.
    """
    for one in _errors(error):
        found = _overflow(one)
        if found is None and _said_nothing(one) and _near(sent, window):
            found = Overflow(window)
        if found is not None:
            return found
    return None


def filled(response: ModelResponse, window: int | None, sent: int) -> bool:
    """Whether an answer ended because the window was full, not because it was long enough.

    Args:
        response: The answer.
        window: The model's window, if it is known. Without it, only what a provider says counts.
        sent: How many tokens were sent; used where the answer does not report its usage.
    """
    if (response.provider_details or {}).get("finish_reason") == _WINDOW_FULL:
        return True
    empty = _is_empty(response)
    if window is None or not (empty or response.finish_reason == "length"):
        return False
    used = response.usage.input_tokens + response.usage.output_tokens
    return used >= window - _SLACK if used else _near(sent, window)


def _errors(error: BaseException, depth: int = 0) -> Iterator[BaseException]:
    """The error, those it groups and what it came from."""
    yield error
    if depth == _DEEPEST:
        return
    if isinstance(error, BaseExceptionGroup):
        for one in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from _errors(one, depth + 1)
    elif error.__cause__ is not None:
        yield from _errors(error.__cause__, depth + 1)


def _overflow(error: BaseException) -> Overflow | None:
    if isinstance(error, UnexpectedModelBehavior):
        return overflow_of(None, error.body)
    if not isinstance(error, ModelAPIError):
        return None
    status = error.status_code if isinstance(error, ModelHTTPError) else None
    told = (status, error.body, "" if error.body else error.message)
    found = overflow_of(*told)
    if found is None and isinstance(error, ModelContextWindowExceededError):
        return None if refused_otherwise(*told) else Overflow()
    return found


def _said_nothing(error: BaseException) -> bool:
    return isinstance(error, UnexpectedModelBehavior) and _EMPTY in error.message


def _is_empty(response: ModelResponse) -> bool:
    return not any(
        part.has_content() if isinstance(part, TextPart | ThinkingPart) else True
        for part in response.parts
    )


def _near(sent: int, window: int | None) -> bool:
    return window is not None and sent >= _NEAR * window
