"""After a provider refused a request for its length: old turns go, and what is long is cut hard.

The latest prompt stays as it was said. What is cut stays cut in later requests.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from refold.view.board import Board, Proposal, Withdraw
from refold.view.policies.trim import trim
from refold.view.policy_values import Trim
from refold.view.profiles import Profile
from refold.view.row import Row
from refold.wire import Drop, Part, Replace


def emergency(board: Board, profile: Profile, refused: int) -> Iterator[Proposal]:
    """Propose what the profile's emergency values take out or cut.

    What was refused once more keeps nothing but the latest prompt.
    """
    values, sheet = profile.emergency, board.sheet
    if refused > 1:
        yield from _dropped(board, (row for at, row in enumerate(sheet.rows) if at != sheet.prompt))
        return
    if values.turns:
        yield from _older(board, values.turns)
    if values.result_chars:
        update = {"max_chars": values.result_chars, "protect": "last", "last": 0}
        for part, change in trim(board, profile.trim.model_copy(update=update)):
            yield part, replace(change, reason="emergency")
    if values.user_chars:
        yield from _prompts(board, values.user_chars, profile.trim)


def untold(board: Board) -> list[Withdraw]:
    """What was delegated in turns that went is no longer told."""
    gone = [row.seq for row in board.sheet.rows if board.lost(row, "emergency")]
    last = gone[-1] if gone else 0
    told = (one for one in board.inserts if one.reason == "delegated")
    return [Withdraw(one) for one in told if one.before <= last]


def _older(board: Board, turns: int) -> Iterator[tuple[Part, Drop]]:
    """All but the newest turns."""
    rows, starts = board.sheet.rows, board.sheet.turns
    there = [at for at in starts if any(part.kind == "prompt" for part in board.shown(rows[at]))]
    return _dropped(board, rows[: there[-turns]] if len(there) > turns else ())


def _dropped(board: Board, rows: Iterable[Row]) -> Iterator[tuple[Part, Drop]]:
    for row in rows:
        for part in row.parts:
            if not board.held(part) and not isinstance(board.change(part), Drop):
                yield part, Drop("emergency")


def _prompts(board: Board, most: int, values: Trim) -> Iterator[tuple[Part, Replace]]:
    """Long prompts but the latest, cut to both of their ends."""
    latest = board.sheet.prompt
    for at, row in enumerate(board.sheet.rows):
        for part in row.parts if at != latest else ():
            if part.kind == "prompt" and part.chars > most and board.free(part):
                mark = values.marker.replace("{length}", str(part.chars))
                if most + len(mark) < part.chars:
                    yield part, Replace(most - most // 2, mark, most // 2, "emergency")
