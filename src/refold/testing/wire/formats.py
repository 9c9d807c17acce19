"""Conversations as payloads of the formats that come with Refold."""

from typing import Final

from hypothesis import strategies as st

from refold.errors import UnknownFormat
from refold.testing.wire.anthropic_messages import AnthropicMessagesSpelling
from refold.testing.wire.faults import faulty
from refold.testing.wire.openai_chat import OpenAIChatSpelling
from refold.testing.wire.openai_responses import OpenAIResponsesSpelling
from refold.testing.wire.pydantic_ai import PydanticAISpelling
from refold.testing.wire.script import scripts
from refold.testing.wire.spelling import Spelling, payloads

SPELLINGS: Final[dict[str, Spelling]] = {
    "pydantic-ai": PydanticAISpelling(),
    "openai-chat": OpenAIChatSpelling(),
    "openai-responses": OpenAIResponsesSpelling(),
    "anthropic-messages": AnthropicMessagesSpelling(),
}
"""How scripts are written, by the name of the format."""


def conversations(
    format: str,  # noqa: A002 - the word for it everywhere else
    *,
    legal: bool = True,
    most: int = 24,
) -> st.SearchStrategy[list[bytes]]:
    """Conversations of up to `most` moves, each a prompt or a step of the tool loop, as payloads.

    Legal ones are what a provider takes. The others have calls without their return, returns
    without their call, returns that come late or twice, or begin in the middle.
    """
    try:
        spelling = SPELLINGS[format]
    except KeyError:
        raise UnknownFormat(f"No spelling writes {format!r}: {', '.join(SPELLINGS)}.") from None
    said = scripts(most=most)
    return payloads(said if legal else faulty(said), spelling)


def messages(format: str) -> st.SearchStrategy[bytes]:  # noqa: A002 - as above
    """Single messages of a format, out of such conversations."""
    return conversations(format, most=4).flatmap(st.sampled_from)
