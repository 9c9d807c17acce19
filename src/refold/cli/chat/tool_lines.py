"""What tools and folds did, in a line or two each."""

from collections.abc import Sequence

from rich.text import Text

from refold.cli.chat.clean import cleaned
from refold.cli.chat.heard import Called, Returned
from refold.cli.chat.terminal.theme import CALL, RETURN
from refold.fold.events import CompactionComplete, CompactionHeld, CompactionStart, FoldEvent
from refold.fold.watchdog import ReadAgain
from refold.view import Event, Truncation, UsageInfo
from refold.view.columns import Piece, first_words

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
