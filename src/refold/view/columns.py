"""Text in the columns of a terminal: how wide it is, cut to a width, broken into lines.

Whatever was said may be shown, so everything that could move the cursor, colour the screen or turn
the direction of writing is taken out first.
"""

import unicodedata
from functools import lru_cache
from itertools import islice
from typing import Final, Literal, NamedTuple

Tone = Literal[
    "",
    "strong",
    "faint",
    "kept",
    "cut",
    "archived",
    "folded",
    "dropped",
    "inserted",
    "system",
    "tools",
    "conversation",
    "headroom",
    "reserve",
    "free",
]
"""What a piece of text is about, for those who show it in colours."""

ELLIPSIS: Final = "…"

_READ = 4
"""Characters read for each column wanted: the rest of a long text cannot be seen."""
_SELECTORS: dict[int, None] = dict.fromkeys((0xFE0E, 0xFE0F))
"""They make a character an emoji or none, and wider on some terminals only."""


class Piece(NamedTuple):
    """Some text of one line."""

    text: str
    tone: Tone = ""


def columns(text: str) -> int:
    """How many columns a text takes."""
    return len(text) if text.isascii() else sum(map(_width, text))


def first_words(text: str, width: int) -> str:
    """The beginning of a text as one line that takes at most so many columns."""
    start = text[: _READ * width + 1]
    line = " ".join(start.split()).translate(_SELECTORS)
    if not line.isprintable():
        line = "".join(filter(str.isprintable, line))
    return clipped(line if len(start) == len(text) else f"{line} {ELLIPSIS}", width)


def clipped(line: str, width: int) -> str:
    """A line cut to a width, with an ellipsis where something is missing."""
    if columns(line) <= width:
        return line
    room = max(0, width - 1)
    return (_fitting(line, room).rstrip() + ELLIPSIS)[: max(0, width)]


def padded(line: str, width: int, *, right: bool = False) -> str:
    """A line of exactly this width, cut or filled; `right` puts the filling before it."""
    line = clipped(line, width)
    blank = " " * (width - columns(line))
    return blank + line if right else line + blank


def wrapped(text: str, width: int) -> list[str]:
    """A text broken between words into lines of at most this width."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".lstrip()
        if columns(longer) <= width:
            lines[-1] = longer
            continue
        if lines[-1]:
            lines.append("")
        while columns(word) > width:
            piece = _fitting(word, width) or word[0]
            lines[-1], word = piece, word[len(piece) :]  # noqa: PLW2901 - what is left of it
            lines.append("")
        lines[-1] = word
    return [line for line in lines if line]


def _fitting(line: str, room: int) -> str:
    """The longest beginning that fits."""
    end = 0
    for one in line:
        room -= _width(one)
        if room < 0:
            break
        end += 1
    return "".join(islice(line, end))


@lru_cache(4096)
def _width(one: str) -> int:
    if unicodedata.category(one) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(one) in "WF" else 1
