"""Markdown as it comes, cut into blocks that cannot change any more.

    blocks = Blocks()
    for piece in answer:
        for block in blocks.feed(piece):
            print(block)
    print(blocks.finish())

All blocks together are the text, and they are the same however it was cut into pieces. What a block
is, markdown-it says: every block but the last is finished, because a line changes nothing above the
block that it begins or continues.
"""

from itertools import pairwise
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

_PARSER: Final = MarkdownIt("commonmark", {"html": False}).enable("table").disable("inline")
"""Blocks alone: what stands within them is not looked at."""
_ENDED_BY_EMPTY_LINE: Final = {"blockquote_open", "paragraph_open", "table_open"}
_ONE_LINE: Final = {"heading_open", "hr"}
_EFFORT: Final = 16
"""How often each character may be parsed, on average. An ordinary answer takes less than half of
it; in a list of hundreds of lines, not every line is parsed, and its end is seen a little later."""


class Blocks:
    """Takes a text in pieces and gives its blocks."""

    def __init__(self) -> None:
        self._line = ""
        self._lines: list[str] = []
        """Whole lines of what is not finished."""
        self._size = 0
        self._effort = 0
        """Characters that may still be parsed, so that the time grows with the text and not with
        the square of its longest block."""
        self.in_fence = False
        """Whether what is not finished is code in a fence."""

    @property
    def rest(self) -> str:
        """What is not finished."""
        return "".join(self._lines) + self._line

    def feed(self, text: str) -> list[str]:
        """The blocks that are finished now."""
        finished: list[str] = []
        *lines, last = text.split("\n")
        for line in lines:
            whole, self._line = f"{self._line}{line}\n", ""
            finished += self._take(whole)
        self._line += last
        return finished

    def finish(self) -> list[str]:
        """What is left, for nothing more comes."""
        lines = [*self._lines, self._line] if self._line else self._lines
        self._lines, self._line, self._size, self.in_fence = [], "", 0, False
        starts = _starts(_top_level(lines)) if lines else []
        return ["".join(lines[start:end]) for start, end in pairwise([*starts, len(lines)])]

    def _take(self, line: str) -> list[str]:
        self._lines.append(line)
        self._size += len(line)
        self._effort += _EFFORT * len(line)
        may_end = not self.in_fence or line.lstrip().startswith(("```", "~~~"))
        if not may_end or self._effort < self._size:
            return []
        self._effort -= self._size
        tokens = _top_level(self._lines)
        if not tokens:
            return []  # empty lines, which belong to the block below them
        if _is_finished(tokens[-1], empty_line=not line.strip()):
            return self.finish()
        self.in_fence = tokens[-1].type == "fence"
        starts = _starts(tokens)
        finished = ["".join(self._lines[start:end]) for start, end in pairwise(starts)]
        self._lines = self._lines[starts[-1] :]
        self._size -= sum(map(len, finished))
        return finished


def fenced(block: str) -> tuple[str, str] | None:
    """The language and the code, where a block is a fence and nothing else."""
    tokens = _top_level([block])
    if len(tokens) != 1 or tokens[0].type != "fence":
        return None
    words = tokens[0].info.split()
    return words[0].strip("{}.") if words else "", tokens[0].content.removesuffix("\n")


def _top_level(lines: list[str]) -> list[Token]:
    """What begins the blocks. A carriage return is no line end here, as it is to markdown-it."""
    tokens = _PARSER.parse("".join(lines).replace("\r", " "))
    return [token for token in tokens if token.level == 0 and token.nesting >= 0]


def _starts(tokens: list[Token]) -> list[int]:
    """The lines that the blocks begin in; lines above the first belong to it."""
    return [0, *(token.map[0] for token in tokens[1:] if token.map)]


def _is_finished(token: Token, *, empty_line: bool) -> bool:
    """Whether the last block cannot go on."""
    if token.type == "fence" and token.map:
        first, end = token.map
        return end - first - token.content.count("\n") > 1  # the line that closes it
    return token.type in _ONE_LINE or (empty_line and token.type in _ENDED_BY_EMPTY_LINE)
