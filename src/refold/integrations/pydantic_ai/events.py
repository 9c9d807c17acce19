"""What happens in a session, as events in the agent's event stream and as spans."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.trace import Span, Tracer
from pydantic_ai import CapabilityEvent, RunContext

from refold.fold.events import CompactionComplete, CompactionStart, FoldEvent
from refold.fold.extractive import BY as EXTRACTIVE
from refold.view import Event, Request

Happening = Event | FoldEvent
Watch = Callable[[str, Happening], None]
"""Called with a conversation's id and what happened in it."""


@dataclass(kw_only=True)
class SessionEvent(CapabilityEvent, namespace="refold"):
    """Something that happened in a session, in the event stream of the run that saw it first."""

    name: str
    """`session.usage_info`, `session.truncation`, `session.compaction_start`,
    `session.compaction_complete`, `session.compaction_held` or `session.reread`."""
    session: str
    details: dict[str, Any] = field(default_factory=dict[str, Any])
    """The event's own fields."""


class SessionEvents:
    """Collects what happens in one session until a run can emit it."""

    def __init__(self, session: str, scope: str, watch: Watch | None = None) -> None:
        self._watch = watch
        self._session = session
        self._attributes = {"gen_ai.conversation.id": session, "refold.scope": scope}
        self._pending: list[Happening] = []
        self._fold: Span | None = None
        self.tracer: Tracer | None = None
        """The newest run's; None before the first."""

    def add(self, event: Happening) -> None:
        self._pending.append(event)
        if self._watch is not None:
            self._watch(self._session, event)
        match event:
            case CompactionStart(trigger=trigger) if self.tracer is not None:
                self._fold = self.tracer.start_span("refold.fold", attributes=self._attributes)
                self._fold.set_attribute("refold.fold.trigger", trigger)
            case CompactionComplete() if self._fold is not None:
                _end_span(self._fold, event)
                self._fold = None
            case _:
                pass

    async def emit(self, ctx: RunContext[Any]) -> None:
        events, self._pending = self._pending, []
        for event in events:
            await ctx.emit(
                SessionEvent(name=event.NAME, session=self._session, details=event.as_json())
            )

    def trace_request(self, ctx: RunContext[Any], model: str, request: Request) -> None:
        """Record a span that describes the request's content."""
        account = request.plan.account
        values = {
            "gen_ai.request.model": model,
            "refold.view.messages": len(request.messages),
            "refold.view.tokens": account.sent,
            "refold.view.limit": account.limit,
            "refold.view.profile": request.plan.profile,
            "refold.view.digest": request.digest,
        }
        if request.plan.cause:
            values["refold.view.rewritten"] = request.plan.cause
        ctx.tracer.start_span("refold.view", attributes={**self._attributes, **values}).end()


def _end_span(span: Span, event: CompactionComplete) -> None:
    span.set_attributes(
        {
            "refold.fold.id": event.request_id,
            "refold.fold.tokens_removed": event.tokens_removed,
            "refold.fold.messages_removed": event.messages_removed,
        }
    )
    if event.model and event.model != EXTRACTIVE:
        span.set_attribute("gen_ai.request.model", event.model)
    if event.error:
        span.set_attribute("error.type", event.error.partition(":")[0])  # not the message
    span.end()
