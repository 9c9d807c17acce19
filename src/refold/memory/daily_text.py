"""The text of daily files: how a day and its notes begin, and what marks the end of one.

A note's own words can neither begin a section nor pass for a mark, and leave nothing open that
would swallow what stands below them.
"""

import re
from collections.abc import Iterator
from typing import Final

from refold.fold.quoting import sound
from refold.memory.protocol import Reason

TITLE: Final = "# Daily Memory: {date}\n"
HEADINGS: Final[dict[Reason, str]] = {
    "trimmed": "## Trimmed Context ({time})",
    "overflow": "## Context Overflow Recovery",
    "daily": "## Daily Summary",
}
MARK: Final = "<!-- refold note {digest} -->"

_MARK_BEGINS = MARK.partition(" {")[0]
_MARK_ENDS = MARK.partition("}")[2]
_CUT_MARK = re.compile(rf"{_MARK_BEGINS} [0-9a-f]{{32}}(?= ?-{{0,2}}$)")
_HEADING = re.compile(r"^(\s*)(#|(?:=+|-+)\s*$)")
_MARKUP = re.compile(r"^(\s*)<")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})(.*)")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x1f\x7f]")


def harmless(text: str) -> str:
    """The text with every line kept that is no heading, rule or markup; those as plain words."""
    lines = [_plain(line) for line in _CONTROL.sub("", sound(text)).splitlines()]
    return "\n".join([*lines, *_fence_left_open(lines)]).strip()


def closing(text: str) -> str:
    """What must follow a text that may have been cut off, so that a new line can begin."""
    line = text.rpartition("\n")[2]
    if cut := _CUT_MARK.match(line):
        return f"{_MARK_ENDS[len(line) - cut.end() :]}\n"
    ours = line.startswith(_MARK_BEGINS) or _MARK_BEGINS.startswith(line)
    if ours and line.startswith("<!--") and "-->" not in line:
        return f"{_MARK_ENDS}\n"
    return "\n" if line else ""


def _plain(line: str) -> str:
    return _MARKUP.sub(r"\1&lt;", _HEADING.sub(r"\1\\\2", line))


def _fence_left_open(lines: list[str]) -> Iterator[str]:
    fence = ""
    for line in lines:
        found = _FENCE.match(line)
        if found is None:
            continue
        if not fence:
            fence = found[1]
        elif found[1].startswith(fence) and not found[2].strip():
            fence = ""
    if fence:
        yield fence
