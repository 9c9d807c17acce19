"""What a loop begins with when a session is taken up again."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Literal

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    SystemPromptPart,
    TextContent,
    TextPart,
    UserPromptPart,
)

from refold.integrations.co_cli.configured import configured
from refold.integrations.co_cli.decisions import desk_of
from refold.integrations.co_cli.history import patch_dangling_tool_calls
from refold.view.profiles import Profile


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
    for start, end in pairwise((*desk_of(messages).sheet.turns, len(messages))):
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
