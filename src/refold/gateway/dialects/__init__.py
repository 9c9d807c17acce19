"""The APIs that the gateway speaks: requests and answers of each, as values.

Nothing here does I/O or knows a framework.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from refold.gateway.dialects.anthropic_messages import AnthropicMessages
from refold.gateway.dialects.asked import Asked, Unreadable
from refold.gateway.dialects.dialect import Dialect
from refold.gateway.dialects.openai_chat import OpenAIChat
from refold.gateway.dialects.openai_responses import OpenAIResponses

_KNOWN: Final[tuple[Dialect, ...]] = (OpenAIChat(), OpenAIResponses(), AnthropicMessages())

DIALECTS: Final[Mapping[str, Dialect]] = MappingProxyType({one.path: one for one in _KNOWN})
"""The dialects by the path that clients send to."""

__all__ = [
    "DIALECTS",
    "AnthropicMessages",
    "Asked",
    "Dialect",
    "OpenAIChat",
    "OpenAIResponses",
    "Unreadable",
]
