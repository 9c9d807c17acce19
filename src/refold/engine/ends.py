"""What the log says of a fold: whether it is running, and how it ended."""

from collections.abc import Iterable
from uuid import UUID

from refold.engine.protocol import Ended
from refold.log import (
    CODEC,
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
