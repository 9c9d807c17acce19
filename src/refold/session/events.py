"""The events of a session's folds, and the checkpoints written for people.

Each fold is also a span of OpenTelemetry, whose events are the telemetry records.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from refold.errors import InvalidInput, RefoldError
from refold.fold.checkpoints import Checkpoint, Workspace, checkpoints
from refold.fold.events import (
    CompactionComplete,
    CompactionHeld,
    CompactionStart,
    CompactionWait,
    FoldEvent,
)
from refold.fold.extractive import BY as EXTRACTIVE
from refold.fold.summary import Summary, counts, parse, shown_tokens
from refold.fold.undo import UNFOLD
from refold.fold.watchdog import ReadAgain
from refold.log import CODEC, Entry, FoldCompleted, FoldFailed, FoldStarted, Forgotten
from refold.session.explain import besides_messages
from refold.session.live_view import LiveView
from refold.telemetry import global_tracer
from refold.view import Account, Event, Truncation, UsageInfo

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

AnyEvent = Event | FoldEvent
"""Any event of a session."""
Watch = Callable[[AnyEvent], None]
"""Receives the events of a session."""

_FIELDS: Final[dict[type[AnyEvent], dict[str, str]]] = {
    UsageInfo: {
        "token_limit": "tokenLimit",
        "current_tokens": "currentTokens",
        "messages_length": "messagesLength",
        "system_tokens": "systemTokens",
        "conversation_tokens": "conversationTokens",
        "tool_definitions_tokens": "toolDefinitionsTokens",
        "is_initial": "isInitial",
    },
    Truncation: {
        "token_limit": "tokenLimit",
        "pre_tokens": "preTruncationTokensInMessages",
        "post_tokens": "postTruncationTokensInMessages",
        "pre_messages": "preTruncationMessagesLength",
        "post_messages": "postTruncationMessagesLength",
        "performed_by": "performedBy",
    },
    CompactionStart: {
        "trigger": "trigger",
        "system_tokens": "systemTokens",
        "conversation_tokens": "conversationTokens",
        "tool_definitions_tokens": "toolDefinitionsTokens",
    },
    CompactionWait: {"trigger": "trigger"},
    CompactionComplete: {
        "fold": "fold",
        "error": "error",
        "pre_tokens": "preCompactionTokens",
        "post_tokens": "postCompactionTokens",
        "messages_removed": "messagesRemoved",
        "summary": "summaryContent",
        "checkpoint": "checkpointNumber",
        "checkpoint_path": "checkpointPath",
        "checkpoint_error": "checkpointError",
        "request_id": "requestId",
        "usage": "compactionTokensUsed",
        "report": "report",
    },
    CompactionHeld: {"guard": "guard", "why": "why"},
    ReadAgain: {name: name for name in ("tool", "what", "times", "tokens", "pinned", "remedy")},
}
"""The attributes of each event that its JSON has, with their names there."""
_CLASSES: Final = {each.NAME: each for each in _FIELDS}


def event_from_json(payload: Mapping[str, Any]) -> AnyEvent:
    """The event that `as_json` wrote, as from the service's event stream or `refold chat --json`.

    Raises InvalidInput if it is none of the events.
    """
    kind = _CLASSES.get(str(payload.get("type")))
    try:
        if kind is not None:
            return kind(**{name: payload[key] for name, key in _FIELDS[kind].items()})
    except KeyError as error:
        raise InvalidInput(
            f"The event {payload['type']!r} has no field {error.args[0]!r}.",
            "Read it with the version of Refold that wrote it.",
        ) from error
    raise InvalidInput(
        f"{payload.get('type')!r} is not an event of a session.",
        f"These are: {', '.join(_CLASSES)}.",
    )


_REPORTED: Final = {FoldStarted.KIND, FoldCompleted.KIND, FoldFailed.KIND}


class FoldSpans:
    """The spans of a session's folds: figures only, no message text."""

    def __init__(self, session: str, scope: str) -> None:
        self._attributes = {"gen_ai.conversation.id": session, "refold.scope": scope}
        self._open: dict[UUID, Span] = {}
        self.tracer: Tracer | None = None
        """Records the spans; None: the tracer of the program's own provider does."""

    def start(self, fold: UUID, event: CompactionStart) -> None:
        tracer = self.tracer or global_tracer()
        if tracer is None:
            return
        span = tracer.start_span("refold.fold", attributes=self._attributes)
        span.set_attribute("refold.fold.trigger", event.trigger)
        _record(span, event)
        self._open[fold] = span

    def end(self, fold: UUID, event: CompactionComplete) -> None:
        span = self._open.pop(fold, None)
        if span is None:
            return
        span.set_attributes(
            {
                "refold.fold.id": event.fold,
                "refold.fold.tokens_removed": event.tokens_removed,
                "refold.fold.messages_removed": event.messages_removed,
            }
        )
        if event.model and event.model != EXTRACTIVE:
            span.set_attribute("gen_ai.request.model", event.model)
        if event.error:
            span.set_attribute("error.type", event.error.partition(":")[0])  # not the message
        _record(span, event)
        span.end()


def _record(span: "Span", event: CompactionStart | CompactionComplete) -> None:
    values = {
        name: value
        for name, value in event.telemetry().items()
        if isinstance(value, str | int | float) and name != "type"
    }
    span.add_event(event.TELEMETRY, values)


class CompactionEvents:
    """Follows the folds of a session, wherever they are made: each begins once and ends once."""

    def __init__(self, live: LiveView, watch: Watch, workspace: Workspace | None) -> None:
        self.last: CompactionComplete | None = None
        """How the newest fold ended."""
        self.report = watch
        self._live = live
        self.workspace = workspace
        self.spans = FoldSpans(live.name, live.scope)
        self._started: dict[UUID, tuple[int | None, float]] = {}
        """The tokens of the view when a fold started, if known, and when that was."""
        self._elsewhere: set[UUID] = set()
        """Folds that other processes began."""
        self._remainders: set[UUID] = set()
        """Folds that stand for the rest of an unfolded one: they are not reported."""

    def report_start(self, fold: UUID, cause: str, *, elsewhere: bool = False) -> None:
        inputs, budget = self._live.view.inputs, self._live.setup.budget
        size = self._live.view.size(budget)
        self._started[fold] = size, monotonic()
        system = inputs.system_tokens
        instructions = max(budget.instructions, inputs.instructions)
        account = Account(system + instructions, size - system, budget.tools)
        event = CompactionStart.of(cause, account, elsewhere=elsewhere)
        if elsewhere:
            self._elsewhere.add(fold)
        self.spans.start(fold, event)
        self.report(event)

    def report_failure(self, fold: UUID, reason: str) -> None:
        self._report_end(fold, CompactionComplete(str(fold), reason))

    async def observe(self, entries: Sequence[Entry]) -> None:
        """Report what the log says of folds, once their checkpoints are written."""
        values = [CODEC.decode(entry) for entry in entries if entry.kind in _REPORTED]
        completed = {value.fold for value in values if isinstance(value, FoldCompleted)}
        for value in values:
            match value:
                case FoldStarted(fold, trigger=trigger):
                    if trigger == UNFOLD:
                        self._remainders.add(fold)
                    elif fold not in self._started:
                        self.report_start(fold, trigger, elsewhere=True)
                        if fold in completed:  # the view has it already
                            self._started[fold] = None, monotonic()
                case FoldCompleted(fold, summary=summary) if fold not in self._remainders:
                    await self.report_completed(fold, parse(summary))
                case FoldFailed(fold, reason):
                    self.report_failure(fold, reason)
                case Forgotten(FoldCompleted.KIND, {"fold": str(fold)}):
                    self.report_failure(UUID(fold), "what it stood for was forgotten")
                case _:
                    pass

    async def sync_checkpoints(self) -> list[Checkpoint]:
        """Make the checkpoint files match the log; returns the checkpoints."""
        if self.workspace is None:
            return []
        current = await checkpoints(self._live.log, self._live.name)
        await asyncio.to_thread(self.workspace.align, current, self._live.name)
        return current

    async def sync_at_opening(self, *, new: bool) -> None:
        """The same for changes by other processes; the next fold reports a faulty folder."""
        with suppress(RefoldError, OSError):
            if not new:
                await self.sync_checkpoints()
            elif self.workspace is not None:  # so that people find it
                await asyncio.to_thread(self.workspace.align, [], self._live.name)

    async def report_completed(self, fold: UUID, summary: Summary) -> None:
        after = self._live.view.size(self._live.setup.budget)
        before, _ = self._started.get(fold, (None, 0.0))
        if before is None:
            shown = shown_tokens(summary, self._live.setup.counter)
            before = max(0, after - shown) + summary.tokens
        current: list[Checkpoint] = []
        problem = None
        try:
            current = await self.sync_checkpoints()
        except (RefoldError, OSError) as error:  # the fold stands all the same
            problem = str(error)
        event = CompactionComplete(
            str(fold),
            pre_tokens=before,
            post_tokens=after,
            besides=besides_messages(self._live),
            messages_removed=summary.messages,
            summary=summary.text,
            model=summary.by,
            usage=dict(summary.usage) or None,
            report=counts(summary.report) if summary.report else None,
            checkpoint_error=problem,
            request_id=summary.request or None,
        )
        checkpoint = next((each for each in current if each.fold == fold), None)
        if checkpoint is not None and self.workspace is not None:
            path = str(self.workspace.path_of(checkpoint))
            event = replace(event, checkpoint=checkpoint.number, checkpoint_path=path)
        self._report_end(fold, event)

    def _report_end(self, fold: UUID, event: CompactionComplete) -> None:
        _, start = self._started.pop(fold, (0, None))
        milliseconds = 0 if start is None else int((monotonic() - start) * 1000)
        elsewhere = fold in self._elsewhere
        self._elsewhere.discard(fold)
        self.last = replace(event, duration_ms=milliseconds, elsewhere=elsewhere)
        self.spans.end(fold, self.last)
        self.report(self.last)
