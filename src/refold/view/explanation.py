"""The facts of an explanation: each message, and what becomes of it in one request."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Literal, NamedTuple

from refold.errors import InvalidMessage
from refold.log import CODEC, Entry, Message, PartRef
from refold.log.entry import spans_of, subtract
from refold.terminal_text import first_words
from refold.view.budget import ASSUMED_WINDOW, PER_MESSAGE, Account, Budget
from refold.view.plan import SENTENCES, Omission, Plan
from refold.view.plan_builder import PlanBuilder
from refold.view.view_input import ViewInput
from refold.wire import Change, Drop, InsertKind, Kind, Replace, Role, Shape

Edit = Literal["keep", "replace", "drop"]
FORGOTTEN = "forgotten"
WORDS = 160
"""Columns of a part's beginning that are kept to be shown."""


class Disposition(NamedTuple):
    edit: Edit
    reason: str

    @property
    def sentence(self) -> str:
        return sentence(self.reason)


class PartLine(NamedTuple):
    """One part of a message, and what becomes of it."""

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
    """The parts that say it instead."""


class Line(NamedTuple):
    """One message of the log, and what becomes of it."""

    seq: int
    role: Role | None
    """None if it cannot be read."""
    scope: str
    parts: tuple[PartLine, ...] = ()
    reason: str = ""
    """Why none of it is sent; empty if some is."""
    opens: bool = False
    """Whether a turn begins with it."""
    step: int | None = None
    """The entry that its step begins with; None if it is not on the line, or not the reader's."""

    @property
    def before(self) -> int:
        return sum(part.before for part in self.parts)

    @property
    def after(self) -> int:
        return sum(part.after for part in self.parts)

    @property
    def dispositions(self) -> tuple[Disposition, ...]:
        dispositions = {part.disposition for part in self.parts}
        return tuple(sorted(dispositions or {Disposition("drop", self.reason)}))


class Inserted(NamedTuple):
    before: int
    """The entry it stands in front of."""
    kind: InsertKind
    reason: str
    tokens: int
    words: str
    sources: tuple[PartRef, ...] = ()


class Total(NamedTuple):
    disposition: Disposition
    parts: int
    messages: int
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Run:
    lines: tuple[Line, ...]

    @property
    def totals(self) -> tuple[Total, ...]:
        return totals(self.lines)


_ADDED: Final = {
    "fitted": "says that something was left out so that the request fits",
    "window": "says that something is outside the fixed limits",
}
"""For inserts, where the reason's own sentence describes what they stand for."""


def sentence(reason: str, *, added: bool = False) -> str:
    """A reason, for people; `added` if it is that of an insert."""
    sentences: dict[str, str] = {**SENTENCES, FORGOTTEN: "erased for good"}
    return (_ADDED if added else {}).get(reason) or sentences.get(reason, reason)


def totals(lines: Iterable[Line]) -> tuple[Total, ...]:
    """The parts of these messages by disposition, the most tokens first."""
    by_disposition: dict[Disposition, Total] = {}
    for line in lines:
        for disposition in line.dispositions:
            parts = [part for part in line.parts if part.disposition == disposition]
            old = by_disposition.get(disposition, Total(disposition, 0, 0, 0, 0))
            by_disposition[disposition] = Total(
                disposition,
                old.parts + len(parts),
                old.messages + 1,
                old.before + sum(part.before for part in parts),
                old.after + sum(part.after for part in parts),
            )
    return tuple(sorted(by_disposition.values(), key=lambda x: (-x.before, x.disposition)))


class Context(NamedTuple):
    """Who decides what the model sees of a conversation."""

    provider: str = ""
    """Why its provider does; empty if Refold does."""
    held: int = 0
    """How many messages were not sent, because the provider has them behind an id."""

    @property
    def sentences(self) -> str:
        """The same, for people; empty if there is nothing to say."""
        found: list[str] = []
        if self.provider:
            found.append(
                f"The provider manages the context ({self.provider}): what the model sees may "
                f"differ from what is kept here, and Refold compacts nothing."
            )
        if self.held:
            are = "message was" if self.held == 1 else "messages were"
            found.append(
                f"The first {self.held:,} {are} not sent: the provider has what came before."
            )
        return " ".join(found)


@dataclass(frozen=True, slots=True)
class Findings:
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
    unlisted: tuple[Omission, ...]
    """Entries that are not shown and were not read: some may be messages."""
    context: Context = Context()  # noqa: RUF009 - it is a tuple
    program: str | None = None
    """The agent that recorded the session, such as `claude`; None if it says none."""

    @property
    def window(self) -> int:
        """The model's window, or the one that is assumed."""
        return ASSUMED_WINDOW if self.budget.window is None else self.budget.window

    @property
    def totals(self) -> tuple[Total, ...]:
        return totals(self.lines)

    @property
    def sent(self) -> int:
        """How many messages of the log are sent, whole or in part."""
        return sum(not line.reason for line in self.lines)


def lines_of(inputs: ViewInput, plan: Plan, entries: Iterable[Entry] = ()) -> tuple[Line, ...]:
    """A line for each message: those of the view's input, and those of the other entries."""
    given = tuple(entries)
    rows = {row.seq: index for index, row in enumerate(inputs.rows)}
    others = {
        entry.seq: entry
        for entry in given
        if entry.kind == Message.KIND and entry.seq not in rows and entry.seq <= inputs.head
    }
    builder = _LineBuilder(inputs, plan, sorted([*rows, *others]))
    scopes = {entry.seq: entry.scope for entry in given}
    lines = [builder.row(index, scopes.get(seq, inputs.scope)) for seq, index in rows.items()]
    lines += [builder.other(entry) for entry in others.values()]
    return tuple(sorted(lines, key=lambda line: line.seq))


def inserts_of(inputs: ViewInput, plan: Plan) -> tuple[Inserted, ...]:
    builder = PlanBuilder(inputs)
    return tuple(
        Inserted(
            insert.before,
            insert.kind,
            insert.reason,
            builder.cost(insert),
            first_words(insert.text, WORDS),
            insert.sources,
        )
        for insert in plan.layout.inserts
    )


def unlisted(
    inputs: ViewInput, lines: Iterable[Line], entries: Iterable[Entry] = ()
) -> tuple[Omission, ...]:
    """Entries that are not in the view and were not read: some of them may be messages."""
    read = spans_of([1, *(line.seq for line in lines), *(entry.seq for entry in entries)])
    return tuple(
        Omission(span, omission.reason)
        for omission in inputs.absent()
        for span in subtract((omission.span,), read)
    )


def runs_of(lines: Iterable[Line]) -> tuple[Run, ...]:
    grouped = groupby(lines, key=lambda line: line.dispositions)
    return tuple(Run(tuple(run)) for _, run in grouped)


class _LineBuilder:
    def __init__(self, inputs: ViewInput, plan: Plan, seqs: list[int]) -> None:
        self._inputs = inputs
        self._changes = plan.layout.changes
        self._builder = PlanBuilder(inputs)
        self._builder.apply(
            (part, change)
            for row in inputs.rows
            for part in row.parts
            if (change := self._changes.get(part.ref)) is not None
        )
        self._turns = {inputs.rows[index].seq for index in inputs.turns}
        self._omitted: dict[int, str] = {}
        for span, reason in reversed(plan.layout.omissions):  # the first for an entry counts
            for seq in seqs[bisect_left(seqs, span.first) : bisect_right(seqs, span.last)]:
                self._omitted[seq] = reason

    def row(self, index: int, scope: str) -> Line:
        row = self._inputs.rows[index]
        shapes = self._inputs.wire.describe(row.payload).shapes
        counts = [(part.tokens, self._builder.tokens(part)) for part in row.parts]
        step = self._inputs.rows[self._inputs.steps[index]].seq
        line = Line(row.seq, row.role, scope, opens=row.seq in self._turns, step=step)
        return self._with_parts(line, shapes, counts)

    def other(self, entry: Entry) -> Line:
        """A message that is not in the view; one that cannot be read has no parts."""
        why = self._omitted.get(entry.seq, FORGOTTEN if entry.forgotten else "unreadable")
        blank = Line(entry.seq, None, entry.scope, reason=why)
        match CODEC.decode(entry):
            case Message(payload):
                pass
            case _:
                return blank
        try:
            role, shapes, _ = self._inputs.wire.describe(payload)
        except InvalidMessage:
            return blank
        counts = [(self._inputs.counter.part(shape), 0) for shape in shapes]
        return self._with_parts(blank._replace(role=role), shapes, counts)

    def _with_parts(
        self, line: Line, shapes: Sequence[Shape], counts: Sequence[tuple[int, int]]
    ) -> Line:
        """The line with its parts; the message's own tokens go to the first."""
        omitted = line.reason or self._omitted.get(line.seq, "")
        parts: list[PartLine] = []
        sent = False
        for index, (shape, (before, after)) in enumerate(zip(shapes, counts, strict=True)):
            ref = PartRef(line.seq, index)
            change = self._changes.get(ref)
            disposition = _disposition(change, omitted)
            before += 0 if index else PER_MESSAGE  # noqa: PLW2901 - the message's own tokens
            if disposition.edit == "drop":
                after = 0  # noqa: PLW2901 - as above
            else:
                after += 0 if sent else PER_MESSAGE  # noqa: PLW2901 - as above
                sent = True
            words, sources = first_words(shape.text, WORDS), change.sources if change else ()
            parts.append(
                PartLine(ref, shape.kind, shape.tool, disposition, before, after, words, sources)
            )
        why = "" if sent else (parts[0].disposition.reason if parts else omitted or "empty")
        return line._replace(parts=tuple(parts), reason=why)


def _disposition(change: Change | None, omitted: str) -> Disposition:
    match change:
        case Replace(reason=reason):
            return Disposition("replace", reason)
        case Drop(reason=reason):
            return Disposition("drop", reason)
        case None:
            return Disposition("drop", omitted) if omitted else Disposition("keep", "kept")
