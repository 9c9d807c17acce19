"""A session as a person reads it: messages and events in order, with what folds replaced.

The messages that a fold replaced, and those that were rewound or cleared, come as a group: it
opens, its content follows, and it closes. So a reader can leave a group shut.
"""

import json
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, cast

from refold.fold.summary import parse
from refold.log import (
    CODEC,
    Cleared,
    Entry,
    Findings,
    FoldCompleted,
    FoldFailed,
    FoldUndone,
    Log,
    Message,
    Note,
    Outline,
    Rewound,
    Span,
    Titled,
)
from refold.log.entry import subtract, up_to
from refold.models import counter_for
from refold.recall.text import shapes_of, wire_of
from refold.terminal_text import counted
from refold.wire import Shape, Wire

COMPACTED: Final = "Conversation Compacted"
_PAGE = 100


@dataclass(frozen=True, slots=True)
class MessageMoment:
    """A message, a note that no model sees, or what a delegated agent found."""

    seq: int
    at: int
    """Milliseconds since 1970, UTC."""
    role: str
    """System, user, assistant or tool; or a note, or findings of a delegated agent."""
    shapes: tuple[Shape, ...]
    scope: str = "/"
    forgotten: bool = False
    body: bytes = b""
    """The raw JSON of the message in its own format; empty if it is none."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """A fold: how much it replaces, and its summary."""

    seq: int
    at: int
    messages: int
    tokens: int
    """Of the messages, about."""
    shown: int
    """Tokens of the summary, about."""
    by: str
    """The writer of the summary."""
    text: str
    title: str = ""
    spans: tuple[Span, ...] = ()
    stands: bool = True
    """Whether it applies: it was not taken back, rewound or cleared."""

    @property
    def removed(self) -> int:
        return max(0, self.tokens - self.shown)

    @property
    def effect(self) -> str:
        removed = (
            f"{counted(self.messages, 'message')} and {counted(self.removed, 'token')} removed"
        )
        return f"{removed} ({self.tokens:,} in full, {self.shown:,} in the summary)"

    @property
    def sentence(self) -> str:
        messages = counted(self.messages, "message")
        return f"{COMPACTED}: {messages} → {counted(self.shown, 'token')}"


@dataclass(frozen=True, slots=True)
class RemovedSpan:
    """Entries that were rewound or cleared, and are still in the log."""

    first: int
    last: int
    messages: int
    how: str
    """Rewound, or cleared."""

    @property
    def sentence(self) -> str:
        return f"{self.how}: {counted(self.messages, 'message')} no longer in the conversation"


@dataclass(frozen=True, slots=True)
class Marked:
    """An event that is neither a message nor a fold."""

    seq: int
    at: int
    text: str


@dataclass(frozen=True, slots=True)
class Opens:
    """The start of a group: everything up to its `Closes` belongs to it."""

    group: Compacted | RemovedSpan


@dataclass(frozen=True, slots=True)
class Closes:
    """The end of the group that opened last."""

    group: Compacted | RemovedSpan


Moment = MessageMoment | Compacted | Marked | Opens | Closes
"""A fold that applies comes as a group, one that does not by itself."""


@dataclass(slots=True)
class _Range:
    first: int
    last: int
    group: Compacted | RemovedSpan


async def moments(log: Log, session: str) -> AsyncIterator[Moment]:
    """The session from its beginning, read a little at a time."""
    visible = await log.visible(session, last=0)
    head, wire = visible.info.entries, wire_of(visible.info.format)
    ranges = [*await _folds(log, session, visible.outline, wire)]
    standing = {place.group.seq for place in ranges if isinstance(place.group, Compacted)}
    ranges += await _removed_spans(log, session, visible.outline, head)
    waiting = sorted(ranges, key=lambda place: (-place.first, place.last))
    inside: list[_Range] = []
    for first in range(1, head + 1, _PAGE):
        for entry in await log.read(session, Span(first, min(first + _PAGE - 1, head))):
            while inside and inside[-1].last < entry.seq:
                yield Closes(inside.pop().group)
            while waiting and waiting[-1].first <= entry.seq:
                place = waiting.pop()
                place.last = min(place.last, inside[-1].last) if inside else place.last
                inside.append(place)
                yield Opens(place.group)
            if entry.seq not in standing and (moment := _moment(entry, wire)) is not None:
                yield moment
    for place in reversed(inside):
        yield Closes(place.group)


def day_and_time(milliseconds: int) -> str:
    """The time since 1970 in ISO 8601, to the second."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds")


def clip(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: max(0, width - 1)]}…"


def _moment(entry: Entry, wire: Wire | None) -> Moment | None:
    if entry.kind not in (Message.KIND, Note.KIND):
        return _event(entry)
    if entry.forgotten:
        return MessageMoment(entry.seq, entry.at, "forgotten", (), entry.scope, forgotten=True)
    if entry.kind == Note.KIND and not entry.holes:
        match CODEC.decode(entry):
            case Note(is_internal=True):
                return None
            case _:
                pass
    role, shapes = shapes_of(wire, entry)
    body = entry.body if entry.kind == Message.KIND else b""
    return MessageMoment(entry.seq, entry.at, role, shapes, entry.scope, body=body)


def _event(entry: Entry) -> Moment | None:
    place = entry.seq, entry.at
    match CODEC.decode(entry):
        case Titled(title):
            return Marked(*place, f"Title: {title}")
        case FoldFailed(reason=reason):
            return Marked(*place, f"A fold was not made: {reason}")
        case FoldUndone():
            return Marked(*place, "A fold was taken back")
        case FoldCompleted() as fold:
            return _compacted(entry, fold, stands=False)
        case Findings(spans=spans, summary=summary) if spans:
            found = parse(summary)
            shapes = (Shape("text", found.text or found.words),)
            return MessageMoment(*place, "findings", shapes, entry.scope)
        case _:
            return None


async def _folds(log: Log, session: str, outline: Outline, wire: Wire | None) -> list[_Range]:
    """The folds on the session's line, nested ones included."""
    ranges: dict[int, _Range] = {}
    waiting = [fold.seq for fold in outline.folds]
    while waiting:
        seq = waiting.pop()
        if seq in ranges:
            continue
        for entry in await log.read(session, Span(seq, seq)):
            match CODEC.decode(entry):
                case FoldCompleted(spans=spans, summary=summary) as completed if spans:
                    waiting += parse(summary).over
                    fold = _compacted(entry, completed, stands=True)
                    if not (fold.messages and fold.tokens):
                        fold = await _measured(log, session, fold, wire)
                    ends = min(s.first for s in spans), max(s.last for s in spans)
                    ranges[seq] = _Range(*ends, fold)
                case _:  # forgotten
                    pass
    return list(ranges.values())


def _compacted(entry: Entry, fold: FoldCompleted, *, stands: bool) -> Compacted:
    summary = parse(fold.summary)
    text = summary.text or summary.words
    return Compacted(
        entry.seq,
        entry.at,
        summary.messages,
        summary.tokens,
        counter_for("").text(text),
        summary.by,
        text,
        summary.title,
        fold.spans,
        stands,
    )


async def _measured(log: Log, session: str, fold: Compacted, wire: Wire | None) -> Compacted:
    """The counts of a fold that was written by hand and does not have them."""
    counter = counter_for("")
    messages = tokens = 0
    async for entry in _of(log, session, fold.spans):
        if entry.kind == Message.KIND and not entry.forgotten:
            messages += 1
            tokens += sum(map(counter.part, shapes_of(wire, entry)[1]))
    return replace(fold, messages=fold.messages or messages, tokens=fold.tokens or tokens)


async def _removed_spans(log: Log, session: str, outline: Outline, head: int) -> list[_Range]:
    ranges: list[_Range] = []
    for span in subtract(up_to(head), outline.on_line(head)):
        messages, how = 0, "Rewound"
        async for entry in _of(log, session, (span,), whole=False):
            messages += entry.kind == Message.KIND
            how = {Cleared.KIND: "Cleared", Rewound.KIND: "Rewound"}.get(entry.kind, how)
        if messages:
            removed = RemovedSpan(span.first, span.last, messages, how)
            ranges.append(_Range(span.first, span.last, removed))
    return ranges


async def _of(
    log: Log, session: str, spans: Iterable[Span], *, whole: bool = True
) -> AsyncIterator[Entry]:
    for span in spans:
        for first in range(span.first, span.last + 1, _PAGE):
            some = Span(first, min(first + _PAGE - 1, span.last))
            for entry in await log.read(session, some, whole=whole):
                yield entry


def call_line(shape: Shape) -> str:
    """The tool and its arguments."""
    return f"{shape.tool or 'tool'} {arguments_line(shape.text)}".rstrip()


def arguments_line(arguments: str) -> str:
    """Arguments as a person would write them: path=src/app.py, lines=40."""
    try:
        values: Any = json.loads(arguments)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        return " ".join(arguments.split())
    texts = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in cast("dict[str, object]", values).items()
    }
    return ", ".join(f"{name}={' '.join(text.split())}" for name, text in texts.items())


class Tools:
    """The tool of each call, because a result may not name it."""

    def __init__(self) -> None:
        self._of: dict[str | None, str] = {}

    def note(self, shape: Shape) -> None:
        if shape.kind == "call" and shape.tool:
            self._of[shape.call] = shape.tool

    def of(self, shape: Shape) -> str:
        return shape.tool or self._of.get(shape.call) or "tool"
