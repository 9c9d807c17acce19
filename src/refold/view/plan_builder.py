"""The working state of one projection: what the policies so far have decided.

Policies read it and propose edits, one after the other; only `apply` changes it, and each policy
sees the effect of what it proposed before.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import replace
from itertools import islice
from typing import NamedTuple, TypeVar, cast

from refold.log import PartRef
from refold.log.entry import Span, intersect, union
from refold.view.budget import PER_MESSAGE, Account, Budget, effective_limit
from refold.view.plan import STICKY, Closed, Gone, Layout, Plan, Reason
from refold.view.profiles import Profile
from refold.view.view_input import Row, ViewInput, weight
from refold.wire import Change, Drop, Insert, Part, Replace, Shape

Key = tuple[int, int]

_DECIDED = ("changes", "inserts", "_counts", "_shown", "_stand_ins")
"""Where a desk keeps decisions."""

_Told = TypeVar("_Told", Insert, Replace)


class Withdraw(NamedTuple):
    """An insert that is to go again."""

    insert: Insert


Proposal = tuple[Part, Change] | Insert | Withdraw
"""What a policy proposes: a change of a part, a message to insert, or none after all."""


class PlanBuilder:
    """The rows of a sheet from `start` on, with the decisions made on them."""

    def __init__(self, inputs: ViewInput, start: int = 0) -> None:
        self.inputs = inputs
        self.start = start
        self.changes: dict[Key, Change] = {}
        self.inserts: list[Insert] = []
        self.total = sum(map(weight, inputs.rows[start:] if start else inputs.rows))
        """The tokens of all messages that would be sent."""
        self.untold = 0
        self.pinned = {(pin.seq, pin.index) for pin in inputs.outline.pins}
        self.anchored = _anchored(inputs, start)
        """The entries of steps that must stay whole, because a part of them must stay."""
        self._counts: dict[Key, int] = {}
        self._shown: dict[int, int] = {}
        """How many parts are left of the rows of which some were dropped."""
        self._stand_ins: dict[Key, Insert] = {}

    def copy(self) -> "PlanBuilder":
        """Another desk with the same decisions."""
        builder = copy(self)
        for name in _DECIDED:
            setattr(builder, name, copy(getattr(self, name)))
        return builder

    def apply(self, proposals: Iterable[Proposal]) -> bool:
        """Take the proposals over, a later one for the same part instead of an earlier; any?"""
        any_came = False
        for proposal in proposals:
            any_came = True
            if isinstance(proposal, Insert):
                proposal = _sound(proposal)  # noqa: PLW2901 - what is stored is what counts
                self.inserts.append(proposal)
                self.total += self.cost(proposal)
                if proposal.kind == "return":
                    for source in proposal.sources:
                        self._stand_ins[source.seq, source.index] = proposal
            elif isinstance(proposal, Withdraw):
                self.remove(proposal.insert)
            else:
                self._change(*proposal)
        return any_came

    def remove(self, insert: Insert) -> None:
        """Take an insert back, for good: what it told is not told again."""
        self.inserts.remove(insert)
        self.total -= self.cost(insert)
        if insert.reason == "delegated":
            self.untold = max(self.untold, insert.before)
        for source in insert.sources:
            if self.changes.get((source.seq, source.index)) == Drop("late"):
                self.changes[source.seq, source.index] = Drop("fitted")

    def tokens(self, part: Part) -> int:
        """What a part costs as it stands."""
        return self._counts.get((part.seq, part.nth), part.tokens)

    def cost(self, insert: Insert) -> int:
        """What an inserted message costs."""
        counter = self.inputs.counter
        if insert.kind == "return":  # it goes out with its tool's name, as any return
            return counter.part(Shape("return", insert.text, insert.tool)) + PER_MESSAGE
        return counter.text(insert.text) + PER_MESSAGE

    def change(self, part: Part) -> Change | None:
        """What was decided of a part, if anything."""
        return self.changes.get((part.seq, part.nth))

    def held(self, part: Part) -> bool:
        """Whether a part must stay in the view whatever happens."""
        return part.fixed or part.seq in self.anchored

    def free(self, part: Part) -> bool:
        """Whether a part may be edited and has not been."""
        key = (part.seq, part.nth)
        return not (part.sealed or part.fixed or key in self.changes or key in self.pinned)

    def shown(self, row: Row) -> list[Part]:
        """The parts of a row that are not dropped."""
        left = self._shown.get(row.seq)
        if left is None:
            return list(row.parts)
        if not left:
            return []
        return [part for part in row.parts if not isinstance(self.change(part), Drop)]

    def shown_rows(self) -> Iterator[Row]:
        """The rows of which something is shown."""
        return (row for row in self.inputs.rows[self.start :] if self.shown(row))

    def lost(self, row: Row, reason: Reason) -> bool:
        """Whether nothing of a row is shown, for this reason among others."""
        if self._shown.get(row.seq) != 0:
            return False
        changes = [self.change(part) for part in row.parts]
        return any(one and one.reason == reason for one in changes)

    def weight(self, row: Row) -> int:
        """The tokens of a message as it stands."""
        shown = self.shown(row)
        return sum(map(self.tokens, shown)) + PER_MESSAGE if shown else 0

    def _change(self, part: Part, change: Change) -> None:
        key = (part.seq, part.nth)
        was, goes = isinstance(self.changes.get(key), Drop), isinstance(change, Drop)
        tokens = 0 if isinstance(change, Drop) else self._replaced(part, change)
        self.total += tokens - self._counts.get(key, part.tokens)
        self._counts[key] = tokens
        self.changes[key] = change
        if goes != was:
            self._count(part.seq, -1 if goes else 1)
        if goes and key in self._stand_ins:
            self.remove(self._stand_ins.pop(key))

    def _count(self, seq: int, more: int) -> None:
        """Keep count of the parts of a row that are shown: a row without any costs nothing."""
        before = self._shown.get(seq)
        if before is None:
            before = len(self.inputs.rows[self.inputs.at(seq)].parts)
        now = self._shown[seq] = before + more
        self.total += PER_MESSAGE * (bool(now) - bool(before))

    def _replaced(self, part: Part, change: Replace) -> int:
        known = self.inputs.replaced
        key = (part.seq, part.nth, change.head, change.text, change.tail)
        if key not in known:
            was = self.inputs.text(part)
            now = change.text if part.kind == "call" else change.applied(was)
            counter = self.inputs.counter
            beside = max(0, part.tokens - counter.text(was, part.kind))
            known[key] = counter.text(now, part.kind) + beside
        return known[key]


def _sound(edit: _Told) -> _Told:
    """The edit without lone surrogates, which are no text and could not be recorded."""
    if edit.text.isascii():
        return edit
    text = edit.text.encode(errors="replace").decode()
    return edit if text == edit.text else replace(edit, text=text)


def _anchored(inputs: ViewInput, start: int) -> set[int]:
    found: set[int] = set()
    fixed = inputs.fixed[bisect_left(inputs.fixed, start) :]
    for at in (*fixed, *_pinned(inputs)):
        found |= {inputs.rows[one].seq for one in inputs.step(inputs.steps[at])}
    return found


def _pinned(inputs: ViewInput) -> Iterator[int]:
    """The rows of the pinned parts that are on the sheet."""
    for pin in inputs.outline.pins:
        at = inputs.at(pin.seq)
        if at < len(inputs.rows):
            row = inputs.rows[at]
            if row.seq == pin.seq and pin.index < len(row.parts):
                yield at


# A desk drawn up as a plan: the decisions as runs and changes, and where the tokens go.
#
# The last step may still get its answers; what is before it is closed, and later plans only add to
# it. So a request costs what is new.


def drawn_up(
    builder: PlanBuilder, closed: Closed, profile: Profile, budget: Budget, made: Plan
) -> Plan:
    """The desk as a plan; the last step may still get its answers, what is before it is closed."""
    inputs = builder.inputs
    inserts = sorted(builder.inserts, key=_place)
    last = max(closed.rows, _open(builder, inserts))
    middle = inputs.rows[last].seq if last < len(inputs.rows) else inputs.head + 1
    done = [one for one in inserts if _place(one) <= (middle, False)]
    hidden = (Gone(Span(seq, seq), why) for seq, why in _new(inputs, closed))
    now = Closed(
        closed.layout
        + Layout(tuple(hidden))
        + _layout(builder, inputs.rows[closed.rows : last], tuple(done)),
        last,
        closed.tokens
        + sum(builder.weight(row) for row in inputs.rows[closed.rows : last])
        + sum(map(builder.cost, done)),
        closed.system + _system(builder, inputs.rows[closed.rows : last]),
        bisect_right(inputs.quotes, middle, key=lambda one: one.seq),
        len(inputs.hidden),
        closed.opened or bool(done) or _speaks(builder, inputs.rows[closed.rows : last]),
        closed.terms,
        closed.series,
    )
    tokens = closed.tokens + builder.total
    system = now.system + _system(builder, inputs.rows[last:])
    return replace(
        made,
        head=inputs.head,
        layout=now.layout + _layout(builder, inputs.rows[last:], tuple(inserts[len(done) :])),
        account=_account(inputs, profile, budget, tokens, system),
        budget=budget,
        tokens=tokens,
        closed=now,
    )


def _speaks(builder: PlanBuilder, rows: list[Row]) -> bool:
    return any(part.kind != "system" for row in rows for part in builder.shown(row))


def _place(insert: Insert) -> tuple[int, bool]:
    """Where an insert stands; one that tells of a row belongs to that row, others stand before."""
    return insert.before, insert.reason == "late"


def _open(builder: PlanBuilder, inserts: list[Insert]) -> int:
    """The row from which on a later message may still change how this is rendered.

    That is the last step, or the one before it where stand-ins may join what follows it, or what
    systems have said since the last response, where that waits for the next.
    """
    inputs = builder.inputs
    if not inputs.steps:
        return 0
    last = inputs.steps[-1]
    shown = last - 1
    while shown >= builder.start and not builder.shown(inputs.rows[shown]):
        shown -= 1
    if shown < builder.start:
        return last
    asked = inputs.steps[shown]
    first, end = inputs.rows[asked].seq, inputs.rows[last].seq
    waits = any(one.kind == "return" and first < one.before <= end for one in inserts)
    return _unsaid(builder, asked if waits else last)


def _unsaid(builder: PlanBuilder, at: int) -> int:
    """The first of what systems have said since the last response before this row, or the row."""
    inputs = builder.inputs
    first = at
    for nth in range(at - 1, builder.start - 1, -1) if inputs.wire.systems_last else ():
        shown = bool(builder.shown(inputs.rows[nth]))
        if shown and inputs.rows[nth].role == "assistant":
            break
        if shown and inputs.rows[nth].role == "system":
            first = inputs.steps[nth]
    return first


def _new(inputs: ViewInput, closed: Closed) -> Iterator[tuple[int, Reason]]:
    newest = islice(reversed(inputs.hidden.items()), len(inputs.hidden) - closed.hidden)
    yield from reversed(list(newest))


def _layout(builder: PlanBuilder, rows: list[Row], inserts: tuple[Insert, ...]) -> Layout:
    lost: list[tuple[int, int, Reason]] = []
    changes: dict[PartRef, Change] = {}
    for at, row in enumerate(rows):
        if not builder.shown(row):
            lost.append((at, row.seq, _why(builder, row)))
            continue
        for part in row.parts:
            change = builder.change(part)
            if change is not None:
                changes[part.ref] = change
    return Layout(tuple(_runs(lost, builder.inputs)) if lost else (), changes, inserts)


def _why(builder: PlanBuilder, row: Row) -> Reason:
    """Why nothing of a row is shown; a reason that lasts, where its parts have several."""
    reasons = [change.reason for part in row.parts if (change := builder.change(part))]
    lasting = [reason for reason in reasons if reason in STICKY]
    return cast("Reason", (*lasting, *reasons, "empty")[0])


def _runs(lost: list[tuple[int, int, Reason]], inputs: ViewInput) -> Iterator[Gone]:
    """The rows as runs; between them may lie entries that hold no part, but none that are apart."""
    apart = union(one.span for one in inputs.absent())
    run, at = Gone(Span(lost[0][1], lost[0][1]), lost[0][2]), lost[0][0]
    for row, seq, reason in lost[1:]:
        gap = (Span(run.span.last + 1, seq - 1),) if seq > run.span.last + 1 else ()
        if row == at + 1 and reason == run.reason and not intersect(apart, gap):
            run = Gone(Span(run.span.first, seq), reason)
        else:
            yield run
            run = Gone(Span(seq, seq), reason)
        at = row
    yield run


def _system(builder: PlanBuilder, rows: list[Row]) -> int:
    return sum(
        builder.tokens(part) for row in rows for part in builder.shown(row) if part.kind == "system"
    )


def _account(
    inputs: ViewInput, profile: Profile, budget: Budget, tokens: int, system: int
) -> Account:
    instructions = max(budget.instructions, inputs.instructions)
    limit = effective_limit(profile, budget)
    left = max(0, limit - tokens - instructions - budget.tools)
    return Account(
        system=system + instructions,
        conversation=tokens - system,
        tools=budget.tools,
        reserve=budget.reserve,
        limit=limit,
        headroom=min(int(tokens * inputs.counter.spread), left),
    )
