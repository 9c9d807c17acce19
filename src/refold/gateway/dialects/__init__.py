"""The APIs that the gateway speaks: requests and answers of each, as values.

Nothing here does I/O or knows a framework.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from refold.gateway.dialects.anthropic_messages import ANTHROPIC_MESSAGES
from refold.gateway.dialects.dialect import Dialect, ParsedRequest, Unreadable
from refold.gateway.dialects.openai_chat import OPENAI_CHAT
from refold.gateway.dialects.openai_responses import OPENAI_RESPONSES

DIALECTS: Final[Mapping[str, Dialect]] = MappingProxyType(
    {dialect.path: dialect for dialect in (OPENAI_CHAT, OPENAI_RESPONSES, ANTHROPIC_MESSAGES)}
)
"""The dialects by the path that clients send to."""

__all__ = [
    "ANTHROPIC_MESSAGES",
    "DIALECTS",
    "OPENAI_CHAT",
    "OPENAI_RESPONSES",
    "Dialect",
    "ParsedRequest",
    "Unreadable",
]
