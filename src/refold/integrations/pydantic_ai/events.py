"""What happens in a session, told in the agent's event stream and as spans."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.trace import Span, Tracer
from pydantic_ai import CapabilityEvent, RunContext

from refold.fold.events import CompactionComplete, CompactionStart, FoldEvent
from refold.fold.extractive import BY as BREADCRUMB
from refold.view import Event, Request

Happening = Event | FoldEvent
Watching = Callable[[str, Happening], None]
"""Is told what happens in which conversation."""


@dataclass(kw_only=True)
class SessionEvent(CapabilityEvent, namespace="refold"):
    """Something that happened in a session, in the event stream of the run that saw it first."""

    name: str
    """`session.usage_info`, `session.truncation`, `session.compaction_start`,
    `session.compaction_complete`, `session.compaction_held` or `session.reread`."""
    session: str
    details: dict[str, Any] = field(default_factory=dict[str, Any])
    """The event's own fields."""


class Telling:
    """Gathers what happens in one session, and tells it when a run can be told."""

    def __init__(self, session: str, scope: str, watch: Watching | None = None) -> None:
        self._watching = watch
        self._session = session
        self._scope = scope
        self._heard: list[Happening] = []
        self._fold: Span | None = None
        self._tracer: Tracer | None = None

    def begin(self, ctx: RunContext[Any]) -> None:
        """The run has begun: from now on there is somebody to tell."""
        self._tracer = ctx.tracer

    def watch(self, happening: Happening) -> None:
        self._heard.append(happening)
        if self._watching is not None:
            self._watching(self._session, happening)
        match happening:
            case CompactionStart(trigger=trigger) if self._tracer is not None:
                self._fold = self._tracer.start_span("refold.fold", attributes=self._attributes())
                self._fold.set_attribute("refold.fold.trigger", trigger)
            case CompactionComplete() if self._fold is not None:
                self._ended(self._fold, happening)
                self._fold = None
            case _:
                pass

    async def tell(self, ctx: RunContext[Any]) -> None:
        heard, self._heard = self._heard, []
        for one in heard:
            await ctx.emit(
                SessionEvent(name=one.NAME, session=self._session, details=one.as_json())
            )

    def spanned(self, ctx: RunContext[Any], model: str, request: Request) -> None:
        """A span that says what the request is made of."""
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
        ctx.tracer.start_span("refold.view", attributes={**self._attributes(), **values}).end()

    def _attributes(self) -> dict[str, str]:
        return {"gen_ai.conversation.id": self._session, "refold.scope": self._scope}

    def _ended(self, span: Span, event: CompactionComplete) -> None:
        span.set_attributes(
            {
                "refold.fold.id": event.request_id,
                "refold.fold.tokens_removed": event.tokens_removed,
                "refold.fold.messages_removed": event.messages_removed,
            }
        )
        if event.model and event.model != BREADCRUMB:
            span.set_attribute("gen_ai.request.model", event.model)
        if event.error:
            span.set_attribute("error.type", event.error.partition(":")[0])  # no one's words
        span.end()
