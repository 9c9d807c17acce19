"""How a chat looks: the terminal's own sixteen colours, and few of them."""

from typing import Final

from pygments.token import (
    Comment,
    Generic,
    Keyword,
    Literal,
    Name,
    Number,
    Operator,
    String,
    Token,
)
from rich.style import Style
from rich.syntax import ANSISyntaxTheme
from rich.theme import Theme

from refold.cli.colours import STYLES

PROMPT: Final = "› "  # noqa: RUF001 - no other is so calm
SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
CALL: Final = "● "
RETURN: Final = "  └ "
WIDEST: Final = 110
"""Columns of running text, above which lines are hard to follow."""

LOOKS: Final = Theme(
    {
        "markdown.h1": "bold underline",
        "markdown.h2": "bold",
        "markdown.h3": "bold",
        "markdown.h4": "bold dim",
        "markdown.h5": "bold dim",
        "markdown.h6": "dim",
        "markdown.code": "cyan",
        "markdown.code_block": "none",
        "markdown.block_quote": "dim",
        "markdown.item.bullet": "dim",
        "markdown.item.number": "dim",
        "markdown.hr": "dim",
        "markdown.list": "none",
        "markdown.link": "none",
        "markdown.link_url": "blue",
        "markdown.table.border": "dim",
        "markdown.table.header": "bold",
        "progress.percentage": "none",
    }
)

CODE: Final = ANSISyntaxTheme(
    {
        Token: Style(),
        Comment: Style(dim=True),
        Keyword: Style(color="magenta"),
        Operator.Word: Style(color="magenta"),
        Name.Builtin: Style(color="cyan"),
        Name.Decorator: Style(color="yellow"),
        Name.Function: Style(color="blue"),
        Name.Class: Style(color="blue"),
        Name.Tag: Style(color="blue"),
        Name.Attribute: Style(color="cyan"),
        Literal: Style(color="green"),
        String: Style(color="green"),
        Number: Style(color="yellow"),
        Generic.Deleted: Style(color="red"),
        Generic.Inserted: Style(color="green"),
        Generic.Heading: Style(bold=True),
        Generic.Subheading: Style(color="cyan"),
        Generic.Emph: Style(italic=True),
        Generic.Strong: Style(bold=True),
    }
)
"""Colours that can be read on dark and on light."""

_TOOLKIT: Final = {
    "": "",
    "bold": "bold",
    "dim": "dim",
    "red": "ansired",
    **{name: f"ansi{name}" for name in ("green", "yellow", "cyan", "magenta", "blue")},
}


def tone_styles(*, colour: bool) -> dict[str, str]:
    """For each tone of a piece of text, the style that the toolkit draws it in."""
    styles = {tone: _TOOLKIT[style] for tone, style in STYLES.items()}
    if colour:
        return styles
    return {tone: style if style in ("bold", "dim") else "" for tone, style in styles.items()}
