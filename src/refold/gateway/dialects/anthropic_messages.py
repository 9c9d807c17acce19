"""Anthropic's messages."""

from collections.abc import Sequence
from typing import ClassVar

from pydantic import JsonValue

from refold.gateway.dialects import messages_answers
from refold.gateway.dialects.answered import Answer, Assembling
from refold.gateway.dialects.asked import Asked
from refold.gateway.dialects.bounded_json import Object
from refold.gateway.dialects.likeness import Told, alike, arguments, contents, item, named
from refold.gateway.dialects.reading import Form, asked_of, body_of
from refold.gateway.dialects.refusing import anthropic_refusal
from refold.gateway.dialects.seen_before import Seen
from refold.wire import wire_for


class AnthropicMessages:
    """The dialect of `/v1/messages`."""

    name: ClassVar[str] = "anthropic-messages"
    path: ClassVar[str] = "/v1/messages"

    def __init__(self) -> None:
        self._seen = Seen(wire_for(self.name), _looked)
        self._form = Form("messages", "system", ("tools",), _elsewhere, _user, self._seen)

    def read(self, raw: bytes) -> Asked:
        """The request."""
        return asked_of(raw, self._form)

    def likeness(self, payload: bytes) -> bytes:
        """What identifies the message; empty if the model says nothing in it."""
        return self._seen(payload).likeness

    def answers(self, payload: bytes) -> bool:
        """Whether the model said it."""
        return self._seen(payload).answers

    def body(self, asked: Asked, messages: Sequence[bytes]) -> bytes:
        """The request with these messages."""
        return body_of(asked, self._form, messages)

    def answer(self, body: bytes) -> Answer | None:
        """The answer in a whole response."""
        return messages_answers.answer(body)

    def assembling(self) -> Assembling:
        """What makes the answer of a stream's events."""
        return messages_answers.AssemblingMessages()

    def refusal(self, status: int, code: str, words: str) -> bytes:
        """An error in Anthropic's shape."""
        return anthropic_refusal(status, code, words)


def _elsewhere(body: Object) -> str:  # noqa: ARG001 - the conversation is always in the request
    return ""


def _user(body: Object) -> JsonValue:
    metadata = body.get("metadata")
    return metadata.get("user_id") if isinstance(metadata, dict) else None


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
