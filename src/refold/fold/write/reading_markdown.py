"""Reading a summary that a model wrote as Markdown, or as plain lines, line by line."""

import re
from dataclasses import dataclass, field
from typing import Final, cast

from refold.fold.write.citations import cited, numbers
from refold.fold.write.courtesies import says_nothing
from refold.fold.write.markdown import (
    BOLD,
    BULLET,
    FENCE,
    HEADING,
    LABEL,
    ROW,
    RULE,
    TAG,
    TAGGED,
    cells,
    last_fence,
    plain,
    sentences,
    spaced,
)
from refold.fold.write.subjects import Known, Slot, Subject, known

_ONLY_NUMBERS = re.compile(
    r"^(?:[a-z]{1,12}\s{1,3})?[\s\d,;.#\[\]()、&-]*(?:and\s{1,3}[\s\d#\[\]]{1,20})?$",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"^#?\[?(\d{1,6})\]?\s{0,2}[:(–—-]")  # noqa: RUF001 - signs of typography
_LONGEST_LIST = 1_000  # characters of numbers
_LONG = 240  # characters of a paragraph that is read sentence by sentence
_LABEL_LEVEL: Final = 7
"""A label in bold stands under every heading."""


@dataclass(slots=True)
class Found:
    """What was read."""

    title: str = ""
    claims: list[tuple[Subject, str, tuple[int, ...]]] = field(
        default_factory=list[tuple[Subject, str, tuple[int, ...]]]
    )
    obsolete: list[int] = field(default_factory=list[int])

    def add(self, subject: Subject, text: str, cites: tuple[int, ...] = ()) -> None:
        """One more claim, if it says anything."""
        if text and not says_nothing(text):
            self.claims.append((subject, text, cites))


def known_heading(line: str) -> Known | None:
    """What a line of Markdown stands over, if it is a heading that models use."""
    heading = HEADING.match(line)
    return known(plain(heading[2])) if heading else None


def _begins(line: str) -> bool:
    """Whether a line says something of its own: joined to the one before, that would not show."""
    return line[:1].isupper() or not line[:1].isascii()


class MarkdownReader:
    """Reads lines, one after the other, and adds what they say to what was found."""

    def __init__(self, found: Found) -> None:
        self._found = found
        self._levels: list[tuple[int, Slot]] = []
        """The headings over the current line that say what it is about."""
        self._label = ""
        """A heading that says more than a subject: it goes before the next claim."""
        self._open: list[str] = []
        """The lines of a claim that may go on."""
        self._listed = False
        """Whether the open claim is an item of a list."""
        self._fence = ""
        self._head = ""
        """A row of a table that may be its head."""

    def read(self, lines: list[str]) -> None:
        """Read all of them."""
        last = last_fence(lines)
        for at, line in enumerate(lines):
            fence = FENCE.match(line)
            if self._fence:
                self._in_fence(line, last=at == last)
            elif fence and at < last:
                self._end()
                self._fence = fence[1]
                self._open.append(line.strip())
            else:
                self._line(line)
        self._end()
        if self._label:
            self._claim("")

    def _in_fence(self, line: str, *, last: bool) -> None:
        self._open.append(line.rstrip())
        bare = line.strip()
        if last or (bare.startswith(self._fence) and not bare.strip(self._fence[0])):
            text = "\n".join(self._open)
            self._open, self._fence = [], ""
            self._claim(text, block=True)

    def _line(self, line: str) -> None:
        if not line.strip():
            self._end()
        elif FENCE.match(line):  # one that nothing closes is no fence
            self._end()
            self._claim(line.strip().strip("`~").strip())
        elif RULE.match(line):
            self._rule(line)
        elif ROW.match(line):
            self._end()
            self._head = cells(line)
        elif not self._is_heading(line):
            self._words(line)

    def _rule(self, line: str) -> None:
        """A line across the page, or under a heading or the head of a table."""
        if self._head:
            self._label = f"{self._label} ({self._head})" if self._label else self._head
            self._head = ""
        elif not self._listed and len(self._open) == 1 and line.strip()[0] in "=-":
            self._heading(self._open.pop(), 1 if "=" in line else 2)
        self._end()

    def _is_heading(self, line: str) -> bool:
        if heading := HEADING.match(line):
            self._heading(heading[2], len(heading[1]))
        elif bold := BOLD.match(line):
            self._heading(bold[2], _LABEL_LEVEL)
        elif tag := TAG.match(line):
            return self._tag(spaced(tag[2]), closing=bool(tag[1]))
        elif (tagged := TAGGED.match(line)) and known(spaced(tagged[1])):
            self._heading(spaced(tagged[1]), _LABEL_LEVEL)
            self._words(tagged[2])
            self._end()
        else:
            return False
        return True

    def _tag(self, name: str, *, closing: bool) -> bool:
        if not known(name):
            return False
        self._end()
        if not closing:
            self._heading(name, _LABEL_LEVEL)
        return True

    def _heading(self, text: str, level: int) -> None:
        self._end()
        if self._label:
            self._claim("")
        text = plain(text)
        heading = known(text)
        if self._titled(text, heading, level):
            return
        while self._levels and self._levels[-1][0] >= level:
            self._levels.pop()
        if heading:
            self._levels.append((level, heading.slot))
        self._label = "" if heading and heading.exact else text

    def _titled(self, text: str, heading: Known | None, level: int) -> bool:
        """Whether it is the title of it all: `# Work on X`, `## Summary: work on X`."""
        first = level == 1 and not self._found.claims and not self._levels
        named = heading is not None and heading.slot in {"title", "summary"} and not heading.exact
        if self._found.title or not (named or (first and heading is None)):
            return False
        label = LABEL.match(text) if named else None
        self._found.title, self._levels = (label[2] if label else "") or text, []
        return True

    def _words(self, line: str) -> None:
        bullet = BULLET.match(line)
        text = line[bullet.end() :].strip() if bullet else line.strip()
        if not text or self._slotted(text, listed=bool(bullet)):
            return
        if bullet or not self._open or _begins(line):
            self._end()
            self._listed = bool(bullet)
        self._open.append(text)

    def _slotted(self, text: str, *, listed: bool) -> bool:
        """A line such as `Title: …`, `Obsolete: 3, 7` or `**Goal:** …`."""
        if self._slot == "obsolete" and self._obsolete(text):
            return True
        label = LABEL.match(text)
        heading = known(label[1]) if label else None
        if label is None or heading is None or not heading.exact:
            return False
        rest = label[2].strip()
        if heading.slot == "title" and rest and not self._found.title:
            self._end()
            self._found.title = plain(rest)
            return True
        if heading.slot == "obsolete":
            return self._obsolete(rest)
        under = self._levels and self._levels[-1][0] < _LABEL_LEVEL
        if heading.slot == "title" or (under and (listed or not text.startswith(("**", "__")))):
            return False  # a word before a colon, no heading
        self._heading(label[1], _LABEL_LEVEL)
        self._listed = listed
        self._open += [rest] if rest else []
        return True

    def _obsolete(self, text: str) -> bool:
        """Whether the text is numbers of obsolete claims and nothing else."""
        digits = any(char.isdigit() for char in text[:_LONGEST_LIST])
        if says_nothing(text):
            return True
        if digits and len(text) < _LONGEST_LIST and _ONLY_NUMBERS.match(text):
            self._end()
            self._found.obsolete += numbers(text)
            return True
        if numbered := _NUMBERED.match(text):
            self._found.obsolete.append(int(numbered[1]))
        return False

    @property
    def _slot(self) -> Slot:
        return self._levels[-1][1] if self._levels else "notes"

    def _end(self) -> None:
        """What is open goes no further."""
        head, self._head = self._head, ""
        text, self._open = " ".join(self._open), []
        if head:
            self._claim(head)
        if not text:
            return
        whole = self._listed or len(text) <= _LONG
        for one in [text] if whole else sentences(text):
            self._claim(one)
        self._listed = False

    def _claim(self, text: str, *, block: bool = False) -> None:
        """One claim, after the heading that says more than a subject."""
        slot = self._slot
        subject = "notes" if slot in {"title", "obsolete", "summary"} else slot
        said, cites = (text, ()) if block else cited(text)
        if self._label and not says_nothing(said):
            label, before = cited(self._label)
            between = ":\n" if block else ": "
            said = f"{label}{between}{said}" if said and label else said or label
            cites = tuple(dict.fromkeys((*before, *cites)))
            self._label = ""
        self._found.add(cast("Subject", subject), said, cites)
