"""A session as a person reads it: what was said and done in order, and what folds stand for.

What a fold stands for, and what was rewound or cleared, comes as a group: it opens, what lies in it
follows, and it closes. So whoever shows a session can leave a group shut.
"""

import json
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, cast

from refold.fold.summary import parse
from refold.log import (
    CODEC,
    Cleared,
    Entry,
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
from refold.wire import Shape, Wire

COMPACTED: Final = "Conversation Compacted"
_PAGE = 100


@dataclass(frozen=True, slots=True)
class Said:
    """A message, or a note that no model sees."""

    seq: int
    at: int
    """Milliseconds since 1970, UTC."""
    role: str
    """Who speaks: system, user, assistant or tool; or a note."""
    shapes: tuple[Shape, ...]
    scope: str = "/"
    forgotten: bool = False
    body: bytes = b""
    """The message in its own format, as its raw JSON; nothing of a note."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """A fold: what it stands for, and what it says instead."""

    seq: int
    at: int
    messages: int
    """How many messages it stands for."""
    tokens: int
    """About what they would cost in a request."""
    shown: int
    """About what is sent instead."""
    by: str
    """Who wrote the summary."""
    text: str
    """The summary."""
    title: str = ""
    spans: tuple[Span, ...] = ()
    stands: bool = True
    """Whether it stands for them now: it was not taken back, rewound or cleared."""

    @property
    def removed(self) -> int:
        """How many tokens a request has fewer."""
        return max(0, self.tokens - self.shown)

    @property
    def sentence(self) -> str:
        messages = counted(self.messages, "message")
        return f"{COMPACTED}: {messages} → {counted(self.shown, 'token')}"


@dataclass(frozen=True, slots=True)
class Aside:
    """What was rewound or cleared: nobody sees it any more, and it is still there."""

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
    """Something that happened and is neither a message nor a fold."""

    seq: int
    at: int
    text: str


@dataclass(frozen=True, slots=True)
class Opens:
    """From here on, until it closes, what lies in this group."""

    group: Compacted | Aside


@dataclass(frozen=True, slots=True)
class Closes:
    """The end of the group that opened last."""

    group: Compacted | Aside


Moment = Said | Compacted | Marked | Opens | Closes
"""A fold that stands comes as a group, one that does not by itself."""


@dataclass(slots=True)
class _Range:
    first: int
    last: int
    group: Compacted | Aside


async def moments(log: Log, session: str) -> AsyncIterator[Moment]:
    """The session from its beginning, read a little at a time."""
    visible = await log.visible(session, last=0)
    head, wire = visible.info.entries, wire_of(visible.info.format)
    ranges = [*await _folds(log, session, visible.outline, wire)]
    standing = {one.group.seq for one in ranges if isinstance(one.group, Compacted)}
    ranges += await _asides(log, session, visible.outline, head)
    waiting = sorted(ranges, key=lambda one: (-one.first, one.last))
    inside: list[_Range] = []
    for first in range(1, head + 1, _PAGE):
        for entry in await log.read(session, Span(first, min(first + _PAGE - 1, head))):
            while inside and inside[-1].last < entry.seq:
                yield Closes(inside.pop().group)
            while waiting and waiting[-1].first <= entry.seq:
                one = waiting.pop()
                one.last = min(one.last, inside[-1].last) if inside else one.last
                inside.append(one)
                yield Opens(one.group)
            if entry.seq not in standing and (found := _moment(entry, wire)) is not None:
                yield found
    for one in reversed(inside):
        yield Closes(one.group)


def counted(number: int, one: str) -> str:
    return f"{number:,} {one}{'' if number == 1 else 's'}"


def day_and_time(at: int) -> str:
    """A moment as ISO 8601 has it, to the second."""
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="seconds")


def _moment(entry: Entry, wire: Wire | None) -> Moment | None:
    if entry.kind not in (Message.KIND, Note.KIND):
        return _event(entry)
    if entry.forgotten:
        return Said(entry.seq, entry.at, "forgotten", (), entry.scope, forgotten=True)
    role, shapes = shapes_of(wire, entry)
    body = entry.body if entry.kind == Message.KIND else b""
    return Said(entry.seq, entry.at, role, shapes, entry.scope, body=body)


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
        case _:
            return None


async def _folds(log: Log, session: str, outline: Outline, wire: Wire | None) -> list[_Range]:
    found: dict[int, _Range] = {}
    waiting = [fold.seq for fold in outline.folds]
    while waiting:
        seq = waiting.pop()
        if seq in found:
            continue
        for entry in await log.read(session, Span(seq, seq)):
            match CODEC.decode(entry):
                case FoldCompleted(spans=spans, summary=told) as fold if spans:
                    waiting += parse(told).over
                    one = _compacted(entry, fold, stands=True)
                    if not (one.messages and one.tokens):
                        one = await _measured(log, session, one, wire)
                    ends = min(s.first for s in spans), max(s.last for s in spans)
                    found[seq] = _Range(*ends, one)
                case _:  # forgotten
                    pass
    return list(found.values())


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
    """A fold that somebody wrote by hand does not say what it stands for: count it."""
    counter = counter_for("")
    messages = tokens = 0
    async for entry in _of(log, session, fold.spans):
        if entry.kind == Message.KIND and not entry.forgotten:
            messages += 1
            tokens += sum(map(counter.part, shapes_of(wire, entry)[1]))
    return replace(fold, messages=fold.messages or messages, tokens=fold.tokens or tokens)


async def _asides(log: Log, session: str, outline: Outline, head: int) -> Sequence[_Range]:
    found: list[_Range] = []
    for span in subtract(up_to(head), outline.on_line(head)):
        messages, how = 0, "Rewound"
        async for entry in _of(log, session, (span,), whole=False):
            messages += entry.kind == Message.KIND
            how = {Cleared.KIND: "Cleared", Rewound.KIND: "Rewound"}.get(entry.kind, how)
        if messages:
            found.append(_Range(span.first, span.last, Aside(span.first, span.last, messages, how)))
    return found


async def _of(
    log: Log, session: str, spans: Iterable[Span], *, whole: bool = True
) -> AsyncIterator[Entry]:
    for span in spans:
        for first in range(span.first, span.last + 1, _PAGE):
            some = Span(first, min(first + _PAGE - 1, span.last))
            for entry in await log.read(session, some, whole=whole):
                yield entry


# Calls of tools as one line each.


def call_line(shape: Shape) -> str:
    """A call as one line: the tool, and what it was given."""
    return f"{shape.tool or 'tool'} {given(shape.text)}".rstrip()


def given(arguments: str) -> str:
    """Arguments as a person would write them: path=src/app.py, lines=40."""
    try:
        values: Any = json.loads(arguments)
    except (ValueError, RecursionError):
        return " ".join(arguments.split())
    if not isinstance(values, dict):
        return " ".join(arguments.split())
    pairs = cast("dict[str, object]", values).items()
    return ", ".join(f"{name}={_value(value)}" for name, value in pairs)


def _value(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return " ".join(text.split())


class Tools:
    """Which tool each call was of, because a result may not say."""

    def __init__(self) -> None:
        self._of: dict[str | None, str] = {}

    def note(self, shape: Shape) -> None:
        if shape.kind == "call" and shape.tool:
            self._of[shape.call] = shape.tool

    def of(self, shape: Shape) -> str:
        return shape.tool or self._of.get(shape.call) or "tool"
