"""Message formats: how each is described as parts, edited, and judged legal.

A wire is pure. What no edit touches goes out byte for byte as it came in.
"""

from typing import Final

from refold.errors import UnknownFormat as _UnknownFormat
from refold.wire.anthropic_messages import AnthropicMessages
from refold.wire.openai_chat import OpenAIChat
from refold.wire.openai_responses import OpenAIResponses
from refold.wire.part import (
    Change,
    Described,
    Drop,
    Edit,
    Insert,
    InsertKind,
    Keep,
    Kind,
    Part,
    Problem,
    Replace,
    Role,
    Shape,
    Wire,
)
from refold.wire.pydantic_ai import PydanticAI

__all__ = [
    "WIRES",
    "AnthropicMessages",
    "Change",
    "Described",
    "Drop",
    "Edit",
    "Insert",
    "InsertKind",
    "Keep",
    "Kind",
    "OpenAIChat",
    "OpenAIResponses",
    "Part",
    "Problem",
    "PydanticAI",
    "Replace",
    "Role",
    "Shape",
    "Wire",
    "wire_for",
]


# The wires that come with Refold.

_KNOWN: Final[tuple[Wire, ...]] = (
    PydanticAI(),
    OpenAIChat(),
    OpenAIResponses(),
    AnthropicMessages(),
)

WIRES: Final[dict[str, Wire]] = {wire.name: wire for wire in _KNOWN}
"""The wires that come with Refold, by the name of their format."""


def wire_for(name: str) -> Wire:
    """The wire of a format."""
    try:
        return WIRES[name]
    except KeyError:
        raise _UnknownFormat(f"No wire knows the format {name!r}: {', '.join(WIRES)}.") from None
