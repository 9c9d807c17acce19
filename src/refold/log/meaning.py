"""Whether a control entry has a meaning where it would be placed."""

from collections.abc import Iterable
from uuid import UUID

from refold.errors import InvalidEntry
from refold.log.entry import Entry
from refold.log.kinds import (
    FoldCompleted,
    FoldFailed,
    FoldStarted,
    FoldUndone,
    Pinned,
    Rewound,
    Unpinned,
)
from refold.log.outline import Outline
from refold.log.replaying import effect
from refold.log.span import Span, subtract


def check_meaning(outline: Outline, entry: Entry, controls: Iterable[Entry]) -> None:
    """Refuse a control entry that has no meaning where it would be placed."""
    head = entry.seq - 1
    match effect(entry):
        case Rewound(to) if not 1 <= to <= head:
            raise InvalidEntry(f"Nothing is at {to}: the session has entries 1 to {head}.")
        case Pinned(parts) | Unpinned(parts) if any(part.seq > head for part in parts):
            raise InvalidEntry(f"A pinned part is beyond the head, {head}.")
        case FoldStarted(fold, spans):
            if any(running.fold == fold for running in outline.running):
                raise InvalidEntry(f"Fold {fold} has started already.")
            if not entry.forgotten:
                _check_spans(outline, head, spans)
        case FoldCompleted(fold, spans):
            _check_running(outline, fold)
            _check_spans(outline, head, spans)
        case FoldFailed(fold):
            _check_running(outline, fold)
        case FoldUndone(fold):
            _check_standing(outline, fold, controls)
        case _:
            pass


def _check_standing(outline: Outline, fold: UUID, controls: Iterable[Entry]) -> None:
    if any(one.fold == fold for one in outline.folds):
        return
    for entry in controls:  # one that is forgotten stands no more, but may have when this was said
        if (
            entry.kind == FoldCompleted.KIND
            and entry.forgotten
            and str(fold) in entry.body.decode()
        ):
            return
    raise InvalidEntry(
        f"Fold {fold} does not stand in the view.",
        "Take back the folds that stand over it first.",
    )


def _check_running(outline: Outline, fold: UUID) -> None:
    if not any(running.fold == fold for running in outline.running):
        raise InvalidEntry(
            f"Fold {fold} is not running: it was never started, or has ended.",
            "End each started fold once.",
        )


def _check_spans(outline: Outline, head: int, spans: tuple[Span, ...]) -> None:
    if not spans or subtract(spans, outline.on_line(head)):
        raise InvalidEntry(
            "The fold would stand for entries that are not on the session's line.",
            "Read the session again and fold what its view holds now.",
        )
