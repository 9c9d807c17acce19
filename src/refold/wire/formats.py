"""The wires that come with Refold."""

from typing import Final

from refold.errors import UnknownFormat
from refold.wire.anthropic_messages import AnthropicMessages
from refold.wire.openai_chat import OpenAIChat
from refold.wire.openai_responses import OpenAIResponses
from refold.wire.protocol import Wire
from refold.wire.pydantic_ai import PydanticAI

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
        raise UnknownFormat(f"No wire knows the format {name!r}: {', '.join(WIRES)}.") from None
