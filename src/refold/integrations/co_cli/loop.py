"""One turn of one's own loop: what the user says, and the agent's work until it answers.

A turn that is interrupted, or takes too many steps, ends with a history that the next turn can
begin with.
"""

import asyncio
import functools
import signal
import threading
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final, Literal

from pydantic_ai import AgentRunResultEvent, AgentStreamEvent, UsageLimitExceeded, UsageLimits
from pydantic_ai.agent import AbstractAgent, AgentRunEvents
from pydantic_ai.exceptions import RunCancelled, RunTimedOut, UserError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    SystemPromptPart,
    TextContent,
    TextPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.usage import RunUsage

from refold.fold.replace import COMPACTED, UNDERSTOOD
from refold.integrations.co_cli.history import (
    configured,
    desk_of,
    patch_dangling_tool_calls,
    summarize_messages,
)
from refold.view.policies.pair import INTERRUPTED
from refold.view.profiles import Profile

Event = AgentStreamEvent | AgentRunResultEvent[Any]
Watch = Callable[[Event], Awaitable[None] | None]
"""Is told each event of the run; it may be async."""

LIMITED = "Not run: the turn reached its limit."
"""Stands for the return of a call that a limit left unanswered."""


@dataclass(frozen=True, slots=True)
class TurnResult:
    """What came of a turn."""

    messages: list[ModelMessage]
    """The whole history, legal to go on with."""
    output: Any = None
    """The agent's answer; None unless it `ended` with one."""
    ended: Literal["answered", "interrupted", "limit"] = "answered"
    """How: with an answer, by the user, or at a limit: of steps, of usage, or of time."""


async def run_turn(
    agent: AbstractAgent[Any, Any],
    user_input: str | Sequence[UserContent],
    message_history: Sequence[ModelMessage],
    *,
    watch: Watch | None = None,
    max_steps: int | None = None,
    **options: Any,  # noqa: ANN401 - the framework's own
) -> TurnResult:
    """Run one turn, and return the history whatever happens to it.

    When the user interrupts (Ctrl-C), or the task is cancelled, the turn ends there: it is not
    raised again, and calls without a return get one that says so. So does a turn that reaches a
    limit, with the work it did. Errors of the model are raised.

    Args:
        agent: Who runs.
        user_input: What the user says.
        message_history: What was said so far; it is not changed.
        watch: Is told each event.
        max_steps: How often the model may answer; 0: no limit, None: `agent_max_steps`.
        options: What else `run_stream_events` takes: `deps`, `usage_limits`, and so on.
    """
    limit = configured().max_steps if max_steps is None else max_steps
    if limit:
        options["usage_limits"] = _limits(limit, options.get("usage"), options.get("usage_limits"))
    run = agent.run_stream_events(user_input, message_history=message_history, **options)
    with _interruptible():
        async with run as events:
            try:
                return await _followed(events, watch)
            except (UsageLimitExceeded, RunTimedOut):
                ended, text = "limit", LIMITED
            except (KeyboardInterrupt, asyncio.CancelledError, RunCancelled):
                ended, text = "interrupted", INTERRUPTED
                _uncancel()
    messages = _so_far(events, message_history)
    return TurnResult(patch_dangling_tool_calls(messages, text), ended=ended)


async def _followed(events: AgentRunEvents[Any], watch: Watch | None) -> TurnResult:
    async for event in events:
        if watch is not None and (told := watch(event)) is not None:
            await told
    if events.result is None:  # the stream ends with the result or an error
        raise asyncio.CancelledError
    return TurnResult(events.result.all_messages(), events.result.output)


def _so_far(
    events: AgentRunEvents[Any], message_history: Sequence[ModelMessage]
) -> list[ModelMessage]:
    """All messages, with what there is of the one that was cut off."""
    try:
        return events.all_messages()
    except UserError:  # the run had not begun
        return list(message_history)


def _limits(steps: int, usage: RunUsage | None, limits: UsageLimits | None) -> UsageLimits:
    """The limits of the run, with one more: the framework counts a step as a request."""
    requests = steps + (usage.requests if usage else 0)
    limits = limits or UsageLimits(request_limit=requests)
    own = limits.request_limit
    return replace(limits, request_limit=requests if own is None else min(own, requests))


def _uncancel() -> None:
    """Take the cancellation back: the turn was what was cancelled, and the loop goes on."""
    task = asyncio.current_task()
    while task is not None and task.cancelling():
        task.uncancel()


@contextmanager
def _interruptible() -> Generator[None]:
    """Let Ctrl-C cancel the turn, every time.

    By itself asyncio does so only once in a program; the second time it breaks off the event loop
    and with it the history. A handler that the program has set is left alone.
    """
    before = signal.getsignal(signal.SIGINT)
    task = asyncio.current_task()
    if threading.current_thread() is not threading.main_thread() or not _python_s(before):
        yield
        return
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, lambda: task and task.cancel())
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)


def _python_s(handler: Any) -> bool:  # noqa: ANN401 - whatever was set
    """Whether the handler is the one that Python or asyncio sets."""
    own = handler.func if isinstance(handler, functools.partial) else handler
    return getattr(own, "__module__", None) in {"_signal", "asyncio.runners"}


# What a loop begins with when a session is taken up again.


def restore_history(
    messages: Sequence[ModelMessage],
    restore: Literal["replay", "text_turns"] = "text_turns",
    *,
    profile: Profile | None = None,
) -> list[ModelMessage]:
    """The history to go on with.

    `text_turns` is what the user said and the agent's final reply in the latest turns, of which
    there are `max(3, agent_max_context_turns // 6)`; `replay` is everything.

    Args:
        messages: All that was said.
        restore: Which of the two.
        profile: Else `cowagent`, with what files and the environment set.
    """
    if restore == "replay":
        return patch_dangling_tool_calls(messages)
    values = profile or configured("cowagent")
    latest = list(_turns(messages))[-max(3, values.window.max_turns // 6) :]
    restored = [message for turn in latest for message in turn]
    system = system_prompts(messages)
    if system and restored:
        restored[:0] = [ModelRequest(parts=system)]
    return restored


def system_prompts(messages: Sequence[ModelMessage]) -> list[SystemPromptPart]:
    """The system prompts in a history; with a history, the framework sends no others."""
    return [part for part in _parts(messages) if isinstance(part, SystemPromptPart)]


def _turns(messages: Sequence[ModelMessage]) -> Iterator[list[ModelMessage]]:
    """Each turn as what the user wrote in it and the last that the agent did, if the user wrote."""
    for start, end in pairwise((*desk_of(messages).inputs.turns, len(messages))):
        said = [part for part in map(_text_only, _parts(messages[start:end])) if part]
        replies = [reply for reply in map(_reply, messages[start:end]) if reply]
        if said:
            yield [ModelRequest(parts=said), *replies[-1:]]


def _parts(messages: Sequence[ModelMessage]) -> Iterator[ModelRequestPart]:
    """The parts of the requests."""
    return (part for one in messages if isinstance(one, ModelRequest) for part in one.parts)


def _text_only(part: ModelRequestPart) -> UserPromptPart | None:
    """What the user wrote, without pictures and other files."""
    if not isinstance(part, UserPromptPart):
        return None
    if isinstance(part.content, str):
        return part if part.content.strip() else None
    texts = [
        one if isinstance(one, str) else one.content
        for one in part.content
        if isinstance(one, str | TextContent)
    ]
    return replace(part, content="\n".join(texts)) if any(map(str.strip, texts)) else None


def _reply(message: ModelMessage) -> ModelResponse | None:
    """What the agent says in a response, if anything."""
    texts = [part for part in message.parts if isinstance(part, TextPart) and part.content]
    if not texts or isinstance(message, ModelRequest):
        return None
    return replace(message, parts=texts)


# The slash commands of one's own loop: `/clear`, `/compact`, `/history`.
#
# A command that returns a list replaces the history; one that returns None leaves it as it is.


@dataclass(frozen=True, slots=True)
class CommandContext:
    """What a command works on."""

    message_history: list[ModelMessage]
    agent: AbstractAgent[Any, Any]
    show: Callable[[str], object] = print
    """How something is shown to the user."""


async def run_command(line: str, ctx: CommandContext) -> list[ModelMessage] | None:
    """Run a command by its name: the new history, or None to keep the old one."""
    match line.strip():
        case "/clear":
            return cmd_clear(ctx)
        case "/history":
            return cmd_history(ctx)
        case "/compact":
            return await cmd_compact(ctx)
        case other:
            ctx.show(f"There is no command {other}. Use one of {', '.join(COMMANDS)}.")
            return None


COMMANDS: Final = ("/clear", "/compact", "/history")


def cmd_clear(ctx: CommandContext) -> list[ModelMessage]:  # noqa: ARG001 - as every command
    """Start again with nothing."""
    return []


def cmd_history(ctx: CommandContext) -> None:
    """Show how long the history is: requests count as turns, as co-cli counts them."""
    messages = ctx.message_history
    turns = sum(isinstance(message, ModelRequest) for message in messages)
    spoken = len(desk_of(messages).inputs.turns)
    ctx.show(f"{turns} turns, {len(messages)} messages; {spoken} turns begun by the user")


async def cmd_compact(ctx: CommandContext) -> list[ModelMessage] | None:
    """Summarize the history into two messages, with the agent's own model."""
    if not ctx.message_history:
        ctx.show("There is nothing to compact.")
        return None
    if ctx.agent.model is None:
        ctx.show("The history was not compacted: the agent has no model of its own.")
        return None
    try:
        summary = await summarize_messages(ctx.message_history, ctx.agent.model)
    except Exception as error:  # noqa: BLE001 - whatever it is, the history stays
        ctx.show(f"The history was not compacted: {error}")
        return None
    # A system prompt is not sent again along with a history: it must stay in it.
    parts = [*system_prompts(ctx.message_history), UserPromptPart(COMPACTED.format(text=summary))]
    return [ModelRequest(parts=parts), ModelResponse(parts=[TextPart(UNDERSTOOD)])]
