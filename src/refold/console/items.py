"""What a timeline is made of: messages with the fate of each part, folds, branches, requests.

The fate is that of one request, by default the newest, and is read from its record: so a page reads
the entries that it shows and no others, however long the session is.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Final, Literal, NamedTuple

from refold.errors import InvalidInput, Unrebuildable
from refold.exports.moments import Tools, arguments_line
from refold.log import (
    CODEC,
    Cleared,
    Entry,
    Findings,
    FoldCompleted,
    Folded,
    FoldFailed,
    FoldStarted,
    FoldUndone,
    Forgot,
    Log,
    Message,
    Note,
    Opened,
    Outline,
    PartRef,
    Pinned,
    Requested,
    Rewound,
    SessionInfo,
    Span,
    Titled,
    Unknown,
    Unpinned,
    Used,
)
from refold.log.entry import subtract, up_to
from refold.recall.text import plan_of, shapes_of, wire_of
from refold.service.api import schemas
from refold.service.api.folds import fold_of
from refold.service.api.requests import record_of
from refold.service.api.schemas import moment
from refold.service.api.sessions import read_page
from refold.view import Plan
from refold.view.explanation import Disposition
from refold.view.record import recorded
from refold.view.timeline import SYMBOLS, fate_of
from refold.wire import Drop, Kind, Replace, Shape

MAX_TEXT: Final = 2_400
"""Characters of a text that a timeline shows; the rest is one click away."""
MAX_PARTS: Final = 60
"""Parts of a message that a timeline shows."""
_MAX_FOLDED_TEXT: Final = 1_200
"""The same of what is shown only when it is opened."""
_CHUNK: Final = 100
_MAX_NAMES: Final = 5
_NEW: Final = "new"
_REGION_REASONS: Final = {"fold": "folded", "branch": "off the line"}


class Fate(NamedTuple):
    """What became of a part in a request."""

    name: str
    """One of `SYMBOLS`, or "new": no request was made since."""
    reason: str
    sentence: str
    instead: str = ""
    """What was sent in its place."""

    @property
    def symbol(self) -> str:
        return {**SYMBOLS, _NEW: "·"}[self.name]


NOT_SENT: Final = Fate(_NEW, "not sent yet", "no request was made since")
SENT_AGAIN: Final = Fate(
    _NEW, "sent again", "the newest request had a summary of it; the next one has the message"
)


class PartItem(NamedTuple):
    """One part of a message, with as much of its text as a page shows."""

    ref: PartRef
    kind: Kind
    tool: str | None
    text: str
    chars: int | None
    """How long it is; None: it is large, and kept apart."""
    media: tuple[str, ...]
    fate: Fate
    pinned: str = ""
    """By whom, if it is."""

    @property
    def line(self) -> str:
        """The arguments of a call as a person would write them, else how it begins."""
        return arguments_line(self.text) if self.kind == "call" else self.text

    @property
    def cut(self) -> bool:
        """Whether there is more of it."""
        return self.chars is None or self.chars > len(self.text)


@dataclass(frozen=True, slots=True)
class MessageItem:
    """A message as it lies in the log."""

    SORT: ClassVar[str] = "message"
    seq: int
    at: datetime
    role: str
    scope: str
    parts: tuple[PartItem, ...]
    fate: Fate
    """Of a message without parts: forgotten, or unreadable."""
    fold: int | None = None
    """The fold whose summary is sent instead."""
    hidden: int = 0
    """How many more parts it has."""


@dataclass(frozen=True, slots=True)
class RequestItem:
    """A request that was sent, and what it used."""

    SORT: ClassVar[str] = "request"
    seq: int
    at: datetime
    record: schemas.RequestRecord
    sent: int
    """Its tokens, with instructions and tools."""
    used: Used | None

    @property
    def cached(self) -> float | None:
        """The share of the input that came from the provider's cache."""
        match self.used:
            case Used(usage={"input": int(sent), "cache_read": int(read)}) if sent and read:
                return read / sent
            case _:
                return None


@dataclass(frozen=True, slots=True)
class FoldItem:
    """A fold in the place of the messages that it stands for, or of some of them."""

    SORT: ClassVar[str] = "fold"
    seq: int
    at: datetime
    fold: schemas.Fold | None
    """None: its summary was forgotten."""
    span: Span
    """The entries here; a fold may stand for several runs."""
    first: bool
    """Whether this is the first run of them."""


@dataclass(frozen=True, slots=True)
class BranchItem:
    """Entries that were left behind when the session was rewound or cleared."""

    SORT: ClassVar[str] = "branch"
    seq: int
    at: datetime
    span: Span
    cleared: bool
    to: int | None
    """Which entry it was rewound to."""


@dataclass(frozen=True, slots=True)
class MarkItem:
    """Something that happened besides messages."""

    SORT: ClassVar[str] = "mark"
    seq: int
    at: datetime
    name: str
    """Which sort of thing, for its color."""
    text: str
    words: str = ""
    """Words of the log that belong to it."""
    other: int | None = None
    """The entry that it is about."""


Item = MessageItem | RequestItem | FoldItem | BranchItem | MarkItem


class Region(NamedTuple):
    """Entries that are shown as one: a fold stands for them, or they were left behind."""

    span: Span
    kind: Literal["fold", "branch"]
    fold: Folded | None = None
    first: bool = True


class Lens:
    """A session as one of its requests had it."""

    def __init__(
        self,
        info: SessionInfo,
        outline: Outline,
        plan: Plan | None,
        record: int | None,
        *,
        newest: bool = False,
    ) -> None:
        self.info = info
        self.outline = outline
        self.plan = plan
        self.record = record
        self.newest = newest
        self.wire = wire_of(info.format)
        self._watched, self._pins = {*outline.watched}, {*outline.pins}

    @classmethod
    async def of(cls, log: Log, session: str, record: int | None = None) -> "Lens":
        """What the newest request had, or this one."""
        info, outline, _ = await log.outlined(session)
        seq = outline.record if record is None else record
        plan = None
        if seq is not None:
            try:
                plan = await plan_of(log, session, seq)
            except (Unrebuildable, InvalidInput):
                if record is not None:
                    raise
        return cls(info, outline, plan, seq, newest=record is None)

    @property
    def head(self) -> int:
        return self.info.entries

    def regions(self) -> list[Region]:
        """What is shown as one, in order of the entries."""
        spans = [
            Region(span, "fold", fold, first=nth == 0)
            for fold in self.outline.folds
            for nth, span in enumerate(fold.spans)
        ]
        folded = [region.span for region in spans]
        left = subtract(up_to(self.head), self.outline.on_line(self.head))
        spans += [Region(span, "branch") for span in subtract(left, folded)]
        return sorted(spans)

    def fate(self, ref: PartRef, shape: Shape | None, region: Region | None = None) -> Fate:
        plan = self.plan
        if region is not None and (region.kind == "branch" or ref not in self._pins):
            return _fate(Disposition("drop", _REGION_REASONS[region.kind]))
        if plan is None or ref.seq > plan.head:
            return NOT_SENT
        match plan.disposition(ref):
            case Replace(reason=reason) as change:
                instead = change.applied(shape.text) if shape else change.text
                if shape is not None and shape.kind == "call":
                    instead = change.text
                return _fate(Disposition("replace", reason))._replace(instead=instead[:MAX_TEXT])
            case Drop(reason="folded") if self.newest and self.fold_over(ref.seq) is None:
                return SENT_AGAIN
            case Drop(reason):
                return _fate(Disposition("drop", reason))
            case _:
                return _fate(Disposition("keep", "kept"))

    def fold_over(self, seq: int) -> int | None:
        """The fold in effect that stands for an entry."""
        return next((x.seq for x in self.outline.folds if any(seq in y for y in x.spans)), None)

    def pinned(self, ref: PartRef) -> str:
        if ref not in self._pins:
            return ""
        return "the session" if ref in self._watched else "a person"


def _fate(disposition: Disposition) -> Fate:
    return Fate(fate_of(disposition), disposition.reason, disposition.sentence)


class Run(NamedTuple):
    """Entries of a page, either one by one or as one region."""

    span: Span
    region: Region | None = None

    @property
    def room(self) -> int:
        """How much of a page it takes."""
        return 1 if self.region else len(self.span)


def cover(regions: Iterable[Region], span: Span) -> list[Run]:
    """The entries of a span as runs, in order."""
    runs: list[Run] = []
    first = span.first
    for region in regions:
        if region.span.last < first or region.span.first > span.last:
            continue
        if region.span.first > first:
            runs.append(Run(Span(first, region.span.first - 1)))
        last = min(region.span.last, span.last)
        runs.append(Run(Span(max(first, region.span.first), last), region))
        first = last + 1
    if first <= span.last:
        runs.append(Run(Span(first, span.last)))
    return runs


def oldest(runs: Iterable[Run], room: int) -> list[Run]:
    """The first of the runs, as many as there is room for."""
    taken: list[Run] = []
    for run in runs:
        if room <= 0:
            break
        span = run.span
        if run.region is None and len(span) > room:
            span = Span(span.first, span.first + room - 1)
        taken.append(run._replace(span=span))
        room -= taken[-1].room
    return taken


def newest(runs: Sequence[Run], room: int) -> list[Run]:
    """The last of the runs, as many as there is room for."""
    taken: list[Run] = []
    for run in reversed(runs):
        if room <= 0:
            break
        span = run.span
        if run.region is None and len(span) > room:
            span = Span(span.last - room + 1, span.last)
        taken.append(run._replace(span=span))
        room -= taken[-1].room
    return taken[::-1]


async def items_of(
    log: Log, lens: Lens, runs: Iterable[Run], inside: Region | None = None
) -> list[Item]:
    """The items of these runs; `inside`: they lie in a region that was opened."""
    items: list[Item] = []
    for run in runs:
        if run.region is not None:
            items.append(await _region_item(log, lens, run.region, run.span))
            continue
        entries: list[Entry] = []
        for first in range(run.span.first, run.span.last + 1, _CHUNK):
            limit = min(_CHUNK, run.span.last - first + 1)
            page = await read_page(
                log, lens.info.session, after=first - 1, limit=limit, whole=False
            )
            entries += [await _whole(log, lens.info.session, entry) for entry in page.entries]
        items += _items(lens, entries, inside)
    return items


async def _whole(log: Log, session: str, entry: Entry) -> Entry:
    """The entry with what is kept apart of it, unless a timeline shows it without."""
    if not entry.holes or entry.kind in (Message.KIND, FoldCompleted.KIND):
        return entry
    [whole] = await log.read(session, Span(entry.seq, entry.seq))
    return whole


async def _region_item(log: Log, lens: Lens, region: Region, span: Span) -> Item:
    name = lens.info.session
    if region.fold is not None:
        seq = region.fold.seq
        [entry] = await log.read(name, Span(seq, seq))
        fold = None
        if isinstance(CODEC.decode(entry), FoldCompleted):
            fold = fold_of(entry, "stands")
        return FoldItem(seq, moment(entry.at), fold, span, region.first)
    seq = region.span.last
    [entry] = await log.read(name, Span(seq, seq), whole=False)
    value = CODEC.decode(entry)
    to = value.to if isinstance(value, Rewound) else None
    return BranchItem(seq, moment(entry.at), span, isinstance(value, Cleared), to)


def _items(lens: Lens, entries: Sequence[Entry], region: Region | None) -> Iterator[Item]:
    tools = Tools()
    used = {
        value.request: value
        for entry in entries
        if entry.kind == Used.KIND and isinstance(value := CODEC.decode(entry), Used)
    }
    for entry in entries:
        if entry.kind == Message.KIND:
            yield message_item(lens, entry, region, tools)
        elif entry.kind == Requested.KIND:
            at, record = moment(entry.at), record_of(entry)
            yield RequestItem(entry.seq, at, record, sent_tokens(entry), used.get(entry.seq))
        elif (mark := _mark(entry)) is not None:
            yield mark


def sent_tokens(entry: Entry) -> int:
    """The tokens of everything that a request sent; 0 if its record cannot be read."""
    match CODEC.decode(entry):
        case Requested() as value:
            with suppress(Unrebuildable):
                return recorded(value).account.sent
        case _:
            pass
    return 0


def message_item(
    lens: Lens, entry: Entry, region: Region | None = None, tools: Tools | None = None
) -> MessageItem:
    """A message; strings that its entry does not hold are left out.

    `tools` knows the calls before it, because a result may not name its tool.
    """
    tools = tools or Tools()
    place = entry.seq, moment(entry.at)
    if entry.forgotten:
        gone = _fate(Disposition("drop", "forgotten"))
        return MessageItem(*place, "message", entry.scope, (), gone)
    role, shapes = shapes_of(lens.wire, entry)
    parts: list[PartItem] = []
    for index, shape in enumerate(shapes):
        tools.note(shape)
        if index >= MAX_PARTS:
            continue
        tool = tools.of(shape) if shape.kind in ("call", "return") else None
        ref = PartRef(entry.seq, index)
        size = _MAX_FOLDED_TEXT if shape.kind in ("call", "return", "thought") else MAX_TEXT
        chars = None if entry.holes and not shape.text else len(shape.text)
        fate = lens.fate(ref, shape, region)
        parts.append(
            PartItem(
                *(ref, shape.kind, tool, shape.text[:size], chars, shape.media, fate),
                pinned=lens.pinned(ref),
            )
        )
    whole = lens.fate(PartRef(entry.seq, 0), None, region)
    fold = lens.fold_over(entry.seq) if region is None else None
    hidden = len(shapes) - len(parts)
    return MessageItem(*place, role, entry.scope, tuple(parts), whole, fold, hidden)


def _mark(entry: Entry) -> MarkItem | None:
    place = entry.seq, moment(entry.at)
    if entry.forgotten:
        return MarkItem(*place, "forgotten", f"An entry ({entry.kind}) was forgotten for good.")
    describe = _EVENTS.get(entry.kind)
    value = None if entry.kind == FoldCompleted.KIND else CODEC.decode(entry)
    if describe is None or isinstance(value, Unknown):
        return None
    if isinstance(value, Note) and value.is_internal:
        return None
    event = describe(value)
    return MarkItem(*place, event.name, event.text, event.words, event.other)


class _Event(NamedTuple):
    name: str
    text: str
    words: str = ""
    other: int | None = None


_EVENTS: Final[dict[str, Callable[[Any], _Event]]] = {
    Opened.KIND: lambda x: _Event(
        "opened",
        f"The session began: {x.format}, profile {x.profile}.",
        x.title or "",
    ),
    Titled.KIND: lambda x: _Event("title", "It got a title:", x.title),
    Note.KIND: lambda x: _Event("note", "Note, which no model sees:", x.text[:MAX_TEXT]),
    FoldStarted.KIND: lambda x: _Event("fold", f"A compaction began ({x.trigger})."),
    FoldCompleted.KIND: lambda _: _Event("fold", "A compaction was completed."),
    FoldFailed.KIND: lambda x: _Event(
        "fold", "A compaction failed, and nothing changed:", x.reason
    ),
    FoldUndone.KIND: lambda _: _Event("fold", "A compaction was taken back."),
    Findings.KIND: lambda _: _Event("fold", "The findings of a delegated agent were written down."),
    Rewound.KIND: lambda x: _Event("branch", f"Rewound to entry {x.to}.", "", x.to),
    Cleared.KIND: lambda _: _Event("branch", "Cleared: the context begins anew here."),
    Forgot.KIND: lambda x: _Event(
        "forgotten",
        f"Entries {x.span.first} to {x.span.last} were forgotten for good.",
    ),
    Pinned.KIND: lambda x: _Event(
        "pin",
        f"{'Read again, so the session pinned' if x.watched else 'Pinned'}: {_names(x.parts)}",
        "",
        x.parts[0].seq if x.parts else None,
    ),
    Unpinned.KIND: lambda x: _Event("pin", f"No longer pinned: {_names(x.parts)}"),
}


def _names(parts: Sequence[PartRef]) -> str:
    return ", ".join(f"{part.seq}.{part.index}" for part in parts[:_MAX_NAMES])
