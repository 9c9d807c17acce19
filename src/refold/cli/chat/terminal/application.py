"""An application at the bottom of a terminal, that others can print above."""

import os
import select
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

_HOLD, _RELEASE = "\x1b[?2026h", "\x1b[?2026l"
"""Terminals that know these show what is between them at once, without a flicker."""


class Inline(ResizableApplication):
    """Draws below what was printed; survives a change of the window's size."""

    def __init__(self, layout: Layout, keys: KeyBindings, *, colour: bool) -> None:
        super().__init__(
            layout=layout,
            key_bindings=keys,
            erase_when_done=True,
            color_depth=ColorDepth.DEPTH_4_BIT if colour else ColorDepth.DEPTH_1_BIT,
            before_render=lambda _: self._before(),
            after_render=lambda _: self._after(),
        )
        # It asks the terminal where the cursor is; answers that come late are seen as typed.
        self.renderer.cpr_support = CPR_Support.NOT_SUPPORTED
        self.ttimeoutlen = 0.05
        self.timeoutlen = 0.15
        self._real = self.output.get_size
        self._size = self._real()
        self._held = False
        self._used: dict[int, int] = {}
        """For each row of the drawing, how many columns count when the terminal breaks it anew."""

    @property
    def columns(self) -> int:
        """How wide the terminal is now."""
        return self.output.get_size().columns

    @contextmanager
    def steady(self) -> Generator[None]:
        """Let the size change only between two drawings, whenever the window does."""
        real = self._real = self.output.get_size
        object.__setattr__(self.output, "get_size", lambda: self._size)
        try:
            yield
        finally:
            object.__setattr__(self.output, "get_size", real)

    def print_above(self, text: str) -> None:
        """Print lines for good where the drawing is, and draw it again below them."""
        self._hold()
        self._refit()
        self.renderer.erase()
        self.output.write_raw(text.replace("\n", "\r\n"))
        self.output.flush()
        self.invalidate()
        if not self.is_running:
            self._release()

    def has_input(self) -> bool:
        """Whether a whole line was typed already."""
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
        """Begin again at the top of an empty screen; what was there can be scrolled back to."""
        self._refit()
        self.renderer.erase()
        self.output.write_raw("\r\n" * self.output.get_size().rows)
        self.output.cursor_goto(0, 0)
        self.output.erase_down()
        self.output.flush()
        self.invalidate()

    def _hold(self) -> None:
        self._held = True
        self.output.write_raw(_HOLD)

    def _release(self) -> None:
        if self._held:
            self._held = False
            self.output.write_raw(_RELEASE)
            self.output.flush()

    def _refit(self) -> None:
        """After the window became another: erase what was drawn, wherever it went."""
        before, self._size = self._size.columns, self._real()
        width = self._size.columns
        if width == before:
            return
        screen = self.renderer.last_rendered_screen
        if screen is None or self.renderer.full_screen:
            return
        more = 0
        if width < before and _wraps_again():
            with suppress(KeyError):  # nothing has the focus yet
                more = self._wrapped(width)
        self.output.write_raw("\r")
        self.output.cursor_up(more)
        self.renderer.erase()

    def _wrapped(self, width: int) -> int:
        """How many more rows the drawing takes down to the cursor, its lines broken at a width."""
        screen = self.renderer.last_rendered_screen
        if screen is None:
            return 0
        cursor = screen.get_cursor_position(self.layout.current_window)
        rows = (self._used.get(row, 0) for row in range(cursor.y))
        return cursor.x // width + sum(max(0, used - 1) // width for used in rows)

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
    return max((at + cell.width for at, cell in row.items() if cell.char != " "), default=0)


def _wraps_again() -> bool:
    """Whether the terminal breaks lines anew when it becomes narrower, as nearly all do."""
    return not ("XTERM_VERSION" in os.environ or "STY" in os.environ)


# What the keys do.


class Typed(Protocol):
    """What keys act upon."""

    buffer: Buffer
    picker: Picker | None

    def send(self) -> None:
        """Give what was typed to the chat."""
        ...

    def line_feed(self) -> None:
        """Ctrl-J."""
        ...

    def take_back(self) -> bool:
        """Put a line that waits back into the input: whether there was one."""
        ...

    def interrupt(self) -> None:
        """Ctrl-C."""
        ...

    def escape(self) -> None:
        """Escape."""
        ...

    def leave(self) -> None:
        """Ctrl-D on an empty input."""
        ...

    def clear(self) -> None:
        """Ctrl-L."""
        ...

    def paste(self, text: str) -> None:
        """A text was pasted into the input line."""
        ...

    def typed_ahead(self, text: str) -> None:
        """A key was pressed before the list could be seen."""
        ...

    def pick(self) -> None:
        """Enter was pressed in the list."""
        ...


Handler = Callable[[KeyPressEvent], None]


class Bind(Protocol):
    """Has a key do something."""

    def __call__(self, *names: str, to: Handler, when: Filter) -> None:
        """Under a condition."""
        ...


def bindings(on: Typed) -> KeyBindings:
    """All keys that are not those of every editor."""
    keys = KeyBindings()
    picking = Condition(lambda: on.picker is not None)
    unseen = Condition(lambda: on.picker is not None and on.picker.visible is None)
    typing = ~picking
    empty = Condition(lambda: not on.buffer.text)

    def bind(*names: str, to: Handler, when: Filter = typing) -> None:
        keys.add(*names, filter=when)(to)

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

    _bind_list(on, bind, picking)
    # Last, so that it goes before the list's own keys.
    for name in (Keys.Any, Keys.BracketedPaste, Keys.Enter):
        bind(name, to=lambda event: on.typed_ahead(event.data), when=unseen)
    return keys


def _bind_list(on: Typed, bind: Bind, picking: Filter) -> None:
    def moved(by: int, *, pages: bool = False) -> Handler:
        def move(_: KeyPressEvent) -> None:
            if on.picker:
                (on.picker.page if pages else on.picker.move)(by)

        return move

    bind("enter", to=lambda _: on.pick(), when=picking)
    for names, by in ((("up", "c-p"), -1), (("down", "c-n"), 1)):
        for name in names:
            bind(name, to=moved(by), when=picking)
    bind("pageup", to=moved(-1, pages=True), when=picking)
    bind("pagedown", to=moved(1, pages=True), when=picking)


def _complete(buffer: Buffer) -> None:
    if buffer.complete_state:
        buffer.complete_next()
    else:
        buffer.start_completion(insert_common_part=True)


def _up(on: Typed) -> None:
    if on.buffer.complete_state:
        on.buffer.complete_previous()
    elif on.buffer.text or not on.take_back():
        on.buffer.auto_up()


def _down(buffer: Buffer) -> None:
    if buffer.complete_state:
        buffer.complete_next()
    else:
        buffer.auto_down()
