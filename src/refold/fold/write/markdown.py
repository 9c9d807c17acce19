"""Lines of Markdown, as models write it: what each kind of line looks like."""
# ruff: noqa: RUF001 - signs of typography, and of Chinese text

import re
from collections.abc import Iterable
from typing import Final

HEADING: Final = re.compile(r"^ {0,3}(#{1,6})(?:[ \t]+|(?=[^\s#\d]))(\S.*)$")
"""`## Goal`: its marks, and its text."""
BOLD: Final = re.compile(
    r"^[ \t]*(?:\d{1,3}[.)][ \t]+)?(\*\*|__)(?!\s)([^*_\n]{1,120})\1[ \t]*[:：]?[ \t]*$"
)
"""`**Goal:**` and nothing else on the line."""
TAG: Final = re.compile(r"^[ \t]*<(/?)([A-Za-z][\w-]{1,40})>[ \t]*$")
"""`<goal>` or `</goal>`."""
TAGGED: Final = re.compile(r"^[ \t]*<([A-Za-z][\w-]{1,40})>(.*)</\1>[ \t]*$")
"""`<goal>…</goal>`."""
BULLET: Final = re.compile(r"^[ \t]*(?:[-*+•‣◦·–—▪●○➤→✓✔]|\(?\d{1,3}[.)]|[a-zA-Z][.)])[ \t]+(?=\S)")
LABEL: Final = re.compile(
    r"^(?:\*\*|__)?([^*_:：|`\[\]]{1,60}?)(?:[:：](?:\*\*|__)?|(?:\*\*|__)[ \t]*[:：])[ \t]*(.*)$"
)
"""`Goal: …` or `**Goal:** …`: what it is called, and the rest."""
FENCE: Final = re.compile(r"^[ \t]*(```+|~~~+)")
ROW: Final = re.compile(r"^[ \t]*\|.*\|[ \t]*$")
RULE: Final = re.compile(
    r"^[ \t]*(?:\|?[ \t]*:?-{2,}:?[ \t]*(?:\|[ \t]*:?-{2,}:?[ \t]*)*\|?|\|(?:[ \t]*:?-+:?[ \t]*\|)+"
    r"|([-*_=~])(?:[ \t]*\1){2,})[ \t]*$"
)
"""A line across the page, or under the head of a table."""
_DECORATION = re.compile(r"\*\*|__|`")
_ORDINAL = re.compile(r"^\(?\d{1,3}(?:\.\d{1,3}){0,3}[.)]?[ \t]+")
_SENTENCE = re.compile(
    r"(?<=[.!?。！？])((?:[ \t]?\[[\d\s,–-]{1,60}\])?)"
    r"(?:[ \t]+(?=[^\s\[a-z])|(?<=[。！？])(?=[^\s\[」』”）)]))"
)


def plain(heading: str) -> str:
    """A heading without its decoration and its number."""
    bare = _DECORATION.sub("", heading).strip().rstrip("#").strip()
    return _ORDINAL.sub("", bare).rstrip(":：").strip()


def cells(row: str) -> str:
    """What stands in a row of a table."""
    found = (cell.strip() for cell in row.strip().strip("|").split("|"))
    return " | ".join(cell for cell in found if cell)


def sentences(text: str) -> Iterable[str]:
    """The sentences of a paragraph, each with the citations behind it."""
    return (one.strip() for one in _SENTENCE.sub("\\1\n", text).split("\n") if one.strip())


def last_fence(lines: list[str]) -> int:
    """The last line of a fence that is closed; -1: there is none."""
    fences = [at for at, line in enumerate(lines) if FENCE.match(line)]
    if len(fences) % 2:
        fences.pop()
    return fences[-1] if fences else -1


def spaced(name: str) -> str:
    """A name in snake case or kebab case, as words."""
    return name.replace("_", " ").replace("-", " ")
