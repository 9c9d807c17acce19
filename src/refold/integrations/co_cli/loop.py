"""Building blocks of your own agent loop: turns, restored histories and slash commands.

A turn is a user's prompt and the agent's work until it answers. A turn that is interrupted, or
takes too many steps, ends with a history that the next turn can start with.
"""

import asyncio
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
    patch_dangling_tool_calls,
    plan_builder,
    summarize_messages,
)
from refold.view.policies.pair import INTERRUPTED
from refold.view.profiles import Profile

Event = AgentStreamEvent | AgentRunResultEvent[Any]
Watch = Callable[[Event], Awaitable[None] | None]
"""Called with each event of the run; it may be async."""

LIMITED = "Not run: the turn reached its limit."
"""The return of a call that a limit left unanswered."""
COMMANDS: Final = ("/clear", "/compact", "/history")


@dataclass(frozen=True, slots=True)
class TurnResult:
    """The result of a turn."""

    messages: list[ModelMessage]
    """The whole history, legal to continue with."""
    output: Any = None
    """The agent's answer; None unless it `ended` with one."""
    ended: Literal["answered", "interrupted", "limit"] = "answered"
    """How it ended: with an answer, by the user, or at a limit of steps, usage or time."""


async def run_turn(
    agent: AbstractAgent[Any, Any],
    user_input: str | Sequence[UserContent],
    message_history: Sequence[ModelMessage],
    *,
    watch: Watch | None = None,
    max_steps: int | None = None,
    **options: Any,  # noqa: ANN401 - the framework's own
) -> TurnResult:
    """Run one turn, and return the history however it ends.

    When the user interrupts (Ctrl-C), or the task is canceled, the turn ends without raising, and
    calls without a return get one that says so. The same happens when a turn reaches a limit.
    Errors of the model are raised.

    Args:
        agent: The agent to run.
        user_input: The user's prompt.
        message_history: The messages so far; they are not changed.
        watch: Called with each event.
        max_steps: How often the model may answer; 0: no limit, None: `agent_max_steps`.
        options: Other options of `run_stream_events`: `deps`, `usage_limits`, and so on.
    """
    limit = configured().max_steps if max_steps is None else max_steps
    if limit:
        options["usage_limits"] = _limits(limit, options.get("usage"), options.get("usage_limits"))
    run = agent.run_stream_events(user_input, message_history=message_history, **options)
    with _interruptible():
        async with run as events:
            try:
                return await _consume(events, watch)
            except (UsageLimitExceeded, RunTimedOut):
                ended, text = "limit", LIMITED
            except (KeyboardInterrupt, asyncio.CancelledError, RunCancelled):
                ended, text = "interrupted", INTERRUPTED
                task = asyncio.current_task()
                while task is not None and task.cancelling():
                    task.uncancel()  # the turn was canceled, and the loop continues
    try:
        messages = events.all_messages()
    except UserError:  # the run had not begun
        messages = message_history
    return TurnResult(patch_dangling_tool_calls(messages, text), ended=ended)


async def _consume(events: AgentRunEvents[Any], watch: Watch | None) -> TurnResult:
    async for event in events:
        if watch is not None and (waiting := watch(event)) is not None:
            await waiting
    if events.result is None:  # the stream ends with the result or an error
        raise asyncio.CancelledError
    return TurnResult(events.result.all_messages(), events.result.output)


def _limits(steps: int, usage: RunUsage | None, limits: UsageLimits | None) -> UsageLimits:
    # The framework counts a step as a request.
    requests = steps + (usage.requests if usage else 0)
    limits = limits or UsageLimits(request_limit=requests)
    own = limits.request_limit
    return replace(limits, request_limit=requests if own is None else min(own, requests))


@contextmanager
def _interruptible() -> Generator[None]:
    """Let Ctrl-C cancel the turn, every time.

    By itself, asyncio does so only once in a program; the second time it aborts the event loop and
    with it the history. A handler that the program has set is not replaced.
    """
    before = signal.getsignal(signal.SIGINT)
    function = getattr(before, "func", before)  # asyncio's is a partial
    is_default = getattr(function, "__module__", None) in {"_signal", "asyncio.runners"}
    task = asyncio.current_task()
    if threading.current_thread() is not threading.main_thread() or not is_default:
        yield
        return
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, lambda: task and task.cancel())
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)


def restore_history(
    messages: Sequence[ModelMessage],
    restore: Literal["replay", "text_turns"] = "text_turns",
    *,
    profile: Profile | None = None,
) -> list[ModelMessage]:
    """The history to continue a session with.

    `text_turns` restores the user's prompts and the agent's final replies of the latest
    `max(3, agent_max_context_turns // 6)` turns; `replay` restores everything.

    Args:
        messages: All messages of the session.
        restore: Which of the two.
        profile: By default `cowagent`, with the settings of files and the environment.
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
    return [part for part in _request_parts(messages) if isinstance(part, SystemPromptPart)]


def _turns(messages: Sequence[ModelMessage]) -> Iterator[list[ModelMessage]]:
    """Each turn as the user's text and the agent's last reply, if the user wrote any."""
    for start, end in pairwise((*plan_builder(messages).inputs.turns, len(messages))):
        prompts = [part for part in map(_text_prompt, _request_parts(messages[start:end])) if part]
        replies = [reply for reply in map(_text_reply, messages[start:end]) if reply]
        if prompts:
            yield [ModelRequest(parts=prompts), *replies[-1:]]


def _request_parts(messages: Sequence[ModelMessage]) -> Iterator[ModelRequestPart]:
    requests = (message for message in messages if isinstance(message, ModelRequest))
    return (part for request in requests for part in request.parts)


def _text_prompt(part: ModelRequestPart) -> UserPromptPart | None:
    if not isinstance(part, UserPromptPart):
        return None
    if isinstance(part.content, str):
        return part if part.content.strip() else None
    texts = [
        item if isinstance(item, str) else item.content
        for item in part.content
        if isinstance(item, str | TextContent)
    ]
    return replace(part, content="\n".join(texts)) if any(map(str.strip, texts)) else None


def _text_reply(message: ModelMessage) -> ModelResponse | None:
    texts = [part for part in message.parts if isinstance(part, TextPart) and part.content]
    if not texts or isinstance(message, ModelRequest):
        return None
    return replace(message, parts=texts)


@dataclass(frozen=True, slots=True)
class CommandContext:
    """What a command works on."""

    message_history: list[ModelMessage]
    agent: AbstractAgent[Any, Any]
    show: Callable[[str], object] = print
    """Shows a line to the user."""


async def run_command(line: str, ctx: CommandContext) -> list[ModelMessage] | None:
    """Run a slash command: returns the new history, or None to keep the old one."""
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


def cmd_clear(ctx: CommandContext) -> list[ModelMessage]:  # noqa: ARG001 - as every command
    """`/clear`: start with an empty history."""
    return []


def cmd_history(ctx: CommandContext) -> None:
    """Show how long the history is: requests count as turns, as co-cli counts them."""
    messages = ctx.message_history
    turns = sum(isinstance(message, ModelRequest) for message in messages)
    by_user = len(plan_builder(messages).inputs.turns)
    ctx.show(f"{turns} turns, {len(messages)} messages; {by_user} turns begun by the user")


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
