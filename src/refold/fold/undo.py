"""Undoing and correcting folds: entries to append, since nothing is ever removed."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final
from uuid import UUID

from pydantic import JsonValue

from refold.errors import InvalidInput
from refold.fold.summary import HAND, Summary, SummaryMessage, parse
from refold.log import (
    CODEC,
    Author,
    Entry,
    FoldCompleted,
    FoldStarted,
    FoldUndone,
    Log,
    Message,
    Outline,
    Span,
    Value,
)
from refold.log.entry import intersect, placed, subtract, union
from refold.log.outline import CONTROL_KINDS, Replay
from refold.view.framing import plain

_AT_ONCE: Final = 1_000  # entries that are read in one call
UNFOLD = "unfold"
"""The trigger of a fold that replaces a partly opened one."""
EDIT = "edit"
"""The trigger of a fold whose summary a person wrote in place of another one's."""
EDITED: Final = (
    "[{count} earlier messages are replaced by these words of the user, who corrected their "
    "summary]\n{text}"
)


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


async def edit_summary(  # noqa: PLR0913, PLR0917 - all that it depends on
    log: Log, session: str, outline: Outline, fold: UUID, text: str, new_id: Callable[[], UUID]
) -> list[Value]:
    """Put a person's words in the place of a fold's summary: a new fold supersedes the old one.

    Names, values and reads of the log stay with it, since the next fold chooses among them; what
    a model claimed goes.
    """
    seq = next((each.seq for each in outline.folds if each.fold == fold), 0)
    completed = await _completed(log, session, seq) if seq else None
    if completed is None:
        raise InvalidInput(
            "No such fold is in effect.",
            "A fold that another one took in, or that was undone, cannot be edited.",
        )
    spans, new = union(completed.spans), new_id()
    summary = _in_words(parse(completed.summary), plain(text.strip()))
    return [
        FoldUndone(fold),
        FoldStarted(new, spans, EDIT),
        FoldCompleted(new, spans, summary.as_json()),
    ]


def _in_words(summary: Summary, words: str) -> Summary:
    shown = SummaryMessage("prompt", EDITED.format(count=summary.messages, text=words))
    replies = (message for message in summary.shown if message.kind == "reply")
    return replace(
        summary,
        by=HAND,
        words=words,
        sections=(),
        report=None,
        usage={},
        cost=None,
        request="",
        shown=(shown, *replies),
        for_delegates=None,
    )


async def _completed(log: Log, session: str, seq: int) -> FoldCompleted | None:
    for entry in await log.read(session, Span(seq, seq)):
        value = CODEC.decode(entry)
        if isinstance(value, FoldCompleted):
            return value
    return None


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
        completed = await _completed(self._log, self._session, seq)
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
        """What undoes the folds beneath that hide the span, and the folds that stay beneath.

        Another process may have undone some of those beneath, or made others, while this one was
        made. So it is played through what stands when it is gone.
        """
        if not parse(completed.summary).over:
            return [], []
        head, controls = await self._controls()
        replay, undone = Replay(controls), [FoldUndone(completed.fold)]
        before = {folded.fold for folded in replay.outline.folds}
        while True:
            replay.take(placed(Author().draft(undone[-1]), head + len(undone)))
            revealed = [each for each in replay.outline.folds if each.fold not in before]
            hiding = [each.fold for each in revealed if intersect(each.spans, (self._span,))]
            if not hiding:
                return [*undone[1:]], [each.seq for each in revealed]
            undone.append(FoldUndone(hiding[0]))

    async def _controls(self) -> tuple[int, list[Entry]]:
        """The session's head, and its control entries."""
        head = await self._log.head(self._session)
        controls: list[Entry] = []
        for first in range(1, head + 1, _AT_ONCE):
            span = Span(first, min(head, first + _AT_ONCE - 1))
            entries = await self._log.read(self._session, span)
            controls += (entry for entry in entries if entry.kind in CONTROL_KINDS)
        return head, controls

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
