"""What an engine does: it runs folds, one at a time for each session, and loses none.

An engine writes what it does to the log: a `FoldStarted` when it begins, then one `FoldCompleted`
or `FoldFailed`. Whoever wants to know how a fold stands reads the log.
"""

from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from pydantic import JsonValue

from refold.errors import InvalidInput
from refold.fold.job import Job


@dataclass(frozen=True, slots=True)
class Ended:
    """How a fold ended."""

    fold: UUID
    seq: int
    """The entry that says so."""
    summary: JsonValue = None
    reason: str | None = None
    """Why it failed; None when it was completed."""

    @property
    def completed(self) -> bool:
        """Whether the fold stands for its spans now."""
        return self.reason is None


class Engine(Protocol):
    """Runs the folds of one tenant's sessions."""

    async def start(self, job: Job) -> bool:
        """Begin a fold and return; False when it was not begun.

        That is so when another one is under way in that session, or was completed since the job's
        `head`: look at the session again, and ask for what is due then. Asking for the same fold
        again changes nothing and gives True, also when it has ended and no other is under way.

        Raises InvalidEntry when the spans are not on the session's line.
        """
        ...

    async def wait(self, session: str, fold: UUID, timeout: float | None = None) -> Ended | None:  # noqa: ASYNC109 - its callers would all wrap it
        """How the fold ended; None when it has not within `timeout` seconds, or was never started.

        One whose process died is finished here, so that the wait ends.
        """
        ...

    async def cancel(self, session: str, fold: UUID) -> Ended | None:
        """Give the fold up, wherever it runs; None when it had not been started.

        One that has been completed meanwhile stays completed.
        """
        ...

    async def recover(self, session: str) -> tuple[Ended, ...]:
        """Finish or close the folds whose process died; called when a session is opened.

        It returns when they have ended. A fold that is alive, here or elsewhere, is left alone.
        """
        ...

    async def close(self) -> None:
        """Stop: what is under way is given up, and said to be."""
        ...


def closed() -> InvalidInput:
    """What an engine raises that is used after it was closed."""
    return InvalidInput("The engine is closed.", "Make a new one over the same log.")
