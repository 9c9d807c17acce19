"""The engine protocol: run folds, one at a time per session, without losing any.

An engine records its work in the log: a `FoldStarted`, then exactly one `FoldCompleted` or
`FoldFailed`. The functions below read a fold's state from the log, so they work with any engine.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from pydantic import JsonValue

from refold.engine.locks import retry_shielded
from refold.errors import InvalidEntry, InvalidInput, RefoldError
from refold.fold.job import Job
from refold.fold.secrets import without_secrets
from refold.log import (
    CODEC,
    Author,
    Draft,
    Entry,
    FoldCompleted,
    FoldFailed,
    FoldStarted,
    Forgotten,
    Log,
    Running,
    Span,
)

FORGOTTEN = "forgotten"
CANCELLED = "cancelled"
INTERRUPTED = "interrupted"
MAX_REASON_CHARS = 300
_MAX_SCANNED_CHARS = 4_000
_END_KINDS = frozenset({FoldCompleted.KIND, FoldFailed.KIND})
_PAGE = 500


@dataclass(frozen=True, slots=True)
class Ended:
    """How a fold ended: its summary is in the log, or why it is not."""

    fold: UUID
    seq: int
    """The log entry that records the end."""
    summary: JsonValue = None
    reason: str | None = None
    """Why it failed; None when it was completed."""

    @property
    def completed(self) -> bool:
        """Whether the fold now replaces its spans."""
        return self.reason is None


class Engine(Protocol):
    """Runs the folds of one tenant's sessions."""

    async def start(self, job: Job) -> bool:
        """Start a fold without waiting for it; False when it was not started.

        A fold is not started while another one runs in that session, or when one was completed
        since the job's `head`: read the session again and plan a new job. Starting the same fold
        again changes nothing and returns True, even after it has ended, unless another one runs.

        Raises InvalidEntry when the spans are not on the session's line.
        """
        ...

    async def wait(self, session: str, fold: UUID, timeout: float | None = None) -> Ended | None:  # noqa: ASYNC109 - its callers would all wrap it
        """How the fold ended; None when it has not within `timeout` seconds, or was never started.

        A fold whose process died is finished here, so the wait always ends.
        """
        ...

    async def cancel(self, session: str, fold: UUID) -> Ended | None:
        """Cancel the fold, wherever it runs; None when it was never started.

        A fold that was completed in the meantime stays completed.
        """
        ...

    async def recover(self, session: str) -> tuple[Ended, ...]:
        """Finish or close the folds whose process died; called when a session is opened.

        Returns when they have ended. Folds that are still running, here or elsewhere, are not
        touched.
        """
        ...

    async def close(self) -> None:
        """Stop: running folds are canceled, and the log says so."""
        ...


def engine_closed() -> InvalidInput:
    return InvalidInput("The engine is closed.", "Make a new one over the same log.")


async def running(log: Log, session: str) -> tuple[Running, ...]:
    """The folds that were started and have not ended."""
    return (await log.outlined(session)).outline.running


async def end_of(log: Log, session: str, fold: UUID) -> Ended | None:
    """How a fold ended; None when it has not, or was never started.

    Searches from the newest entry back to the fold's start.
    """
    last = await log.head(session)
    while last > 0:
        first = max(1, last - _PAGE + 1)
        entries = await log.read(session, Span(first, last), whole=False)
        ended = await _find_end(log, session, fold, entries)
        if ended or any(_is_start(entry, fold) for entry in entries):
            return ended
        last = first - 1
    return None


async def _find_end(log: Log, session: str, fold: UUID, entries: Iterable[Entry]) -> Ended | None:
    for entry in entries:
        # The entries come without large bodies, so only a likely match is read whole.
        if entry.kind in _END_KINDS and (entry.holes or str(fold).encode() in entry.body):
            for whole in await log.read(session, Span(entry.seq, entry.seq)):
                if (ended := decode_end(whole, entry.seq)) and ended.fold == fold:
                    return ended
    return None


def decode_end(entry: Draft | Entry, seq: int) -> Ended | None:
    match CODEC.decode(entry):
        case FoldCompleted(fold, summary=summary):
            return Ended(fold, seq, summary=summary)
        case FoldFailed(fold, reason):
            return Ended(fold, seq, reason=reason)
        case Forgotten(kept={"fold": str(fold)}):
            return Ended(UUID(fold), seq, reason=FORGOTTEN)
        case _:
            return None


def _is_start(entry: Entry, fold: UUID) -> bool:
    return entry.kind == FoldStarted.KIND and (entry.id == fold or str(fold).encode() in entry.body)


def reason_of(error: BaseException) -> str:
    """The error's type and message, on one short line with secrets redacted: the log keeps it."""
    if isinstance(error, RefoldError):
        message = error.what
    else:
        try:
            message = str(error).encode(errors="replace").decode()
        except Exception:  # noqa: BLE001 - an error whose __str__ fails is still an error
            message = ""
    message = " ".join(without_secrets(message[:_MAX_SCANNED_CHARS]).split())
    text = f"{type(error).__name__}: {message}" if message else type(error).__name__
    return text if len(text) <= MAX_REASON_CHARS else f"{text[: MAX_REASON_CHARS - 1]}…"


class FoldWatcher:
    """Polls the log for a running fold's end, reading each entry once."""

    def __init__(self, log: Log, session: str, fold: Running) -> None:
        self._log = log
        self._session = session
        self._fold = fold.fold
        self._last_read = fold.seq

    async def poll(self) -> Ended | None:
        head = await self._log.head(self._session)
        if head <= self._last_read:
            return None
        span = Span(self._last_read + 1, head)
        entries = await self._log.read(self._session, span, whole=False)
        self._last_read = head
        return await _find_end(self._log, self._session, self._fold, entries)


async def wait_for(
    log: Log,
    session: str,
    fold: UUID,
    watch: Callable[[str, Running], Awaitable[Ended]],
    until: float | None,
) -> Ended | None:
    """How a fold ended; None when it has not by `until` (loop time), or was never started.

    `watch` is the engine's own way to follow a running fold to its end.
    """
    for entry in await running(log, session):
        if entry.fold == fold:
            try:
                async with asyncio.timeout_at(until):
                    return await watch(session, entry)
            except TimeoutError:
                return None
    return await end_of(log, session, fold)


async def log_cancellation(log: Log, session: str, fold: UUID, author: Author) -> Ended | None:
    """Record in the log that the fold was canceled; None when it is no longer running."""
    draft = author.draft(FoldFailed(fold, CANCELLED))
    try:
        appended = await retry_shielded(lambda: log.append(session, [draft], expected=None))
    except InvalidEntry:
        return None
    return Ended(fold, appended.first, reason=CANCELLED)
