"""Quoting: no character of a quoted text may begin a line of ours.

What models see of folded, pinned and delegated messages mixes lines that Refold writes with
quotations. A quotation ends where Refold says so only if nothing within it can pass for the end of
a line. Readers differ in what they take for a line end, so every control character counts, and the
line and paragraph separators of Unicode. The results have line feeds and tabs, and no other control
character.
"""

import re
from typing import Final

_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_REPLACED: Final = "\ufffd"
_LONGEST_NAME: Final = 80
_RECALL_TOOL: Final = re.compile(r"(?:.*[^A-Za-z0-9])?recall_[a-z_]+", re.DOTALL)
"""A name of recall's tools, behind whatever an agent puts before the names of a server's tools:
`mcp__refold__recall_search`, `refold-recall_search`."""


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
    """A tool's name, safe for a line of ours: the name comes from the tool's provider."""
    return on_one_line(name or "")[:_LONGEST_NAME].strip() or "a tool"


def is_recall_tool(name: str | None) -> bool:
    """Whether a tool reads back what the log holds, as the model is shown its name."""
    return name is not None and _RECALL_TOOL.fullmatch(name) is not None
