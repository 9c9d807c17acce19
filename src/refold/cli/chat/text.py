"""How a chat looks: its colors, and a line or two for each tool call and context event.

The colors are the terminal's own sixteen, and few of them.
"""

from collections.abc import Sequence
from time import monotonic
from typing import TYPE_CHECKING, Final

from rich.text import Text

from refold.cli.chat.clean import cleaned
from refold.cli.chat.surface import ToolCall, ToolResult
from refold.cli.output import STYLES
from refold.errors import FoldNotMade
from refold.terminal_text import Piece, counted, first_words

if TYPE_CHECKING:  # a terminal is there before they are imported
    from refold.fold.events import FoldEvent
    from refold.view import Event, Truncation

PROMPT: Final = "› "  # noqa: RUF001 - no other is so calm
SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
CALL: Final = "● "
RETURN: Final = "  └ "
_SPINS: Final = 8  # frames of the spinner in a second
_MAX_CHARS: Final = 4_000  # of a result, to say a line about it
_ERROR_LINES: Final = 3
_MINUTE: Final = 60
_ELSEWHERE: Final = "In another process: "
WIDEST: Final = 110  # columns of running text, above which lines are hard to follow

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


def spinner() -> str:
    return SPINNER[int(monotonic() * _SPINS) % len(SPINNER)]


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
    time = "" if result.seconds is None else duration(result.seconds)
    if (lines := line_count(result.text)) > 1:
        text = f"{lines:,} lines{f' in {time}' if time else ''}"
    elif words := _words(result.text, max(1, room - len(time) - 3)):
        text = f"{words} ({time})" if time else words
    else:
        text = f"nothing{f' in {time}' if time else ''}"
    return Text.assemble((RETURN, "dim"), (text, "dim"), no_wrap=True)


def line_count(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n"))


def _words(text: str, width: int) -> str:
    return first_words(cleaned(text[:_MAX_CHARS]), width)


def event_lines(event: "Event | FoldEvent") -> Sequence[Piece]:  # noqa: PLR0911 - one case a kind
    """What happened to the context or the folds, a line each; empty for routine events."""
    # Whoever has an event has imported them.
    from refold.fold.events import (  # noqa: PLC0415 - slow
        CompactionComplete,
        CompactionHeld,
        CompactionStart,
        CompactionWait,
    )
    from refold.fold.watchdog import ReadAgain  # noqa: PLC0415 - slow
    from refold.view import Truncation, UsageInfo  # noqa: PLC0415 - slow

    match event:
        case CompactionStart(elsewhere=True):
            return [Piece(f"{_ELSEWHERE}the conversation is being folded.", "faint")]
        case CompactionComplete(error=str(error)):
            where = f"{_ELSEWHERE}the" if event.elsewhere else "The"
            return [
                Piece(f"{where} conversation could not be folded: {_plain(error)}", "cut"),
                Piece("Nothing is lost, and the chat goes on as it is.", "faint"),
            ]
        case CompactionComplete():
            # Of the whole request, as /context and the status line have it.
            before, after = event.pre_tokens + event.besides, event.post_tokens + event.besides
            messages = counted(event.messages_removed, "message")
            size = f"{messages}, {before:,} → {counted(after, 'token')}"
            hint = " (/unfold reads it, /undo takes it back)"
            what = f"{_ELSEWHERE}conversation" if event.elsewhere else "Conversation"
            lines = [Piece(f"{what} folded: {size}{hint}", "folded")]
            if error := event.checkpoint_error:
                lines.append(Piece(f"The file of this fold was not written: {error}", "cut"))
            return lines
        case CompactionHeld(guard, why):
            no_model = guard in ("not believed", "summarizer left alone")
            what = f"No model's summary is used: {why}." if no_model else _plain(why)
            return [Piece(what, "cut"), Piece(event.remedy, "faint")]
        case ReadAgain():
            pinned = ", and is kept in sight now" if event.pinned else ""
            what = f"{event.tool} read {event.what} again after it had been folded away{pinned}."
            return [Piece(what, "faint"), *([Piece(event.remedy, "faint")] if event.remedy else [])]
        case Truncation():
            return _truncation_lines(event)
        case CompactionStart() | CompactionWait() | UsageInfo():
            return []


def _plain(reason: str) -> str:
    """Why a fold failed, as the log has it, without the name of our own error."""
    return reason.removeprefix(f"{FoldNotMade.__name__}: ")


def _truncation_lines(event: "Truncation") -> Sequence[Piece]:
    tokens = counted(event.tokens_removed, "token")
    if not event.messages_removed:  # as of a prompt that is too long for the window
        text = f"One line stands for {tokens} that did not fit. The log keeps all of it."
        return [Piece(text, "faint")]
    older = f"{counted(event.messages_removed, 'older message')} ({tokens})"
    return [
        Piece(f"The last request left out {older} so that it fits.", "cut"),
        Piece("The log keeps all of it: /history counts it, /compact makes room.", "faint"),
    ]
