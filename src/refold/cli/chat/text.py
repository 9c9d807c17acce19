"""How a chat looks: its colors, and a line or two for each tool call and context event.

The colors are the terminal's own sixteen, and few of them.
"""

from collections.abc import Sequence
from typing import Final

from pygments.token import Comment, Generic, Keyword, Literal, Name, Number, Operator, String, Token
from rich.style import Style
from rich.syntax import ANSISyntaxTheme
from rich.text import Text
from rich.theme import Theme

from refold.cli.chat.clean import cleaned
from refold.cli.chat.surface import ToolCall, ToolResult
from refold.cli.output import STYLES
from refold.fold.events import CompactionComplete, CompactionHeld, CompactionStart, FoldEvent
from refold.fold.watchdog import ReadAgain
from refold.view import Event, Truncation, UsageInfo
from refold.view.explanation import Piece, first_words

PROMPT: Final = "› "  # noqa: RUF001 - no other is so calm
SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
CALL: Final = "● "
RETURN: Final = "  └ "
_MAX_CHARS: Final = 4_000  # of a result, to say a line about it
_ERROR_LINES: Final = 3
_MINUTE: Final = 60
WIDEST: Final = 110  # columns of running text, above which lines are hard to follow

THEME: Final = Theme(
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
"""Readable on dark and on light backgrounds."""

_TOOLKIT_STYLES: Final = {
    "": "",
    "bold": "bold",
    "dim": "dim",
    "red": "ansired",
    **{name: f"ansi{name}" for name in ("green", "yellow", "cyan", "magenta", "blue")},
}


def tone_styles(*, color: bool) -> dict[str, str]:
    """For each tone of a piece of text, the style that prompt_toolkit draws it in."""
    styles = {tone: _TOOLKIT_STYLES[style] for tone, style in STYLES.items()}
    if color:
        return styles
    return {tone: style if style in ("bold", "dim") else "" for tone, style in styles.items()}


def duration(seconds: float) -> str:
    if seconds < _MINUTE:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"  # noqa: PLR2004
    return f"{seconds // _MINUTE:.0f} min {seconds % _MINUTE:.0f} s"


def call_line(call: ToolCall, width: int, spin: str = "", time: str = "") -> Text:
    tool = _words(call.tool, width)
    room = width - len(CALL) - len(tool) - len(time) - 3
    arguments = _words(call.arguments, room) if room > 0 else ""
    mark = (f"{spin} ", "cyan") if spin else (CALL, "dim")
    words = [(tool, "bold"), (arguments, ""), (time, "dim")]
    return Text.assemble(mark, Text(" ").join(Text(*word) for word in words if word[0]))


def return_line(result: ToolResult, width: int) -> Text:
    """The result of a call: how much, how long, or what went wrong."""
    room = width - len(RETURN)
    if result.failed:
        text = _words(f"failed: {result.text[:_MAX_CHARS]}", room * _ERROR_LINES)
        return Text.assemble((RETURN, "dim"), (text, "red"))
    time = duration(result.seconds)
    if (lines := line_count(result.text)) > 1:
        text = f"{lines:,} lines in {time}"
    else:
        words = _words(result.text, max(1, room - len(time) - 3))
        text = f"{words} ({time})" if words else f"nothing in {time}"
    return Text.assemble((RETURN, "dim"), (text, "dim"), no_wrap=True)


def line_count(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n"))


def _words(text: str, width: int) -> str:
    return first_words(cleaned(text[:_MAX_CHARS]), width)


def event_lines(event: Event | FoldEvent) -> Sequence[Piece]:
    """What happened to the context or the folds, a line each; empty for routine events."""
    match event:
        case CompactionComplete(error=str(error)):
            return [
                Piece(f"The conversation could not be compacted: {error}", "cut"),
                Piece("Nothing is lost, and the chat goes on as it is.", "faint"),
            ]
        case CompactionComplete():
            tokens = f"{event.pre_tokens:,} → {event.post_tokens:,} tokens"
            size = f"{event.messages_removed:,} messages, {tokens}"
            hint = " (/unfold reads it, /undo takes it back)"
            lines = [Piece(f"Conversation compacted: {size}{hint}", "folded")]
            if error := event.checkpoint_error:
                lines.append(Piece(f"Its checkpoint was not written: {error}", "cut"))
            return lines
        case CompactionHeld():
            return [Piece(event.why, "cut"), Piece(event.remedy, "faint")]
        case ReadAgain():
            pinned = ", and is kept in sight now" if event.pinned else ""
            what = f"{event.tool} read {event.what} again after it had been folded away{pinned}."
            return [Piece(what, "faint"), *([Piece(event.remedy, "faint")] if event.remedy else [])]
        case Truncation():
            return _truncation_lines(event)
        case CompactionStart() | UsageInfo():
            return []


def _truncation_lines(event: Truncation) -> Sequence[Piece]:
    tokens = f"{event.tokens_removed:,} tokens"
    if not event.messages_removed:  # as of a prompt that is too long for the window
        text = f"One line stands for {tokens} that do not fit. The log keeps them."
        return [Piece(text, "faint")]
    older = f"{event.messages_removed:,} older messages ({tokens})"
    return [
        Piece(f"The last request left out {older} so that it fits.", "cut"),
        Piece("They are kept: /history counts them, /compact makes room.", "faint"),
    ]
