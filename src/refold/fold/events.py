"""Events of folds: their start, their end, and the guards that hold them back.

The names and fields are those that other tools use: `session.compaction_start` and
`session.compaction_complete`, and the telemetry records `session_compaction_start` and
`session_compaction_complete`.
"""

from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from pydantic import JsonValue

from refold.fold.watchdog import ReadAgain
from refold.view import Account


@dataclass(frozen=True, slots=True)
class CompactionStart:
    """A fold starts; how full the context is."""

    NAME: ClassVar[str] = "session.compaction_start"
    TELEMETRY: ClassVar[str] = "session_compaction_start"

    trigger: str
    system_tokens: int
    conversation_tokens: int
    tool_definitions_tokens: int
    elsewhere: bool = False
    """Whether another process began it."""

    @classmethod
    def of(cls, trigger: str, account: Account, *, elsewhere: bool = False) -> "CompactionStart":
        """The event of a fold that starts with this view."""
        return cls(trigger, account.system, account.conversation, account.tools, elsewhere)

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
        return self.as_json() | {"type": self.TELEMETRY}


@dataclass(frozen=True, slots=True)
class CompactionWait:
    """A request waits for a fold because it needs the room, or the user waits who started it."""

    NAME: ClassVar[str] = "session.compaction_wait"

    trigger: str

    def as_json(self) -> dict[str, JsonValue]:
        """The event as it is sent."""
        return {"type": self.NAME, "trigger": self.trigger}


@dataclass(frozen=True, slots=True)
class CompactionComplete:
    """A fold ended: it is in effect now, or it failed and nothing changed."""

    NAME: ClassVar[str] = "session.compaction_complete"
    TELEMETRY: ClassVar[str] = "session_compaction_complete"

    fold: str
    error: str | None = None
    """Why it failed."""
    pre_tokens: int = 0
    """Of the next request's messages, before the fold."""
    post_tokens: int = 0
    """The same with the fold."""
    messages_removed: int = 0
    """For how many messages the summary stands, with those of the folds beneath it."""
    besides: int = 0
    """Tokens of the next request beside its messages: instructions and tool definitions."""
    summary: str = ""
    checkpoint: int | None = None
    checkpoint_path: str | None = None
    checkpoint_error: str | None = None
    """Why the checkpoint could not be written, though the fold stands."""
    request_id: str | None = None
    """The provider's id of the summarizer's newest answer, where a model wrote the summary."""
    model: str = ""
    duration_ms: int = 0
    usage: JsonValue = None
    elsewhere: bool = False
    """Whether another process began it."""
    report: JsonValue = None
    """How many claims of a model were checked, and what came of them."""

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
            "fold": self.fold,
            "requestId": self.request_id,
            "compactionTokensUsed": self.usage,
            "report": self.report,
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
            "fold": self.fold,
            "requestId": self.request_id,
        }


Guard = Literal[
    "floor above trigger",
    "no progress",
    "not believed",
    "repeated failure",
    "summarizer left alone",
    "read back too often",
]
"""What keeps a session from folding in vain."""

_REMEDIES: Final[dict[Guard, str]] = {
    "floor above trigger": (
        "Instructions and tool definitions alone reach the mark at which a fold begins, so none "
        "can help. Shorten them, offer fewer tools, raise `trigger`, or use a model with a larger "
        "window."
    ),
    "no progress": (
        "The fold freed nothing, so none is begun until there is more to fold. Lower "
        "`fold.max_tokens` or `fold.keep.amount`, or use a model with a larger window."
    ),
    "not believed": (
        "The log's own summary is used instead. If this happens often, choose another `summarizer`."
    ),
    "repeated failure": (
        "Folds fail for the same reason, so the next is begun only when there is more to fold; "
        "until then requests leave out what does not fit. Look at the reason."
    ),
    "summarizer left alone": (
        "The summarizer failed too often and is asked again only now and then; the log writes the "
        "summaries meanwhile. Check its key, its limits, its name, or set another `summarizer`."
    ),
    "read back too often": (
        "The folds were undone, and nothing is folded until that is paid for. Keep more of what "
        "the model needs: raise `fold.keep.amount` or `fold.region_tokens`."
    ),
}


@dataclass(frozen=True, slots=True)
class CompactionHeld:
    """A guard holds back folds that would fail or not pay."""

    NAME: ClassVar[str] = "session.compaction_held"
    TELEMETRY: ClassVar[str] = "session_compaction_held"

    guard: Guard
    why: str
    """What happened, in this case."""

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return _REMEDIES[self.guard]

    def as_json(self) -> dict[str, JsonValue]:
        """The event as it is sent."""
        return {"type": self.NAME, "guard": self.guard, "why": self.why, "remedy": self.remedy}

    def telemetry(self) -> dict[str, JsonValue]:
        return {"type": self.TELEMETRY, "guard": self.guard}


FoldEvent = CompactionStart | CompactionWait | CompactionComplete | CompactionHeld | ReadAgain
"""What happens to the folds of a session."""
