"""Markdown as it comes, cut into blocks that are surely finished.

    blocks = Blocks()
    for piece in answer:
        for block in blocks.feed(piece):
            print(block)
    print(blocks.finish())

All blocks together are the text, and they are the same however it was cut into pieces.
"""

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import Final

_FENCE: Final = re.compile(r"^( *)(`{3,}|~{3,})(.*)$")
_HEADING: Final = re.compile(r"^ {0,3}#{1,6}(?:[ \t]|$)")
_ITEM: Final = re.compile(r"^( *)(?:[-*+]|\d{1,9}[.)])(?=[ \t]|$)[ \t]*")
_FIRST: Final = re.compile(r"^ {0,3}(?:[-*+]|1[.)])[ \t]")
"""An item that may follow a paragraph without an empty line."""
_CODE_INDENT = 4
_ITEM_INDENT = 2


class Kind(Enum):
    """What an unfinished block is."""

    NOTHING = auto()
    """Empty lines so far."""
    TEXT = auto()
    """A paragraph, a table, a quotation: an empty line ends it."""
    LIST = auto()
    INDENTED = auto()
    """Code by its indentation."""
    FENCE = auto()


class Blocks:
    """Takes a text in pieces and gives its blocks."""

    def __init__(self) -> None:
        self._line = ""
        self._block: list[str] = []
        self._fence = ""
        """What closes the fence that is open."""
        self._empty = False
        """Whether the last line was empty."""
        self.kind = Kind.NOTHING

    @property
    def rest(self) -> str:
        """What is not finished."""
        return "".join(self._block) + self._line

    def feed(self, text: str) -> list[str]:
        """The blocks that are finished now."""
        done: list[str] = []
        *lines, last = text.split("\n")
        for line in lines:
            done += self._take(f"{self._line}{line}\n")
            self._line = ""
        self._line += last
        return done

    def finish(self) -> list[str]:
        """What is left, for nothing more comes."""
        rest = [self._line] if self._line else []
        done = [block for line in rest for block in self._take(line)]
        self._line = ""
        return [*done, *self._end()]

    def _take(self, line: str) -> Iterator[str]:
        if self._fence:
            yield from self._in_fence(line)
        elif not line.strip():
            yield from self._blank(line)
        else:
            yield from self._said(line)
            self._empty = False

    def _blank(self, line: str) -> Iterator[str]:
        self._block.append(line)
        self._empty = True
        if self.kind is Kind.TEXT:
            yield from self._end()

    def _said(self, line: str) -> Iterator[str]:
        """A line that is not empty, outside of fences."""
        if not self._goes_on(line):
            if self.kind is not Kind.NOTHING:
                yield from self._end()
            self.kind = _kind(line)
        self._block.append(line)
        fence = None if self.kind is Kind.INDENTED else _opening(_after_items(line))
        if fence:
            self._fence = fence[2]
        elif _HEADING.match(line) and self.kind is Kind.TEXT:
            yield from self._end()

    def _goes_on(self, line: str) -> bool:
        """Whether the line belongs to the block there is."""
        match self.kind:
            case Kind.NOTHING | Kind.FENCE:
                return False
            case Kind.TEXT:
                apart = _opening(line) or _HEADING.match(line) or _FIRST.match(line)
                return not apart
            case Kind.INDENTED:
                return _indent(line) >= _CODE_INDENT
            case Kind.LIST:
                if _indent(line) >= _ITEM_INDENT or _ITEM.match(line):
                    return True
                return not (self._empty or _opening(line) or _HEADING.match(line))

    def _in_fence(self, line: str) -> Iterator[str]:
        inside = self.kind is Kind.LIST
        if inside and line.strip() and not _indent(line):
            self._fence = ""  # the item that held the fence is over
            yield from self._take(line)
            return
        self._block.append(line)
        closing = line.strip()
        if closing.startswith(self._fence) and not closing.strip(self._fence[0]):
            self._fence = ""
            self._empty = False
            if not inside:
                yield from self._end()

    def _end(self) -> list[str]:
        block = "".join(self._block)
        self._block, self._fence, self.kind, self._empty = [], "", Kind.NOTHING, False
        return [block] if block else []


def fenced(block: str) -> tuple[str, str] | None:
    """The language and the code, where a block is a fence and nothing else."""
    lines = block.strip("\n").split("\n")
    opening = _opening(lines[0])
    if opening is None or len(opening[1]) >= _CODE_INDENT:
        return None
    last = lines[-1].strip()
    closed = len(lines) > 1 and last.startswith(opening[2]) and not last.strip(opening[2][0])
    indent = len(opening[1])
    code = [line[min(indent, _indent(line)) :] for line in lines[1 : -1 if closed else None]]
    words = opening[3].split()
    return words[0].strip("{}.") if words else "", "\n".join(code)


def _kind(line: str) -> Kind:
    if _indent(line) >= _CODE_INDENT:
        return Kind.INDENTED
    if _ITEM.match(line) and not _rule(line):
        return Kind.LIST
    return Kind.FENCE if _opening(line) else Kind.TEXT


def _opening(line: str) -> re.Match[str] | None:
    """What opens a fence; backticks that are closed on their line are code within a text."""
    fence = _FENCE.match(line.rstrip("\n"))
    return None if fence and "`" in fence[2] and "`" in fence[3] else fence


def _rule(line: str) -> bool:
    """Whether the line is a horizontal rule, such as `- - -`."""
    bare = "".join(line.split())
    return len(bare) > 2 and bare in (len(bare) * "-", len(bare) * "*")  # noqa: PLR2004 - three make one


def _after_items(line: str) -> str:
    """The line without the marks of list items before it."""
    while item := _ITEM.match(line):
        line = line[item.end() :]
    return line


def _indent(line: str) -> int:
    expanded = line.expandtabs(4)
    return len(expanded) - len(expanded.lstrip(" "))
