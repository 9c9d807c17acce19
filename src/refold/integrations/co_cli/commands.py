"""The slash commands of one's own loop: `/clear`, `/compact`, `/history`.

A command that returns a list replaces the history; one that returns None leaves it as it is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from pydantic_ai.agent import AbstractAgent
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    UserPromptPart,
)

from refold.fold.replace import COMPACTED, UNDERSTOOD
from refold.integrations.co_cli.decisions import desk_of
from refold.integrations.co_cli.restoring import system_prompts
from refold.integrations.co_cli.summariser import summarize_messages


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
    spoken = len(desk_of(messages).sheet.turns)
    ctx.show(f"{turns} turns, {len(messages)} messages; {spoken} turns begun by the user")


async def cmd_compact(ctx: CommandContext) -> list[ModelMessage] | None:
    """Summarise the history into two messages, with the agent's own model."""
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
