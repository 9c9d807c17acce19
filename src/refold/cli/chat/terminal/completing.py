"""What the typed line could become, in a short menu below it."""

from collections.abc import Callable, Iterator, Sequence

from prompt_toolkit.buffer import CompletionState
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples

from refold.view.columns import columns, first_words, padded

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
