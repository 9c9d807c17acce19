"""A fold to be made: a value that an engine can store and another process can read."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, Self
from uuid import UUID

from pydantic import JsonValue

from refold.log import MAIN_SCOPE, FoldStarted, Span


@dataclass(frozen=True, slots=True)
class Job:
    """One fold to be made."""

    session: str
    fold: UUID
    spans: tuple[Span, ...]
    """The entries that the fold will stand for."""
    trigger: str
    focus: str | None = None
    """What the user wants the summary to preserve above all."""
    context: JsonValue = None
    """What the host knew when the fold was requested: plan, todo, skills, the active agent."""
    head: int | None = None
    """The session's head when the spans were chosen. A fold completed since makes them stale, and
    the job is not started; without a head this is not checked."""
    needs: tuple[Span, ...] | None = None
    """What must be read to make it, if no other fold was under way at `head`: the job then starts
    without another check. None if unknown."""
    scope: str = MAIN_SCOPE
    """Whose work is summarized; that of a delegated agent is never folded."""

    @classmethod
    def from_started(cls, session: str, started: FoldStarted) -> Self:
        return cls(
            session, started.fold, started.spans, started.trigger, started.focus, started.context
        )

    def started(self) -> FoldStarted:
        return FoldStarted(self.fold, self.spans, self.trigger, self.focus, self.context)


class Steps(Protocol):
    """Stores the results of work that must not be done, or paid for, twice."""

    async def step(self, name: str, work: Callable[[], Awaitable[JsonValue]]) -> JsonValue:
        """The result of `work`, or its stored result if an earlier run of the fold got that far."""


Make = Callable[[Job, Steps], Awaitable[JsonValue]]
"""Makes the summary of a fold, as its `FoldCompleted` stores it. It only reads the log."""
