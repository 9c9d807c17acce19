"""What tools and folds did, in a line or two each."""

from collections.abc import Sequence
from typing import Final

from pygments.token import Comment, Generic, Keyword, Literal, Name, Number, Operator, String, Token
from rich.style import Style
from rich.syntax import ANSISyntaxTheme
from rich.text import Text
from rich.theme import Theme

from refold.cli.chat.clean import cleaned
from refold.cli.chat.events import Called, Returned
from refold.cli.output import STYLES
from refold.fold.events import CompactionComplete, CompactionHeld, CompactionStart, FoldEvent
from refold.fold.watchdog import ReadAgain
from refold.view import Event, Truncation, UsageInfo
from refold.view.explanation import Piece, first_words

# How a chat looks: the terminal's own sixteen colours, and few of them.

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


_MOST = 4_000
"""Characters of a result that are looked at to say a line about it."""
_ERROR_LINES = 3
_MINUTE = 60


def lasted(seconds: float) -> str:
    """A time as people say it."""
    if seconds < _MINUTE:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"  # noqa: PLR2004
    return f"{seconds // _MINUTE:.0f} min {seconds % _MINUTE:.0f} s"


def call_line(called: Called, width: int, spin: str = "", time: str = "") -> Text:
    """The call, on one line; while it runs, with a spinner and its time."""
    tool = _words(called.tool, width)
    room = width - len(CALL) - len(tool) - len(time) - 3
    arguments = _words(called.arguments, room) if room > 0 else ""
    mark = (f"{spin} ", "cyan") if spin else (CALL, "dim")
    words = [(tool, "bold"), (arguments, ""), (time, "dim")]
    return Text.assemble(mark, Text(" ").join(Text(*one) for one in words if one[0]))


def return_line(returned: Returned, width: int) -> Text:
    """What came of a call: how much, how long, or what went wrong."""
    room = width - len(RETURN)
    if returned.failed:
        told = _words(f"failed: {returned.text[:_MOST]}", room * _ERROR_LINES)
        return Text.assemble((RETURN, "dim"), (told, "red"))
    return Text.assemble((RETURN, "dim"), (summed_up(returned, room), "dim"), no_wrap=True)


def summed_up(returned: Returned, width: int) -> str:
    """What a tool returned, in a few words."""
    time = lasted(returned.seconds)
    lines = returned.text.count("\n") + (not returned.text.endswith("\n"))
    if lines > 1:
        return f"{lines:,} lines in {time}"
    words = _words(returned.text, max(1, width - len(time) - 3))
    return f"{words} ({time})" if words else f"nothing in {time}"


def event_lines(event: Event | FoldEvent) -> Sequence[Piece]:
    """What happened to the view or the folds, a line each; nothing where nobody need know."""
    match event:
        case CompactionComplete(error=str(error)):
            return [
                Piece(f"The conversation could not be compacted: {error}", "cut"),
                Piece("Nothing is lost, and the chat goes on as it is.", "faint"),
            ]
        case CompactionComplete():
            return _compacted(event)
        case CompactionHeld():
            return [Piece(event.why, "cut"), Piece(event.remedy, "faint")]
        case ReadAgain():
            kept = ", and is kept in sight now" if event.pinned else ""
            said = f"{event.tool} read {event.what} again after it had been folded away{kept}."
            return [Piece(said, "faint"), *([Piece(event.remedy, "faint")] if event.remedy else [])]
        case Truncation():
            return _left_out(event)
        case CompactionStart() | UsageInfo():
            return []


def _words(text: str, width: int) -> str:
    return first_words(cleaned(text[:_MOST]), width)


def _left_out(event: Truncation) -> Sequence[Piece]:
    tokens = f"{event.tokens_removed:,} tokens"
    if not event.messages_removed:  # as of a prompt that is too long for the window
        return [
            Piece(f"One line stands for {tokens} that do not fit. The log keeps them.", "faint")
        ]
    out = f"{event.messages_removed:,} older messages ({tokens})"
    return [
        Piece(f"The last request left out {out} so that it fits.", "cut"),
        Piece("They are kept: /history counts them, /compact makes room.", "faint"),
    ]


def _compacted(event: CompactionComplete) -> Sequence[Piece]:
    size = (
        f"{event.messages_removed:,} messages, {event.pre_tokens:,} → {event.post_tokens:,} tokens"
    )
    hint = " (/unfold reads it, /undo takes it back)"
    lines = [Piece(f"Conversation compacted: {size}{hint}", "folded")]
    if event.checkpoint_error:
        lines.append(Piece(f"Its checkpoint was not written: {event.checkpoint_error}", "cut"))
    return lines
