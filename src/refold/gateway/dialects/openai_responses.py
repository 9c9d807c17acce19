"""OpenAI's responses, as long as the client holds the conversation."""

from typing import Final

from refold.gateway.dialects import responses_answers
from refold.gateway.dialects.dialect import Dialect
from refold.gateway.dialects.likeness import (
    Told,
    alike,
    arguments,
    contents,
    item,
    named,
    other,
)
from refold.gateway.dialects.openai_chat import openai_identifiers
from refold.gateway.dialects.reading import Form
from refold.gateway.dialects.refusing import openai_refusal
from refold.gateway.dialects.seen_before import Seen
from refold.wire import wire_for
from refold.wire.splice import Object, objects


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

_NAME: Final = "openai-responses"
OPENAI_RESPONSES: Final = Dialect(
    _NAME,
    "/v1/responses",
    Form(
        conversation="input",
        instructions="instructions",
        tools=("tools",),
        elsewhere=_elsewhere,
        identifiers=openai_identifiers,
        seen=Seen(wire_for(_NAME), _looked),
        lone_text=True,
    ),
    answer=responses_answers.answer,
    assembling=responses_answers.AssemblingResponses,
    refusal=openai_refusal,
)
"""The dialect of responses; a message is one item of the input."""
