"""What there is to say about one request: each message of the session, and what became of it."""

import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, islice
from typing import Final, Literal, NamedTuple

from refold.errors import InvalidMessage
from refold.log import CODEC, Entry, Message, PartRef
from refold.log.entry import spans_of, subtract
from refold.view.budget import ASSUMED_WINDOW, PER_MESSAGE, Account, Budget
from refold.view.plan import SENTENCES, Gone, Plan
from refold.view.plan_builder import PlanBuilder
from refold.view.view_input import ViewInput
from refold.wire import Change, Drop, InsertKind, Kind, Replace, Role, Shape

Edit = Literal["keep", "replace", "drop"]
FORGOTTEN = "forgotten"
WORDS = 160
"""Columns of a part's beginning that are kept to be shown."""


class Disposition(NamedTuple):
    """What happens, and why."""

    edit: Edit
    reason: str

    @property
    def sentence(self) -> str:
        """The reason, for people."""
        return sentence(self.reason)


class Told(NamedTuple):
    """One part, and what becomes of it."""

    ref: PartRef
    kind: Kind
    tool: str | None
    disposition: Disposition
    before: int
    """Its tokens; the first part of a message carries what the message itself costs."""
    after: int
    """The tokens that are sent of it."""
    words: str
    """How it begins, on one line."""
    sources: tuple[PartRef, ...] = ()
    """Where it is said instead."""


class Line(NamedTuple):
    """One message of the log, and what becomes of it."""

    seq: int
    role: Role | None
    """None when nobody can read it."""
    scope: str
    parts: tuple[Told, ...] = ()
    reason: str = ""
    """Why none of it is sent; empty if some is."""
    opens: bool = False
    """Whether a turn begins with it."""
    step: int | None = None
    """The entry that its step begins with; None if it is not on the line, or not the reader's."""

    @property
    def before(self) -> int:
        """Its tokens."""
        return sum(part.before for part in self.parts)

    @property
    def after(self) -> int:
        """The tokens that are sent of it."""
        return sum(part.after for part in self.parts)

    @property
    def dispositions(self) -> tuple[Disposition, ...]:
        """What happens to its parts, each once."""
        found = {part.disposition for part in self.parts}
        return tuple(sorted(found or {Disposition("drop", self.reason)}))


class Inserted(NamedTuple):
    """A message that is sent and not in the log."""

    before: int
    """The entry it stands in front of."""
    kind: InsertKind
    reason: str
    tokens: int
    words: str
    sources: tuple[PartRef, ...] = ()


class Total(NamedTuple):
    """All parts that have one disposition."""

    disposition: Disposition
    parts: int
    messages: int
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Run:
    """Messages that follow one another and share one fate."""

    lines: tuple[Line, ...]

    @property
    def totals(self) -> tuple[Total, ...]:
        """Their parts by disposition."""
        return totals(self.lines)


_ADDED: Final = {
    "fitted": "says that something was left out so that the request fits",
    "window": "says that something is outside the fixed limits",
}
"""Of inserts, where the reason's own sentence speaks of what they stand for."""


def sentence(reason: str, *, added: bool = False) -> str:
    """A reason, for people; `added` if it is that of an insert."""
    known: dict[str, str] = {**SENTENCES, FORGOTTEN: "erased for good", **(_ADDED if added else {})}
    return known.get(reason, reason)


def totals(lines: Iterable[Line]) -> tuple[Total, ...]:
    """The parts of these messages by disposition, the most tokens first."""
    found: dict[Disposition, Total] = {}
    for line in lines:
        for disposition in line.dispositions:
            parts = [part for part in line.parts if part.disposition == disposition]
            old = found.get(disposition, Total(disposition, 0, 0, 0, 0))
            found[disposition] = Total(
                disposition,
                old.parts + len(parts),
                old.messages + 1,
                old.before + sum(part.before for part in parts),
                old.after + sum(part.after for part in parts),
            )
    return tuple(sorted(found.values(), key=lambda one: (-one.before, one.disposition)))


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything that is known of one request."""

    session: str | None
    title: str | None
    format: str
    scope: str
    head: int
    profile: str
    model: str | None
    counter: str
    """What counted the tokens."""
    spread: float
    """How far the truth may lie above a count, as a share of it."""
    budget: Budget
    account: Account
    rewrites: int
    cause: str
    """Why what had been sent before is changed; empty when it is only added to."""
    lines: tuple[Line, ...]
    """One for each message up to the head, as far as they were read."""
    inserts: tuple[Inserted, ...]
    unlisted: tuple[Gone, ...]
    """Entries that are not shown and were not read: some may be messages."""

    @property
    def window(self) -> int:
        """The model's window, or the one that is assumed."""
        return ASSUMED_WINDOW if self.budget.window is None else self.budget.window

    @property
    def totals(self) -> tuple[Total, ...]:
        """All parts by disposition."""
        return totals(self.lines)

    @property
    def sent(self) -> int:
        """How many messages of the log are sent, whole or in part."""
        return sum(not line.reason for line in self.lines)


# Text in the columns of a terminal: how wide it is, cut to a width, broken into lines.
#
# Whatever was said may be shown, so everything that could move the cursor, colour the screen or
# turn
# the direction of writing is taken out first.

Tone = Literal[
    "",
    "strong",
    "faint",
    "kept",
    "cut",
    "archived",
    "folded",
    "dropped",
    "inserted",
    "system",
    "tools",
    "conversation",
    "headroom",
    "reserve",
    "free",
]
"""What a piece of text is about, for those who show it in colours."""

ELLIPSIS: Final = "…"

_READ = 4
"""Characters read for each column wanted: the rest of a long text cannot be seen."""
_SELECTORS: dict[int, None] = dict.fromkeys((0xFE0E, 0xFE0F))
"""They make a character an emoji or none, and wider on some terminals only."""


class Piece(NamedTuple):
    """Some text of one line."""

    text: str
    tone: Tone = ""


def columns(text: str) -> int:
    """How many columns a text takes."""
    return len(text) if text.isascii() else sum(map(_width, text))


def first_words(text: str, width: int) -> str:
    """The beginning of a text as one line that takes at most so many columns."""
    start = text[: _READ * width + 1]
    line = " ".join(start.split()).translate(_SELECTORS)
    if not line.isprintable():
        line = "".join(filter(str.isprintable, line))
    return clipped(line if len(start) == len(text) else f"{line} {ELLIPSIS}", width)


def clipped(line: str, width: int) -> str:
    """A line cut to a width, with an ellipsis where something is missing."""
    if columns(line) <= width:
        return line
    room = max(0, width - 1)
    return (_fitting(line, room).rstrip() + ELLIPSIS)[: max(0, width)]


def padded(line: str, width: int, *, right: bool = False) -> str:
    """A line of exactly this width, cut or filled; `right` puts the filling before it."""
    line = clipped(line, width)
    blank = " " * (width - columns(line))
    return blank + line if right else line + blank


def wrapped(text: str, width: int) -> list[str]:
    """A text broken between words into lines of at most this width."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".lstrip()
        if columns(longer) <= width:
            lines[-1] = longer
            continue
        if lines[-1]:
            lines.append("")
        while columns(word) > width:
            piece = _fitting(word, width) or word[0]
            lines[-1], word = piece, word[len(piece) :]  # noqa: PLW2901 - what is left of it
            lines.append("")
        lines[-1] = word
    return [line for line in lines if line]


def _fitting(line: str, room: int) -> str:
    """The longest beginning that fits."""
    end = 0
    for one in line:
        room -= _width(one)
        if room < 0:
            break
        end += 1
    return "".join(islice(line, end))


@lru_cache(4096)
def _width(one: str) -> int:
    if unicodedata.category(one) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(one) in "WF" else 1


# What becomes of each message and each part, read from a sheet and a plan.


def lines_of(inputs: ViewInput, plan: Plan, entries: Iterable[Entry] = ()) -> tuple[Line, ...]:
    """A line for each message: those of the sheet, and those of the entries beside it."""
    given = tuple(entries)
    rows = {row.seq: at for at, row in enumerate(inputs.rows)}
    others = {
        entry.seq: entry
        for entry in given
        if entry.kind == Message.KIND and entry.seq not in rows and entry.seq <= inputs.head
    }
    maker = _Maker(inputs, plan, sorted([*rows, *others]))
    scopes = {entry.seq: entry.scope for entry in given}
    found = [maker.row(at, scopes.get(seq, inputs.scope)) for seq, at in rows.items()]
    found += [maker.other(entry) for entry in others.values()]
    return tuple(sorted(found, key=lambda line: line.seq))


def inserts_of(inputs: ViewInput, plan: Plan) -> tuple[Inserted, ...]:
    """The messages that are not in the log."""
    builder = PlanBuilder(inputs)
    return tuple(
        Inserted(
            one.before,
            one.kind,
            one.reason,
            builder.cost(one),
            first_words(one.text, WORDS),
            one.sources,
        )
        for one in plan.layout.inserts
    )


def unlisted(
    inputs: ViewInput, lines: Iterable[Line], entries: Iterable[Entry] = ()
) -> tuple[Gone, ...]:
    """Entries that are not on the sheet and that nobody read: some of them may be messages."""
    known = spans_of([1, *(line.seq for line in lines), *(entry.seq for entry in entries)])
    return tuple(
        Gone(span, gone.reason)
        for gone in inputs.absent()
        for span in subtract((gone.span,), known)
    )


def runs_of(lines: Iterable[Line]) -> tuple[Run, ...]:
    """The messages in runs that share their dispositions."""
    grouped = groupby(lines, key=lambda line: line.dispositions)
    return tuple(Run(tuple(run)) for _, run in grouped)


class _Maker:
    """Makes lines; knows what the plan does to whole messages."""

    def __init__(self, inputs: ViewInput, plan: Plan, seqs: list[int]) -> None:
        self._sheet = inputs
        self._changes = plan.layout.changes
        self._desk = PlanBuilder(inputs)
        self._desk.apply(
            (part, change)
            for row in inputs.rows
            for part in row.parts
            if (change := self._changes.get(part.ref)) is not None
        )
        self._turns = {inputs.rows[at].seq for at in inputs.turns}
        self._gone: dict[int, str] = {}
        for gone in reversed(plan.layout.gone):  # the first that speaks of an entry counts
            span = gone.span
            for seq in seqs[bisect_left(seqs, span.first) : bisect_right(seqs, span.last)]:
                self._gone[seq] = gone.reason

    def row(self, at: int, scope: str) -> Line:
        """A message of the sheet."""
        row = self._sheet.rows[at]
        shapes = self._sheet.wire.describe(row.payload).shapes
        after = [self._desk.tokens(part) for part in row.parts]
        counts = list(zip(shapes, (part.tokens for part in row.parts), after, strict=True))
        step = self._sheet.rows[self._sheet.steps[at]].seq
        line = Line(row.seq, row.role, scope, opens=row.seq in self._turns, step=step)
        return self._filled(line, counts)

    def other(self, entry: Entry) -> Line:
        """A message that is not on the sheet; one that nobody can read has no parts."""
        why = self._gone.get(entry.seq, FORGOTTEN if entry.forgotten else "unreadable")
        blank = Line(entry.seq, None, entry.scope, reason=why)
        match CODEC.decode(entry):
            case Message(payload):
                pass
            case _:
                return blank
        try:
            role, shapes, _ = self._sheet.wire.describe(payload)
        except InvalidMessage:
            return blank
        counts = [(shape, self._sheet.counter.part(shape), 0) for shape in shapes]
        return self._filled(blank._replace(role=role), counts)

    def _filled(self, line: Line, counts: list[tuple[Shape, int, int]]) -> Line:
        """The line with its parts; the message's own tokens go to the first."""
        whole = line.reason or self._gone.get(line.seq, "")
        parts: list[Told] = []
        sent = 0
        for nth, (shape, before, after) in enumerate(counts):
            change = self._changes.get(PartRef(line.seq, nth))
            told = _told(PartRef(line.seq, nth), shape, change, whole)
            own = 0 if nth else PER_MESSAGE
            if told.disposition.edit == "drop":
                parts.append(told._replace(before=before + own))
            else:
                still = 0 if sent else PER_MESSAGE
                parts.append(told._replace(before=before + own, after=after + still))
                sent += 1
        why = "" if sent else (parts[0].disposition.reason if parts else whole or "empty")
        return line._replace(parts=tuple(parts), reason=why)


def _told(ref: PartRef, shape: Shape, change: Change | None, whole: str) -> Told:
    """A part without its figures; `whole` is why its message is not sent, if it is not."""
    match change:
        case Replace(reason=reason):
            disposition = Disposition("replace", reason)
        case Drop(reason=reason):
            disposition = Disposition("drop", reason)
        case None:
            disposition = Disposition("drop", whole) if whole else Disposition("keep", "kept")
    sources = change.sources if change else ()
    words = first_words(shape.text, WORDS)
    return Told(ref, shape.kind, shape.tool, disposition, 0, 0, words, sources)
