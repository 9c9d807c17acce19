"""Anthropic's messages."""

from typing import Final

from pydantic import JsonValue

from refold.gateway.dialects import messages_answers
from refold.gateway.dialects.dialect import Dialect
from refold.gateway.dialects.likeness import Told, alike, arguments, contents, item, named
from refold.gateway.dialects.reading import Form
from refold.gateway.dialects.refusing import anthropic_refusal
from refold.gateway.dialects.seen_before import Seen
from refold.wire import wire_for
from refold.wire.splice import Object


def _elsewhere(body: Object) -> str:  # noqa: ARG001 - the conversation is always in the request
    return ""


def _identifiers(body: Object) -> tuple[JsonValue, ...]:
    metadata = body.get("metadata")
    if metadata is None or isinstance(metadata, dict):
        return (metadata and metadata.get("user_id"),)
    return ([metadata],)  # that is nobody


def _looked(message: Object) -> tuple[bytes, bool]:
    answers = message.get("role") == "assistant"
    told = contents(message.get("content"), _block)
    if answers and not told:
        return b"", True
    return alike((named(message.get("role")), told)), answers


def _block(block: Object) -> Told | None:
    match block.get("type"):
        case "tool_use" | "server_tool_use" | "mcp_tool_use" as kind:
            told = arguments(block.get("input"))
            return (kind, named(block.get("id")), named(block.get("name")), told)
        case "tool_result":
            failed = "failed" if block.get("is_error") is True else ""
            told = contents(block.get("content"), item)
            return ("tool_result", named(block.get("tool_use_id")), failed, told)
        case _:
            return item(block)


_NAME: Final = "anthropic-messages"
ANTHROPIC_MESSAGES: Final = Dialect(
    _NAME,
    "/v1/messages",
    Form(
        conversation="messages",
        instructions="system",
        tools=("tools",),
        elsewhere=_elsewhere,
        identifiers=_identifiers,
        seen=Seen(wire_for(_NAME), _looked),
    ),
    answer=messages_answers.answer,
    assembling=messages_answers.AssemblingMessages,
    refusal=anthropic_refusal,
)
"""The dialect of messages."""
