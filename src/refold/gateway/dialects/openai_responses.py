"""OpenAI's responses, as long as the client holds the conversation."""

from collections.abc import Sequence
from typing import ClassVar, Final

from refold.gateway.dialects import responses_answers
from refold.gateway.dialects.answered import Answer, Assembling
from refold.gateway.dialects.asked import Asked
from refold.gateway.dialects.bounded_json import Object
from refold.gateway.dialects.likeness import (
    Told,
    alike,
    arguments,
    contents,
    item,
    named,
    other,
)
from refold.gateway.dialects.openai_chat import openai_user
from refold.gateway.dialects.reading import Form, asked_of, body_of
from refold.gateway.dialects.refusing import openai_refusal
from refold.gateway.dialects.seen_before import Seen
from refold.wire import wire_for
from refold.wire.splice import objects


class OpenAIResponses:
    """The dialect of `/v1/responses`. A message is one item of the input."""

    name: ClassVar[str] = "openai-responses"
    path: ClassVar[str] = "/v1/responses"

    def __init__(self) -> None:
        self._seen = Seen(wire_for(self.name), _looked)
        self._form = Form(
            *("input", "instructions", ("tools",)),
            *(_elsewhere, openai_user, self._seen),
            lone_text=True,
        )

    def read(self, raw: bytes) -> Asked:
        """The request; a lone text is one message of the user's."""
        return asked_of(raw, self._form)

    def likeness(self, payload: bytes) -> bytes:
        """What identifies the item; empty for reasoning."""
        return self._seen(payload).likeness

    def answers(self, payload: bytes) -> bool:
        """Whether the model made it: its messages, its calls, its reasoning."""
        return self._seen(payload).answers

    def body(self, asked: Asked, messages: Sequence[bytes]) -> bytes:
        """The request with these items."""
        return body_of(asked, self._form, messages)

    def answer(self, body: bytes) -> Answer | None:
        """The answer in a whole response."""
        return responses_answers.answer(body)

    def assembling(self) -> Assembling:
        """What makes the answer of a stream's events."""
        return responses_answers.AssemblingResponses()

    def refusal(self, status: int, code: str, words: str) -> bytes:
        """An error in OpenAI's shape."""
        return openai_refusal(status, code, words)


def _elsewhere(body: Object) -> str:
    for field, why in _HELD.items():
        if body.get(field):
            return why
    items = objects(body.get("input"))
    if any(map(_refers, items)):
        return "an item refers to one that the provider holds"
    if any(one.get("type") == "compaction_trigger" for one in items):
        return "it has the provider shorten the conversation"
    return ""


def _refers(given: Object) -> bool:
    """The type of a reference may be left out."""
    kind = given.get("type")
    return kind == "item_reference" or (kind is None and "id" in given and "role" not in given)


def _looked(given: Object) -> tuple[bytes, bool]:
    kind = given.get("type") or "message"
    if kind == "reasoning":
        return b"", True
    if kind == "message":
        answers = given.get("role") == "assistant"
        told = contents(given.get("content"), item)
        if answers and not told:
            return b"", True
        return alike(("message", named(given.get("role")), told)), answers
    kind = named(kind)
    made = kind.endswith("_call") or kind in _MADE
    return alike((kind, _item(kind, given))), made


def _item(kind: str, given: Object) -> list[Told]:
    call, name = named(given.get("call_id")), named(given.get("name"))
    match kind:
        case "function_call":
            return [call, name, arguments(given.get("arguments"))]
        case "custom_tool_call":
            return [call, name, named(given.get("input"))]
        case "function_call_output" | "custom_tool_call_output":
            return [call, contents(given.get("output"), item)]
        case _:
            return [other({key: one for key, one in given.items() if key not in _PASSING})]


_HELD: Final = {
    "previous_response_id": "previous_response_id refers to what the provider holds",
    "conversation": "conversation refers to what the provider holds",
    "prompt": "prompt refers to what the provider holds",
    "background": "it is answered in the background",
}
_MADE: Final = frozenset(
    {
        *("compaction", "mcp_list_tools", "mcp_approval_request"),
        *("program", "tool_search_output"),
    }
)
"""What the model's side makes, other than calls."""

_PASSING: Final = frozenset({"id", "status"})
"""Clients leave them out when they send an item again."""
