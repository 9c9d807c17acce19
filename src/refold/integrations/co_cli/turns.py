"""One turn of one's own loop: what the user says, and the agent's work until it answers.

A turn that is interrupted, or takes too many steps, ends with a history that the next turn can
begin with.
"""

import asyncio
import functools
import signal
import threading
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic_ai import AgentRunResultEvent, AgentStreamEvent, UsageLimitExceeded, UsageLimits
from pydantic_ai.agent import AbstractAgent, AgentRunEvents
from pydantic_ai.exceptions import RunCancelled, RunTimedOut, UserError
from pydantic_ai.messages import ModelMessage, UserContent
from pydantic_ai.usage import RunUsage

from refold.integrations.co_cli.configured import configured
from refold.integrations.co_cli.history import patch_dangling_tool_calls
from refold.view.policies.pair import INTERRUPTED

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
