"""Why a part is where it is: one word for each reason, and a sentence for people."""

from typing import Literal, NamedTuple

from refold.log.span import Span

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
