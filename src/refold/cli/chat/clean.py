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
_EMOJI: Final = (
    "[\xa9\xae\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u23ff\u24c2\u25aa-\u25fe\u2600-\u27bf"
    "\u2934\u2935\u2b05-\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
    "(?:\ufe0f|[\U0001f3fb-\U0001f3ff])?"
)
_JOINED: Final = (
    "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f"  # a region's flag
    f"|{_EMOJI}(?:\u200d{_EMOJI})*"
    "|[0-9#*]\ufe0f\u20e3"
)
"""Emoji of several characters, in which some that are otherwise removed are needed."""
_REMOVED: Final = re.compile(f"({_JOINED})|{_OBEYED.pattern}")
_LAST_EMOJI: Final = re.compile(f"(?:{_JOINED}|[0-9#*])$")
_JOINING: Final = re.compile("(?:[\u200d\U000e0030-\U000e007a]+|(?<=[0-9#*])\ufe0f)$")
_MAX_EMOJI: Final = 40  # characters
_BROKEN: Final = re.compile("[\ud800-\udfff]")


def cleaned(text: str) -> str:
    """The text with its lines and tabs, and no other invisible characters."""
    if text.isprintable() and "\ufe0f" not in text and "\ufe0e" not in text:
        return text
    if "\x1b" in text:
        text = _SEQUENCE.sub("", text)
    return _BROKEN.sub("\ufffd", _REMOVED.sub(lambda match: match[1] or "", text))


def escaped_in_json(text: str) -> str:
    """JSON with the same values, in which all that `cleaned` would remove is escaped."""
    return _REMOVED.sub(lambda match: match[1] or json.dumps(match[0])[1:-1], text)


class Cleaner:
    """Cleans a text that comes in pieces: a sequence may begin in one and end in another."""

    def __init__(self) -> None:
        self._rest = ""
        self._emoji = ""  # the last of what was returned, which the next piece may extend

    def feed(self, piece: str) -> str:
        text = self._emoji + self._rest + piece
        unfinished = _UNFINISHED.search(text) if "\x1b" in text else _JOINING.search(text)
        self._rest = unfinished[0] if unfinished else ""
        clean = cleaned(text[: unfinished.start()] if unfinished else text)
        new = clean[len(self._emoji) :]
        last = _LAST_EMOJI.search(clean[-_MAX_EMOJI:])
        self._emoji = last[0] if last else ""
        return new
