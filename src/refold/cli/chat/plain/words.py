"""A turn in words, as it goes on."""

import time
from collections.abc import Callable

from refold.cli.chat.clean import Cleaner, cleaned
from refold.cli.chat.heard import Called, Elsewhere, Happened, Heard, Returned, Said, Thought
from refold.cli.chat.status import COMPACTING
from refold.cli.chat.tool_lines import event_lines, lasted
from refold.fold.events import CompactionStart
from refold.view.columns import first_words

_WIDTH = 200
"""Columns of what is said about a call."""


class Spoken:
    """Says what is heard: the answer word by word as it comes, all else in lines of its own."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._cleaner = Cleaner()
        self._word = ""
        """What may not be whole yet."""
        self._midline = False
        self._thinks: float | None = None

    def hear(self, heard: Heard) -> None:
        """Say it."""
        match heard:
            case Thought():
                self._thinks = time.monotonic() if self._thinks is None else self._thinks
            case Said(text):
                self._thought()
                self._said(self._cleaner.feed(text))
            case Called(tool=tool, arguments=arguments):
                self._line(f"Calls {first_words(tool, _WIDTH)}: {first_words(arguments, _WIDTH)}")
            case Returned():
                self._line(_returned(heard))
            case Happened(CompactionStart()):
                self._line(f"{COMPACTING}.")
            case Happened(event):
                for line in event_lines(event):
                    self._line(cleaned(line.text).replace("→", "to"))
            case Elsewhere(who, text):
                speaker = (
                    "You, in another terminal" if who == "you" else "Answer in another terminal"
                )
                self._line(f"{speaker}: {cleaned(text)}")

    def settle(self) -> None:
        """What was begun is said to its end."""
        self._thought()
        self._emit(self._word)
        self._word = ""
        if self._midline:
            self._emit("\n")

    def _said(self, text: str) -> None:
        text = self._word + text
        end = max(text.rfind(" "), text.rfind("\n")) + 1
        self._emit(text[:end])
        self._word = text[end:]

    def _line(self, line: str) -> None:
        self.settle()
        self._emit(f"{line}\n")

    def _thought(self) -> None:
        if self._thinks is not None:
            took = time.monotonic() - self._thinks
            self._thinks = None
            self._line(f"Thought for {lasted(took)}.")

    def _emit(self, text: str) -> None:
        if text:
            self._write(text)
            self._midline = not text.endswith("\n")


def _returned(returned: Returned) -> str:
    tool = first_words(returned.tool, _WIDTH)
    if returned.failed:
        return f"{tool} failed: {first_words(returned.text, _WIDTH)}"
    lines = returned.text.count("\n") + (not returned.text.endswith("\n"))
    if lines > 1:
        return f"{tool} answered in {lasted(returned.seconds)}: {lines:,} lines"
    words = first_words(cleaned(returned.text), _WIDTH) or "nothing"
    return f"{tool} answered in {lasted(returned.seconds)}: {words}"
