"""The working state of one projection: what the policies so far have decided.

Policies read it and propose edits, one after the other; only `apply` changes it, and each policy
sees the effect of what it proposed before.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import replace
from typing import NamedTuple, TypeVar

from refold.view.budget import PER_MESSAGE
from refold.view.reasons import Reason
from refold.view.row import Row, weight
from refold.view.sheet import Sheet
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


class Desk:
    """The rows of a sheet from `start` on, with the decisions made on them."""

    def __init__(self, sheet: Sheet, start: int = 0) -> None:
        self.sheet = sheet
        self.start = start
        self.changes: dict[Key, Change] = {}
        self.inserts: list[Insert] = []
        self.total = sum(map(weight, sheet.rows[start:] if start else sheet.rows))
        """The tokens of all messages that would be sent."""
        self.untold = 0
        self.pinned = {(pin.seq, pin.index) for pin in sheet.outline.pins}
        self.anchored = _anchored(sheet, start)
        """The entries of steps that must stay whole, because a part of them must stay."""
        self._counts: dict[Key, int] = {}
        self._shown: dict[int, int] = {}
        """How many parts are left of the rows of which some were dropped."""
        self._stand_ins: dict[Key, Insert] = {}

    def copy(self) -> "Desk":
        """Another desk with the same decisions."""
        desk = copy(self)
        for name in _DECIDED:
            setattr(desk, name, copy(getattr(self, name)))
        return desk

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
        counter = self.sheet.counter
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
        return (row for row in self.sheet.rows[self.start :] if self.shown(row))

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
            before = len(self.sheet.rows[self.sheet.at(seq)].parts)
        now = self._shown[seq] = before + more
        self.total += PER_MESSAGE * (bool(now) - bool(before))

    def _replaced(self, part: Part, change: Replace) -> int:
        known = self.sheet.replaced
        key = (part.seq, part.nth, change.head, change.text, change.tail)
        if key not in known:
            was = self.sheet.text(part)
            now = change.text if part.kind == "call" else change.applied(was)
            counter = self.sheet.counter
            beside = max(0, part.tokens - counter.text(was, part.kind))
            known[key] = counter.text(now, part.kind) + beside
        return known[key]


def _sound(edit: _Told) -> _Told:
    """The edit without lone surrogates, which are no text and could not be recorded."""
    if edit.text.isascii():
        return edit
    text = edit.text.encode(errors="replace").decode()
    return edit if text == edit.text else replace(edit, text=text)


def _anchored(sheet: Sheet, start: int) -> set[int]:
    found: set[int] = set()
    fixed = sheet.fixed[bisect_left(sheet.fixed, start) :]
    for at in (*fixed, *_pinned(sheet)):
        found |= {sheet.rows[one].seq for one in sheet.step(sheet.steps[at])}
    return found


def _pinned(sheet: Sheet) -> Iterator[int]:
    """The rows of the pinned parts that are on the sheet."""
    for pin in sheet.outline.pins:
        at = sheet.at(pin.seq)
        if at < len(sheet.rows):
            row = sheet.rows[at]
            if row.seq == pin.seq and pin.index < len(row.parts):
                yield at
