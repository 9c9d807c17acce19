"""Undoing folds, whole or in part: entries to append, since nothing is ever removed."""

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
"""The trigger of a fold that replaces a partly opened one."""


def undo_fold(outline: Outline, fold: UUID | None = None) -> list[Value]:
    """Undo this fold, or the newest."""
    folds = sorted(outline.folds, key=lambda folded: folded.seq)
    if not folds:
        raise InvalidInput("No fold is in effect.", "There is nothing to undo.")
    return [FoldUndone(folds[-1].fold if fold is None else fold)]


async def unfold_span(  # noqa: PLR0913, PLR0917 - the last has a default
    log: Log,
    session: str,
    outline: Outline,
    span: Span,
    new_id: Callable[[], UUID],
    weigh: Callable[[bytes], int] = lambda _: 0,
) -> list[Value]:
    """Open one span again; its folds keep standing for the rest of their messages.

    `weigh` gives the tokens of a message. Rarely, a fold beneath that the outline does not list
    then stands for the span: call this again with the new outline.
    """
    unfolding = _Unfolding(log, session, span, new_id, weigh)
    values: list[Value] = []
    for fold in outline.folds:
        if intersect(fold.spans, (span,)):
            others = [part for other in outline.folds if other is not fold for part in other.spans]
            values += await unfolding.open(fold.seq, others)
    if not values:
        raise InvalidInput(
            f"No fold replaces entries {span.first} to {span.last}.",
            "`refold explain` shows which entries are folded.",
        )
    return values


class _Unfolding:
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

    async def open(self, seq: int, others: Iterable[Span]) -> list[Value]:
        """Undo one fold and those beneath it that hide the span; a new fold covers the rest.

        `others` are the spans of the outline's other folds.
        """
        completed = await self._completed(seq)
        if completed is None:
            return []
        undone, below = await self._undo_below(completed)
        values: list[Value] = [FoldUndone(completed.fold), *undone]
        rest = subtract(union(completed.spans), (self._span, *others))
        if rest:
            fold = self._new_id()
            summary = await self._rest_of(completed)
            if isinstance(summary, dict):
                summary |= {"over": [*below], "continues": summary.get("continues") or seq}
            values.append(FoldStarted(fold, rest, UNFOLD))
            values.append(FoldCompleted(fold, rest, summary))
        return values

    async def _undo_below(self, completed: FoldCompleted) -> tuple[list[Value], list[int]]:
        """What undoes the folds beneath that hide the span, and the folds that stay beneath."""
        undone: list[Value] = []
        stay: list[int] = []
        for seq in parse(completed.summary).over:
            below = await self._completed(seq)
            if below is None:
                continue
            if not intersect(below.spans, (self._span,)):
                stay.append(seq)
                continue
            values, others = await self._undo_below(below)
            undone += [FoldUndone(below.fold), *values]
            stay += others
        return undone, stay

    async def _rest_of(self, completed: FoldCompleted) -> JsonValue:
        """The summary, with the counts of what stays folded."""
        match completed.summary:
            case str(text):
                return {"text": text}
            case {"messages": int(messages), "tokens": int(tokens)}:
                opened = await self._opened_messages(completed.spans)
                return {
                    **completed.summary,
                    "messages": max(0, messages - len(opened)),
                    "tokens": max(0, tokens - sum(map(self._weigh, opened))),
                }
            case dict() as summary:
                return {**summary}
            case other:
                return other

    async def _opened_messages(self, spans: Iterable[Span]) -> list[bytes]:
        payloads: list[bytes] = []
        for span in intersect(spans, (self._span,)):
            for entry in await self._log.read(self._session, span):
                match CODEC.decode(entry):
                    case Message(payload):
                        payloads.append(payload)
                    case _:
                        pass
        return payloads

    async def _completed(self, seq: int) -> FoldCompleted | None:
        for entry in await self._log.read(self._session, Span(seq, seq)):
            value = CODEC.decode(entry)
            if isinstance(value, FoldCompleted):
                return value
        return None
