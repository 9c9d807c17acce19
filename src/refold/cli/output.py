"""Lines for people: in colours on a terminal that wants them, plain everywhere else."""

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import typer
from rich.console import Console
from rich.text import Text

from refold.cli.chat.clean import cleaned
from refold.exports.moments import counted, day_and_time
from refold.view.explanation import Piece, Tone

# How long ago something was, in words.

_STEPS = (("minute", 60), ("hour", 60), ("day", 24))
_SHOWN_DAYS = 30


def ago(at: int, now: int) -> str:
    """The time between two moments, in milliseconds since 1970; what is long ago, as its day."""
    *_, (unit, amount) = _amounts(max(0, now - at) // 1000)
    if unit == "second":
        return "just now"
    if unit == "day" and amount > _SHOWN_DAYS:
        return day_and_time(at)[:10]
    return f"{counted(amount, unit)} ago"


def _amounts(seconds: int) -> Iterator[tuple[str, int]]:
    """The time in ever larger units, as long as there is one of them."""
    amount = seconds
    yield "second", amount
    for unit, size in _STEPS:
        amount //= size
        if not amount:
            return
        yield unit, amount


# Text in colours, for terminals that want them.

STYLES: Final[dict[Tone, str]] = {
    "": "",
    "strong": "bold",
    "faint": "dim",
    "kept": "green",
    "cut": "yellow",
    "archived": "cyan",
    "folded": "magenta",
    "dropped": "dim",
    "inserted": "blue",
    "system": "cyan",
    "tools": "yellow",
    "conversation": "green",
    "headroom": "dim",
    "reserve": "blue",
    "free": "dim",
}
"""Of the terminal's own palette, so that they suit its theme."""


def print_coloured(lines: Iterable[Sequence[Piece]], console: Console | None = None) -> None:
    """Print lines that fit the terminal already."""
    console = console or Console(highlight=False, markup=False, emoji=False)
    for line in lines:
        console.print(coloured(line), soft_wrap=True)


def coloured(line: Sequence[Piece]) -> Text:
    text = Text.assemble(*((piece.text, STYLES[piece.tone]) for piece in line))
    text.rstrip()
    return text


Line = Sequence[Piece]


def print_lines(lines: Sequence[Line], *, paged: bool = False) -> None:
    """Print lines; where asked and there is a terminal too small for them, page by page.

    What they say may be of a model, a tool or a file that somebody else made: a terminal is given
    nothing that it would obey, and no line can become two.
    """
    lines = [[piece._replace(text=_printable(piece.text)) for piece in line] for line in lines]
    if not sys.stdout.isatty():
        typer.echo("\n".join(map(plain, lines)))
    elif paged and len(lines) >= shutil.get_terminal_size().lines:
        _page(lines)
    elif in_colours():
        print_coloured(lines)
    else:
        typer.echo("\n".join(map(plain, lines)))


def _printable(text: str) -> str:
    return text if text.isprintable() else cleaned(text).replace("\n", " ")


def in_colours() -> bool:
    """Whether standard output is a terminal, and nobody asked for no colours."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def plain(line: Line) -> str:
    return "".join(piece.text for piece in line).rstrip()


def _page(lines: Sequence[Line]) -> None:
    os.environ.setdefault("LESS", "-FRX")  # so that it shows colours, and leaves what was read
    console = Console(highlight=False, markup=False, emoji=False)
    with console.pager(styles=in_colours()):
        for line in lines:
            console.print(coloured(line), soft_wrap=True)


# Tables of plain text.

GAP = "  "
NOTHING = "–"  # noqa: RUF001 - a dash that is as wide as a digit


def aligned(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """The rows as lines with columns; those named in `right` end together."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        GAP.join(
            cell.rjust(width) if at in right else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def clipped(text: str, width: int) -> str:
    """The text, or as much as fits."""
    return text if len(text) <= width else f"{text[: max(0, width - 1)]}…"


def terminal_width() -> int:
    """How many columns there are; 80 where nobody says."""
    return shutil.get_terminal_size().columns
