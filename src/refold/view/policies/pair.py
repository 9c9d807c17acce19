"""Calls and returns in pairs, as the strictest provider wants them; on every request.

A call that nothing answers gets a stand-in. A return whose call is not there goes; one that came
after its call was closed is told as text where it came.
"""

from collections.abc import Container, Iterator

from refold.log import MAIN_SCOPE
from refold.view.board import Board, Proposal
from refold.view.sheet import Row
from refold.wire import Drop, Insert, Part

INTERRUPTED = "Interrupted by user."
UNFINISHED = "Not finished yet."
OPENING = "[The conversation begins here.]"
_LATE_CHARS = 2000


def pair(board: Board, start: int = 0) -> Iterator[Proposal]:
    """Repair what is shown from row `start` on, which begins a step."""
    waiting: dict[str | None, Part] = {}
    asked, step = 0, -1
    for at, row in enumerate(board.sheet.rows[start:], start):
        shown = board.shown(row)
        returns = [part for part in shown if part.kind == "return"]
        answers = returns and board.sheet.steps[at] == step  # what was said between may be gone
        if shown and (row.role == "assistant" or not answers):
            yield from _stand_ins(board, waiting, asked)
            waiting = {}
        for part in returns:
            if waiting.pop(part.call, None) is None:
                yield from _unasked(board, part, at)
        if row.role == "assistant" and shown:
            asked, step = row.seq, at
            calls = [part for part in shown if part.kind == "call"]
            yield from _asked(calls, waiting, _used(board, at))
    yield from _stand_ins(board, waiting, asked)


def opening(board: Board) -> Iterator[Insert]:
    """Words in the user's place where the model would seem to speak first."""
    first = next((row for row in board.shown_rows() if not _system(board, row)), None)
    if first is None or first.role != "assistant":
        return
    if not any(one.kind == "prompt" and one.before <= first.seq for one in board.inserts):
        yield Insert(first.seq, "prompt", OPENING, "opening")


def _system(board: Board, row: Row) -> bool:
    return all(part.kind == "system" for part in board.shown(row))


def _used(board: Board, at: int) -> Container[str | None]:
    """The call ids that a call in this row may not have again."""
    if not board.sheet.wire.unique_calls:
        return ()
    first = board.sheet.calls
    return {part.call for part in board.sheet.rows[at].parts if first.get(part.call, at) < at}


def _asked(
    calls: list[Part], waiting: dict[str | None, Part], used: Container[str | None]
) -> Iterator[Proposal]:
    for part in calls:
        if part.call in waiting or part.call in used:
            yield part, Drop("orphan")
        else:
            waiting[part.call] = part


def _stand_ins(board: Board, waiting: dict[str | None, Part], asked: int) -> Iterator[Insert]:
    text = INTERRUPTED if board.sheet.scope == MAIN_SCOPE else UNFINISHED
    for call, part in waiting.items():
        yield Insert(asked + 1, "return", text, "unanswered", part.tool, call, (part.ref,))


def _unasked(board: Board, part: Part, at: int) -> Iterator[Proposal]:
    """A return that answers nothing here; where it once had a call, its text is worth telling."""
    sheet = board.sheet
    told = sheet.unanswered.get(part.call, at) < at or part.call in _used(board, at)
    if not told:
        yield part, Drop("orphan")
        return
    yield part, Drop("late")
    text = sheet.text(part)[:_LATE_CHARS]
    tool = part.tool or sheet.tools.get(part.call)
    told = f"[Late result of {tool} ({part.call})]\n{text}"
    yield Insert(part.seq, "prompt", told, "late", sources=(part.ref,))
