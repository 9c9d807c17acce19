"""Parses a summary in whatever form a model wrote it.

Markdown, JSON or prose, with or without thinking before it and courtesies around it.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, cast

from pydantic_core import from_json

from refold.fold.write.phrases import (
    HeadingMatch,
    Slot,
    Subject,
    cited,
    match_heading,
    numbers,
    says_nothing,
    without_courtesies,
)

# ruff: noqa: RUF001 - signs of typography, and of Chinese text

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
"""`Goal: …` or `**Goal:** …`: the label, and the rest."""
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

_ONLY_NUMBERS = re.compile(
    r"^(?:[a-z]{1,12}\s{1,3})?[\s\d,;.#\[\]()、&-]*(?:and\s{1,3}[\s\d#\[\]]{1,20})?$", re.IGNORECASE
)
_NUMBERED = re.compile(r"^#?\[?(\d{1,6})\]?\s{0,2}[:(–—-]")
_MAX_LIST = 1_000  # characters of numbers
_LONG = 240  # characters from which a paragraph is read sentence by sentence
_LABEL_LEVEL: Final = 7
"""The level of a label in bold: below every heading."""

_TEXTS = ("text", "claim", "point", "statement", "content", "description", "summary", "fact")
_CITES = ("entries", "entry", "cites", "citations", "cite", "sources", "source", "refs", "seqs")

_THINKING = ("think", "thinking", "thought", "analysis", "reasoning", "scratchpad", "reflection")
_OPENING = re.compile(rf"^[ \t]*<({'|'.join(_THINKING)})>", re.IGNORECASE | re.MULTILINE)
_ONLY_CLOSING = re.compile(r"</(?:think|thinking)>[ \t]*$", re.IGNORECASE | re.MULTILINE)
_OUTER_FENCE = re.compile(r"^[ \t]{0,3}(?:```+|~~~+)[ \t]*(\w*)[ \t]*$")
_OUTER_LANGUAGES = ("", "markdown", "md", "text", "txt", "json", "plaintext")
_PREAMBLE_LINES = 3  # before a fence around everything


@dataclass(slots=True)
class ParsedSummary:
    title: str = ""
    claims: list[tuple[Subject, str, tuple[int, ...]]] = field(
        default_factory=list[tuple[Subject, str, tuple[int, ...]]]
    )
    obsolete: list[int] = field(default_factory=list[int])

    def add(self, subject: Subject, text: str, cites: tuple[int, ...] = ()) -> None:
        if text and not says_nothing(text):
            self.claims.append((subject, text, cites))


def parse_answer(text: str) -> ParsedSummary:
    """Parse an answer, claim by claim."""
    text = _without_thinking(text.replace("\x00", " "))
    lines = without_courtesies(_without_outer_fence(text.splitlines()))
    summary = ParsedSummary()
    first = next((index for index, line in enumerate(lines) if line.strip()), 0)
    if lines and lines[first].lstrip().startswith(("{", "[")):
        summary, rest = _parse_json("\n".join(lines[first:]).lstrip()) or (summary, None)
        lines = lines if rest is None else without_courtesies(rest.splitlines())
    _MarkdownParser(summary).parse(lines)
    return summary


def _without_thinking(text: str) -> str:
    opening = _OPENING.search(text)
    closing = _ONLY_CLOSING.search(text, 0, opening.start() if opening else len(text))
    if closing and "<think" not in text[: closing.start()].lower():
        text = text[closing.end() :]  # its opening was part of the prompt
        opening = _OPENING.search(text)
    kept: list[str] = []
    at = 0
    while opening:
        kept.append(text[at : opening.start()])
        closing = re.compile(rf"</{opening[1]}>", re.IGNORECASE).search(text, opening.end())
        if closing is None:  # it was cut off, or never ended: what looks like a summary still is
            at = _first_heading(text, opening.end())
            break
        at = closing.end()
        opening = _OPENING.search(text, at)
    return "".join((*kept, text[at:]))


def _first_heading(text: str, start: int) -> int:
    for line in re.finditer(r"^#{1,6} .*$", text[start:], re.MULTILINE):
        heading = HEADING.match(line.group())
        if heading and match_heading(_plain(heading[2])):
            return start + line.start()
    return len(text)


def _without_outer_fence(lines: list[str]) -> list[str]:
    filled = [n for n, line in enumerate(lines) if line.strip()][: _PREAMBLE_LINES + 1]
    first = next((n for n in filled if _OUTER_FENCE.match(lines[n])), None)
    fence = _OUTER_FENCE.match(lines[first]) if first is not None else None
    if first is None or fence is None or fence[1].lower() not in _OUTER_LANGUAGES:
        return lines
    fences = [n for n, line in enumerate(lines) if n > first and _OUTER_FENCE.match(line)]
    if not fence[1] and len(fences) != 1:  # it is unclear which fence ends it
        return lines
    last = fences[-1] if len(fences) % 2 else None
    return [line for n, line in enumerate(lines) if n not in {first, last}]


class _MarkdownParser:
    """Parses lines of Markdown or plain text, and adds their claims to the summary."""

    def __init__(self, found: ParsedSummary) -> None:
        self._found = found
        self._levels: list[tuple[int, Slot]] = []
        """The slots of the headings above the current line."""
        self._label = ""
        """A heading that says more than its slot: it goes before the next claim."""
        self._open: list[str] = []
        """The lines of a claim that may continue."""
        self._listed = False
        """Whether the open claim is an item of a list."""
        self._fence = ""
        self._head = ""
        """A row of a table that may be its head."""

    def parse(self, lines: list[str]) -> None:
        fences = [index for index, line in enumerate(lines) if FENCE.match(line)]
        last = fences[len(fences) // 2 * 2 - 1] if len(fences) > 1 else -1  # that closes another
        for index, line in enumerate(lines):
            fence = FENCE.match(line)
            if self._fence:
                self._in_fence(line, last=index == last)
            elif fence and index < last:
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
        elif FENCE.match(line):  # without an end it is no fence
            self._end()
            self._claim(line.strip().strip("`~").strip())
        elif RULE.match(line):
            self._rule(line)
        elif ROW.match(line):
            self._end()
            cells = (cell.strip() for cell in line.strip().strip("|").split("|"))
            self._head = " | ".join(cell for cell in cells if cell)
        elif not self._is_heading(line):
            self._words(line)

    def _rule(self, line: str) -> None:
        # It may be under a heading or the head of a table.
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
            name = _spaced(tag[2])
            if not match_heading(name):
                return False
            self._end()
            if not tag[1]:
                self._heading(name, _LABEL_LEVEL)
        elif (tagged := TAGGED.match(line)) and match_heading(_spaced(tagged[1])):
            self._heading(_spaced(tagged[1]), _LABEL_LEVEL)
            self._words(tagged[2])
            self._end()
        else:
            return False
        return True

    def _heading(self, text: str, level: int) -> None:
        self._end()
        if self._label:
            self._claim("")
        text = _plain(text)
        heading = match_heading(text)
        if self._is_title(text, heading, level):
            return
        while self._levels and self._levels[-1][0] >= level:
            self._levels.pop()
        if heading:
            self._levels.append((level, heading.slot))
        self._label = "" if heading and heading.exact else text

    def _is_title(self, text: str, heading: HeadingMatch | None, level: int) -> bool:
        """Whether it is the title of the summary: `# Work on X`, `## Summary: work on X`."""
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
        # A line may not be joined to the one before if that hid that it says something new.
        if bullet or not self._open or line[:1].isupper() or not line[:1].isascii():
            self._end()
            self._listed = bool(bullet)
        self._open.append(text)

    def _slotted(self, text: str, *, listed: bool) -> bool:
        """A line such as `Title: …`, `Obsolete: 3, 7` or `**Goal:** …`."""
        if self._slot == "obsolete" and self._obsolete(text):
            return True
        label = LABEL.match(text)
        heading = match_heading(label[1]) if label else None
        if label is None or heading is None or not heading.exact:
            return False
        rest = label[2].strip()
        if heading.slot == "title" and rest and not self._found.title:
            self._end()
            self._found.title = _plain(rest)
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
        """Whether the text is only numbers of obsolete claims."""
        digits = any(char.isdigit() for char in text[:_MAX_LIST])
        if says_nothing(text):
            return True
        if digits and len(text) < _MAX_LIST and _ONLY_NUMBERS.match(text):
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
        head, self._head = self._head, ""
        text, self._open = " ".join(self._open), []
        if head:
            self._claim(head)
        if not text:
            return
        sentences = [text]
        if not self._listed and len(text) > _LONG:  # each keeps the citations behind it
            sentences = _SENTENCE.sub("\\1\n", text).split("\n")
        for sentence in filter(None, map(str.strip, sentences)):
            self._claim(sentence)
        self._listed = False

    def _claim(self, text: str, *, block: bool = False) -> None:
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


def _plain(heading: str) -> str:
    """A heading without its decoration and its number."""
    bare = _DECORATION.sub("", heading).strip().rstrip("#").strip()
    return _ORDINAL.sub("", bare).rstrip(":：").strip()


def _spaced(name: str) -> str:
    return name.replace("_", " ").replace("-", " ")


class _Pairs(list[tuple[str, object]]):
    """A JSON object with all of its fields, even if two have the same name."""


def _parse_json(text: str) -> tuple[ParsedSummary, str] | None:
    """The summary in the JSON at the start of a text, if there is one, and the text after it."""
    found = ParsedSummary()
    try:
        value, rest = _decoded(text)
        if isinstance(value, _Pairs):
            _read_fields(value, found)
        elif isinstance(value, list):
            _read_items(cast("list[object]", value), "notes", "", found)
    except RecursionError:  # no summary is nested so deep
        return None
    return (found, rest) if found.claims or found.title or found.obsolete else None


def _decoded(text: str) -> tuple[object, str]:
    try:
        value, end = json.JSONDecoder(object_pairs_hook=_Pairs).raw_decode(text)
        return cast("object", value), text[end:]
    except ValueError:
        pass
    try:  # it was cut off
        return _as_pairs(from_json(text, allow_partial="trailing-strings")), ""
    except ValueError:
        return None, text


def _as_pairs(value: object) -> object:
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        return _Pairs((key, _as_pairs(one)) for key, one in fields.items())
    if isinstance(value, list):
        return [_as_pairs(one) for one in cast("list[object]", value)]
    return value


def _read_fields(fields: _Pairs, found: ParsedSummary, subject: Subject = "notes") -> None:
    for name, value in fields:
        heading = match_heading(name.replace("_", " "))
        slot = heading.slot if heading else subject
        label = "" if heading and heading.exact else name
        if slot == "title" and isinstance(value, str) and not found.title:
            found.title = " ".join(value.split())
        elif slot == "obsolete" and (given := _numbers(value)):
            found.obsolete += given
        elif slot in {"title", "obsolete", "summary"}:
            _read_items(value, subject, label, found)
        else:
            _read_items(value, cast("Subject", slot), label, found)


def _read_items(value: object, subject: Subject, label: str, found: ParsedSummary) -> None:
    """Add claims on one subject; the label goes before the first."""
    match value:
        case _Pairs() if value:
            point = _point(value)
            if point:
                found.add(subject, _labelled(label, point[0]), point[1])
            else:
                if label:
                    found.add(subject, f"{label}:")
                _read_fields(value, found, subject)
        case None | []:
            found.add(subject, label)
        case list():
            for one in cast("list[object]", value):
                _read_items(one, subject, label, found)
                label = ""
        case _:
            text = value if isinstance(value, str) else json.dumps(value)
            for line in [line for line in text.splitlines() if line.strip()] or [""]:
                found.add(subject, *cited(_labelled(label, line)))
                label = ""


def _labelled(label: str, text: str) -> str:
    return f"{label}: {text}" if label else text


def _point(fields: _Pairs) -> tuple[str, tuple[int, ...]] | None:
    """An object that is one claim: a text, perhaps with citations, and nothing else."""
    texts = [value for name, value in fields if name.lower() in _TEXTS]
    cites = [value for name, value in fields if name.lower() in _CITES]
    if len(texts) != 1 or len(texts) + len(cites) != len(fields):
        return None
    if not isinstance(texts[0], str):
        return None
    text, named = cited(" ".join(texts[0].split()))
    return text, tuple(dict.fromkeys((*(n for one in cites for n in _numbers(one)), *named)))


def _numbers(value: object) -> tuple[int, ...]:
    return tuple(dict.fromkeys(_each_number(value)))


def _each_number(value: object) -> Iterator[int]:
    match value:
        case bool() | None:
            return
        case int():
            if value > 0:
                yield value
        case str():
            yield from numbers(value[:1_000])
        case list():
            for one in cast("list[object]", value):
                yield from _each_number(one)
        case _:
            return
