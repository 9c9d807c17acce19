"""What a request says about itself to those who watch: usage always, truncation when it happened.

The names and fields are those that other tools know; see `session.usage_info` and
`session.truncation` in the reference.
"""

from dataclasses import dataclass
from typing import ClassVar

from pydantic import JsonValue

from refold.view.plan import Plan

PERFORMED_BY = "BasicTruncator"


@dataclass(frozen=True, slots=True)
class UsageInfo:
    """How full the window is, and of what."""

    NAME: ClassVar[str] = "session.usage_info"
    INTERNAL: ClassVar[str] = "usage_info"

    token_limit: int
    current_tokens: int
    messages_length: int
    system_tokens: int
    conversation_tokens: int
    tool_definitions_tokens: int
    is_initial: bool

    def as_json(self) -> dict[str, JsonValue]:
        """The event as it is sent."""
        return {
            "type": self.NAME,
            "tokenLimit": self.token_limit,
            "currentTokens": self.current_tokens,
            "messagesLength": self.messages_length,
            "systemTokens": self.system_tokens,
            "conversationTokens": self.conversation_tokens,
            "toolDefinitionsTokens": self.tool_definitions_tokens,
            "isInitial": self.is_initial,
        }


@dataclass(frozen=True, slots=True)
class Truncation:
    """What a request left out so that it fits. The log is not touched."""

    NAME: ClassVar[str] = "session.truncation"
    INTERNAL: ClassVar[str] = "history_truncated"

    token_limit: int
    pre_tokens: int
    post_tokens: int
    pre_messages: int
    post_messages: int
    performed_by: str = PERFORMED_BY

    @property
    def tokens_removed(self) -> int:
        """How many tokens were left out."""
        return self.pre_tokens - self.post_tokens

    @property
    def messages_removed(self) -> int:
        """How many messages were left out."""
        return self.pre_messages - self.post_messages

    def as_json(self) -> dict[str, JsonValue]:
        """The event as it is sent."""
        return {
            "type": self.NAME,
            "tokenLimit": self.token_limit,
            "preTruncationTokensInMessages": self.pre_tokens,
            "preTruncationMessagesLength": self.pre_messages,
            "postTruncationTokensInMessages": self.post_tokens,
            "postTruncationMessagesLength": self.post_messages,
            "tokensRemovedDuringTruncation": self.tokens_removed,
            "messagesRemovedDuringTruncation": self.messages_removed,
            "performedBy": self.performed_by,
        }


Event = UsageInfo | Truncation


def events(plan: Plan, messages: int, *, initial: bool = False) -> list[Event]:
    """The events of one request with this plan and this many messages."""
    account = plan.account
    found: list[Event] = [
        UsageInfo(
            account.limit,
            account.sent,
            messages,
            account.system,
            account.conversation,
            account.tools,
            initial,
        )
    ]
    if plan.left_out.messages:
        out = plan.left_out
        found.append(
            Truncation(
                account.limit,
                plan.tokens + out.tokens,
                plan.tokens,
                messages + out.messages - out.marks,
                messages,
            )
        )
    return found
