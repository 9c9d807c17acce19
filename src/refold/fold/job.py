"""What is asked of whoever folds: a value that an engine can keep, and another process can read."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, Self
from uuid import UUID

from pydantic import JsonValue

from refold.log import FoldStarted, Span


@dataclass(frozen=True, slots=True)
class Job:
    """One fold to be made."""

    session: str
    fold: UUID
    spans: tuple[Span, ...]
    """What the fold will stand for."""
    trigger: str
    focus: str | None = None
    """What the person who asked for it wants kept above all."""
    context: JsonValue = None
    """What the host knew when it was asked for: plan, todo, skills, the active agent."""
    head: int | None = None
    """The session's head when the spans were chosen. A fold completed since makes them stale, and
    the job is not begun; without a head nobody looks."""
    needs: tuple[Span, ...] | None = None
    """What must be read to make it, when no other fold was under way at `head`: then it is begun
    there without another look. None where that is not known."""

    @classmethod
    def from_started(cls, session: str, started: FoldStarted) -> Self:
        """The job that such an entry of the session says was begun."""
        return cls(
            session,
            started.fold,
            started.spans,
            started.trigger,
            started.focus,
            started.context,
        )

    def started(self) -> FoldStarted:
        """What the log is told when the job is begun."""
        return FoldStarted(self.fold, self.spans, self.trigger, self.focus, self.context)


class Steps(Protocol):
    """Keeps the results of what must not be done, or paid for, twice."""

    async def step(self, name: str, work: Callable[[], Awaitable[JsonValue]]) -> JsonValue:
        """What `work` gives; where an earlier run of this fold got that far, what it gave then."""


Make = Callable[[Job, Steps], Awaitable[JsonValue]]
"""Makes the summary of a fold, as its `FoldCompleted` keeps it. It only reads the log."""
