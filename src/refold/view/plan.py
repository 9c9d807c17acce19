"""A plan: what happens to each part up to the head, why, and what the request costs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from refold.log import MAIN_SCOPE, Outline, PartRef
from refold.log.entry import Span
from refold.view.budget import Account, Budget
from refold.view.profiles import Profile
from refold.view.tokens import Counter
from refold.wire import Change, Drop, Insert, Keep

# Why a part is where it is: one word for each reason, and a sentence for people.

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
    "arguments",
    "repeated",
    "superseded",
    "window",
    "text only",
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

SENTENCES: dict[Reason, str] = {
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
    "arguments": "long arguments of an old call, clipped",
    "repeated": "a later result says the same",
    "superseded": "the same call was answered again later",
    "window": "outside the fixed limits",
    "text only": "an old turn, reduced to its prompt and its reply",
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

LASTING: frozenset[str] = frozenset({"window", "text only", "emergency"})
"""What stays decided in every profile: what fixed limits, or a refusal, took out once."""
STICKY = LASTING | {
    "trimmed",
    "archived",
    "arguments",
    "repeated",
    "superseded",
    "fitted",
    "oversized",
}


class Gone(NamedTuple):
    """A run of entries that the view does not show."""

    span: Span
    reason: Reason


@dataclass(frozen=True, slots=True)
class Layout:
    """The decisions themselves. What is in none of them is kept."""

    gone: tuple[Gone, ...] = ()
    """Entries that are not shown, as runs."""
    changes: Mapping[PartRef, Change] = field(default_factory=dict[PartRef, Change])
    """Parts that are replaced, or dropped from a message that is shown."""
    inserts: tuple[Insert, ...] = ()
    """Messages that are not in the log, in order of the entry they stand in front of."""

    def __add__(self, later: "Layout") -> "Layout":
        """Both, where the other speaks of later entries only."""
        if not (later.gone or later.changes or later.inserts):
            return self
        return Layout(
            self.gone + later.gone,
            {**self.changes, **later.changes},
            self.inserts + later.inserts,
        )


class Terms(NamedTuple):
    """What a plan was made under; under others, everything is decided anew."""

    outline: Outline
    profile: Profile
    counter: Counter
    scope: str

    def same(self, other: "Terms") -> bool:
        """Whether they are the very same."""
        return all(one is two for one, two in zip(self[:3], other[:3], strict=True)) and (
            self.scope == other.scope
        )


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
    terms: "Terms"
    series: object
    """The same for plans that only add to one another."""


class LeftOut(NamedTuple):
    """What fitting left out of one request."""

    messages: int = 0
    tokens: int = 0
    """By how much it made the request smaller."""
    marks: int = 0
    """Messages that were put in the place of what was left out."""


NOTHING = LeftOut()


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
    untold: int = 0
    """The entry up to which delegated work is no longer told, for want of room."""
    left_out: LeftOut = NOTHING
    budget: Budget | None = field(default=None, compare=False, repr=False)
    closed: Closed | None = field(default=None, compare=False, repr=False)

    @property
    def shortened(self) -> bool:
        """Whether something was cut or left out to save room."""
        return bool(self.layout.changes) or any(one.reason in STICKY for one in self.layout.gone)

    def disposition(self, ref: PartRef) -> Change | Keep:
        """What happens to a part, and why."""
        change = self.layout.changes.get(ref)
        if change is not None:
            return change
        for gone in self.layout.gone:
            if ref.seq in gone.span:
                return Drop(gone.reason)
        return Keep("kept")
