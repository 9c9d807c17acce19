"""Rereading the log: messages beneath folds a page at a time, parts and artifacts.

A page never exceeds its limit of characters. If a message does not fit, the page ends inside it and
the next one continues there, so that the pages together have every character once.
"""

import re
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from refold.errors import InvalidInput
from refold.log import CODEC, Entry, FoldCompleted, Log, Message, PartRef, Span
from refold.log.entry import intersect, union
from refold.recall.text import (
    EntryText,
    Reader,
    entry_text,
    label,
    outline_of,
    shapes_of,
    whole,
    wire_of,
)
from refold.view.framing import on_one_line
from refold.wire import Wire

PAGE = 8_000
"""The default number of characters of a page."""
MIN_PAGE = 300
_BATCH = 64  # entries that are read at once
_CALLS_BEFORE = 32  # entries before a page among which the call of a result is looked for
_MIN_PIECE = 80
_MAX_NAME = 40
_SEPARATOR = "\n\n"
_PART = re.compile(r"(?:\bpart |^\s*)(\d{1,10})\.(\d{1,6})\b")


class Cursor(NamedTuple):
    """Where a page starts: a message, and a character of its text."""

    seq: int
    start: int = 0


@dataclass(frozen=True, slots=True)
class Piece:
    """A message on a page, or a piece of it."""

    entry: EntryText
    """The message, with only the text that is on this page."""
    start: int
    chars: int
    """How many characters the whole message has."""
    tool: str | None = None
    """The tool whose result it is."""

    @property
    def end(self) -> int:
        """The character of the message with which the next page continues."""
        return self.start + len(self.entry.text)

    @property
    def heading(self) -> str:
        entry = self.entry
        scope = f" in {on_one_line(entry.scope)[:_MAX_NAME]}" if entry.scope != "/" else ""
        tool = f" ({on_one_line(self.tool)[:_MAX_NAME]})" if self.tool else ""
        cut = self.start or self.end < self.chars
        of = f", characters {self.start + 1}-{self.end} of {self.chars}" if cut else ""
        return f"[{entry.seq}] {entry.role}{scope}{tool}{of}"

    @property
    def text(self) -> str:
        return f"{self.heading}\n{self.entry.text}"


@dataclass(frozen=True, slots=True)
class Page:
    """Some messages in order, and where the next page starts."""

    pieces: tuple[Piece, ...]
    next: Cursor | None = None

    @property
    def text(self) -> str:
        return _SEPARATOR.join(piece.text for piece in self.pieces)


async def spans_of_fold(log: Log, session: str, seq: int) -> tuple[Span, ...]:
    """The spans that the fold at `seq` stands for; none if there is not a fold."""
    for entry in await log.read(session, Span(seq, seq)):
        value = CODEC.decode(entry)
        if isinstance(value, FoldCompleted):
            return union(value.spans)
    return ()


async def unfold(  # noqa: PLR0913 - a place, and how much of it for whom
    log: Log,
    session: str,
    spans: Span | Iterable[Span],
    *,
    chars: int = PAGE,
    start: Cursor | None = None,
    reader: Reader | None = None,
) -> Page:
    """A page of the spans' messages; `start` is the `next` of the page before."""
    if chars < MIN_PAGE:
        raise InvalidInput(f"A page of {chars} characters is too small.", f"Ask for {MIN_PAGE}.")
    reader = reader or Reader()
    cursor = start or Cursor(1)
    head = await log.head(session)
    readable = union([spans] if isinstance(spans, Span) else spans)
    readable = intersect(readable, (Span(cursor.seq, head),) if cursor.seq <= head else ())
    if not reader.off_line:
        readable = intersect(readable, (await outline_of(log, session))[1])
    wire = wire_of((await log.info(session)).format)
    tools = await _calls(log, session, wire, readable)
    page = _PageBuilder(chars)
    async for entry in _entries(log, session, readable, reader):
        text = entry_text(wire, entry)
        tool = _note_tools(wire, entry, tools)
        rest = page.add(text, cursor.start if entry.seq == cursor.seq else 0, tool)
        if rest is not None:
            return Page(tuple(page.pieces), rest)
    return Page(tuple(page.pieces))


class _PageBuilder:
    def __init__(self, chars: int) -> None:
        self.pieces: list[Piece] = []
        self._room = chars

    def add(self, entry: EntryText, start: int, tool: str | None) -> Cursor | None:
        """Add a message from that character on; where to continue, if it does not fit."""
        separator = len(_SEPARATOR) if self.pieces else 0
        length = len(entry.text)
        start = min(start, length)

        def piece(end: int) -> Piece:
            return Piece(replace(entry, text=entry.text[start:end]), start, length, tool)

        rest = piece(length)
        following = None
        if separator + len(rest.text) > self._room:
            longest = piece(length - 1).heading  # no other end has more digits
            room = self._room - separator - len(longest) - 1
            if self.pieces and room < _MIN_PIECE:
                return Cursor(entry.seq, start)
            rest, following = piece(start + room), Cursor(entry.seq, start + room)
        self.pieces.append(rest)
        self._room -= separator + len(rest.text)
        return following


async def _entries(
    log: Log, session: str, spans: tuple[Span, ...], reader: Reader
) -> AsyncIterator[Entry]:
    """What the reader may see of the spans, read in batches."""
    for span in spans:
        for first in range(span.first, span.last + 1, _BATCH):
            batch = Span(first, min(first + _BATCH - 1, span.last))
            for entry in await log.read(session, batch, whole=False):
                if reader.may_see(entry.kind, entry.scope):
                    yield await whole(log, session, entry)


async def _calls(
    log: Log, session: str, wire: Wire | None, spans: tuple[Span, ...]
) -> dict[str | None, str]:
    """The tools of the calls just before a page, whose results may be on it."""
    tools: dict[str | None, str] = {}
    if spans and spans[0].first > 1:
        first = spans[0].first
        before = Span(max(1, first - _CALLS_BEFORE), first - 1)
        for entry in await log.read(session, before, whole=False):
            _note_tools(wire, entry, tools)
    return tools


def _note_tools(wire: Wire | None, entry: Entry, tools: dict[str | None, str]) -> str | None:
    """Note the tools that a message calls; the tool whose result it is, if it is one."""
    returned = None
    if entry.kind == Message.KIND and not entry.forgotten:
        for shape in shapes_of(wire, entry)[1]:
            if shape.kind == "call" and shape.tool:
                tools[shape.call] = shape.tool
            elif shape.kind == "return":
                returned = returned or shape.tool or tools.get(shape.call)
    return returned


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of a text."""

    name: str
    """What the text is: "return read_file", a media type."""
    text: str
    start: int
    chars: int
    """How many characters the whole text has."""

    @property
    def next(self) -> int | None:
        """The character to continue with; None at the end."""
        end = self.start + len(self.text)
        return end if end < self.chars else None


def part_ref(reference: str) -> PartRef:
    """The part that a reference names: `[…archived: 9000 chars, part 12.0]`, or `12.0`."""
    found = _PART.search(reference)
    if found is None:
        raise InvalidInput("That names no part.", "Name it as in the reference, such as 12.0.")
    return PartRef(int(found[1]), int(found[2]))


async def read_part(  # noqa: PLR0913 - a place, and how much of it for whom
    log: Log,
    session: str,
    part: PartRef,
    *,
    chars: int = PAGE,
    start: int = 0,
    reader: Reader | None = None,
) -> Text:
    """The original text of a part that the view shows archived or clipped."""
    reader = reader or Reader()
    wire = wire_of((await log.info(session)).format)
    entries = await log.read(session, Span(part.seq, part.seq)) if part.seq > 0 else []
    for entry in entries:
        if not reader.may_see(entry.kind, entry.scope) or entry.forgotten:
            break
        if not reader.off_line:
            _, line = await outline_of(log, session)
            if not any(entry.seq in span for span in line):
                break
        shapes = shapes_of(wire, entry)[1]
        if part.index < len(shapes):
            shape = shapes[part.index]
            return _cut(label(shape), shape.text, start, chars)
    raise InvalidInput(
        f"There is no part {part.seq}.{part.index} to be read.",
        "Name it as in the reference, such as 12.0.",
    )


async def read_artifact(log: Log, hash: str, *, chars: int = PAGE, start: int = 0) -> Text:  # noqa: A002 - the glossary's word
    """The text of an artifact; of a binary one, its type and size."""
    artifact = await log.artifact(hash)
    try:
        text = artifact.data.decode()
    except UnicodeDecodeError:
        text = f"({artifact.media_type}, {len(artifact.data):,} bytes)"
    return _cut(artifact.media_type, text, start, chars)


def _cut(name: str, text: str, start: int, chars: int) -> Text:
    if start < 0 or chars < 1:
        raise InvalidInput(f"No {chars} characters begin at {start}.")
    return Text(name, text[start : start + chars], start, len(text))
