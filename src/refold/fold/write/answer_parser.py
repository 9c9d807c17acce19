"""Parses a summary in whatever form a model wrote it: Markdown, JSON or prose. No line is lost.

Thinking before it and courtesies around it are left out.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, cast

from pydantic_core import from_json

from refold.fold.write.phrases import (
    Slot,
    Subject,
    cited,
    match_heading,
    numbers,
    says_nothing,
    split_quote,
    without_courtesies,
)

# ruff: noqa: RUF001 - signs of typography, and of Chinese text

_HEADING = re.compile(r"^ {0,3}(#{1,6})(?:\s+|(?=[^\s#\d]))(\S.*)$")
_BOLD = re.compile(r"^\s*(?:\d{1,3}[.)]\s+)?(\*\*|__)(?!\s)([^*_]{1,120})\1\s*[:：]?\s*$")
_TAG = re.compile(r"^\s*<(/?)([A-Za-z][\w-]{1,40})>(?:(.*)</\2>)?\s*$")
_BULLET = re.compile(r"^\s*(?:[-*+•‣◦·–—▪●○➤→✓✔]|\(?\d{1,3}[.)]|[a-zA-Z][.)])\s+(?=\S)")
_LABEL = re.compile(
    r"^(?:\*\*|__)?([^*_:：|`\[\]]{1,60}?)(?:[:：](?:\*\*|__)?|(?:\*\*|__)\s*[:：])\s*(.*)$"
)
_FENCE = re.compile(r"^\s*(?:```+|~~~+)\s*(\w*)(.*)$")
_ROW = re.compile(r"^\s*\|.*\|\s*$")
_RULE = re.compile(r"^\s*[|:=*_~-][|:=*_~\s-]+$")  # across the page, or under the head of a table
_ORDINAL = re.compile(r"^\(?\d{1,3}(?:\.\d{1,3}){0,3}[.)]?\s+")
_SENTENCE = re.compile(
    r"(?<=[.!?。！？])((?:[ \t]?\[[\d\s,–-]{1,60}\])?)"
    r"(?:[ \t]+(?=[^\s\[a-z])|(?<=[。！？])(?=[^\s\[」』”）)]))"
)
_ONLY_NUMBERS = re.compile(r"(?i)(?:[a-z]{1,12}\s{1,3})?(?:[\s\d,;.#\[\]()、&-]|and\b)*")
_NUMBERED = re.compile(r"^#?\[?(\d{1,6})\]?\s{0,2}[:(–—-]")
_MAX_LIST = 1_000  # characters of numbers
_LONG = 240  # characters from which a paragraph is read sentence by sentence
_LABEL_LEVEL: Final = 7  # below every heading

_TEXTS = ("text", "claim", "point", "statement", "content", "description", "summary", "fact")
_CITES = ("entries", "entry", "cites", "citations", "cite", "sources", "source", "refs", "seqs")
_THINKING = "think|thinking|thought|analysis|reasoning|scratchpad|reflection"
_OPENING = re.compile(rf"^[ \t]*<({_THINKING})>", re.IGNORECASE | re.MULTILINE)
_ONLY_CLOSING = re.compile(r"</(?:think|thinking)>[ \t]*$", re.IGNORECASE | re.MULTILINE)
_OUTER_LANGUAGES = ("", "markdown", "md", "text", "txt", "json", "plaintext")
_PREAMBLE_LINES = 3  # before a fence around everything


@dataclass(frozen=True, slots=True)
class DraftClaim:
    """One claim of a model, and the entries that it cites."""

    subject: Subject
    text: str
    cites: tuple[int, ...] = ()
    quote: str = ""
    """The words of an entry that it rests on, as the model gives them."""


@dataclass(slots=True)
class ParsedSummary:
    title: str = ""
    claims: list[DraftClaim] = field(default_factory=list[DraftClaim])
    obsolete: list[int] = field(default_factory=list[int])


def parse_answer(text: str) -> ParsedSummary:
    """Parse an answer, claim by claim."""
    text = _without_thinking(text.replace("\x00", " "))
    lines = without_courtesies(_without_outer_fence(text.splitlines()))
    first = next((n for n, line in enumerate(lines) if line.strip()), 0)
    if lines and lines[first].lstrip().startswith(("{", "[")):
        lines = _json_lines("\n".join(lines[first:]).lstrip())
    return _MarkdownParser().parse(lines)


def _without_thinking(text: str) -> str:
    opening = _OPENING.search(text)
    closing = _ONLY_CLOSING.search(text, 0, opening.start() if opening else len(text))
    if closing and "<think" not in text[: closing.start()].lower():
        text = text[closing.end() :]  # its opening was part of the prompt
    kept: list[str] = []
    at = 0
    while opening := _OPENING.search(text, at):
        kept.append(text[at : opening.start()])
        closing = re.compile(rf"</{opening[1]}>", re.IGNORECASE).search(text, opening.end())
        if closing is None:  # it was cut off, or never ended: what looks like a summary still is
            headings = re.compile(r"^#{1,6} (.*)$", re.MULTILINE).finditer(text, opening.end())
            starts = (one.start() for one in headings if match_heading(_plain(one[1])))
            at = next(starts, len(text))
            break
        at = closing.end()
    return "".join((*kept, text[at:]))


def _without_outer_fence(lines: list[str]) -> list[str]:
    marks = [(n, mark[1].lower()) for n, line in enumerate(lines) if (mark := _fence(line))]
    filled = [n for n, line in enumerate(lines) if line.strip()][: _PREAMBLE_LINES + 1]
    if not marks or marks[0][0] not in filled or marks[0][1] not in _OUTER_LANGUAGES:
        return lines
    (first, language), *others = marks
    if not language and len(others) != 1:  # it is unclear which fence ends it
        return lines
    last = others[-1][0] if len(others) % 2 else None
    return [line for n, line in enumerate(lines) if n not in {first, last}]


def _fence(line: str) -> re.Match[str] | None:
    """A fence with nothing behind it but a language."""
    mark = _FENCE.match(line)
    return mark if mark and not mark[2].strip() else None


class _MarkdownParser:
    """Parses lines of Markdown or plain text, and adds their claims to the summary."""

    def __init__(self) -> None:
        self._found = ParsedSummary()
        self._levels: list[tuple[int, Slot]] = []
        """The slots of the headings above the current line."""
        self._label = ""
        """A heading that says more than its slot: it goes before the next claim."""
        self._open: list[str] = []
        """The lines of a claim that may continue."""
        self._listed = False
        """Whether the open claim is an item of a list."""

    def parse(self, lines: list[str]) -> ParsedSummary:
        closing = [n for n, line in enumerate(lines) if (mark := _fence(line)) and not mark[1]]
        index = 0
        while index < len(lines):
            fence = _FENCE.match(lines[index])
            after = bisect_right(closing, index)
            if fence is None:
                self._line(lines[index])
            elif after < len(closing):
                self._end()
                self._claim("\n".join(lines[index : closing[after] + 1]), block=True)
                index = closing[after]
            else:  # without an end it is no fence
                self._end()
                self._claim(lines[index].strip(" \t`~"))
            index += 1
        self._heading("", _LABEL_LEVEL)
        return self._found

    def _line(self, line: str) -> None:
        if not line.strip():
            self._end()
        elif _RULE.match(line):
            if not self._listed and len(self._open) == 1 and line.strip()[0] in "=-":
                self._heading(self._open.pop(), 1 if "=" in line else 2)
            self._end()
        elif not self._is_heading(line):
            self._words(line)

    def _is_heading(self, line: str) -> bool:
        if heading := _HEADING.match(line):
            self._heading(heading[2], len(heading[1]))
        elif bold := _BOLD.match(line):
            self._heading(bold[2], _LABEL_LEVEL)
        elif (tag := _TAG.match(line)) and match_heading(re.sub("[_-]", " ", tag[2])):
            self._end()
            if not tag[1]:
                self._heading(re.sub("[_-]", " ", tag[2]), _LABEL_LEVEL)
            if tag[3]:
                self._words(tag[3])
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
        named = heading is not None and heading.slot in {"title", "summary"} and not heading.exact
        first = level == 1 and heading is None and not self._found.claims and not self._levels
        if text and not self._found.title and (named or first):
            # The title of the summary: `# Work on X`, `## Summary: work on X`.
            label = _LABEL.match(text) if named else None
            self._found.title, self._levels = (label[2] if label else "") or text, []
            return
        while self._levels and self._levels[-1][0] >= level:
            self._levels.pop()
        if heading:
            self._levels.append((level, heading.slot))
        self._label = "" if heading and heading.exact else text

    def _words(self, line: str) -> None:
        bullet, row = _BULLET.match(line), _ROW.match(line)
        text = line[bullet.end() :].strip() if bullet else line.strip()
        if row:
            cells = (cell.strip() for cell in text.strip("|").split("|"))
            text = " | ".join(cell for cell in cells if cell)
        if not text or self._slotted(text, listed=bool(bullet)):
            return
        # A line may not be joined to the one before if that hid that it says something new.
        if bullet or row or not self._open or line[:1].isupper() or not line[:1].isascii():
            self._end()
            self._listed = bool(bullet or row)
        self._open.append(text)

    def _slotted(self, text: str, *, listed: bool) -> bool:
        """A line such as `Title: …`, `Obsolete: 3, 7` or `**Goal:** …`."""
        if self._slot == "obsolete" and self._obsolete(text):
            return True
        label = _LABEL.match(text)
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
        if len(text) < _MAX_LIST and _ONLY_NUMBERS.fullmatch(text) and numbers(text):
            self._end()
            self._found.obsolete += numbers(text)
            return True
        if numbered := _NUMBERED.match(text):
            self._found.obsolete.append(int(numbered[1]))
        return says_nothing(text)

    @property
    def _slot(self) -> Slot:
        return self._levels[-1][1] if self._levels else "notes"

    def _end(self) -> None:
        text, self._open = " ".join(self._open), []
        sentences = [text]
        if not self._listed and len(text) > _LONG:  # each keeps the citations behind it
            sentences = _SENTENCE.sub("\\1\n", text).split("\n")
        for sentence in filter(None, map(str.strip, sentences)):
            self._claim(sentence)
        self._listed = False

    def _claim(self, text: str, *, block: bool = False) -> None:
        """A claim as it is written, with its citations and its quote; or a block of code."""
        text, quote = (text, "") if block else split_quote(text)
        text, cites = (text, ()) if block else cited(text)
        if self._label and not says_nothing(text):
            label, before = cited(self._label)
            text = f"{label}:{chr(10) if block else ' '}{text}" if label and text else text or label
            cites, self._label = tuple(dict.fromkeys((*before, *cites))), ""
        if text and not says_nothing(text):
            subject = "notes" if self._slot in {"title", "obsolete", "summary"} else self._slot
            claim = DraftClaim(cast("Subject", subject), text, cites, quote)
            self._found.claims.append(claim)


def _plain(heading: str) -> str:
    """A heading without its decoration and its number."""
    bare = re.sub(r"\*\*|__|`", "", heading).strip().rstrip("#").strip()
    return _ORDINAL.sub("", bare).rstrip(":：").strip()


def _json_lines(text: str) -> list[str]:
    """The JSON that a text begins with, and the text after it, as Markdown; or the text itself."""
    try:
        try:
            value, end = json.JSONDecoder(object_pairs_hook=_fields).raw_decode(text)
        except ValueError:  # perhaps it was cut off
            value, end = from_json(text, allow_partial="trailing-strings"), len(text)
        lines = [*_markdown(cast("object", value), 2)]
    except (ValueError, RecursionError):  # no summary is nested so deep
        return text.splitlines()
    if not any(map(str.isalpha, "".join(lines))):  # a citation
        return text.splitlines()
    return [*lines, *without_courtesies(text[end:].splitlines())]


def _fields(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object with all of its fields, even if two have the same name."""
    found: dict[str, object] = {}
    for name, value in pairs:
        found[name] = [found[name], value] if name in found else value
    return found


def _markdown(value: object, level: int) -> Iterator[str]:
    match value:
        case dict():
            fields = cast("dict[str, object]", value)
            point = _point({name.lower(): inner for name, inner in fields.items()})
            yield from [point] if point else ()
            for name, inner in () if point else fields.items():
                yield from _section(" ".join(name.split()), inner, level)
        case list():
            for one in cast("list[object]", value):
                yield from _markdown(one, level)
        case None:
            return
        case _:
            text = value if isinstance(value, str) else json.dumps(value)
            yield from (f"- {line}" for line in text.splitlines() if line.strip())


def _section(name: str, value: object, level: int) -> Iterator[str]:
    heading = match_heading(name)
    slot = heading.slot if heading and heading.exact else ""
    if slot == "title" and isinstance(value, str):
        yield f"Title: {' '.join(value.split())}"
    elif slot == "obsolete" and (given := [*_numbers(value)]):
        yield f"Obsolete: {', '.join(map(str, given))}"
    else:
        yield f"{'#' * min(level, 6)} {name}"
        yield from _markdown(value, level + 1)


def _point(fields: dict[str, object]) -> str:
    """An object that is one claim, as a line: a text, perhaps with citations and a quote."""
    texts = [value for name, value in fields.items() if name in _TEXTS]
    text, quote = texts[0] if len(texts) == 1 else None, fields.get("quote", "")
    if not fields.keys() <= {*_TEXTS, *_CITES, "quote"}:
        return ""
    if not isinstance(text, str) or not isinstance(quote, str):
        return ""
    cites = ", ".join(str(one) for name in _CITES for one in _numbers(fields.get(name)))
    line = f'- {text.strip() or quote} [{cites or 0}] "{quote.strip()}"'
    return " ".join(line.removesuffix(' ""').removesuffix(" [0]").split())


def _numbers(value: object) -> Iterator[int]:
    match value:
        case int() if not isinstance(value, bool) and value > 0:
            yield value
        case str():
            yield from numbers(value[:_MAX_LIST])
        case list():
            for one in cast("list[object]", value):
                yield from _numbers(one)
        case _:
            return
