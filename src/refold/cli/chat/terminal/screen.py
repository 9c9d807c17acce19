"""The bottom of the terminal, in the thread that draws: live output, the input, the status.

finished output is printed above, and scrolls away as in any terminal
─────────────────────────────────────────────────────────────────────
live output: an unfinished block, running calls
queued lines
a question, if there is one
> the input
  its completions
the status
"""

import time
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

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

from refold.cli.chat.status import GETTING_READY, Status, line
from refold.cli.chat.surface import ChatCallbacks, Row, TurnEvent
from refold.cli.chat.terminal.application import InlineApplication, bindings
from refold.cli.chat.terminal.input import (
    PAUSE,
    KeyboardPause,
    PasteLabels,
    Pastes,
    Question,
    Reader,
    TypedHistory,
    TypedLines,
)
from refold.cli.chat.terminal.picker import LineCompleter, Picker, menu
from refold.cli.chat.text import PROMPT, spinner, tone_styles
from refold.terminal_text import first_words

if TYPE_CHECKING:  # the prompt is there before they are imported
    from refold.cli.chat.terminal.live import Live, Scrollback, ScrollbackItem

_T = TypeVar("_T")

LEAVE_HINT = "Press Ctrl-C again to leave."
_HINT_SECONDS = 2.0
_MAX_INTERRUPTS = 3  # in a row, of a turn that does not stop; then the chat is left
_QUEUED_ROWS = 3
_DRAW_EVERY = 0.05
_STATUS_EVERY = 0.5
_SPIN_EVERY = 0.125


class Screen:
    """Everything here is called in the thread that draws.

    Args:
        history: The file of earlier input; None keeps nothing.
        stop: Called when the person insists on leaving though the chat does not end.
        color: Whether to use colors.
    """

    def __init__(self, history: Path | None, stop: Callable[[], None], *, color: bool) -> None:
        self.pastes = Pastes()
        self.lines = TypedLines(self._print_typed, self.pastes)
        self.question: Question | None = None
        self.picker: Picker | None = None
        self.waiting_list: Picker | None = None  # opened once nobody types
        self.hint = ""
        self._hint_timer: TimerHandle | None = None
        self.status: Status | None = None
        self._history = TypedHistory(history, self.pastes)
        self._callbacks: ChatCallbacks | None = None
        self._stop = stop
        self._color = color
        self._live: Live | None = None
        self._scrollback: Scrollback | None = None
        self._pending: list[ScrollbackItem] = []
        self._presses: list[float] = []
        self._keyboard = KeyboardPause()
        self._unread_keys = False
        self._loop: AbstractEventLoop | None = None
        self._due: TimerHandle | None = None
        self._spinning: TimerHandle | None = None
        self._drawn = 0.0
        self._early = False
        """Whether keys arrive that were typed before the prompt: their Enter became Ctrl-J."""
        self.buffer = Buffer(
            multiline=True,
            history=self._history,
            completer=LineCompleter(self._complete),
            complete_while_typing=Condition(lambda: self.buffer.text.startswith("/")),
            on_text_changed=lambda _: self._line_changed(),
        )
        self.bottom = Bottom(self, color=color)
        self.app = InlineApplication(self.bottom.layout, bindings(self), color=color)

    def start(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._early = self.app.has_input()
        self.app.key_processor.before_key_press += self._keyboard.key_pressed
        self.app.key_processor.after_key_press += self._key_pressed
        self.app.before_render += self._check_unread_keys
        self.app.after_render += self._rendered
        self._spin()

    @property
    def live(self) -> "Live":
        if self._live is None:
            from refold.cli.chat.terminal.live import Live  # noqa: PLC0415 - the prompt comes first

            self._live = Live()
        return self._live

    @property
    def scrollback(self) -> "Scrollback":
        if self._scrollback is None:
            from refold.cli.chat.terminal.live import Scrollback  # noqa: PLC0415 - see above

            self._scrollback = Scrollback(color=self._color)
        return self._scrollback

    def unfinished(self, width: int) -> list[str]:
        """The lines of a turn that are still drawn."""
        rest = self._live.unfinished(width) if self._live else None
        return [] if rest is None else self.scrollback.lines(rest, width)

    def begin(self, callbacks: ChatCallbacks) -> None:
        self._callbacks = callbacks
        self.refresh()

    def on_event(self, event: TurnEvent) -> None:
        self._pending += self.live.on_event(event)
        self._spin()

    def settle(self) -> None:
        if self._live:
            self._pending += self._live.settle()

    def show(self, item: "ScrollbackItem") -> None:
        self._pending.append(item)

    def refresh(self) -> None:
        if self._callbacks:
            self.status = self._callbacks.status()
            self._spin()

    def want(self, reader: Reader) -> None:
        self.lines.want(reader)

    def take_messages(self, taken: "Future[Sequence[str]]") -> None:
        if taken.set_running_or_notify_cancel():
            taken.set_result(self.lines.take_messages())

    def offer(self, text: str) -> None:
        if not self.buffer.text:
            self.buffer.text = self.pastes.marked(text)
            self.buffer.cursor_position = len(self.buffer.text)

    def ask(self, text: str, answers: Sequence[str], answer: "Future[str | None]") -> None:
        """Put a question above the input line, which keeps its text."""
        self.question = Question(text, answers, answer, unsent=bool(self.buffer.text))

    def open_list(self, title: str, rows: Sequence[Row], picked: "Future[int | None]") -> None:
        """Let a row be picked, on a screen of its own that is restored afterwards.

        It waits while something is being typed, which would be taken for a search.
        """
        self.waiting_list = Picker(title, rows, picked, self.app.output.get_size)
        self._open_list()

    def pick(self) -> None:
        """Enter in the list; ignored before anybody can have read the list."""
        picker = self.picker
        if picker is None or picker.selected is None or picker.visible is None:
            return
        if picker.touched or self._keyboard.before_this_key(picker.visible) >= PAUSE:
            self._close_list(picker.selected)

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
        if self.question:
            self.question.pasted()
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        text = text.encode("utf-8", "replace").decode()
        self.buffer.insert_text(self.pastes.collapse(text))

    def send(self) -> None:
        """Give the input to the chat, or to the question that it answers."""
        text = self.buffer.text.encode("utf-8", "replace").decode()
        question = self.question
        answer = question.answer_in(text, self._keyboard.before_this_key) if question else None
        self.buffer.reset()
        if answer is not None:
            self._close_question(answer)
            return
        if text.strip():
            self._history.keep(text)
            self.lines.add(text.strip("\n"))
        if question:
            queued = "Queued as your next message. " if text.strip() else ""
            self._hint(f"{queued}To answer, type {question.choices} and press Enter.")
        self.changed()

    def line_feed(self) -> None:
        """Begin another line; in input from before there was a prompt, it is Enter and sends."""
        if self._early:
            self.send()
        else:
            self.buffer.newline(copy_margin=False)

    def take_back(self) -> bool:
        line = self.lines.take_back()
        self.buffer.insert_text(line)
        return bool(line)

    def interrupt(self) -> None:
        """Ctrl-C: clears the input, or stops the turn, or leaves when pressed twice."""
        if self.picker or self.question or self.waiting_list:
            self.escape()
        elif self.lines.over:
            self._stop()
        elif self.buffer.text:
            self.buffer.reset()
        elif self._callbacks and self._callbacks.interrupt():
            now = time.monotonic()
            self._presses = [press for press in self._presses if now - press < _HINT_SECONDS]
            self._presses.append(now)
            if len(self._presses) >= _MAX_INTERRUPTS:
                self.leave()
        elif self.hint or self._callbacks is None:
            self.leave()
        else:
            self._hint(LEAVE_HINT)

    def escape(self) -> None:
        """Close the list, question or menu, or stop the turn or the running fold."""
        if self.picker or self.waiting_list:
            self._close_list(None)
        elif self.question:
            self._close_question(None)
        elif self.buffer.complete_state:
            self.buffer.cancel_completion()
        elif self._callbacks:
            self._callbacks.cancel()

    def leave(self) -> None:
        """The person leaves: open questions get no answer."""
        self.hint = ""
        self._close_list(None)
        self._close_question(None)
        self.lines.leave()

    def leave_now(self) -> None:
        """The terminal is gone: interrupt the chat, too."""
        if self._callbacks:
            self._callbacks.interrupt()
        self.leave()

    def clear(self) -> None:
        self.app.scroll_away()

    def close(self) -> None:
        """The chat has ended: print the rest, and end the application."""
        self._close_list(None)
        self._close_question(None)
        self.settle()
        self.flush()
        if self.app.is_running and not self.app.is_done:
            self.app.exit()

    def changed(self) -> None:
        """Print and draw, soon: not for each of many small changes."""
        if self._due is None and self._loop:
            wait = max(0.0, self._drawn + _DRAW_EVERY - time.monotonic())
            self._due = self._loop.call_later(wait, self._draw)

    def flush(self) -> None:
        if self._pending and not self.picker:
            text = self.scrollback.rendered(self._pending, self.app.columns)
            self._pending.clear()
            self.app.print_above(text)

    def _draw(self) -> None:
        self._due = None
        self._drawn = time.monotonic()
        self.flush()
        self.app.invalidate()

    def _spin(self) -> None:
        """Redraw regularly, but only while a spinner or a running time is on the screen."""
        if self._is_running() and self._spinning is None and self._loop:
            self._spinning = self._loop.call_later(_SPIN_EVERY, self._tick, time.monotonic())

    def _tick(self, since: float) -> None:
        self._spinning = None
        if not self._is_running() or not self._loop:
            return
        now = time.monotonic()
        if self._callbacks and now - since >= _STATUS_EVERY:
            since = now
            self.status = self._callbacks.status()
        self.app.invalidate()
        self._spinning = self._loop.call_later(_SPIN_EVERY, self._tick, since)

    def _is_running(self) -> bool:
        status = self.status
        doing = status is not None and bool(status.doing or status.folding is not None)
        return doing or (self._live is not None and self._live.busy)

    def _complete(self, line: str) -> Sequence[tuple[str, str]]:
        return self._callbacks.complete(line) if self._callbacks else ()

    def _close_question(self, answer: str | None) -> None:
        question, self.question = self.question, None
        if question is None:
            return
        self.hint = ""
        from refold.cli.chat.terminal.live import ScrollbackItem  # noqa: PLC0415 - see `live`

        self._pending.append(ScrollbackItem(question.transcript(answer), "text"))
        _resolve(question.answer, answer)
        self.changed()

    def _close_list(self, row: int | None) -> None:
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

    def _check_unread_keys(self, _: object) -> None:
        # Checked before drawing: a key that comes while it is drawn may be a quick person's, or a
        # program's, and this thread may be held up for long in between.
        self._unread_keys = self.app.has_input()

    def _rendered(self, _: object) -> None:
        """The question or list is visible now, unless older keys are still unread."""
        if self.hint and self._hint_timer is None and self._loop:
            # Only now, because a slow terminal may draw a hint long after it was set.
            self._hint_timer = self._loop.call_later(_HINT_SECONDS, self._clear_hint)
        if self._unread_keys:
            return
        now = self._keyboard.clock()
        if self.question:
            self.question.drawn(now)
        if self.picker and self.picker.visible is None:
            self.picker.visible = now

    def _line_changed(self) -> None:
        if self.question:
            pause = self._keyboard.before_this_key(float("-inf"))
            self.question.line_changed(self.buffer.text, pause, queued=bool(self.lines.queued))

    def _key_pressed(self, _: object) -> None:
        def end_early() -> None:
            self._early = False

        if self._early and self._loop:
            self._loop.call_soon(end_early)  # after all keys that came with it

    def _print_typed(self, line: str) -> None:
        from refold.cli.chat.terminal.live import typed  # noqa: PLC0415 - see `live`

        self._pending.append(typed(self.pastes.labeled(line)))

    def _hint(self, text: str) -> None:
        self.hint = text
        if self._hint_timer:  # of an earlier hint
            self._hint_timer.cancel()
            self._hint_timer = None

    def _clear_hint(self) -> None:
        self.hint = ""
        self.app.invalidate()


def _resolve(future: "Future[_T]", value: _T) -> None:
    if future.set_running_or_notify_cancel():
        future.set_result(value)


class Bottom:
    def __init__(self, screen: Screen, *, color: bool) -> None:
        self._screen = screen
        self._styles = tone_styles(color=color)
        self._live: tuple[int, StyleAndTextTuples] = -1, []  # the rendering it was drawn for
        self._cyan = "ansicyan" if color else ""
        self._input = Window(
            BufferControl(screen.buffer, input_processors=[PasteLabels(screen.pastes)]),
            height=lambda: Dimension(min=1, max=self._third()),
            get_line_prefix=self._prompt,
            wrap_lines=True,
            dont_extend_height=True,
        )
        everything = HSplit(
            [
                _section(self._live_output),
                _section(self._queued),
                Window(height=Dimension(min=0, preferred=1, max=1)),
                _section(self._question, wrap=True),
                self._input,
                _section(self._menu),
                Window(FormattedTextControl(self._status), height=1),
                Window(),
            ]
        )
        self.layout = Layout(
            DynamicContainer(lambda: screen.picker.container if screen.picker else everything),
            focused_element=self._input,
        )

    def focus(self) -> None:
        picker = self._screen.picker
        self.layout.focus(picker.window if picker else self._input)

    def _live_output(self) -> StyleAndTextTuples:
        counter, width = get_app().render_counter, self._size().columns
        if counter != self._live[0]:
            text: StyleAndTextTuples = []
            if lines := self._screen.unfinished(width):
                text = to_formatted_text(ANSI("\n" + "\n".join(lines[-self._third() :])))
            self._live = counter, text
        return self._live[1]

    def _queued(self) -> StyleAndTextTuples:
        lines = [*map(self._screen.pastes.labeled, self._screen.lines.queued)]
        shown = [first_words(text, self._size().columns - 8) for text in lines[:_QUEUED_ROWS]]
        if len(lines) > _QUEUED_ROWS:
            shown[-1] = f"and {len(lines) - _QUEUED_ROWS + 1} more"
        return [("dim", "".join(f"\nqueued: {text}" for text in shown))] if shown else []

    def _menu(self) -> StyleAndTextTuples:
        rows = menu(self._screen.buffer.complete_state, self._size().columns)
        return [cell for row in rows for cell in (("", "\n"), *row)][1:]

    def _question(self) -> StyleAndTextTuples:
        """Above the input, which is never taken away."""
        screen = self._screen
        if screen.question:
            return [("bold", screen.question.line)]
        return [("bold", screen.waiting_list.announcement)] if screen.waiting_list else []

    def _status(self) -> StyleAndTextTuples:
        screen, width = self._screen, self._size().columns
        if screen.hint:
            return [("", screen.hint)]
        status = screen.status
        if screen.lines.over:
            return [("dim", "Leaving …")]
        if status is None:
            return [("dim", f"{GETTING_READY} …")]
        running = bool(status.doing) or status.folding is not None
        before = [(self._cyan, f"{spinner()} ")] if running else []
        pieces = line(status, width - 2 * len(before))
        return [*before, *((self._styles[piece.tone], piece.text) for piece in pieces)]

    def _prompt(self, row: int, wrap: int) -> StyleAndTextTuples:
        return [(self._cyan, PROMPT if not row and not wrap else " " * len(PROMPT))]

    def _third(self) -> int:
        return max(1, self._size().rows // 3)

    def _size(self) -> Size:
        return get_app().output.get_size()


def _section(text: Callable[[], StyleAndTextTuples], *, wrap: bool = False) -> ConditionalContainer:
    window = Window(FormattedTextControl(text), dont_extend_height=True, wrap_lines=wrap)
    return ConditionalContainer(window, filter=Condition(lambda: bool(text())))
