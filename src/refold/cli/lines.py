"""Lines for people: in colours on a terminal that wants them, plain everywhere else."""

import os
import shutil
import sys
from collections.abc import Sequence

import typer
from rich.console import Console

from refold.cli.chat.clean import cleaned
from refold.cli.colours import coloured, print_coloured
from refold.view.columns import Piece

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
    """A line without its colours."""
    return "".join(piece.text for piece in line).rstrip()


def _page(lines: Sequence[Line]) -> None:
    os.environ.setdefault("LESS", "-FRX")  # so that it shows colours, and leaves what was read
    console = Console(highlight=False, markup=False, emoji=False)
    with console.pager(styles=in_colours()):
        for line in lines:
            console.print(coloured(line), soft_wrap=True)
