"""co-cli's two history processors, and what they are made of.

Both run before every request, in this order: long tool results are cut, then the middle of a long
history becomes one message. Messages are counted, not tokens: a token count needs a tokenizer or a
model, and the first of the two caps what one message can weigh.

What is cut and where is decided by the policies of the view, under the profile `co-cli`.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

from pydantic_ai import RunContext
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model

from refold.fold.replace import MARKER
from refold.integrations.co_cli.configured import configured
from refold.integrations.co_cli.decisions import WIRE, decided, desk_of, payload_of
from refold.integrations.co_cli.summariser import summarize_messages
from refold.view.desk import Desk, Proposal, Withdraw
from refold.view.policies.pair import INTERRUPTED, pair
from refold.view.policies.trim import trim
from refold.view.policies.window import middle
from refold.view.profiles import STATIC_MARKER, Profile
from refold.wire import Insert

_log = logging.getLogger(__name__)


def truncate_tool_returns(
    messages: list[ModelMessage], *, profile: Profile | None = None
) -> list[ModelMessage]:
    """Cut long tool results, except in the last two messages.

    What is over `tool_output_trim_chars` keeps its beginning, and a mark says how long it was.
    Content that is no text is measured as the JSON that the model reads. What bears the mark
    already is not cut again.
    """
    values = (profile or configured()).trim
    if not any(_long(message, values.max_chars) for message in messages):
        return messages
    desk = desk_of(messages)
    return decided(messages, desk) if desk.apply(trim(desk, values)) else messages


async def truncate_history_window(
    ctx: RunContext[Any], messages: list[ModelMessage], *, profile: Profile | None = None
) -> list[ModelMessage]:
    """Over `max_history_messages`, summarise the middle: the first run and the newest stay.

    The cut falls between steps, so that no call loses its return, and the latest prompt stays. The
    model is `summarization_model`, or the one that runs. If it fails, a fixed marker stands in.
    """
    values = profile or configured()
    limit = values.window.max_messages
    if not limit or len(messages) <= limit:
        return messages
    desk = desk_of(messages)
    desk.apply(middle(desk, limit, STATIC_MARKER))
    marker = next((one for one in desk.inserts if one.reason == "window"), None)
    if marker is None:
        return messages
    # One that cannot be asked in text fails, as any other may.
    model = values.summariser or cast("Model", ctx.model)
    text = await _summary(list(_dropped(messages, desk)), model)
    if text is not None:
        count = sum(desk.lost(row, "window") for row in desk.sheet.rows)
        told = replace(marker, text=MARKER.format(count=count, text=text))
        desk.apply([Withdraw(marker), told])
    desk.apply(pair(desk))
    return decided(messages, desk)


def _dropped(messages: Sequence[ModelMessage], desk: Desk) -> Iterator[ModelMessage]:
    """What the window leaves out; of a message with system content, only the rest."""
    for row, message in zip(desk.sheet.rows, messages, strict=True):
        gone = [message.parts[part.nth] for part in row.parts if desk.change(part)]
        if gone:
            yield replace(message, parts=gone)


async def _summary(messages: Sequence[ModelMessage], model: Model | str) -> str | None:
    try:
        return await summarize_messages(messages, model)
    except Exception:  # noqa: BLE001 - whatever it is, the turn goes on
        _log.warning("%d messages could not be summarised.", len(messages), exc_info=True)
        return None


def find_first_run_end(messages: Sequence[ModelMessage]) -> int:
    """The index of the first response that says something; 0 when there is none.

    The rule to the letter. The window asks the view instead, which keeps the returns to the calls
    of that response with it, and knows 0 of no response from 0 of the first message.
    """
    for at, message in enumerate(messages):
        if isinstance(message, ModelResponse) and _says(message):
            return at
    return 0


def _says(message: ModelResponse) -> bool:
    return any(isinstance(part, TextPart) for part in message.parts)


def static_marker(count: int) -> ModelRequest:
    """What stands for messages that could not be summarised."""
    return ModelRequest(parts=[UserPromptPart(STATIC_MARKER.replace("{count}", str(count)))])


def content_length(content: object) -> int:
    """The characters of a tool's result; what is no text is measured as the JSON it is sent as."""
    if isinstance(content, str):
        return len(content)
    measured = ModelRequest(parts=[ToolReturnPart("", content, "")])
    return len(WIRE.describe(payload_of(measured)).shapes[0].text)


def _long(message: ModelMessage, limit: int) -> bool:
    """Whether a result in it may have to be cut."""
    if not limit or not isinstance(message, ModelRequest):
        return False
    returns = (part for part in message.parts if isinstance(part, ToolReturnPart))
    return any(content_length(part.content) > limit for part in returns)


def patch_dangling_tool_calls(
    messages: Sequence[ModelMessage], error_message: str = INTERRUPTED
) -> list[ModelMessage]:
    """The history with a return for each call that nothing answered, saying `error_message`.

    Of an interrupted step some calls may have been answered; the others are answered in a request
    of their own after it. A return that answers no call goes, as it would when it is sent; one that
    came late is told as text.
    """
    desk = desk_of(messages)
    if not desk.apply(_saying(one, error_message) for one in pair(desk)):
        return list(messages)
    return decided(messages, desk)


def _saying(proposal: Proposal, text: str) -> Proposal:
    """The proposal, with this text where it stands for a return."""
    if isinstance(proposal, Insert) and proposal.kind == "return":
        return replace(proposal, text=text)
    return proposal
