"""Folds that somebody asks for: what they stand for, and what came of them."""

from dataclasses import dataclass
from uuid import UUID

from refold.engine import Ended
from refold.engine.reason import CANCELLED
from refold.errors import FoldCancelled, FoldNotMade
from refold.fold.boundary import Boundary, boundary, everything
from refold.fold.events import CompactionComplete
from refold.fold.summary import Summary, parse
from refold.log import MAIN_SCOPE
from refold.view import Fold, Keep, Sheet


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a fold that was asked for did."""

    fold: UUID
    messages_removed: int
    tokens_removed: int
    summary: Summary
    checkpoint: int | None = None
    """The number of its checkpoint, where those are written."""
    checkpoint_path: str | None = None


def asked_for(sheet: Sheet, values: Fold, least: int, *, everything_too: bool) -> Boundary:
    """What a fold that is asked for would stand for: all but the last turn.

    Where there is only one turn, or a profile shows nothing beside its summary: all of it, once
    the turn is over.
    """
    if len(sheet.rows) < least or sheet.scope != MAIN_SCOPE:
        return Boundary()
    over = bool(sheet.rows) and sheet.rows[-1].role == "assistant"
    over = over and not any(sheet.rows[at].has("call") for at in sheet.step(sheet.steps[-1]))
    alone = values.placement == "message" or len(sheet.turns) < 2  # noqa: PLR2004 - one turn
    if everything_too and over and alone:
        return everything(sheet)
    keep = values.keep.model_copy(update={"unit": "turns", "amount": 0, "least": 1})
    found = boundary(sheet, keep)
    return found if found.messages else boundary(sheet, Keep())


def compacted(fold: UUID, ended: Ended | None, event: CompactionComplete | None) -> Compacted:
    """What came of it. Raises FoldCancelled or FoldNotMade where nothing did."""
    if ended is None or not ended.completed or event is None or event.request_id != str(fold):
        reason = ended.reason if ended and ended.reason else "it came to no end"
        if reason == CANCELLED:
            raise FoldCancelled("The fold was cancelled.")
        raise FoldNotMade(f"The fold could not be made: {reason}.")
    return Compacted(
        fold,
        event.messages_removed,
        event.tokens_removed,
        parse(ended.summary),
        event.checkpoint,
        event.checkpoint_path,
    )
