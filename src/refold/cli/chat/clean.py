"""Text without anything that a terminal would obey.

Models and tools may emit escape sequences: none of them may move the cursor, set a title, a color,
or the direction of writing.
"""

import json
import re
from typing import Final

_SEQUENCE: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colors, movements
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles, links, strings for devices
    r"|\x1b[ -/]*[0-~]"
)
_UNFINISHED: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]{0,999}\x1b?|[ -/]*)$")
_OBEYED: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u180e\u200b\u200d-\u200f"
    "\u2028-\u202e\u2060-\u206f\ufe0e\ufe0f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""Controls, marks of direction, and what makes a character wider only on some terminals."""
_BROKEN: Final = re.compile("[\ud800-\udfff]")


def cleaned(text: str) -> str:
    """The text with its lines and tabs, and no other invisible characters."""
    if text.isprintable():
        return text
    if "\x1b" in text:
        text = _SEQUENCE.sub("", text)
    return _BROKEN.sub("\ufffd", _OBEYED.sub("", text))


def escaped_in_json(text: str) -> str:
    """JSON with the same values, in which all that `cleaned` would remove is escaped."""
    return _OBEYED.sub(lambda match: json.dumps(match[0])[1:-1], text)


class Cleaner:
    """Cleans a text that comes in pieces: a sequence may begin in one and end in another."""

    def __init__(self) -> None:
        self._rest = ""

    def feed(self, piece: str) -> str:
        text = self._rest + piece
        unfinished = _UNFINISHED.search(text) if "\x1b" in text else None
        self._rest = unfinished[0] if unfinished else ""
        return cleaned(text[: unfinished.start()] if unfinished else text)
