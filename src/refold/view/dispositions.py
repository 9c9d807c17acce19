"""What becomes of each message and each part, read from a sheet and a plan."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import groupby

from refold.errors import InvalidMessage
from refold.log import CODEC, Entry, Message, PartRef
from refold.log.span import spans_of, subtract
from refold.view.budget import PER_MESSAGE
from refold.view.columns import first_words
from refold.view.desk import Desk
from refold.view.explained import FORGOTTEN, WORDS, Disposition, Inserted, Line, Run, Told
from refold.view.plan import Plan
from refold.view.reasons import Gone
from refold.view.sheet import Sheet
from refold.wire import Change, Drop, Replace, Shape


def lines_of(sheet: Sheet, plan: Plan, entries: Iterable[Entry] = ()) -> tuple[Line, ...]:
    """A line for each message: those of the sheet, and those of the entries beside it."""
    given = tuple(entries)
    rows = {row.seq: at for at, row in enumerate(sheet.rows)}
    others = {
        entry.seq: entry
        for entry in given
        if entry.kind == Message.KIND and entry.seq not in rows and entry.seq <= sheet.head
    }
    maker = _Maker(sheet, plan, sorted([*rows, *others]))
    scopes = {entry.seq: entry.scope for entry in given}
    found = [maker.row(at, scopes.get(seq, sheet.scope)) for seq, at in rows.items()]
    found += [maker.other(entry) for entry in others.values()]
    return tuple(sorted(found, key=lambda line: line.seq))


def inserts_of(sheet: Sheet, plan: Plan) -> tuple[Inserted, ...]:
    """The messages that are not in the log."""
    desk = Desk(sheet)
    return tuple(
        Inserted(
            one.before,
            one.kind,
            one.reason,
            desk.cost(one),
            first_words(one.text, WORDS),
            one.sources,
        )
        for one in plan.layout.inserts
    )


def unlisted(
    sheet: Sheet, lines: Iterable[Line], entries: Iterable[Entry] = ()
) -> tuple[Gone, ...]:
    """Entries that are not on the sheet and that nobody read: some of them may be messages."""
    known = spans_of([1, *(line.seq for line in lines), *(entry.seq for entry in entries)])
    return tuple(
        Gone(span, gone.reason) for gone in sheet.absent() for span in subtract((gone.span,), known)
    )


def runs_of(lines: Iterable[Line]) -> tuple[Run, ...]:
    """The messages in runs that share their dispositions."""
    grouped = groupby(lines, key=lambda line: line.dispositions)
    return tuple(Run(tuple(run)) for _, run in grouped)


class _Maker:
    """Makes lines; knows what the plan does to whole messages."""

    def __init__(self, sheet: Sheet, plan: Plan, seqs: list[int]) -> None:
        self._sheet = sheet
        self._changes = plan.layout.changes
        self._desk = Desk(sheet)
        self._desk.apply(
            (part, change)
            for row in sheet.rows
            for part in row.parts
            if (change := self._changes.get(part.ref)) is not None
        )
        self._turns = {sheet.rows[at].seq for at in sheet.turns}
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
