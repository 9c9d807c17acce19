"""Text in colours, for terminals that want them."""

from collections.abc import Iterable, Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from refold.view.columns import Piece, Tone

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
    """One line as Rich takes it."""
    text = Text.assemble(*((piece.text, STYLES[piece.tone]) for piece in line))
    text.rstrip()
    return text
