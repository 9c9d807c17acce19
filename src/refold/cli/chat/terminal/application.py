"""An application at the bottom of a terminal, that others can print above."""

import os
import select
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress

from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.layout import Layout
from prompt_toolkit.layout.screen import Char
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.renderer import CPR_Support

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
