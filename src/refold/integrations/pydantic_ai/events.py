"""What happens in a session, as events in the agent's event stream and as spans."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

from pydantic_ai import CapabilityEvent, RunContext

from refold.session.events import AnyEvent, event_from_json
from refold.view import Request

Watch = Callable[[str, AnyEvent], None]
"""Called with a conversation's id and what happened in it."""


@dataclass(kw_only=True)
class SessionEvent(CapabilityEvent, namespace="refold"):
    """Something that happened in a session, in the event stream of the run that saw it first."""

    name: str
    """`session.usage_info`, `session.truncation`, `session.compaction_start`,
    `session.compaction_wait`, `session.compaction_complete`, `session.compaction_held` or
    `session.reread`."""
    session: str
    details: dict[str, Any] = field(default_factory=dict[str, Any])
    """The event's own fields, by the names they have in JSON."""

    @cached_property
    def event(self) -> AnyEvent:
        """The event itself, such as a `refold.session.CompactionComplete`, with typed attributes.

        Of a `SessionEvent` that was read from JSON, it has what the JSON has.
        """
        return event_from_json(self.details)

    @classmethod
    def of(cls, session: str, event: AnyEvent) -> Self:
        made = cls(name=event.NAME, session=session, details=event.as_json())
        made.__dict__["event"] = event
        return made


class SessionEvents:
    """Collects what happens in one session until a run can emit it."""

    def __init__(self, session: str, scope: str, watch: Watch | None = None) -> None:
        self._watch = watch
        self._session = session
        self._attributes = {"gen_ai.conversation.id": session, "refold.scope": scope}
        self._pending: list[AnyEvent] = []

    def add(self, event: AnyEvent) -> None:
        self._pending.append(event)
        if self._watch is not None:
            self._watch(self._session, event)

    async def emit(self, ctx: RunContext[Any]) -> None:
        events, self._pending = self._pending, []
        for event in events:
            await ctx.emit(SessionEvent.of(self._session, event))

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
