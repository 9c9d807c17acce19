"""How the bottom of the terminal is laid out and drawn."""

from collections.abc import Callable
from typing import Protocol

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

from refold.cli.chat.status import Status, line
from refold.cli.chat.terminal.asking import Asking
from refold.cli.chat.terminal.completing import menu
from refold.cli.chat.terminal.live import Live, spinner
from refold.cli.chat.terminal.picker import Picker
from refold.cli.chat.terminal.scrollback import Scrollback
from refold.cli.chat.terminal.theme import PROMPT, tone_styles
from refold.cli.chat.terminal.typed_lines import TypedLines
from refold.view.columns import first_words

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
