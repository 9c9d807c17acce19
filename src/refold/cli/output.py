"""Lines for people: in color on terminals that allow it, plain everywhere else."""

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

import typer
from rich.console import Console
from rich.text import Text

from refold.cli.chat.clean import cleaned
from refold.terminal_text import Piece, Tone, counted

Line = Sequence[Piece]
GAP = "  "
NOTHING = "–"  # noqa: RUF001 - a dash that is as wide as a digit

_UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60))
_MAX_DAYS = 30

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


def ago(at: int, now: int) -> str:
    """The time between two moments, in milliseconds since 1970; the date if it is long ago."""
    from refold.exports.moments import day_and_time  # noqa: PLC0415 - slow

    seconds = max(0, now - at) // 1000
    if seconds // _UNITS[0][1] > _MAX_DAYS:
        return day_and_time(at)[:10]
    for unit, size in _UNITS:
        if seconds >= size:
            return f"{counted(seconds // size, unit)} ago"
    return "just now"


def print_colored(lines: Iterable[Sequence[Piece]], console: Console | None = None) -> None:
    """Print lines that fit the terminal already."""
    console = console or Console(highlight=False, markup=False, emoji=False)
    for line in lines:
        console.print(colored(line), soft_wrap=True)


def colored(line: Sequence[Piece]) -> Text:
    text = Text.assemble(*((piece.text, STYLES[piece.tone]) for piece in line))
    text.rstrip()
    return text


def print_lines(lines: Sequence[Line], *, paged: bool = False) -> None:
    """Print lines; with `paged`, page by page on a terminal that is too small for them.

    Their text may come from a model, a tool or a foreign file, so control characters are removed
    and no line can become two.
    """
    lines = [[piece._replace(text=_printable(piece.text)) for piece in line] for line in lines]
    if sys.stdout.isatty() and paged and len(lines) >= shutil.get_terminal_size().lines:
        os.environ.setdefault("LESS", "-FRX")  # shows colors, and leaves what was read on screen
        console = Console(highlight=False, markup=False, emoji=False)
        with console.pager(styles=in_colors()):
            print_colored(lines, console)
    elif in_colors():
        print_colored(lines)
    else:
        typer.echo("\n".join(map(plain, lines)))


def _printable(text: str) -> str:
    return text if text.isprintable() else cleaned(text).replace("\n", " ")


def in_colors() -> bool:
    """Whether standard output is a terminal, and nobody asked for no colors."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def plain(line: Line) -> str:
    return "".join(piece.text for piece in line).rstrip()


def aligned(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """The rows as lines with columns; those in `right` are right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        GAP.join(
            cell.rjust(width) if index in right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def terminal_width() -> int:
    return shutil.get_terminal_size().columns


# What `refold doctor` finds.

Verdict = Literal["ok", "warning", "problem"]
"""A warning costs something; with a problem, something does not work."""


class Row(NamedTuple):
    """A finding, and what to do about it."""

    name: str
    verdict: Verdict
    found: str
    remedy: str = ""
    """A command or a sentence; empty when all is well."""


def ok(name: str, found: str) -> Row:
    return Row(name, "ok", found)


def warning(name: str, found: str, remedy: str) -> Row:
    return Row(name, "warning", found, remedy)


def problem(name: str, found: str, remedy: str) -> Row:
    return Row(name, "problem", found, remedy)


def short(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)
