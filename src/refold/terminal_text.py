"""Text in the columns of a terminal: pieces with a tone, cut to a width, broken into lines."""

import unicodedata
from functools import lru_cache
from typing import Final, Literal, NamedTuple

__all__ = [
    "ELLIPSIS",
    "Piece",
    "Tone",
    "clipped",
    "columns",
    "counted",
    "first_words",
    "padded",
    "whole_words",
    "wrapped",
]

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
"""What a piece of text is about, to show it in colors."""

ELLIPSIS: Final = "…"

_READ = 4
"""Characters read for each column wanted: the rest of a long text cannot be seen."""
_LONG_WORD: Final = 24
"""Characters of a word that is cut rather than left out."""
_SELECTORS: dict[int, None] = dict.fromkeys((0xFE0E, 0xFE0F))
"""They make a character an emoji or none, and wider on some terminals only."""


class Piece(NamedTuple):
    """A piece of a line, and what it is about."""

    text: str
    tone: Tone = ""


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: "1 message", "2,000 messages"; `plural` if an s does not make it."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def columns(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return len(text) if text.isascii() else sum(map(_width, text))


def first_words(text: str, width: int) -> str:
    """The beginning of a text as one line that takes at most so many columns.

    Everything that could move the cursor, color the screen or turn the direction of writing is
    taken out, because messages may hold anything.
    """
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
    return (_prefix(line, room).rstrip() + ELLIPSIS)[: max(0, width)]


def whole_words(line: str, length: int) -> str:
    """The start of a line, at most so many characters of it, without half a word at its end.

    A very long word, such as a path, is cut nevertheless.
    """
    if len(line) <= length:
        return line
    space = line.rfind(" ", max(length // 2, length - _LONG_WORD), length + 1)
    return line[: length if space < 0 else space].rstrip()


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
            piece = _prefix(word, width) or word[0]
            lines[-1], word = piece, word[len(piece) :]  # noqa: PLW2901 - what is left of it
            lines.append("")
        lines[-1] = word
    return [line for line in lines if line]


def _prefix(line: str, room: int) -> str:
    for end, character in enumerate(line):
        room -= _width(character)
        if room < 0:
            return line[:end]
    return line


@lru_cache(4096)
def _width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
