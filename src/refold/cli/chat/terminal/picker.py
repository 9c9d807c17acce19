"""A list to pick from: arrows, typing searches, and a preview of what is selected."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future

from prompt_toolkit.buffer import Buffer, CompletionState
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.layout import BufferControl, FormattedTextControl, HSplit, Window

from refold.cli.chat.clean import cleaned
from refold.cli.chat.surface import Row
from refold.cli.chat.text import PROMPT
from refold.view.explanation import clipped, columns, first_words, padded, wrapped

_BESIDE = 100
"""Columns from which the preview stands beside the list."""
_PREVIEW_ROWS = 8
_AROUND = 4
"""Rows around list and preview: title, search, an empty one, help."""
_HELP = "↑↓ select   Enter picks   Esc goes back   type to search"
_READ = 4_000
"""Characters of a preview that are drawn."""
_MARK = "› "  # noqa: RUF001 - as in the prompt


class Picker:
    """What is searched, what is selected, and how it looks on a whole screen."""

    def __init__(
        self,
        title: str,
        rows: Sequence[Row],
        picked: "Future[int | None]",
        size: Callable[[], Size],
    ) -> None:
        self.picked = picked
        self.visible: float | None = None
        """Since when it can be seen, by the clock of the keyboard."""
        self.touched = False
        """Whether something was searched or selected."""
        self._title = title
        self._rows = rows
        self._size = size
        self._words = [" ".join(row).casefold() for row in rows]
        self._found = list(range(len(rows)))
        self._at = self._top = 0
        self.query = Buffer(multiline=False, on_text_changed=lambda _: self._search())
        self.window = Window(BufferControl(self.query), height=1, get_line_prefix=_prompt)
        self.container = HSplit(
            [
                Window(FormattedTextControl(self._heading), height=1),
                self.window,
                Window(FormattedTextControl(self._body)),
                Window(FormattedTextControl([("dim", _HELP)]), height=1),
            ]
        )

    @property
    def announcement(self) -> str:
        """What stands above the input line while the list waits for that line."""
        title = first_words(self._title, self._size().columns // 2)
        return f"{title}: the list opens when your line is sent. Esc closes it."

    @property
    def selected(self) -> int | None:
        """The row that Enter picks."""
        return self._found[self._at] if self._found else None

    def move(self, by: int) -> None:
        """Select another row."""
        self.touched = True
        self._at = max(0, min(len(self._found) - 1, self._at + by))

    def page(self, by: int) -> None:
        """Select a row some pages on."""
        self.move(by * max(1, self._listed() - 1))

    def _search(self) -> None:
        self.touched = True
        words = self.query.text.casefold().split()
        before = self.selected
        self._found = [
            at for at, text in enumerate(self._words) if all(word in text for word in words)
        ]
        self._at = self._found.index(before) if before in self._found else 0

    def _heading(self) -> StyleAndTextTuples:
        found, everything = len(self._found), len(self._rows)
        count = f"{everything:,}" if found == everything else f"{found:,} of {everything:,}"
        title = first_words(self._title, max(1, self._size().columns - len(count) - 2))
        return [("bold", title), ("dim", f"  {count}")]

    def _body(self) -> StyleAndTextTuples:
        """An empty line, the list, and the preview beside or below."""
        width, rows = self._size().columns, self._listed()
        listed = self._list(width // 2 if self._is_wide() else width, rows)
        drawn: StyleAndTextTuples = [("", "\n")]
        if self._is_wide():
            preview = self._preview(width - width // 2 - 3, rows)
            for at in range(rows):
                left = listed[at] if at < len(listed) else [("", " " * (width // 2))]
                right = preview[at] if at < len(preview) else ""
                drawn += [*left, ("dim", " │ "), ("", right), ("", "\n")]
            return drawn
        preview = self._preview(width - 2, _PREVIEW_ROWS if rows > 1 else 0)
        for line in listed:
            drawn += [*line, ("", "\n")]
        drawn += [("", "\n" * (rows - len(listed))), ("dim", "─" * (width - 1) + "\n")]
        return [*drawn, *(("", f"{line}\n") for line in preview)]

    def _list(self, width: int, rows: int) -> list[StyleAndTextTuples]:
        if not self._found:
            return [[("dim", padded("  Nothing is like that.", width))]]
        self._top = max(min(self._top, self._at), self._at - rows + 1, 0)
        shown = self._found[self._top : self._top + rows]
        return [self._row(one, width, at=self._top + n) for n, one in enumerate(shown)]

    def _row(self, one: int, width: int, *, at: int) -> StyleAndTextTuples:
        label, detail, _ = self._rows[one]
        chosen = at == self._at
        room = width - len(_MARK) - 1
        detail = first_words(detail, room // 2)
        label = first_words(label, room - columns(detail) - 2 if detail else room)
        gap = " " * (room - columns(label) - columns(detail))
        return [
            ("bold ansicyan" if chosen else "", _MARK if chosen else " " * len(_MARK)),
            ("bold" if chosen else "", label),
            ("", gap),
            ("dim", f"{detail} "),
        ]

    def _preview(self, width: int, rows: int) -> list[str]:
        if self.selected is None:
            return []
        text = cleaned(self._rows[self.selected].preview[:_READ]).expandtabs(4)
        lines = [part for line in text.split("\n") for part in _parts(line, width)]
        return lines[:rows]

    def _listed(self) -> int:
        """Rows of the list."""
        rows = self._size().rows - _AROUND
        if self._is_wide():
            return max(1, rows)
        return max(1, rows - _PREVIEW_ROWS - 1)

    def _is_wide(self) -> bool:
        return self._size().columns >= _BESIDE


def _parts(line: str, width: int) -> list[str]:
    """A line in lines, its indentation kept."""
    bare = line.lstrip(" ")
    indent = line[: min(len(line) - len(bare), width // 2)]
    lines = wrapped(bare, max(1, width - len(indent))) or [""]
    return [clipped(indent + one, width) for one in lines]


def _prompt(line: int, wrap: int) -> StyleAndTextTuples:
    return [("ansicyan", PROMPT if not line and not wrap else "  ")]


# What the typed line could become, in a short menu below it.

MOST = 8
"""Rows of the menu."""

Complete = Callable[[str], Sequence[tuple[str, str]]]


class LineCompleter(Completer):
    """Asks the chat."""

    def __init__(self, complete: Complete) -> None:
        self._complete = complete

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        """Whole lines, each with a few words about it."""
        del complete_event
        line = document.text_before_cursor
        for text, words in self._complete(line):
            if text != line:
                yield Completion(text, -len(line), display=text, display_meta=words)


def menu(state: CompletionState | None, width: int) -> list[StyleAndTextTuples]:
    """The rows of the menu around the selected one."""
    if state is None or not state.completions:
        return []
    every = state.completions
    at = state.complete_index or 0
    first = max(0, min(at - MOST // 2, len(every) - MOST))
    shown = every[first : first + MOST]
    longest = min(max(columns(one.display_text) for one in shown), width // 2)
    return [
        [
            ("bold" if first + n == state.complete_index else "", _cell(one.display_text, longest)),
            ("dim", first_words(one.display_meta_text, max(1, width - longest - 6))),
        ]
        for n, one in enumerate(shown)
    ]


def _cell(text: str, width: int) -> str:
    return f"  {padded(first_words(text, width), width)}  "
