"""co-cli's two history processors, and what they are made of.

Both run before every request, in this order: long tool results are cut, then the middle of a long
history becomes one message. Messages are counted, not tokens: a token count needs a tokenizer or a
model, and the first processor limits the size of a message.

The policies of the view, under the profile `co-cli`, decide what is cut. Their decisions are
applied to copies of the messages they concern; every other message is returned as the same object.
"""

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final, cast
from uuid import UUID

from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import (
    BaseToolReturnPart,
    CapabilityLoadDeltaPart,
    InstructionBaselinePart,
    InstructionDeltaPart,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ModelSettingsDeltaPart,
    SystemPromptPart,
    TextPart,
    ToolAvailabilityDeltaPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model

from refold.errors import FoldNotMade, NothingToFold
from refold.fold.replace import MARKER
from refold.fold.write.transcript import CONVERSATION, CONVERSATION_GUARD
from refold.log import Entry, Message, PartRef
from refold.settings import load_settings
from refold.view.plan import Layout
from refold.view.plan_builder import PlanBuilder
from refold.view.policies.pair import INTERRUPTED, opening, pair
from refold.view.policies.tool_output import trim
from refold.view.policies.window import middle
from refold.view.profiles import STATIC_MARKER, Profile
from refold.view.view import Edited, Edits, assemble
from refold.view.view_input import ViewInput
from refold.wire import Described, Drop, Insert, Kind, PydanticAI, Shape

_STEERING_PARTS: Final = (
    CapabilityLoadDeltaPart,
    InstructionBaselinePart,
    InstructionDeltaPart,
    ModelSettingsDeltaPart,
    SystemPromptPart,
    ToolAvailabilityDeltaPart,
)
"""The parts that tell a model, or the framework, how to behave."""

_MARKERS: Final = re.compile(
    "|".join(
        re.escape(text).replace(r"\{count\}", r"\d+").replace(r"\{text\}", ".*")
        for text in (MARKER, STATIC_MARKER)
    ),
    re.DOTALL,
)
_log = logging.getLogger(__name__)


@cache
def configured(name: str = "co-cli") -> Profile:
    """The profile with the settings of files and the environment, which are read once per process.

    A function that runs before every request must do no I/O. Call `configured.cache_clear()` to
    have the settings read again.
    """
    return load_settings(name).profile


class _History(PydanticAI):
    """The wire format of a history with markers, which look like prompts but are not the user's.

    Otherwise the marker of one window would be the latest prompt to the next, which would then drop
    what the user asked for.
    """

    def describe(self, payload: bytes) -> Described:
        described = super().describe(payload)
        shapes = (
            shape._replace(kind="other")
            if shape.kind == "prompt" and _MARKERS.fullmatch(shape.text)
            else shape
            for shape in described.shapes
        )
        return described._replace(shapes=tuple(shapes))


WIRE: Final = _History()


class _NoCounter:
    name = "none"
    spread = 0.0

    def text(self, text: str, kind: Kind = "text") -> int:  # noqa: ARG002 - a counter takes it
        return 0

    def part(self, shape: Shape) -> int:  # noqa: ARG002 - a counter takes it
        return 0


def plan_builder(messages: Sequence[ModelMessage]) -> PlanBuilder:
    """A new plan, whose row `n` is message `n`."""
    inputs = ViewInput(WIRE, _NoCounter())
    inputs.extend(
        Entry(seq, UUID(int=seq), 0, Message.KIND, 1, payload_of(message))
        for seq, message in enumerate(messages, 1)
    )
    return PlanBuilder(inputs)


def payload_of(message: ModelMessage) -> bytes:
    return ModelMessagesTypeAdapter.dump_json([message])[1:-1]


def apply_plan(messages: Sequence[ModelMessage], builder: PlanBuilder) -> list[ModelMessage]:
    """The messages with the plan's changes, as copies where something changes."""
    rows = builder.inputs.rows
    changes = {PartRef(*key): change for key, change in builder.changes.items()}
    inserts = tuple(sorted(builder.inserts, key=lambda insert: insert.before))
    edits: Edits = {}
    payloads = assemble(WIRE, rows, Layout((), changes, inserts), edits)
    originals = {id(row.payload): message for row, message in zip(rows, messages, strict=True)}
    for seq, edited in edits.items():
        originals[id(edited.message)] = _edit(messages[seq - 1], edited)
    planned = [
        originals[id(payload)] if id(payload) in originals else _decode_insert(payload)
        for payload in payloads
    ]
    last = messages[-1] if messages else None
    # A run needs its last request, even if it contains instructions only.
    if isinstance(last, ModelRequest) and not last.parts and last.state != "interrupted":
        planned.append(last)
    return planned


def _edit(message: ModelMessage, edited: Edited) -> ModelMessage:
    if edited.message is None:
        return message
    remaining = [
        (nth, part)
        for nth, part in enumerate(message.parts)
        if not isinstance(edited.changes.get(nth), Drop)
    ]
    parts: list[Any] = []
    for (nth, old), new in zip(remaining, _decode(edited.message).parts, strict=True):
        if nth not in edited.changes:
            parts.append(old)
        elif isinstance(old, BaseToolReturnPart) and isinstance(new, BaseToolReturnPart):
            # Only the text changes: other fields may not survive a round trip through JSON.
            parts.append(replace(cast("BaseToolReturnPart[Any]", old), content=new.content))
        else:
            parts.append(new)
    return replace(message, parts=parts)


def _decode_insert(payload: bytes) -> ModelMessage:
    message = _decode(payload)
    if not isinstance(message, ModelRequest):
        return message
    parts = [
        replace(part, outcome="interrupted") if isinstance(part, ToolReturnPart) else part
        for part in message.parts
    ]
    return replace(message, parts=parts)


def _decode(payload: bytes) -> ModelMessage:
    return ModelMessagesTypeAdapter.validate_json(b"[" + payload + b"]")[0]


async def summarize_messages(
    messages: Sequence[ModelMessage], model: Model | str, prompt: str = CONVERSATION
) -> str:
    """A short summary of the messages.

    A new agent without tools reads them as its history. They are made legal to send: calls without
    a return get one, and returns without a call are dropped. Instructions to the original agent are
    left out.

    Raises FoldNotMade when the model answers nothing, and whatever the model itself raises.
    """
    sendable = list(_without_steering(messages))
    builder = plan_builder(sendable)
    builder.apply(pair(builder))
    builder.apply(opening(builder))
    history = apply_plan(sendable, builder)
    if not history:
        raise NothingToFold("There is no message to summarize.", "Pass some of the history.")
    agent: Agent[None, str] = Agent(model, output_type=str, instructions=CONVERSATION_GUARD)
    result = await agent.run(prompt, message_history=history)
    if not result.output.strip():
        raise FoldNotMade("The summary is empty.", "Try again, or another model.")
    return result.output


def _without_steering(messages: Sequence[ModelMessage]) -> Iterator[ModelMessage]:
    for message in messages:
        if isinstance(message, ModelRequest):
            parts = [part for part in message.parts if not isinstance(part, _STEERING_PARTS)]
            message = replace(message, parts=parts, instructions=None)  # noqa: PLW2901 - a copy
        if message.parts:
            yield message


def truncate_tool_returns(
    messages: list[ModelMessage], *, profile: Profile | None = None
) -> list[ModelMessage]:
    """Cut long tool results, except in the last two messages.

    A result longer than `tool_output_trim_chars` keeps its beginning, and a note states its length.
    Structured content is measured as the JSON that the model reads. Results with such a note are
    not cut again.
    """
    values = (profile or configured()).trim
    if not any(_has_long_return(message, values.max_chars) for message in messages):
        return messages
    builder = plan_builder(messages)
    return apply_plan(messages, builder) if builder.apply(trim(builder, values)) else messages


async def truncate_history_window(
    ctx: RunContext[Any], messages: list[ModelMessage], *, profile: Profile | None = None
) -> list[ModelMessage]:
    """Above `max_history_messages`, summarize the middle; the first run and the newest stay.

    The cut falls between steps, so no call loses its return, and the latest prompt stays. The model
    is `summarization_model`, or the run's own. If it fails, a fixed marker is used instead.
    """
    values = profile or configured()
    limit = values.window.max_messages
    if not limit or len(messages) <= limit:
        return messages
    builder = plan_builder(messages)
    builder.apply(middle(builder, limit))
    lost = [row.seq for row in builder.inputs.rows if builder.lost(row, "window")]
    if not lost:
        return messages
    marker = STATIC_MARKER.replace("{count}", str(len(lost)))
    # A model that cannot be prompted with text fails here, as any other may.
    model = values.summarizer or cast("Model", ctx.model)
    dropped = list(_dropped(messages, builder))
    try:
        text = await summarize_messages(dropped, model)
    except Exception:  # noqa: BLE001 - the turn continues, whatever it is
        _log.warning("%d messages could not be summarized.", len(dropped), exc_info=True)
    else:
        marker = MARKER.format(count=len(lost), text=text)
    builder.apply([Insert(lost[0], "prompt", marker, "window")])
    builder.apply(pair(builder))
    return apply_plan(messages, builder)


def _dropped(messages: Sequence[ModelMessage], builder: PlanBuilder) -> Iterator[ModelMessage]:
    for row, message in zip(builder.inputs.rows, messages, strict=True):
        # The window keeps system content, so it may drop only some parts of a message.
        parts = [message.parts[part.nth] for part in row.parts if builder.change(part)]
        if parts:
            yield replace(message, parts=parts)


def find_first_run_end(messages: Sequence[ModelMessage]) -> int:
    """The index of the first response with text; 0 when there is none.

    This is co-cli's rule, literally. The window itself uses the view's, which also keeps the
    returns to that response's calls, and distinguishes no response from one at index 0.
    """
    for index, message in enumerate(messages):
        if isinstance(message, ModelResponse) and any(
            isinstance(part, TextPart) for part in message.parts
        ):
            return index
    return 0


def static_marker(count: int) -> ModelRequest:
    """The message that replaces messages that could not be summarized."""
    return ModelRequest(parts=[UserPromptPart(STATIC_MARKER.replace("{count}", str(count)))])


def content_length(content: object) -> int:
    """The length of a tool's result, in characters; of structured content, as JSON."""
    if isinstance(content, str):
        return len(content)
    message = ModelRequest(parts=[ToolReturnPart("", content, "")])
    return len(WIRE.describe(payload_of(message)).shapes[0].text)


def _has_long_return(message: ModelMessage, limit: int) -> bool:
    if not limit or not isinstance(message, ModelRequest):
        return False
    returns = (part for part in message.parts if isinstance(part, ToolReturnPart))
    return any(content_length(part.content) > limit for part in returns)


def patch_dangling_tool_calls(
    messages: Sequence[ModelMessage], error_message: str = INTERRUPTED
) -> list[ModelMessage]:
    """The history with a return, containing `error_message`, for each unanswered call.

    If some calls of an interrupted step were answered, the others are answered in a request of
    their own after it. A return without a call is dropped, as it would be when sent; one that came
    late becomes text.
    """
    builder = plan_builder(messages)
    proposals = (
        replace(proposal, text=error_message)
        if isinstance(proposal, Insert) and proposal.kind == "return"
        else proposal
        for proposal in pair(builder)
    )
    return apply_plan(messages, builder) if builder.apply(proposals) else list(messages)
