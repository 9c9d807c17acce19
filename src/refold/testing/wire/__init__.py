"""Conversations in every format, as strategies, and the suite that every wire must pass.

    class TestMyWire(WireConformance):
        wire = MyWire()
        spelling = MySpelling()
        samples = [b'…']

The suite makes its conversations from the spelling, and edits the samples too.
"""

from refold.testing.wire.anthropic_messages import AnthropicMessagesSpelling
from refold.testing.wire.editing import EditingConformance
from refold.testing.wire.faults import FAULTS, Fault, faulty
from refold.testing.wire.formats import SPELLINGS, conversations, messages
from refold.testing.wire.legality import LegalityConformance
from refold.testing.wire.openai_chat import OpenAIChatSpelling
from refold.testing.wire.openai_responses import OpenAIResponsesSpelling
from refold.testing.wire.pydantic_ai import PydanticAISpelling
from refold.testing.wire.script import (
    Answered,
    Asked,
    Call,
    Responded,
    Return,
    Said,
    Thought,
    Told,
    scripts,
)
from refold.testing.wire.spelling import Spelling, payloads

__all__ = [
    "FAULTS",
    "SPELLINGS",
    "Answered",
    "AnthropicMessagesSpelling",
    "Asked",
    "Call",
    "EditingConformance",
    "Fault",
    "LegalityConformance",
    "OpenAIChatSpelling",
    "OpenAIResponsesSpelling",
    "PydanticAISpelling",
    "Responded",
    "Return",
    "Said",
    "Spelling",
    "Thought",
    "Told",
    "WireConformance",
    "conversations",
    "faulty",
    "messages",
    "payloads",
    "scripts",
]


class WireConformance(EditingConformance, LegalityConformance):
    """Subclass it and give it `wire`, `spelling`, and what else the format has to show."""
