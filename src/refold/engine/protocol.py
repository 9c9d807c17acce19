"""What an engine does: it runs folds, one at a time for each session, and loses none.

An engine writes what it does to the log: a `FoldStarted` when it begins, then one `FoldCompleted`
or `FoldFailed`. Whoever wants to know how a fold stands reads the log.
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


# What the log says of a fold: whether it is running, and how it ended.

FORGOTTEN = "forgotten"
_ENDS = frozenset({FoldCompleted.KIND, FoldFailed.KIND})
_AT_ONCE = 500


async def running(log: Log, session: str) -> tuple[Running, ...]:
    """The folds that were started and have not ended."""
    return (await log.outlined(session)).outline.running


async def end_of(log: Log, session: str, fold: UUID) -> Ended | None:
    """How a fold ended; None when it has not, or was never started.

    It looks from the newest entry back, as far as the fold's start.
    """
    last = await log.head(session)
    while last > 0:
        first = max(1, last - _AT_ONCE + 1)
        entries = await log.read(session, Span(first, last), whole=False)
        ended = await end_among(log, session, fold, entries)
        if ended or any(_starts(entry, fold) for entry in entries):
            return ended
        last = first - 1
    return None


async def end_among(log: Log, session: str, fold: UUID, entries: Iterable[Entry]) -> Ended | None:
    """How a fold ended, if one of these entries says so; they may come without large bodies."""
    for entry in entries:
        if entry.kind in _ENDS and (entry.holes or str(fold).encode() in entry.body):
            there = await log.read(session, Span(entry.seq, entry.seq))
            for whole in there:
                if ended := _ended(whole, fold):
                    return ended
    return None


def ended_by(draft: Draft, seq: int) -> Ended | None:
    """How a fold ended whose end was just written there."""
    match CODEC.decode(draft):
        case FoldCompleted(fold, summary=summary):
            return Ended(fold, seq, summary=summary)
        case FoldFailed(fold, reason):
            return Ended(fold, seq, reason=reason)
        case _:
            return None


def _starts(entry: Entry, fold: UUID) -> bool:
    return entry.kind == FoldStarted.KIND and (entry.id == fold or str(fold).encode() in entry.body)


def _ended(entry: Entry, fold: UUID) -> Ended | None:
    match CODEC.decode(entry):
        case FoldCompleted(fold=one, summary=summary) if one == fold:
            return Ended(fold, entry.seq, summary=summary)
        case FoldFailed(fold=one, reason=reason) if one == fold:
            return Ended(fold, entry.seq, reason=reason)
        case Forgotten(kept={"fold": one}) if one == str(fold):
            return Ended(fold, entry.seq, reason=FORGOTTEN)
        case _:
            return None


# Why a fold failed, in words that may stay in the log for good.

CANCELLED = "cancelled"
INTERRUPTED = "interrupted"
LONGEST = 300
_LOOKED_AT = 4_000


def reason_of(error: BaseException) -> str:
    """The error's type and what it says, on one short line, without what looks like a secret."""
    said = " ".join(without_secrets(_said(error)[:_LOOKED_AT]).split())
    text = f"{type(error).__name__}: {said}" if said else type(error).__name__
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _said(error: BaseException) -> str:
    if isinstance(error, RefoldError):
        return error.what
    try:
        return str(error).encode(errors="replace").decode()
    except Exception:  # noqa: BLE001 - an error that cannot be told is still an error
        return ""


# Waiting for a fold that runs somewhere, and giving it up: the same for every engine.


class Lookout:
    """Looks, again and again, whether a running fold has ended; what was read is not read again."""

    def __init__(self, log: Log, session: str, one: Running) -> None:
        self._log = log
        self._session = session
        self._fold = one.fold
        self._seen = one.seq

    async def ended(self) -> Ended | None:
        """How the fold ended, if an entry since the last look says so."""
        head = await self._log.head(self._session)
        if head <= self._seen:
            return None
        newer = Span(self._seen + 1, head)
        entries = await self._log.read(self._session, newer, whole=False)
        self._seen = head
        return await end_among(self._log, self._session, self._fold, entries)


async def wait_for(
    log: Log,
    session: str,
    fold: UUID,
    watch: Callable[[str, Running], Awaitable[Ended]],
    until: float | None,
) -> Ended | None:
    """How a fold ended; None when it has not by then (the loop's time), or was never started.

    `watch` is the engine's own way to see a running fold to its end.
    """
    for one in await running(log, session):
        if one.fold == fold:
            try:
                async with asyncio.timeout_at(until):
                    return await watch(session, one)
            except TimeoutError:
                return None
    return await end_of(log, session, fold)


async def give_up(log: Log, session: str, fold: UUID, author: Author) -> Ended | None:
    """Say in the log that the fold was cancelled; None when it is not running any more."""
    draft = author.draft(FoldFailed(fold, CANCELLED))
    try:
        done = await retry_shielded(lambda: log.append(session, [draft], expected=None))
    except InvalidEntry:
        return None
    return Ended(fold, done.first, reason=CANCELLED)
