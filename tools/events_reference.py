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

What a session reports while it works. Names and fields are those that other tools use.

- A session: `Session.open(…, watch=function)` calls `function(event)`; `event.as_json()` has the
  fields below.
- A Pydantic AI agent: `SessionEvent` in the event stream has `name`, `details` with the same
  fields, and the object as `event`; or use `Refold(watch=…)`
  ([the guide](../pydantic-ai/observe-an-agent.md)).
- The service: `GET /api/v1/sessions/{session}/events` streams entries as they are appended, with
  usage, truncation, and the start and end of compactions ([The HTTP API](http.md)). It reads them
  from the log, so the writer may be any process; the effect of a compaction is measured against
  the newest request before it.

Each request emits `session.usage_info`. Each fold that starts ends with one
`session.compaction_complete`, even if it fails or is canceled. The telemetry records contain
figures only, no text.
"""

WHEN = {
    UsageInfo: "Emitted at each request, and after a fold that was started by hand.",
    Truncation: "Emitted at that request, next to the usage.",
    CompactionStart: "Emitted before the summary is written.",
    CompactionWait: "A fold in the background emits none.",
    CompactionComplete: "Emitted once for each fold that started.",
    CompactionHeld: "Emitted when that starts, not at each request.",
    ReadAgain: "Emitted each time.",
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
    "conversationTokens": "tokens of all other messages",
    "toolDefinitionsTokens": "tokens of the tool definitions",
    "isInitial": "whether it is the first request since the session was opened",
    "preTruncationTokensInMessages": "tokens of the messages before any was left out",
    "preTruncationMessagesLength": "messages before any was left out",
    "postTruncationTokensInMessages": "tokens of the messages sent",
    "postTruncationMessagesLength": "messages sent",
    "tokensRemovedDuringTruncation": "the difference",
    "messagesRemovedDuringTruncation": "the difference",
    "performedBy": "always `BasicTruncator`, the name that other tools know",
    "trigger": "the reason: a threshold, `manual`, or the provider's refusal",
    "success": "whether the fold is in effect",
    "error": "why not",
    "preCompactionTokens": "tokens of the context before",
    "postCompactionTokens": "tokens of the context now",
    "tokensRemoved": "the difference",
    "messagesRemoved": "messages that the summary replaces",
    "summaryContent": "the summary, which quotes the conversation",
    "checkpointNumber": "the number of the checkpoint, if there is a workspace",
    "checkpointPath": "its file",
    "checkpointError": "why it could not be written; the fold is in effect anyway",
    "fold": "the fold's id",
    "requestId": "the provider's id of the summary request, if a model wrote the summary",
    "compactionTokensUsed": "the summarizer's usage, if a model wrote the summary",
    "report": "how many of the model's claims were checked, and the results",
    "guard": "which guard: see below",
    "why": "what happened, in this case",
    "remedy": "what to do about it",
    "tool": "the tool that was called again",
    "what": "the target of the call, such as a path",
    "times": "how often it was read since the fold",
    "tokens": "tokens of its result",
    "pinned": "whether it is pinned in the context now",
    "model": "the model that wrote the summary; empty if none did",
    "durationMs": "milliseconds from start to end",
}
KINDS = {bool: "true or false", int: "number", str: "text", dict: "object", NoneType: "object"}


def events() -> set[type[Any]]:
    """All events that a session emits."""
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
