"""The working state of one projection: what the policies so far have decided.

Policies read it and propose edits, one after the other; only `apply` changes it, and each policy
sees the effect of what it proposed before. `finalize` makes a plan of it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import replace
from itertools import islice
from typing import Final, NamedTuple, cast

from refold.log import PartRef
from refold.log.entry import Span, intersect, union
from refold.view.budget import PER_MESSAGE, Account, Budget, effective_limit
from refold.view.plan import STICKY, Closed, Layout, Omission, Plan, Reason
from refold.view.profiles import Profile
from refold.view.tokens import Correction
from refold.view.view_input import Row, ViewInput, weight
from refold.wire import Change, Drop, Insert, Part, Replace, Shape

_Key = tuple[int, int]
_DECISIONS: Final = ("changes", "inserts", "_tokens", "_parts_left", "_placeholders")
"""The attributes of a builder that hold decisions."""


class Withdraw(NamedTuple):
    insert: Insert


Proposal = tuple[Part, Change] | Insert | Withdraw
"""What a policy proposes: to change a part, to insert a message, or to remove one."""


class PlanBuilder:
    """The rows of a view's input from `start` on, with the decisions made on them."""

    def __init__(self, inputs: ViewInput, start: int = 0) -> None:
        self.inputs = inputs
        self.start = start
        self.changes: dict[_Key, Change] = {}
        self.inserts: list[Insert] = []
        self.total = sum(map(weight, inputs.rows[start:] if start else inputs.rows))
        """The tokens of all messages that would be sent."""
        self.hidden_until = 0
        """The entry up to which delegated work is no longer quoted."""
        self.pinned = {(pin.seq, pin.index) for pin in inputs.outline.pins}
        self.anchored = _anchored(inputs, start)
        """The entries of steps that must stay whole, because a part of them must stay."""
        self._tokens: dict[_Key, int] = {}
        self._parts_left: dict[int, int] = {}
        """How many parts are left of the rows of which some were dropped."""
        self._placeholders: dict[_Key, Insert] = {}

    def copy(self) -> "PlanBuilder":
        builder = copy(self)
        for name in _DECISIONS:
            setattr(builder, name, copy(getattr(self, name)))
        return builder

    def apply(self, proposals: Iterable[Proposal]) -> bool:
        """Accept proposals, a later one for the same part over an earlier; whether any came."""
        any_came = False
        for proposal in proposals:
            any_came = True
            if isinstance(proposal, Insert):
                insert = _without_surrogates(proposal)
                self.inserts.append(insert)
                self.total += self.cost(insert)
                if insert.kind == "return":
                    for source in insert.sources:
                        self._placeholders[source.seq, source.index] = insert
            elif isinstance(proposal, Withdraw):
                self.remove(proposal.insert)
            else:
                self._change(*proposal)
        return any_came

    def remove(self, insert: Insert) -> None:
        """Remove an insert for good: what it quoted is not quoted again."""
        self.inserts.remove(insert)
        self.total -= self.cost(insert)
        if insert.reason == "delegated":
            self.hidden_until = max(self.hidden_until, insert.before)
        for source in insert.sources:
            if self.changes.get((source.seq, source.index)) == Drop("late"):
                self.changes[source.seq, source.index] = Drop("fitted")

    def tokens(self, part: Part) -> int:
        return self._tokens.get((part.seq, part.nth), part.tokens)

    def cost(self, insert: Insert) -> int:
        counter = self.inputs.counter
        if insert.kind == "return":  # it is sent with its tool's name, like any return
            return counter.part(Shape("return", insert.text, insert.tool)) + PER_MESSAGE
        return counter.text(insert.text) + PER_MESSAGE

    def change(self, part: Part) -> Change | None:
        return self.changes.get((part.seq, part.nth))

    def must_stay(self, part: Part) -> bool:
        """Whether a part stays in the view whatever happens."""
        return part.fixed or part.seq in self.anchored

    def may_drop(self, part: Part) -> bool:
        """Whether a part may be dropped and has not been."""
        return not self.must_stay(part) and not isinstance(self.change(part), Drop)

    def free(self, part: Part) -> bool:
        """Whether a part may be edited and has not been; rendering it is no edit."""
        key = (part.seq, part.nth)
        change = self.changes.get(key)
        edited = change is not None and change.reason != "rendered"
        return not (part.sealed or part.fixed or edited or key in self.pinned)

    def visible_parts(self, row: Row) -> list[Part]:
        left = self._parts_left.get(row.seq)
        if left is None:
            return list(row.parts)
        if not left:
            return []
        return [part for part in row.parts if not isinstance(self.change(part), Drop)]

    def visible_rows(self) -> Iterator[Row]:
        return (row for row in self.inputs.rows[self.start :] if self.visible_parts(row))

    def visible_turns(self) -> list[int]:
        """The turns whose prompt is shown; of some others, system content may be left."""
        rows = self.inputs.rows
        return [
            turn
            for turn, start in enumerate(self.inputs.turns)
            if any(part.kind == "prompt" for part in self.visible_parts(rows[start]))
        ]

    def drop(self, rows: Iterable[Row], reason: Reason) -> Iterator[tuple[Part, Drop]]:
        """Propose to drop what may be dropped of these rows."""
        parts = (part for row in rows for part in row.parts)
        return ((part, Drop(reason)) for part in parts if self.may_drop(part))

    def lost(self, row: Row, reason: Reason) -> bool:
        """Whether all of a row is dropped, some of it for this reason."""
        if self._parts_left.get(row.seq) != 0:
            return False
        changes = [self.change(part) for part in row.parts]
        return any(change and change.reason == reason for change in changes)

    def weight(self, row: Row) -> int:
        parts = self.visible_parts(row)
        return sum(map(self.tokens, parts)) + PER_MESSAGE if parts else 0

    def _change(self, part: Part, change: Change) -> None:
        key = (part.seq, part.nth)
        was_dropped, drops = isinstance(self.changes.get(key), Drop), isinstance(change, Drop)
        tokens = 0 if isinstance(change, Drop) else self._replaced_tokens(part, change)
        self.total += tokens - self._tokens.get(key, part.tokens)
        self._tokens[key] = tokens
        self.changes[key] = change
        if drops != was_dropped:
            self._count_parts(part.seq, -1 if drops else 1)
        if drops and key in self._placeholders:
            self.remove(self._placeholders.pop(key))

    def _count_parts(self, seq: int, more: int) -> None:
        before = self._parts_left.get(seq)
        if before is None:
            before = len(self.inputs.rows[self.inputs.at(seq)].parts)
        now = self._parts_left[seq] = before + more
        self.total += PER_MESSAGE * (bool(now) - bool(before))  # a row without parts costs nothing

    def _replaced_tokens(self, part: Part, change: Replace) -> int:
        cache = self.inputs.replaced
        key = (part.seq, part.nth, change.head, change.text, change.tail)
        if key not in cache:
            was = self.inputs.text(part)
            now = change.text if part.kind == "call" else change.applied(was)
            counter = self.inputs.counter
            around = max(0, part.tokens - counter.text(was, part.kind))
            cache[key] = counter.text(now, part.kind) + around
        return cache[key]


def _without_surrogates(insert: Insert) -> Insert:
    if insert.text.isascii():
        return insert
    text = insert.text.encode(errors="replace").decode()
    return insert if text == insert.text else replace(insert, text=text)


def _anchored(inputs: ViewInput, start: int) -> set[int]:
    indexes = inputs.fixed[bisect_left(inputs.fixed, start) :]
    for pin in inputs.outline.pins:
        index = inputs.at(pin.seq)
        if index < len(inputs.rows):
            row = inputs.rows[index]
            if row.seq == pin.seq and pin.index < len(row.parts):
                indexes.append(index)
    steps = (inputs.step(inputs.steps[index]) for index in indexes)
    return {inputs.rows[index].seq for step in steps for index in step}


def finalize(
    builder: PlanBuilder, closed: Closed, profile: Profile, budget: Budget, plan: Plan
) -> Plan:
    """The plan with the builder's decisions, as runs and changes, and with its account.

    The last step may still get its answers. What is before it is closed, and later plans only add
    to it, so a request costs what is new.
    """
    inputs = builder.inputs
    inserts = sorted(builder.inserts, key=_position)
    last = max(closed.rows, _open_from(builder, inserts))
    middle = inputs.rows[last].seq if last < len(inputs.rows) else inputs.head + 1
    final = [insert for insert in inserts if _position(insert) <= (middle, False)]
    new_hidden = islice(reversed(inputs.hidden.items()), len(inputs.hidden) - closed.hidden)
    hidden = tuple(Omission(Span(seq, seq), why) for seq, why in reversed([*new_hidden]))
    rows = inputs.rows[closed.rows : last]
    now = Closed(
        closed.layout + Layout(hidden) + _layout(builder, rows, tuple(final)),
        last,
        closed.tokens + sum(map(builder.weight, rows)) + sum(map(builder.cost, final)),
        closed.system + _system_tokens(builder, rows),
        bisect_right(inputs.quotes, middle, key=lambda quote: quote.seq),
        len(inputs.hidden),
        closed.opened
        or bool(final)
        or any(part.kind != "system" for row in rows for part in builder.visible_parts(row)),
        closed.terms,
        closed.series,
    )
    tokens = closed.tokens + builder.total
    system = now.system + _system_tokens(builder, inputs.rows[last:])
    instructions = max(budget.instructions, inputs.instructions)
    limit = effective_limit(profile, budget)
    free = max(0, limit - tokens - instructions - budget.tools)
    account = Account(
        system=system + instructions,
        conversation=tokens - system,
        tools=budget.tools,
        reserve=budget.reserve,
        limit=limit,
        headroom=min(int(tokens * inputs.counter.spread), free),
    )
    rest = _layout(builder, inputs.rows[last:], tuple(inserts[len(final) :]))
    return replace(
        plan,
        head=inputs.head,
        layout=now.layout + rest,
        account=account,
        correction=Correction.of(inputs.counter),
        budget=budget,
        tokens=tokens,
        closed=now,
    )


def _position(insert: Insert) -> tuple[int, bool]:
    """Inserts come before their row, except a late result, which belongs to its row."""
    return insert.before, insert.reason == "late"


def _open_from(builder: PlanBuilder, inserts: list[Insert]) -> int:
    """The row from which on a later message may still change how this is rendered.

    That is the last step, or the one before it where placeholders may join what follows it, or
    what systems have said since the last response, where that waits for the next.
    """
    inputs = builder.inputs
    if not inputs.steps:
        return 0
    last = inputs.steps[-1]
    visible = last - 1
    while visible >= builder.start and not builder.visible_parts(inputs.rows[visible]):
        visible -= 1
    if visible < builder.start:
        return last
    step = inputs.steps[visible]
    first, end = inputs.rows[step].seq, inputs.rows[last].seq
    waits = any(insert.kind == "return" and first < insert.before <= end for insert in inserts)
    result = start = step if waits else last
    if inputs.wire.systems_last:
        for index in range(start - 1, builder.start - 1, -1):
            row = inputs.rows[index]
            if not builder.visible_parts(row):
                continue
            if row.role == "assistant":
                break
            if row.role == "system":
                result = inputs.steps[index]
    return result


def _layout(builder: PlanBuilder, rows: list[Row], inserts: tuple[Insert, ...]) -> Layout:
    lost: list[tuple[int, int, Reason]] = []
    changes: dict[PartRef, Change] = {}
    for index, row in enumerate(rows):
        if not builder.visible_parts(row):
            lost.append((index, row.seq, _reason(builder, row)))
            continue
        for part in row.parts:
            change = builder.change(part)
            if change is not None:
                changes[part.ref] = change
    return Layout(tuple(_runs(lost, builder.inputs)) if lost else (), changes, inserts)


def _reason(builder: PlanBuilder, row: Row) -> Reason:
    """Why nothing of a row is shown; a reason that lasts, where its parts have several."""
    reasons = [change.reason for part in row.parts if (change := builder.change(part))]
    lasting = [reason for reason in reasons if reason in STICKY]
    return cast("Reason", (*lasting, *reasons, "empty")[0])


def _runs(lost: list[tuple[int, int, Reason]], inputs: ViewInput) -> Iterator[Omission]:
    """The rows as runs. Entries without parts may lie between them, but no other omission."""
    others = union(omission.span for omission in inputs.absent())
    before, seq, reason = lost[0]
    run = Omission(Span(seq, seq), reason)
    for index, seq, reason in lost[1:]:
        gap = (Span(run.span.last + 1, seq - 1),) if seq > run.span.last + 1 else ()
        if index == before + 1 and reason == run.reason and not intersect(others, gap):
            run = Omission(Span(run.span.first, seq), reason)
        else:
            yield run
            run = Omission(Span(seq, seq), reason)
        before = index
    yield run


def _system_tokens(builder: PlanBuilder, rows: list[Row]) -> int:
    parts = (part for row in rows for part in builder.visible_parts(row))
    return sum(builder.tokens(part) for part in parts if part.kind == "system")
