"""What a fold says about itself to those who watch: that it began, and how it ended.

The names and fields are those that other tools know: `session.compaction_start` and
`session.compaction_complete`, and the telemetry records `session_compaction_start` and
`session_compaction_complete`.
"""

from dataclasses import dataclass
from typing import ClassVar

from pydantic import JsonValue

from refold.view import Account


@dataclass(frozen=True, slots=True)
class CompactionStart:
    """A fold begins, and how full the view is."""

    NAME: ClassVar[str] = "session.compaction_start"
    TELEMETRY: ClassVar[str] = "session_compaction_start"

    trigger: str
    system_tokens: int
    conversation_tokens: int
    tool_definitions_tokens: int

    @classmethod
    def of(cls, trigger: str, account: Account) -> "CompactionStart":
        """The event of a fold that begins with such a view."""
        return cls(trigger, account.system, account.conversation, account.tools)

    def as_json(self) -> dict[str, JsonValue]:
        """The event as it is sent."""
        return {
            "type": self.NAME,
            "trigger": self.trigger,
            "systemTokens": self.system_tokens,
            "conversationTokens": self.conversation_tokens,
            "toolDefinitionsTokens": self.tool_definitions_tokens,
        }

    def telemetry(self) -> dict[str, JsonValue]:
        """The telemetry record."""
        return self.as_json() | {"type": self.TELEMETRY}


@dataclass(frozen=True, slots=True)
class CompactionComplete:
    """A fold ended: it stands now, or it could not be made and nothing changed."""

    NAME: ClassVar[str] = "session.compaction_complete"
    TELEMETRY: ClassVar[str] = "session_compaction_complete"

    request_id: str
    """The fold."""
    error: str | None = None
    """Why it failed."""
    pre_tokens: int = 0
    post_tokens: int = 0
    messages_removed: int = 0
    summary: str = ""
    checkpoint: int | None = None
    checkpoint_path: str | None = None
    checkpoint_error: str | None = None
    """Why the checkpoint could not be written, though the fold stands."""
    model: str = ""
    duration_ms: int = 0
    usage: JsonValue = None

    @property
    def success(self) -> bool:
        """Whether the fold stands now."""
        return self.error is None

    @property
    def tokens_removed(self) -> int:
        """Tokens that the view has fewer."""
        return max(0, self.pre_tokens - self.post_tokens)

    def as_json(self) -> dict[str, JsonValue]:
        """The event as it is sent."""
        return {
            "type": self.NAME,
            "success": self.success,
            "error": self.error,
            "preCompactionTokens": self.pre_tokens,
            "postCompactionTokens": self.post_tokens,
            "tokensRemoved": self.tokens_removed,
            "messagesRemoved": self.messages_removed,
            "summaryContent": self.summary,
            "checkpointNumber": self.checkpoint,
            "checkpointPath": self.checkpoint_path,
            "checkpointError": self.checkpoint_error,
            "requestId": self.request_id,
            "compactionTokensUsed": self.usage,
        }

    def telemetry(self) -> dict[str, JsonValue]:
        """The telemetry record: figures, and no one's words."""
        return {
            "type": self.TELEMETRY,
            "success": self.success,
            "tokensRemoved": self.tokens_removed,
            "messagesRemoved": self.messages_removed,
            "checkpointNumber": self.checkpoint,
            "model": self.model,
            "durationMs": self.duration_ms,
            "requestId": self.request_id,
        }
