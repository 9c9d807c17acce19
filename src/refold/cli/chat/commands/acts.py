"""What was done to a session last, so that it can be taken back, and brought back again.

Taking back, bringing back and unfolding are marked with a note in front of the entries that do it.
Who looks for the newest act looks past what was taken back, at what the session was gone back to.
"""

from collections.abc import AsyncIterator
from typing import Final, Literal, NamedTuple
from uuid import UUID

from refold.log import (
    CODEC,
    Author,
    Cleared,
    Entry,
    FoldCompleted,
    FoldStarted,
    FoldUndone,
    Log,
    Message,
    Note,
    Rewound,
    Span,
)

Kind = Literal["turn", "fold", "clear", "rewind", "unfold"]
Mark = Literal["undo", "redo", "unfold"]

_KEY: Final = "chat"
"""The key of a note's data that says what the entry after it does."""
_AT_ONCE: Final = 100
_WRITING: Final = frozenset(
    one.KIND for one in (Message, Cleared, Rewound, FoldCompleted, FoldUndone)
)
_UNFOLDING: Final = frozenset(one.KIND for one in (FoldCompleted, FoldUndone, FoldStarted))


class Act(NamedTuple):
    """Something that was done."""

    kind: Kind
    seq: int
    """Its first entry."""
    fold: UUID | None = None


async def newest_act(log: Log, session: str, standing: frozenset[UUID]) -> Act | None:
    """The newest act that still has an effect; `standing` are the folds that stand now."""
    at = await log.head(session)
    while at and (entry := await _newest(log, session, at)):
        at = entry.seq - 1
        match CODEC.decode(entry):
            case Message():
                return Act("turn", entry.seq)
            case Cleared():
                return Act("clear", entry.seq)
            case FoldCompleted(fold) if fold in standing and not _goes_on(entry):
                return Act("fold", entry.seq, fold)
            case Rewound(to):
                if not await marked(log, session, entry.seq):
                    return Act("rewind", entry.seq)
                at = to
            case FoldUndone() if await marked(log, session, entry.seq) != "undo":
                return Act("unfold", await _begin(log, session, entry.seq))
            case _:
                pass
    return None


async def newest_undo(log: Log, session: str) -> int | None:
    """The entry that took something back, if nothing was done since."""
    at = await log.head(session)
    while at and (entry := await _newest(log, session, at)):
        mark = await marked(log, session, entry.seq)
        if mark == "undo":
            return entry.seq
        match CODEC.decode(entry):
            case Rewound(to) if mark == "redo":
                at = to
            case _:
                return None
    return None


async def mark(log: Log, session: str, what: Mark, words: str) -> None:
    """Say what the next entries do; a mark also parts them from those before."""
    note = Note(words, {_KEY: what})
    await log.append(session, [Author().draft(note)], expected=None)


async def marked(log: Log, session: str, seq: int) -> Mark | None:
    """What the note in front of an entry says."""
    for entry in await log.read(session, Span(seq - 1, seq - 1)) if seq > 1 else []:
        match CODEC.decode(entry):
            case Note(data={"chat": "undo" | "redo" | "unfold" as what}):
                return what
            case _:
                pass
    return None


async def _newest(log: Log, session: str, at: int) -> Entry | None:
    async for entry in backwards(log, session, at):
        if entry.kind in _WRITING:
            return entry
    return None


async def backwards(log: Log, session: str, at: int) -> AsyncIterator[Entry]:
    """The entries up to `at`, the newest first, read a little at a time."""
    while at >= 1:
        first = max(1, at - _AT_ONCE + 1)
        for entry in reversed(await log.read(session, Span(first, at))):
            yield entry
        at = first - 1


async def _begin(log: Log, session: str, seq: int) -> int:
    """The first of the entries that opened a fold: they stand side by side, after a mark."""
    async for entry in backwards(log, session, seq):
        if entry.kind not in _UNFOLDING or (
            entry.kind == FoldCompleted.KIND and not _goes_on(entry)
        ):
            break
        seq = entry.seq
    return seq


def _goes_on(entry: Entry) -> bool:
    """Whether a fold goes on in the place of one that was opened in part."""
    match CODEC.decode(entry):
        case FoldCompleted(summary={"continues": int()}):
            return True
        case _:
            return False
