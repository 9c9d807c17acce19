"""What lies beneath a fold: the messages themselves, a page at a time.

A page never has more characters than asked for. Where a message does not fit, the page ends inside
it and the next one goes on there, so the pages together hold every character once.
"""

import re
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from refold.errors import InvalidInput
from refold.log import CODEC, Artifact, Entry, FoldCompleted, Log, Message, PartRef, Span
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
"""How many characters a page has, unless told otherwise."""
FEWEST = 300
"""The fewest characters that a page can be asked to have."""
_AT_ONCE = 64
_BACK = 32  # entries before a page in which the call of a result is looked for
_WORTHWHILE = 80
_NAME = 40
_BETWEEN = "\n\n"


class Cursor(NamedTuple):
    """Where a page begins: a message, and a character of its text."""

    seq: int
    start: int = 0


@dataclass(frozen=True, slots=True)
class Piece:
    """A message on a page, or as much of it as is there."""

    entry: EntryText
    """The message; its text is only what is on this page."""
    start: int
    chars: int
    """How many characters the whole message has."""
    tool: str | None = None
    """The tool whose result it is."""

    @property
    def end(self) -> int:
        """The character of the message with which the next page goes on, if it is not whole."""
        return self.start + len(self.entry.text)

    @property
    def heading(self) -> str:
        """Its seq, who speaks, and how much of it this is."""
        told = self.entry
        scope = f" in {on_one_line(told.scope)[:_NAME]}" if told.scope != "/" else ""
        tool = f" ({on_one_line(self.tool)[:_NAME]})" if self.tool else ""
        cut = self.start or self.end < self.chars
        of = f", characters {self.start + 1}-{self.end} of {self.chars}" if cut else ""
        return f"[{told.seq}] {told.role}{scope}{tool}{of}"

    @property
    def text(self) -> str:
        """The heading and the text."""
        return f"{self.heading}\n{self.entry.text}"


@dataclass(frozen=True, slots=True)
class Page:
    """Some messages in order, and where the next page begins."""

    pieces: tuple[Piece, ...]
    next: Cursor | None = None

    @property
    def text(self) -> str:
        """All of it, to be read."""
        return _BETWEEN.join(piece.text for piece in self.pieces)


async def spans_of_fold(log: Log, session: str, seq: int) -> tuple[Span, ...]:
    """The spans that the fold at `seq` stands for; none when no fold is there."""
    for entry in await log.read(session, Span(seq, seq)):
        match CODEC.decode(entry):
            case FoldCompleted(spans=spans):
                return union(spans)
            case _:
                pass
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
    """A page of what the spans hold; `start` is what the page before gave as `next`."""
    if chars < FEWEST:
        raise InvalidInput(f"A page of {chars} characters is too small.", f"Ask for {FEWEST}.")
    reader = reader or Reader()
    at = start or Cursor(1)
    wanted = await _readable(log, session, spans, at.seq, reader)
    wire = wire_of((await log.info(session)).format)
    tools = await _calls(log, session, wire, wanted)
    page = _Filling(chars)
    async for entry in _entries(log, session, wanted, reader):
        told = entry_text(wire, entry)
        tool = _note_tools(wire, entry, tools)
        left = page.add(told, at.start if entry.seq == at.seq else 0, tool)
        if left is not None:
            return Page(tuple(page.pieces), left)
    return Page(tuple(page.pieces))


class _Filling:
    """A page while it is being filled."""

    def __init__(self, chars: int) -> None:
        self.pieces: list[Piece] = []
        self._room = chars

    def add(self, told: EntryText, start: int, tool: str | None) -> Cursor | None:
        """Add a message from that character on; where to go on, if it does not fit."""
        between = len(_BETWEEN) if self.pieces else 0
        start = min(start, len(told.text))
        rest = _piece(told, start, len(told.text), tool)
        if between + len(rest.text) <= self._room:
            self._put(rest, between)
            return None
        longest = _piece(told, start, len(told.text) - 1, tool).heading  # its numbers are longest
        room = self._room - between - len(longest) - 1
        if self.pieces and room < _WORTHWHILE:
            return Cursor(told.seq, start)
        self._put(_piece(told, start, start + room, tool), between)
        return Cursor(told.seq, start + room)

    def _put(self, piece: Piece, between: int) -> None:
        self.pieces.append(piece)
        self._room -= between + len(piece.text)


def _piece(told: EntryText, start: int, end: int, tool: str | None) -> Piece:
    part = EntryText(told.seq, told.at, told.scope, told.role, told.text[start:end], told.parts)
    return Piece(part, start, len(told.text), tool)


async def _readable(
    log: Log, session: str, spans: Span | Iterable[Span], first: int, reader: Reader
) -> tuple[Span, ...]:
    """Which of the spans there are, from a seq on, for this reader."""
    head = await log.head(session)
    there = union([spans] if isinstance(spans, Span) else spans)
    there = intersect(there, (Span(first, head),) if first <= head else ())
    return there if reader.off_line else intersect(there, (await outline_of(log, session))[1])


async def _entries(
    log: Log, session: str, spans: tuple[Span, ...], reader: Reader
) -> AsyncIterator[Entry]:
    """What the reader may see of the spans, whole, read a little at a time."""
    for span in spans:
        for first in range(span.first, span.last + 1, _AT_ONCE):
            some = Span(first, min(first + _AT_ONCE - 1, span.last))
            for entry in await log.read(session, some, whole=False):
                if reader.may_see(entry.kind, entry.scope):
                    yield await whole(log, session, entry)


async def _calls(
    log: Log, session: str, wire: Wire | None, spans: tuple[Span, ...]
) -> dict[str | None, str]:
    """The tools of the calls just before a page, whose results may be on it."""
    tools: dict[str | None, str] = {}
    if spans and spans[0].first > 1:
        first = spans[0].first
        before = Span(max(1, first - _BACK), first - 1)
        for entry in await log.read(session, before, whole=False):
            _note_tools(wire, entry, tools)
    return tools


def _note_tools(wire: Wire | None, entry: Entry, tools: dict[str | None, str]) -> str | None:
    """Keep which tools a message calls; the tool whose result it is, if it is one."""
    returned = None
    if entry.kind == Message.KIND and not entry.forgotten:
        for shape in shapes_of(wire, entry)[1]:
            if shape.kind == "call" and shape.tool:
                tools[shape.call] = shape.tool
            elif shape.kind == "return":
                returned = returned or shape.tool or tools.get(shape.call)
    return returned


# Reading what a reference stands for: an archived result, clipped arguments, an artifact.

_PART = re.compile(r"(?:\bpart |^\s*)(\d{1,10})\.(\d{1,6})\b")


@dataclass(frozen=True, slots=True)
class Text:
    """As much of a text as was asked for."""

    name: str
    """What it is: "return read_file", a media type."""
    text: str
    start: int
    chars: int
    """How many characters the whole has."""

    @property
    def next(self) -> int | None:
        """The character to go on with; None at the end."""
        end = self.start + len(self.text)
        return end if end < self.chars else None


def part_ref(reference: str) -> PartRef:
    """The part that a reference names: `[…archived: 9000 chars, part 12.0]`, or `12.0`."""
    found = _PART.search(reference)
    if found is None:
        raise InvalidInput("That names no part.", "Give it as in the reference, such as 12.0.")
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
    """The text of a part as it was before a view archived or clipped it."""
    reader = reader or Reader()
    wire = wire_of((await log.info(session)).format)
    found = await log.read(session, Span(part.seq, part.seq)) if part.seq > 0 else []
    for entry in found:
        if not reader.may_see(entry.kind, entry.scope) or entry.forgotten:
            break
        if not reader.off_line and not await _on_line(log, session, entry.seq):
            break
        shapes = shapes_of(wire, entry)[1]
        if part.index < len(shapes):
            shape = shapes[part.index]
            return _cut(label(shape), shape.text, start, chars)
    raise InvalidInput(
        f"There is no part {part.seq}.{part.index} to be read.",
        "Give it as in the reference, such as 12.0.",
    )


async def read_artifact(log: Log, hash: str, *, chars: int = PAGE, start: int = 0) -> Text:  # noqa: A002 - the glossary's word
    """The text of an artifact; for one that is no text, what it is."""
    artifact = await log.artifact(hash)
    return _cut(artifact.media_type, _text(artifact), start, chars)


def _text(artifact: Artifact) -> str:
    try:
        return artifact.data.decode()
    except UnicodeDecodeError:
        return f"({artifact.media_type}, {len(artifact.data):,} bytes)"


def _cut(name: str, text: str, start: int, chars: int) -> Text:
    if start < 0 or chars < 1:
        raise InvalidInput(f"No {chars} characters begin at {start}.")
    return Text(name, text[start : start + chars], start, len(text))


async def _on_line(log: Log, session: str, seq: int) -> bool:
    _, line = await outline_of(log, session)
    return any(seq in span for span in line)
