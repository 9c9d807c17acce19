"""Text of others within text of ours: no character of theirs begins a line of ours.

What models are told of folded, pinned and delegated messages has lines that Refold writes, and
quotations. A quotation ends where Refold says so only if nothing within it can pass for the end of
a line. Readers differ in what they take for one, so all that anybody takes for one counts: every
control character, and the line and paragraph separators of Unicode. Whatever goes out of here has
line feeds and tabs, and no other control character.
"""

import re
from typing import Final

_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_REPLACED: Final = "\ufffd"
_LONGEST_NAME: Final = 80


def lines_of(text: str) -> list[str]:
    """The lines of a text, wherever any reader may see one begin, without control characters."""
    return [_CONTROL.sub(_REPLACED, line) for line in text.splitlines()]


def quoted(text: str, mark: str = "> ") -> str:
    return "\n".join(f"{mark}{line}" for line in lines_of(text))


def plain(text: str) -> str:
    """The text without control characters; only what ended a line with a line feed still does."""
    return _CONTROL.sub(_REPLACED, text.replace("\r\n", "\n"))


def on_one_line(text: str) -> str:
    """The text with one space for each stretch of blanks and ends of lines."""
    return _CONTROL.sub(_REPLACED, " ".join(text.split()))


def tool_name(name: str | None) -> str:
    """A tool's name as it may stand in a line of ours: whoever offers the tool chose it."""
    return on_one_line(name or "")[:_LONGEST_NAME].strip() or "a tool"
