"""What was said, without anything that a terminal would obey.

Models and tools may say escape sequences: nothing they say may move the cursor, set a title, a
colour, or the direction of writing.
"""

import json
import re
from collections.abc import Iterable
from typing import Final

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment

_SEQUENCE: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, movements
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles, links, strings for devices
    r"|\x1b[ -/]*[0-~]"
)
_UNFINISHED: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]{0,999}\x1b?|[ -/]*)$")
_OBEYED: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u180e\u200b\u200d-\u200f"
    "\u2028-\u202e\u2060-\u206f\ufe0e\ufe0f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""Controls, marks of direction, and what makes a character wider on some terminals only."""
_BROKEN: Final = re.compile("[\ud800-\udfff]")


def cleaned(text: str) -> str:
    """The text with its lines and tabs, and nothing else that is not seen."""
    if text.isprintable():
        return text
    if "\x1b" in text:
        text = _SEQUENCE.sub("", text)
    return _BROKEN.sub("\ufffd", _OBEYED.sub("", text))


def escaped_in_json(text: str) -> str:
    """JSON with the same values, in which all that `cleaned` would take out is an escape."""
    return _OBEYED.sub(lambda found: json.dumps(found[0])[1:-1], text)


class Cleaner:
    """Cleans a text that comes in pieces: a sequence may begin in one and end in another."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """What can be seen of it so far."""
        text = self._held + piece
        unfinished = _UNFINISHED.search(text) if "\x1b" in text else None
        self._held = unfinished[0] if unfinished else ""
        return cleaned(text[: unfinished.start()] if unfinished else text)


class Cleaned:
    """Something to print, cleaned wherever it came from."""

    def __init__(self, what: RenderableType) -> None:
        self._what = what

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from _seen(console.render(self._what, options))


def _seen(segments: Iterable[Segment]) -> Iterable[Segment]:
    for text, style, control in segments:
        if not control:
            yield Segment(cleaned(text), style.update_link(None) if style else None)
