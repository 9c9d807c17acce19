"""The bottom of the terminal, in the thread that draws: what is coming, the input, the status.

what is finished is printed above, and scrolls away as in any terminal
──────────────────────────────────────────────────────────────────────
what is coming: an unfinished block, running calls
queued: lines that wait
a question, if there is one
> the input
  what it could become
the status
"""

import time
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Protocol, TypeVar

from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Size
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Dimension,
    DynamicContainer,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)

from refold.cli.chat.events import Heard
from refold.cli.chat.status import Status, line
from refold.cli.chat.surface import Listening, Row
from refold.cli.chat.terminal.application import Inline, bindings
from refold.cli.chat.terminal.input import (
    PAUSE,
    Asking,
    KeyboardPause,
    Reader,
    TypedHistory,
    TypedLines,
    answered,
)
from refold.cli.chat.terminal.live import Live, Printed, Scrollback, spinner, typed
from refold.cli.chat.terminal.picker import LineCompleter, Picker, menu
from refold.cli.chat.text import PROMPT, tone_styles
from refold.view.explanation import first_words

# How the bottom of the terminal is laid out and drawn.

_QUEUED_ROWS = 3


class Drawn(Protocol):
    """What is drawn."""

    live: Live
    lines: TypedLines
    asking: Asking | None
    picker: Picker | None
    waiting_list: Picker | None
    hint: str
    status: Status | None
    buffer: Buffer


class Bottom:
    """The layout, of what is drawn now."""

    def __init__(self, drawn: Drawn, scrollback: Scrollback, *, colour: bool) -> None:
        self._drawn = drawn
        self._scrollback = scrollback
        self._styles = tone_styles(colour=colour)
        self._of = -1
        self._now: StyleAndTextTuples = []
        """What is coming, as it was drawn the last time."""
        self._cyan = "ansicyan" if colour else ""
        self._input = Window(
            BufferControl(drawn.buffer),
            height=lambda: Dimension(min=1, max=self._third()),
            get_line_prefix=self._prompt,
            wrap_lines=True,
            dont_extend_height=True,
        )
        everything = self._laid_out()
        self.layout = Layout(
            DynamicContainer(lambda: drawn.picker.container if drawn.picker else everything),
            focused_element=self._input,
        )

    def focus(self) -> None:
        """Let keys go to what is open."""
        drawn = self._drawn
        target = drawn.picker.window if drawn.picker else None
        self.layout.focus(target or self._input)

    def _laid_out(self) -> HSplit:
        return HSplit(
            [
                _section(self._coming),
                _section(self._queued),
                Window(height=Dimension(min=0, preferred=1, max=1)),
                _section(self._question, wrap=True),
                self._input,
                _section(self._menu),
                Window(FormattedTextControl(self._status), height=1),
                Window(),
            ]
        )

    def _coming(self) -> StyleAndTextTuples:
        counter = get_app().render_counter
        if counter != self._of:
            self._of, self._now = counter, self._live()
        return self._now

    def _live(self) -> StyleAndTextTuples:
        width = self._size().columns
        coming = self._drawn.live.coming(width)
        if coming is None:
            return []
        lines = self._scrollback.lines(coming, width)[-self._third() :]
        return to_formatted_text(ANSI("\n" + "\n".join(lines)))

    def _queued(self) -> StyleAndTextTuples:
        lines = self._drawn.lines.queued
        shown = [first_words(text, self._size().columns - 8) for text in lines[:_QUEUED_ROWS]]
        if len(lines) > _QUEUED_ROWS:
            shown[-1] = f"and {len(lines) - _QUEUED_ROWS + 1} more"
        return [("dim", "".join(f"\nqueued: {text}" for text in shown))] if shown else []

    def _menu(self) -> StyleAndTextTuples:
        rows = menu(self._drawn.buffer.complete_state, self._size().columns)
        return [one for row in rows for one in (("", "\n"), *row)][1:]

    def _question(self) -> StyleAndTextTuples:
        """What waits for the person: above the input, which is never taken away."""
        drawn = self._drawn
        if drawn.asking:
            return [("bold", drawn.asking.shown)]
        return [("bold", drawn.waiting_list.announcement)] if drawn.waiting_list else []

    def _status(self) -> StyleAndTextTuples:
        drawn, width = self._drawn, self._size().columns
        if drawn.hint:
            return [("", drawn.hint)]
        status = drawn.status
        if drawn.lines.over:
            return [("dim", "Leaving …")]
        if status is None:
            return []
        going_on = bool(status.doing) or status.folding is not None
        before = [(self._cyan, f"{spinner()} ")] if going_on else []
        pieces = line(status, width - 2 * len(before))
        return [*before, *((self._styles[piece.tone], piece.text) for piece in pieces)]

    def _prompt(self, row: int, wrap: int) -> StyleAndTextTuples:
        return [(self._cyan, PROMPT if not row and not wrap else " " * len(PROMPT))]

    def _third(self) -> int:
        return max(1, self._size().rows // 3)

    def _size(self) -> Size:
        return get_app().output.get_size()


def _section(text: Callable[[], StyleAndTextTuples], *, wrap: bool = False) -> ConditionalContainer:
    """As many rows as there is text, or none."""
    window = Window(FormattedTextControl(text), dont_extend_height=True, wrap_lines=wrap)
    return ConditionalContainer(window, filter=Condition(lambda: bool(text())))


_T = TypeVar("_T")

LEAVE_HINT = "Press Ctrl-C again to leave."
_HINT_SECONDS = 2.0
_STUBBORN = 3
"""Interrupts in a row, of a turn that goes on all the same, after which the person is let go."""
_DRAWN_EVERY = 0.05
_STATUS_EVERY = 0.5
_SPIN_EVERY = 0.125


class Screen:
    """Everything here is called in the thread that draws.

    Args:
        history: The file of what was typed; None keeps nothing.
        colour: Whether there are colours.
        stop: Called when the person insists on leaving though the chat does not end.
    """

    def __init__(self, history: Path | None, stop: Callable[[], None], *, colour: bool) -> None:
        self.live = Live()
        self.lines = TypedLines(self._read)
        self.asking: Asking | None = None
        self.picker: Picker | None = None
        self.waiting_list: Picker | None = None
        """A list that came up while something was being typed."""
        self.hint = ""
        self.status: Status | None = None
        self._history = TypedHistory(history)
        self._listening: Listening | None = None
        self._stop = stop
        self._scrollback = Scrollback(colour=colour)
        self._pending: list[Printed] = []
        self._presses: list[float] = []
        self._keyboard = KeyboardPause()
        self._unread_keys = False
        self._loop: AbstractEventLoop | None = None
        self._due: TimerHandle | None = None
        self._drawn = 0.0
        self._early = False
        """Whether keys come that were typed before: the terminal made a Ctrl-J of their Enter."""
        self.buffer = Buffer(
            multiline=True,
            history=self._history,
            completer=LineCompleter(self._complete),
            complete_while_typing=Condition(lambda: self.buffer.text.startswith("/")),
            on_text_changed=lambda _: self._line_changed(),
        )
        self.bottom = Bottom(self, self._scrollback, colour=colour)
        self.app = Inline(self.bottom.layout, bindings(self), colour=colour)

    def start(self, loop: AbstractEventLoop) -> None:
        """The application runs now, in this loop."""
        self._loop = loop
        self._early = self.app.has_input()
        self.app.key_processor.before_key_press += self._keyboard.key_pressed
        self.app.key_processor.after_key_press += self._key_pressed
        self.app.before_render += self._before_render
        self.app.after_render += self._rendered
        self._tick()

    def begin(self, listening: Listening) -> None:
        """There is a chat to ask."""
        self._listening = listening
        self.refresh()

    def hear(self, heard: Heard) -> None:
        """Something of a turn."""
        self._pending += self.live.hear(heard)

    def settle(self) -> None:
        """The turn is over."""
        self._pending += self.live.settle()

    def show(self, printed: Printed) -> None:
        """Print something that stays."""
        self._pending.append(printed)

    def refresh(self) -> None:
        """Ask for the status again."""
        if self._listening:
            self.status = self._listening.status()

    def want(self, reader: Reader) -> None:
        """The chat waits for a line."""
        self.lines.want(reader)

    def offer(self, text: str) -> None:
        """Put a text where one types, unless something is there."""
        if not self.buffer.text:
            self.buffer.text = text
            self.buffer.cursor_position = len(text)

    def ask(self, question: str, answers: Sequence[str], answer: "Future[str | None]") -> None:
        """Put a question above the input; what is typed stays there, question or not."""
        self.asking = Asking(question, answers, answer, unsent=bool(self.buffer.text))

    def open_list(self, title: str, rows: Sequence[Row], picked: "Future[int | None]") -> None:
        """Let a row be picked, on a screen of its own: what was printed is there again after it.

        It waits while something is being typed, which would be taken for a search.
        """
        self.waiting_list = Picker(title, rows, picked, self.app.output.get_size)
        self._open_list()

    def pick(self) -> None:
        """Enter was pressed in the list; a hasty one, before anybody can have read it, is none."""
        picker = self.picker
        if picker is None or picker.selected is None or picker.visible is None:
            return
        if picker.touched or self._keyboard.before_this_key(picker.visible) >= PAUSE:
            self._picked(picker.selected)

    def typed_ahead(self, text: str) -> None:
        """A key was pressed before the list could be seen: it belongs to the input line."""
        self.waiting_list, self.picker = self.picker, None
        self.app.show_whole(whole=False)
        self.bottom.focus()
        if text == "\r":
            self.send()
        else:
            self.paste(text)

    def paste(self, text: str) -> None:
        """Put a pasted text into the input line; it is never an answer."""
        if self.asking:
            self.asking.pasted()
        self.buffer.insert_text(text.replace("\r\n", "\n").replace("\r", "\n"))

    def send(self) -> None:
        """Give what was typed to the chat, or to the question that it answers."""
        text = self.buffer.text.encode("utf-8", "replace").decode()
        asking = self.asking
        said = asking.answer_in(text, self._keyboard.before_this_key) if asking else None
        self.buffer.reset()
        if said is not None:
            self._answered(said)
            return
        if text.strip():
            self._history.keep(text)
            self.lines.add(text.strip("\n"))
        if asking:
            queued = "Queued as your next message. " if text.strip() else ""
            self._hint(f"{queued}To answer, type {asking.choices} and press Enter.")
        self.changed()

    def line_feed(self) -> None:
        """Begin another line; of what was typed before there was a prompt, Enter sends it."""
        if self._early:
            self.send()
        else:
            self.buffer.newline(copy_margin=False)

    def take_back(self) -> bool:
        """Put the newest line that waits back into the input."""
        line = self.lines.take_back()
        self.buffer.insert_text(line)
        return bool(line)

    def interrupt(self) -> None:
        """Ctrl-C: clears the input, or stops the turn, or leaves when pressed twice."""
        if self.picker or self.asking or self.waiting_list:
            self.escape()
        elif self.lines.over:
            self._stop()
        elif self.buffer.text:
            self.buffer.reset()
        elif self._listening and self._listening.interrupt():
            self._pressed()
            if len(self._presses) >= _STUBBORN:
                self.leave()
        elif self.hint or self._listening is None:
            self.leave()
        else:
            self._hint(LEAVE_HINT)

    def escape(self) -> None:
        """Close what is open, or cancel the fold that is under way."""
        if self.picker or self.waiting_list:
            self._picked(None)
        elif self.asking:
            self._answered(None)
        elif self.buffer.complete_state:
            self.buffer.cancel_completion()
        elif self._listening:
            self._listening.cancel()

    def leave(self) -> None:
        """The person is done: whatever is asked gets no answer."""
        self.hint = ""
        self._picked(None)
        self._answered(None)
        self.lines.leave()

    def leave_now(self) -> None:
        """The person is gone: whatever the chat is at, it is to end."""
        if self._listening:
            self._listening.interrupt()
        self.leave()

    def clear(self) -> None:
        """An empty screen; what was on it is scrolled away, not lost."""
        self.app.scroll_away()

    def close(self) -> None:
        """The chat has ended: print what is left, and end the application."""
        self._picked(None)
        self._answered(None)
        self.settle()
        self.flush()
        if self.app.is_running and not self.app.is_done:
            self.app.exit()

    def changed(self) -> None:
        """Print and draw, soon: not for each of many small changes."""
        if self._due is None and self._loop:
            wait = max(0.0, self._drawn + _DRAWN_EVERY - time.monotonic())
            self._due = self._loop.call_later(wait, self._draw)

    def flush(self) -> None:
        """Print what is finished, unless a list has the screen."""
        if self._pending and not self.picker:
            text = self._scrollback.rendered(self._pending, self.app.columns)
            self._pending.clear()
            self.app.print_above(text)

    def _draw(self) -> None:
        self._due = None
        self._drawn = time.monotonic()
        self.flush()
        self.app.invalidate()

    def _tick(self, since: float = 0.0) -> None:
        """Draw again and again while something on the screen goes on by itself."""
        now = time.monotonic()
        status = self.status
        going_on = self.live.busy or (status and (status.doing or status.folding is not None))
        if going_on and now - since >= _STATUS_EVERY:
            since = now
            self.refresh()
        if going_on:
            self.app.invalidate()
        if self._loop:
            self._loop.call_later(_SPIN_EVERY if going_on else _STATUS_EVERY, self._tick, since)

    def _read(self, line: str) -> None:
        self._pending.append(typed(line))

    def _complete(self, line: str) -> Sequence[tuple[str, str]]:
        return self._listening.complete(line) if self._listening else ()

    def _answered(self, said: str | None) -> None:
        asking, self.asking = self.asking, None
        if asking is None:
            return
        self.hint = ""
        self._pending.append(Printed(answered(asking, said), "text"))
        _resolve(asking.answer, said)
        self.changed()

    def _picked(self, row: int | None) -> None:
        shown, self.picker = self.picker, None
        picker, self.waiting_list = shown or self.waiting_list, None
        if picker is None:
            return
        if shown:
            self.app.show_whole(whole=False)
            self.bottom.focus()
        _resolve(picker.picked, row)
        self.changed()

    def _open_list(self) -> None:
        """Open the list that waits, once nobody types; look again later where somebody does."""
        picker = self.waiting_list
        if picker is None:
            return
        typing = self.lines.queued and self._keyboard.until_now() < PAUSE
        if self.buffer.text or typing or self.app.has_input():
            if self._loop:
                self._loop.call_later(PAUSE, self._open_list)
            return
        self.flush()
        self.picker, self.waiting_list = picker, None
        self.app.show_whole(whole=True)
        self.bottom.focus()

    def _before_render(self, _: object) -> None:
        # Looked at before anything is drawn: a key that comes while it is drawn may be a quick
        # person's, or a program's, and this thread may be held up for long in between.
        self._unread_keys = self.app.has_input()

    def _rendered(self, _: object) -> None:
        """What waits for the person is on the screen now; keys that waited were typed before."""
        if self._unread_keys:
            return
        now = self._keyboard.clock()
        if self.asking:
            self.asking.drawn(now)
        if self.picker and self.picker.visible is None:
            self.picker.visible = now

    def _line_changed(self) -> None:
        if self.asking:
            pause = self._keyboard.before_this_key(float("-inf"))
            self.asking.line_changed(self.buffer.text, pause, queued=bool(self.lines.queued))

    def _key_pressed(self, _: object) -> None:
        if self._early and self._loop:
            self._loop.call_soon(self._on_time)  # after all that came with it

    def _on_time(self) -> None:
        self._early = False

    def _pressed(self) -> None:
        now = time.monotonic()
        self._presses = [at for at in self._presses if now - at < _HINT_SECONDS] + [now]

    def _hint(self, text: str) -> None:
        self.hint = text
        if self._loop:
            self._loop.call_later(_HINT_SECONDS, self._unhint)

    def _unhint(self) -> None:
        self.hint = ""
        self.app.invalidate()


def _resolve(future: "Future[_T]", value: _T) -> None:
    if future.set_running_or_notify_cancel():
        future.set_result(value)
