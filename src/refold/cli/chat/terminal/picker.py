"""A list to pick from, with search and preview, and the menu of completions."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future

from prompt_toolkit.buffer import Buffer, CompletionState
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.layout import BufferControl, FormattedTextControl, HSplit, Window

from refold.cli.chat.clean import cleaned
from refold.cli.chat.surface import Row, matching_rows
from refold.cli.chat.text import PROMPT
from refold.terminal_text import clipped, columns, first_words, padded, wrapped

_SIDE_BY_SIDE = 100  # columns from which the preview stands beside the list
_PREVIEW_ROWS = 8
_MENU_ROWS = 8
_MIN_ROWS = 4  # of the list, above a preview
_OTHER_ROWS = 4  # rows around list and preview: title, search, an empty one, help
_HELP = "↑↓ select   Enter picks   Esc goes back   type to search"
_MAX_PREVIEW = 4_000  # characters of a preview that are drawn
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
        self.visible: float | None = None  # since when, by the keyboard's clock
        self.touched = False  # whether something was searched or selected
        self._title = title
        self._rows = rows
        self._size = size
        self._matches = list(range(len(rows)))
        self._index = self._top = 0  # within the matches
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
        return self._matches[self._index] if self._matches else None

    def move(self, by: int) -> None:
        self.touched = True
        self._index = max(0, min(len(self._matches) - 1, self._index + by))

    def page(self, by: int) -> None:
        self.move(by * max(1, self._list_rows() - 1))

    def _search(self) -> None:
        self.touched = True
        before = self.selected
        self._matches = matching_rows(self.query.text, self._rows)
        self._index = self._matches.index(before) if before in self._matches else 0

    def _heading(self) -> StyleAndTextTuples:
        matches, total = len(self._matches), len(self._rows)
        count = f"{total:,}" if matches == total else f"{matches:,} of {total:,}"
        title = first_words(self._title, max(1, self._size().columns - len(count) - 2))
        return [("bold", title), ("dim", f"  {count}")]

    def _body(self) -> StyleAndTextTuples:
        width, rows = self._size().columns, self._list_rows()
        listed = self._list(width // 2 if self._is_wide() else width, rows)
        drawn: StyleAndTextTuples = [("", "\n")]
        if self._is_wide():
            preview = self._preview(width - width // 2 - 3, rows)
            for y in range(rows):
                left = listed[y] if y < len(listed) else [("", " " * (width // 2))]
                right = preview[y] if y < len(preview) else ""
                drawn += [*left, ("dim", " │ "), ("", right), ("", "\n")]
            return drawn
        for line in listed:
            drawn += [*line, ("", "\n")]
        if not self._has_preview():
            return drawn
        preview = self._preview(width - 2, _PREVIEW_ROWS)
        drawn += [("", "\n" * (rows - len(listed))), ("dim", "─" * (width - 1) + "\n")]
        return [*drawn, *(("", f"{line}\n") for line in preview)]

    def _list(self, width: int, rows: int) -> list[StyleAndTextTuples]:
        if not self._matches:
            return [[("dim", padded("  Nothing is like that.", width))]]
        self._top = max(min(self._top, self._index), self._index - rows + 1, 0)
        return [self._row(row, width) for row in self._matches[self._top : self._top + rows]]

    def _row(self, row: int, width: int) -> StyleAndTextTuples:
        label, detail, _ = self._rows[row]
        chosen = row == self.selected
        room = width - len(_MARK) - 1
        detail = first_words(detail, max(room * 5 // 8, room - columns(label) - 2))
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
        text = cleaned(self._rows[self.selected].preview[:_MAX_PREVIEW]).expandtabs(4)
        return [part for line in text.split("\n") for part in _wrapped(line, width)][:rows]

    def _list_rows(self) -> int:
        rows = self._size().rows - _OTHER_ROWS
        if self._has_preview() and not self._is_wide():
            rows -= _PREVIEW_ROWS + 1
        return max(1, rows)

    def _has_preview(self) -> bool:
        return self._is_wide() or self._size().rows >= _OTHER_ROWS + _MIN_ROWS + _PREVIEW_ROWS + 1

    def _is_wide(self) -> bool:
        return self._size().columns >= _SIDE_BY_SIDE


def _wrapped(line: str, width: int) -> list[str]:
    bare = line.lstrip(" ")
    indent = line[: min(len(line) - len(bare), width // 2)]
    lines = wrapped(bare, max(1, width - len(indent))) or [""]
    return [clipped(indent + part, width) for part in lines]


def _prompt(line: int, wrap: int) -> StyleAndTextTuples:
    return [("ansicyan", PROMPT if not line and not wrap else "  ")]


class LineCompleter(Completer):
    def __init__(self, complete: Callable[[str], Sequence[tuple[str, str]]]) -> None:
        self._complete = complete

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        del complete_event
        line = document.text_before_cursor
        for text, words in self._complete(line):
            if text != line:
                yield Completion(text, -len(line), display=text, display_meta=words)


def menu(state: CompletionState | None, width: int) -> list[StyleAndTextTuples]:
    if state is None or not state.completions:
        return []
    every = state.completions
    first = max(0, min((state.complete_index or 0) - _MENU_ROWS // 2, len(every) - _MENU_ROWS))
    shown = every[first : first + _MENU_ROWS]
    longest = min(max(columns(one.display_text) for one in shown), width // 2)
    rows: list[StyleAndTextTuples] = []
    for index, completion in enumerate(shown, first):
        style = "bold" if index == state.complete_index else ""
        text = padded(first_words(completion.display_text, longest), longest)
        about = first_words(completion.display_meta_text, max(1, width - longest - 6))
        rows.append([(style, f"  {text}  "), ("dim", about)])
    return rows
