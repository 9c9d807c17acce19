"""A plan: what happens to each part up to the head, why, and what the request costs.

Also the events that report a plan. Their names and fields are those that other tools know; see
`session.usage_info` and `session.truncation` in the reference.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, Literal, NamedTuple

from pydantic import JsonValue

from refold.log import MAIN_SCOPE, Outline, PartRef
from refold.log.entry import Span
from refold.view.budget import Account, Budget
from refold.view.profiles import Profile
from refold.view.tokens import Correction, Counter
from refold.wire import Change, Drop, Insert, Keep

Reason = Literal[
    "kept",
    "off the line",
    "folded",
    "not read",
    "scope",
    "unreadable",
    "forgotten",
    "delegated",
    "summary",
    "pinned",
    "trimmed",
    "archived",
    "rendered",
    "arguments",
    "repeated",
    "superseded",
    "window",
    "text only",
    "restored",
    "fitted",
    "oversized",
    "emergency",
    "orphan",
    "parted",
    "late",
    "unanswered",
    "empty",
    "opening",
]
"""Why a part is, or is not, in the view."""

SENTENCES: Final[dict[Reason, str]] = {
    "kept": "sent as it is",
    "off the line": "rewound or cleared",
    "folded": "a summary stands for it",
    "not read": "older than what this profile reads",
    "scope": "belongs to an unrelated delegation",
    "unreadable": "no message of the session's format",
    "forgotten": "forgotten for good",
    "delegated": "work of a delegation, told as text",
    "summary": "stands for what was folded",
    "pinned": "pinned, and quoted because its place is folded",
    "trimmed": "a long tool result of an earlier turn, cut",
    "archived": "a large tool result, left as a reference",
    "rendered": "a tool result of an earlier turn, as Markdown with its input",
    "arguments": "long arguments of an old call, clipped",
    "repeated": "a later result says the same",
    "superseded": "the same call was answered again later",
    "window": "outside the fixed limits",
    "text only": "an old turn, reduced to its prompt and its reply",
    "restored": "older than what the profile restores after a restart",
    "fitted": "left out so that the request fits",
    "oversized": "a prompt too long for the context window, replaced by one line",
    "emergency": "cut or left out because the provider refused a request for its length",
    "orphan": "a result whose call is not in the view",
    "parted": "belongs with an item of its response that is not in the view",
    "late": "a result that came after its call was closed, told as text",
    "unanswered": "stands for a result that never came",
    "empty": "nothing is left of its message",
    "opening": "the provider wants the user to speak first",
}

LASTING: frozenset[str] = frozenset({"window", "text only", "restored", "emergency"})
"""Decisions that last in every profile: what a limit, a restart or a refusal took out once."""
_UNSEEN: Final = frozenset({"window", "fitted", "not read", "text only", "restored", "emergency"})
"""Why a request leaves out messages that are still a part of the conversation."""
STICKY = LASTING | {
    "trimmed",
    "archived",
    "arguments",
    "repeated",
    "superseded",
    "fitted",
    "oversized",
}
"""Decisions that last in sticky profiles, until the next rewrite."""


class Omission(NamedTuple):
    """A run of entries that the view does not show."""

    span: Span
    reason: Reason


@dataclass(frozen=True, slots=True)
class Layout:
    """The decisions themselves. What is in none of them is kept."""

    omissions: tuple[Omission, ...] = ()
    """Entries that are not shown, as runs."""
    changes: Mapping[PartRef, Change] = field(default_factory=dict[PartRef, Change])
    """Parts that are replaced, or dropped from a message that is shown."""
    inserts: tuple[Insert, ...] = ()
    """Messages that are not in the log, in order of the entry they stand in front of."""

    def __add__(self, later: "Layout") -> "Layout":
        """Both, where the other one concerns later entries only."""
        if not (later.omissions or later.changes or later.inserts):
            return self
        omissions = self.omissions + later.omissions
        return Layout(omissions, {**self.changes, **later.changes}, self.inserts + later.inserts)


class Terms(NamedTuple):
    """What a plan was made under; under others, everything is decided afresh."""

    outline: Outline
    profile: Profile
    counter: Counter
    scope: str
    findings: int
    """The entry of the newest findings; 0 if there are none."""

    def same(self, other: "Terms") -> bool:
        same = (mine is theirs for mine, theirs in zip(self[:3], other[:3], strict=True))
        return all(same) and self[3:] == other[3:]


@dataclass(frozen=True, slots=True)
class Closed:
    """How far a plan is final: the steps that have their answers, which later plans only add to."""

    layout: Layout
    rows: int
    tokens: int
    system: int
    quotes: int
    hidden: int
    opened: bool
    """Whether anyone but the system has spoken: nothing can come before it any more."""
    terms: Terms
    series: object
    """The same for plans that only add to one another."""


class LeftOut(NamedTuple):
    """What fitting left out of one request."""

    messages: int = 0
    tokens: int = 0
    """By how much it made the request smaller."""
    marks: int = 0
    """Messages that were put in the place of what was left out."""


class Pace(NamedTuple):
    """What has been sent since a fold; of a session without one, from its first request on."""

    fold: int = 0
    """The newest fold's entry; 0 if there is none."""
    requests: int = 0
    tokens: int = 0
    """Of all these requests together."""

    def after(self, fold: int, tokens: int) -> "Pace":
        """With one more request, while this fold was the newest one."""
        if fold != self.fold:
            return Pace(fold, 1, tokens)
        return Pace(fold, self.requests + 1, self.tokens + tokens)


@dataclass(frozen=True, slots=True)
class Plan:
    """The decisions for one request, and where its tokens go."""

    profile: str
    head: int
    layout: Layout
    account: Account
    tokens: int
    """Of all messages that are sent."""
    scope: str = MAIN_SCOPE
    rewrites: int = 0
    """How often, in this session so far, what had been sent was changed."""
    cause: str = ""
    """Why this plan changes what had been sent; empty when it only adds to the plan before."""
    tried: int = 0
    """The tokens at which a rewrite was last found not to be worth it."""
    hidden_until: int = 0
    """The entry up to which delegated work is no longer quoted, for want of room."""
    left_out: LeftOut = field(default=LeftOut())
    correction: Correction | None = None
    """Of the counter that counted all this; None: as it is."""
    pace: Pace = field(default=Pace())
    """What was sent since the newest fold, with this request."""
    budget: Budget | None = field(default=None, compare=False, repr=False)
    closed: Closed | None = field(default=None, compare=False, repr=False)

    @property
    def unseen(self) -> tuple[Span, ...]:
        """Entries that are still a part of the conversation, and left out for lack of room."""
        return tuple(one.span for one in self.layout.omissions if one.reason in _UNSEEN)

    @property
    def shortened(self) -> bool:
        """Whether something was cut or left out to save room."""
        changes = (change.reason for change in self.layout.changes.values())
        return any(reason != "rendered" for reason in changes) or any(
            omission.reason in STICKY for omission in self.layout.omissions
        )

    def disposition(self, ref: PartRef) -> Change | Keep:
        """What happens to a part, and why."""
        change = self.layout.changes.get(ref)
        if change is not None:
            return change
        for omission in self.layout.omissions:
            if ref.seq in omission.span:
                return Drop(omission.reason)
        return Keep("kept")


@dataclass(frozen=True, slots=True)
class UsageInfo:
    """How full the window is, and with what."""

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
        """The event as it is sent, by its public names."""
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
    """What a request left out to fit the window. The log is unchanged."""

    NAME: ClassVar[str] = "session.truncation"
    INTERNAL: ClassVar[str] = "history_truncated"

    token_limit: int
    pre_tokens: int
    post_tokens: int
    pre_messages: int
    post_messages: int
    performed_by: str = "BasicTruncator"

    @property
    def tokens_removed(self) -> int:
        """How many tokens were left out."""
        return self.pre_tokens - self.post_tokens

    @property
    def messages_removed(self) -> int:
        """How many messages were left out."""
        return self.pre_messages - self.post_messages

    def as_json(self) -> dict[str, JsonValue]:
        """The event as it is sent, by its public names."""
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
    account, out = plan.account, plan.left_out
    usage = UsageInfo(
        account.limit,
        account.sent,
        messages,
        account.system,
        account.conversation,
        account.tools,
        initial,
    )
    if not out.messages:
        return [usage]
    before = messages + out.messages - out.marks
    tokens = plan.tokens
    return [usage, Truncation(account.limit, tokens + out.tokens, tokens, before, messages)]
