"""Refold inside Pydantic AI: the capability, its events, and a store of conversations."""

from refold.integrations.pydantic_ai.capability import Refold
from refold.integrations.pydantic_ai.conversations import Conversations
from refold.integrations.pydantic_ai.events import SessionEvent

__all__ = ["Conversations", "Refold", "SessionEvent"]
