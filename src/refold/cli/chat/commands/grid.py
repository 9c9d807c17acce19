"""The window as a grid: each cell a share of it, by what fills it."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from refold.view import Explanation
from refold.view.columns import Piece, Tone
from refold.view.explained import Told

ROWS: Final = 10
COLUMNS: Final = 20

_YOURS, _ANSWERS, _THOUGHTS, _TOOLS, _ADDED = "yours", "answers", "thoughts", "tools", "added"
_OF_KIND: Final = {
    "prompt": _YOURS,
    "text": _ANSWERS,
    "thought": _THOUGHTS,
    "call": _TOOLS,
    "return": _TOOLS,
}


class Share(NamedTuple):
    """Something that takes up tokens of the window."""

    name: str
    tokens: int
    mark: str
    """One column wide, and another for each kind: colours alone are not for everybody."""
    tone: Tone
    always: bool = False
    """Whether it is told even when there is none of it."""


def shares_of(found: Explanation) -> list[Share]:
    """What fills the window, and what is left; together they are the window, or what exceeds it."""
    account, talk = found.account, _talk(found)
    folds = _folds(found)
    above = found.window - account.reserve - account.limit
    free = found.window - account.sent - account.headroom - account.reserve - max(0, above)
    wanted = [
        Share("system instructions", account.system, "▓", "system", always=True),
        Share("tool definitions", account.tools, "▒", "tools", always=True),
        Share("folds (summaries)", folds, "≡", "folded", always=True),
        Share("your messages", talk[_YOURS], "█", "conversation", always=True),
        Share("answers", talk[_ANSWERS], "▆", "kept", always=True),
        Share("thoughts", talk[_THOUGHTS], "▂", "faint"),
        Share("tool calls and results", talk[_TOOLS], "▞", "archived", always=True),
        Share("added by Refold", talk[_ADDED], "+", "inserted"),
        Share("if we count too low", account.headroom, "░", "headroom"),
        Share("free", max(0, free), "·", "free", always=True),
        Share("kept for the answer", account.reserve, "▚", "reserve"),
        Share("above your limit", max(0, above), "-", "faint"),
    ]
    return [one for one in wanted if one.tokens or one.always]


def cells_of(tokens: Sequence[int], count: int) -> list[int]:
    """So many cells shared out by tokens; what is there at all has one at least."""
    whole = sum(tokens)
    if not whole:
        return [0] * len(tokens)
    cells = [max(1, one * count // whole) if one else 0 for one in tokens]
    while sum(cells) < count:
        missing = [one * count / whole - has for one, has in zip(tokens, cells, strict=True)]
        cells[missing.index(max(missing))] += 1
    while sum(cells) > count:
        cells[cells.index(max(cells))] -= 1
    return cells


def grid(shares: Sequence[Share], rows: int = ROWS, columns: int = COLUMNS) -> list[list[Piece]]:
    """The rows of the grid, each cell two columns wide."""
    counts = cells_of([one.tokens for one in shares], rows * columns)
    cells = [one for one, count in zip(shares, counts, strict=True) for _ in range(count)]
    lines = (cells[first : first + columns] for first in range(0, len(cells), columns))
    return [[Piece(f"{one.mark} ", one.tone) for one in line] for line in lines]


def _talk(found: Explanation) -> dict[str, int]:
    """The tokens of the conversation beside its folds, by who said it."""
    talk: dict[str, int] = dict.fromkeys((_YOURS, _ANSWERS, _THOUGHTS, _TOOLS, _ADDED), 0)
    for part in _sent(found):
        if part.kind != "system":
            talk[_OF_KIND.get(part.kind, _ANSWERS)] += part.after - _merged(part)
    for one in found.inserts:
        if one.reason != "summary":
            talk[_TOOLS if one.kind == "return" else _ADDED] += one.tokens
    # What a message costs beside its parts may be counted with system content.
    left = found.account.conversation - sum(talk.values()) - _folds(found)
    talk[_YOURS] = max(0, talk[_YOURS] + left)
    return talk


def _folds(found: Explanation) -> int:
    own = sum(one.tokens for one in found.inserts if one.reason == "summary")
    return own + sum(map(_merged, _sent(found)))


def _merged(part: Told) -> int:
    """What a summary takes up that stands in front of this prompt."""
    return max(0, part.after - part.before) if part.disposition.reason == "summary" else 0


def _sent(found: Explanation) -> Iterator[Told]:
    return (part for line in found.lines for part in line.parts if part.after)
