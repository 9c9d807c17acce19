"""Message formats: how each is described as parts, edited, and judged legal.

A wire is pure. What no edit touches goes out byte for byte as it came in.
"""

from refold.wire.anthropic_messages import AnthropicMessages
from refold.wire.formats import WIRES, wire_for
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
    Replace,
    Role,
    Shape,
)
from refold.wire.protocol import Problem, Wire
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
