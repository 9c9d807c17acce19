"""Taking folds back, whole or in part: entries to append, for nothing is ever removed."""

from collections.abc import Callable, Iterable
from uuid import UUID

from pydantic import JsonValue

from refold.errors import InvalidInput
from refold.fold.summary import parse
from refold.log import (
    CODEC,
    FoldCompleted,
    FoldStarted,
    FoldUndone,
    Log,
    Message,
    Outline,
    Span,
    Value,
)
from refold.log.entry import intersect, subtract, union

UNFOLD = "unfold"
"""The trigger of a fold that stands for what another stood for, but for what was opened."""


def undo_fold(outline: Outline, fold: UUID | None = None) -> list[Value]:
    """The fold no longer stands: this one, or the newest."""
    standing = sorted(outline.folds, key=lambda one: one.seq)
    if not standing:
        raise InvalidInput("No fold stands in the view.", "There is nothing to take back.")
    return [FoldUndone(standing[-1].fold if fold is None else fold)]


async def unfold_span(  # noqa: PLR0913, PLR0917 - the last has a default
    log: Log,
    session: str,
    outline: Outline,
    span: Span,
    new_id: Callable[[], UUID],
    weigh: Callable[[bytes], int] = lambda _: 0,
) -> list[Value]:
    """Open one span again; the folds over it go on standing for the rest.

    `weigh` says what a message would cost in a request. Once in a while a fold that was not known
    to lie beneath comes to stand for the span: then ask again.
    """
    unfolding = _Unfolding(log, session, span, new_id, weigh)
    values: list[Value] = []
    for fold in outline.folds:
        if intersect(fold.spans, (span,)):
            others = [one for other in outline.folds if other is not fold for one in other.spans]
            values += await unfolding.opened(fold.seq, others)
    if not values:
        raise InvalidInput(
            f"No fold stands for entries {span.first} to {span.last}.",
            "`refold explain` shows which entries are folded.",
        )
    return values


class _Unfolding:
    """Opens one span of one session."""

    def __init__(
        self,
        log: Log,
        session: str,
        span: Span,
        new_id: Callable[[], UUID],
        weigh: Callable[[bytes], int],
    ) -> None:
        self._log = log
        self._session = session
        self._span = span
        self._new_id = new_id
        self._weigh = weigh

    async def opened(self, seq: int, others: Iterable[Span]) -> list[Value]:
        """One fold opened, with those beneath it; another goes on for its own part of the rest."""
        completed = await self._completed(seq)
        if completed is None:
            return []
        values: list[Value] = [FoldUndone(completed.fold)]
        undone, below = await self._beneath(completed)
        values += undone
        rest = subtract(union(completed.spans), (self._span, *others))
        if rest:
            fold = self._new_id()
            told = await self._told(completed)
            summary = _continued(told, seq, below) if isinstance(told, dict) else told
            values.append(FoldStarted(fold, rest, UNFOLD))
            values.append(FoldCompleted(fold, rest, summary))
        return values

    async def _beneath(self, completed: FoldCompleted) -> tuple[list[Value], list[int]]:
        """Take back the folds beneath that would hide the span; the others, which stay beneath."""
        undone: list[Value] = []
        stay: list[int] = []
        for seq in parse(completed.summary).over:
            below = await self._completed(seq)
            if below is None:
                continue
            if not intersect(below.spans, (self._span,)):
                stay.append(seq)
                continue
            values, others = await self._beneath(below)
            undone += [FoldUndone(below.fold), *values]
            stay += others
        return undone, stay

    async def _told(self, completed: FoldCompleted) -> JsonValue:
        """The summary, standing for what is not opened only."""
        match completed.summary:
            case str(text):
                return {"text": text}
            case {"messages": int(messages), "tokens": int(tokens)}:
                opened = await self._opened_messages(completed.spans)
                left = max(0, tokens - sum(map(self._weigh, opened)))
                fewer = max(0, messages - len(opened))
                return {**completed.summary, "messages": fewer, "tokens": left}
            case other:
                return other

    async def _opened_messages(self, spans: Iterable[Span]) -> list[bytes]:
        found: list[bytes] = []
        for span in intersect(spans, (self._span,)):
            for entry in await self._log.read(self._session, span):
                match CODEC.decode(entry):
                    case Message(payload):
                        found.append(payload)
                    case _:
                        pass
        return found

    async def _completed(self, seq: int) -> FoldCompleted | None:
        for entry in await self._log.read(self._session, Span(seq, seq)):
            match CODEC.decode(entry):
                case FoldCompleted() as value:
                    return value
                case _:
                    pass
        return None


def _continued(told: dict[str, JsonValue], seq: int, below: list[int]) -> JsonValue:
    """The summary of a fold for the one that goes on in its place."""
    return {**told, "over": [*below], "continues": told.get("continues") or seq}
