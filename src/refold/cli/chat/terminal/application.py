"""An application at the bottom of a terminal, with output printed above it, and its keys."""

import os
import select
import signal
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from typing import Protocol

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Always, Condition, Filter
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import Layout
from prompt_toolkit.layout.screen import Char
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.renderer import CPR_Support

from refold.cli.chat.terminal.picker import Picker
from refold.cli.chat.terminal.prompt_toolkit_compat import ResizableApplication

_SIZE_IS_SIGNALED = hasattr(signal, "SIGWINCH")
_HOLD, _RELEASE = "\x1b[?2026h", "\x1b[?2026l"
"""Terminals that know these show everything between them at once, without flicker."""


class InlineApplication(ResizableApplication):
    """Draws below the printed output; survives a change of the window's size."""

    def __init__(self, layout: Layout, keys: KeyBindings, *, color: bool) -> None:
        super().__init__(
            layout=layout,
            key_bindings=keys,
            erase_when_done=True,
            terminal_size_polling_interval=None if _SIZE_IS_SIGNALED else 0.5,
            color_depth=ColorDepth.DEPTH_4_BIT if color else ColorDepth.DEPTH_1_BIT,
            before_render=lambda _: self._before(),
            after_render=lambda _: self._after(),
        )
        # Otherwise it asks the terminal where the cursor is, and a late answer would look typed.
        self.renderer.cpr_support = CPR_Support.NOT_SUPPORTED
        self.ttimeoutlen = 0.05
        self.timeoutlen = 0.15
        self._real = self.output.get_size
        self._size = self._real()
        self._holding = False
        self._used: dict[int, int] = {}
        """For each row of the drawing, its columns that count when the terminal reflows it."""

    @property
    def columns(self) -> int:
        return self.output.get_size().columns

    @contextmanager
    def steady(self) -> Generator[None]:
        """Let the size change only between two drawings, even if the window changes earlier."""
        real = self._real = self.output.get_size
        object.__setattr__(self.output, "get_size", lambda: self._size)
        try:
            yield
        finally:
            object.__setattr__(self.output, "get_size", real)

    def print_above(self, text: str) -> None:
        """Print lines for good where the drawing is, and draw it again below them."""
        self._holding = True
        self.output.write_raw(_HOLD)
        self._refit()
        self.renderer.erase()
        self.output.write_raw(text.replace("\n", "\r\n"))
        self.output.flush()
        self.invalidate()
        if not self.is_running:
            self._release()

    def has_input(self) -> bool:
        try:
            return bool(select.select([self.input.fileno()], [], [], 0)[0])
        except (OSError, ValueError, NotImplementedError):
            return False

    def show_whole(self, *, whole: bool) -> None:
        """Take the whole screen, or give it back as it was."""
        self._refit()
        self.renderer.erase()
        self.renderer.full_screen = whole
        self.invalidate()

    def scroll_away(self) -> None:
        """Start at the top of an empty screen; the old content can be scrolled back to."""
        self._refit()
        self.renderer.erase()
        self.output.write_raw("\r\n" * self.output.get_size().rows)
        self.output.cursor_goto(0, 0)
        self.output.erase_down()
        self.output.flush()
        self.invalidate()

    def _release(self) -> None:
        if self._holding:
            self._holding = False
            self.output.write_raw(_RELEASE)
            self.output.flush()

    def _refit(self) -> None:
        """After a resize: erase the drawing, wherever the terminal moved it."""
        before, self._size = self._size.columns, self._real()
        width = self._size.columns
        if width == before:
            return
        screen = self.renderer.last_rendered_screen
        if screen is None or self.renderer.full_screen:
            return
        more = 0
        reflows = not ("XTERM_VERSION" in os.environ or "STY" in os.environ)  # as nearly all do
        if width < before and reflows:
            with suppress(KeyError):  # nothing has the focus yet
                cursor = screen.get_cursor_position(self.layout.current_window)
                rows = (self._used.get(row, 0) for row in range(cursor.y))
                more = cursor.x // width + sum(max(0, used - 1) // width for used in rows)
        self.output.write_raw("\r")
        self.output.cursor_up(more)
        self.renderer.erase()

    def _before(self) -> None:
        self._refit()
        if self.renderer.last_rendered_screen is None:
            self._used.clear()

    def _after(self) -> None:
        screen = self.renderer.last_rendered_screen
        if screen and not self.renderer.full_screen:
            before = self._used if "TMUX" in os.environ else {}  # it counts what was cleared, too
            self._used = {
                row: max(before.get(row, 0), _columns(screen.data_buffer[row]))
                for row in range(screen.height)
            }
        self._release()


def _columns(row: Mapping[int, Char]) -> int:
    return max((x + cell.width for x, cell in row.items() if cell.char != " "), default=0)


class KeyTarget(Protocol):
    buffer: Buffer
    picker: Picker | None

    def send(self) -> None: ...
    def line_feed(self) -> None: ...
    def take_back(self) -> bool: ...
    def interrupt(self) -> None: ...
    def escape(self) -> None: ...
    def leave(self) -> None: ...
    def clear(self) -> None: ...
    def paste(self, text: str) -> None: ...
    def typed_ahead(self, text: str) -> None: ...
    def pick(self) -> None: ...


Handler = Callable[[KeyPressEvent], None]


def bindings(on: KeyTarget) -> KeyBindings:
    """All keys beyond those of every editor."""
    keys = KeyBindings()
    picking = Condition(lambda: on.picker is not None)
    unseen = Condition(lambda: on.picker is not None and on.picker.visible is None)
    typing = ~picking
    empty = Condition(lambda: not on.buffer.text)

    def bind(*names: str, to: Handler, when: Filter = typing) -> None:
        keys.add(*names, filter=when)(to)

    def move(by: int, *, pages: bool = False) -> Handler:
        def handler(_: KeyPressEvent) -> None:
            if on.picker:
                (on.picker.page if pages else on.picker.move)(by)

        return handler

    bind("c-c", to=lambda _: on.interrupt(), when=Always())
    bind("<sigint>", to=lambda _: on.interrupt(), when=Always())
    bind("escape", to=lambda _: on.escape(), when=Always())
    bind("c-z", to=lambda event: event.app.suspend_to_background(), when=Always())
    bind("enter", to=lambda _: on.send())
    bind("escape", "enter", to=lambda _: on.buffer.newline(copy_margin=False))
    bind("c-j", to=lambda _: on.line_feed())
    bind("c-l", to=lambda _: on.clear())
    bind("c-d", to=lambda _: on.leave(), when=typing & empty)
    bind("tab", to=lambda _: _complete(on.buffer))
    bind("s-tab", to=lambda _: on.buffer.complete_previous())
    bind("up", to=lambda _: _up(on))
    bind("down", to=lambda _: _down(on.buffer))
    bind(Keys.BracketedPaste, to=lambda event: on.paste(event.data))

    bind("enter", to=lambda _: on.pick(), when=picking)
    for name, by in (("up", -1), ("c-p", -1), ("down", 1), ("c-n", 1)):
        bind(name, to=move(by), when=picking)
    bind("pageup", to=move(-1, pages=True), when=picking)
    bind("pagedown", to=move(1, pages=True), when=picking)
    # Last, so that it wins over the list's own keys.
    for key in (Keys.Any, Keys.BracketedPaste, Keys.Enter):
        bind(key, to=lambda event: on.typed_ahead(event.data), when=unseen)
    return keys


def _complete(buffer: Buffer) -> None:
    if buffer.complete_state:
        buffer.complete_next()
    else:
        buffer.start_completion(insert_common_part=True)


def _up(on: KeyTarget) -> None:
    if on.buffer.complete_state:
        on.buffer.complete_previous()
    elif on.buffer.text or not on.take_back():
        on.buffer.auto_up()


def _down(buffer: Buffer) -> None:
    if buffer.complete_state:
        buffer.complete_next()
    else:
        buffer.auto_down()
