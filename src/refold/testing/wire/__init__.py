"""Conversations in every format, as strategies, and the suite that every wire must pass.

    class TestMyWire(WireConformance):
        wire = MyWire()
        spelling = MySpelling()
        samples = [b'…']

The suite makes its conversations from the spelling, and edits the samples too.
"""

from refold.testing.wire.editing import EditingConformance
from refold.testing.wire.legality import LegalityConformance
from refold.testing.wire.script import (
    FAULTS,
    Answered,
    Asked,
    Call,
    Fault,
    Responded,
    Return,
    Said,
    Spelling,
    Thought,
    Told,
    faulty,
    payloads,
    scripts,
)
from refold.testing.wire.spellings import (
    SPELLINGS,
    AnthropicMessagesSpelling,
    OpenAIChatSpelling,
    OpenAIResponsesSpelling,
    PydanticAISpelling,
    conversations,
    messages,
)

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
