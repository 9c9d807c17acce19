"""Writes docs/reference/events.md from the events themselves.

With --check it writes nothing and exits with 1 if the page is out of date.
"""

import sys
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path
from types import NoneType
from typing import Any, get_args

from reference import table, write_or_check

from refold.fold.events import (
    CompactionComplete,
    CompactionHeld,
    CompactionStart,
    CompactionWait,
    FoldEvent,
    Guard,
)
from refold.fold.watchdog import ReadAgain
from refold.view.plan import Event, Truncation, UsageInfo

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "events.md"

OPENING = """<!-- Made by tools/events_reference.py from the events: do not edit. -->
# Events

What a session tells to those who watch. Names and fields are those that other tools know.

- A session: `Session.open(…, watch=heard)` calls `heard(event)`; `event.as_json()` is below.
- An agent of Pydantic AI: `SessionEvent` in the event stream has `name` and `details`, which are
  the same, and `event`, the object; or `Refold(watch=…)`
  ([the guide](../pydantic-ai/observe-an-agent.md)).
- The service: `GET /api/v1/sessions/{session}/events` tells of entries, as they are appended, and
  has the usage, the truncation, and the start and the end of compactions beside them
  ([The HTTP API](http.md)). They are read from the log, whichever process wrote it; what a
  compaction changes is measured by the newest request before it.

Each request tells `session.usage_info`. Each fold that begins ends with one
`session.compaction_complete`, also where it fails or is given up. The telemetry records have
figures only, and no one's words.
"""

WHEN = {
    UsageInfo: "Told at each request, and after a fold that somebody asked for.",
    Truncation: "Told at that request, beside the usage.",
    CompactionStart: "Told before anybody is asked for a summary.",
    CompactionWait: "A fold in the background has none.",
    CompactionComplete: "Told once for each that began.",
    CompactionHeld: "Told when it begins to, and not at each request.",
    ReadAgain: "Told each time.",
}
SAMPLES: tuple[Any, ...] = (
    UsageInfo(1, 1, 1, 1, 1, 1, is_initial=True),
    Truncation(1, 1, 1, 1, 1),
    CompactionStart("", 1, 1, 1),
    CompactionWait(""),
    CompactionComplete(
        *("", ""),
        checkpoint=1,
        checkpoint_path="",
        checkpoint_error="",
        request_id="",
        report={},
    ),
    CompactionHeld("no progress", ""),
    ReadAgain("", "", 1, 1, pinned=True, remedy=""),
)
"""One of each, with values of the kinds that they have."""
OPTIONAL = {
    "error",
    "checkpointNumber",
    "checkpointPath",
    "checkpointError",
    "requestId",
    "compactionTokensUsed",
    "report",
}
MEANS = {
    "type": "the event's name",
    "tokenLimit": "tokens that a request may have: the window less what is kept for the answer",
    "currentTokens": "tokens of this request, instructions and tools included",
    "messagesLength": "messages of this request",
    "systemTokens": "tokens of instructions and system content",
    "conversationTokens": "tokens of everything else that is said",
    "toolDefinitionsTokens": "tokens of the tools that are offered",
    "isInitial": "whether it is the first request since the session was opened",
    "preTruncationTokensInMessages": "tokens of the messages before any was left out",
    "preTruncationMessagesLength": "messages before any was left out",
    "postTruncationTokensInMessages": "tokens of the messages that are sent",
    "postTruncationMessagesLength": "messages that are sent",
    "tokensRemovedDuringTruncation": "the difference",
    "messagesRemovedDuringTruncation": "the difference",
    "performedBy": "always `BasicTruncator`, the name that other tools know",
    "trigger": "why: what was reached, `manual`, or a refusal of the provider",
    "success": "whether the fold stands now",
    "error": "why it does not",
    "preCompactionTokens": "tokens of the view before",
    "postCompactionTokens": "tokens of the view now",
    "tokensRemoved": "how many the view has fewer",
    "messagesRemoved": "messages that the summary stands for",
    "summaryContent": "the summary, with people's words in it",
    "checkpointNumber": "the checkpoint, where a workspace is given",
    "checkpointPath": "its file",
    "checkpointError": "why it could not be written; the fold stands all the same",
    "fold": "the fold's id",
    "requestId": "the provider's id of the summarizer's answer, where a model wrote",
    "compactionTokensUsed": "what the summarizer used, where a model wrote",
    "report": "how many claims of a model were checked, and what came of them",
    "guard": "which guard: see below",
    "why": "what happened, in this case",
    "remedy": "what to do about it",
    "tool": "the tool that was called again",
    "what": "what it was called for",
    "times": "how often it was read since it was folded",
    "tokens": "what its result costs",
    "pinned": "whether it is kept in the view now",
    "model": "the model that wrote; empty where the log did",
    "durationMs": "from its beginning to its end",
}
KINDS = {bool: "true or false", int: "number", str: "text", dict: "object", NoneType: "object"}


def events() -> set[type[Any]]:
    """All events that there are."""
    return {*get_args(Event), *get_args(FoldEvent)}


def render() -> str:
    """The whole page."""
    return "\n".join(_page()) + "\n"


def _page() -> Iterator[str]:
    yield OPENING
    for sample in SAMPLES:
        kind = type(sample)
        yield f"## {sample.NAME}\n"
        yield f"{cleandoc(kind.__doc__ or '')} {WHEN[kind]} `{kind.__module__}.{kind.__name__}`\n"
        told = sample.as_json()
        yield from table(("field", "is", ""), (_row(key, value) for key, value in told.items()))
        if hasattr(sample, "telemetry"):
            keys = ", ".join(f"`{key}`" for key in sample.telemetry() if key != "type")
            more = [key for key in sample.telemetry() if key not in told]
            yield f"Telemetry: `{sample.TELEMETRY}`, with {keys}.\n"
            yield from (f"`{key}`: {MEANS[key]}.\n" for key in more)
    yield "## Guards\n"
    guards = ((f"`{guard}`", CompactionHeld(guard, "").remedy) for guard in get_args(Guard))
    yield from table(("guard", "what it says"), guards)


def _row(key: str, value: object) -> tuple[str, str, str]:
    kind = KINDS[type(value)]
    return f"`{key}`", f"{kind}, or null" if key in OPTIONAL else kind, MEANS[key]


def main() -> int:
    """The command line."""
    return write_or_check(PAGE, render, "events_reference.py")


if __name__ == "__main__":
    sys.exit(main())
