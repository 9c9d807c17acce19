"""What the policies made of all sessions together."""

from collections.abc import Sequence
from dataclasses import dataclass

from refold.lab.cases import Case
from refold.lab.measuring import EVERYTHING, Outcome
from refold.lab.report import Row, pooled_rows

ENOUGH_KEPT = 0.9
"""The share of old names that a policy must keep to be called the best."""
_SAME = 0.005


@dataclass(frozen=True, slots=True)
class Total:
    """One policy on all sessions."""

    policy: str
    ours: bool
    """Whether it is a profile of ours."""
    row: Row | None
    """The figures; none where it failed on a session, for then it cannot be compared."""
    share: float
    """Its cost, of what sending everything costs."""
    refused: int
    folds: int
    error: str = ""


@dataclass(frozen=True, slots=True)
class Totals:
    """All policies on all sessions; the first sends everything."""

    cases: tuple[Case, ...]
    outcomes: tuple[Outcome, ...]
    every: tuple[Total, ...]

    @property
    def everything(self) -> Total:
        """The one that the others are a share of."""
        return self.every[0]

    @property
    def leading(self) -> Total:
        """The first of ours."""
        return next(one for one in self.every if one.ours)

    @property
    def best(self) -> Total | None:
        """The cheapest of those that keep enough and are never refused, if there is one."""
        good = [
            one
            for one in self.every
            if one.row and not one.refused and one.row.retained.rate >= ENOUGH_KEPT
        ]
        return min(good, key=lambda one: one.share, default=None)

    @property
    def short(self) -> list[int]:
        """The sessions in which nothing ever grew to where the rules act."""
        sizes = {
            one.session: one.row.peak
            for one in self.outcomes
            if one.policy == EVERYTHING and one.row
        }
        return [
            at
            for at, case in enumerate(self.cases)
            if at in sizes and sizes[at] < min(case.threshold, case.window)
        ]

    def of(self, session: int, policy: str) -> Outcome | None:
        """What a policy made of a session."""
        found = (one for one in self.outcomes if (one.session, one.policy) == (session, policy))
        return next(found, None)


def same(share: float, other: float = 1.0) -> bool:
    """Whether two costs are as good as equal."""
    return abs(share - other) <= _SAME


def totals(
    cases: Sequence[Case], outcomes: Sequence[Outcome], ours: Sequence[str], rules: Sequence[str]
) -> Totals:
    """The policies in order: everything, ours, the rules of others."""
    ordered = tuple(sorted(outcomes, key=lambda one: one.session))
    names = [EVERYTHING, *ours, *(one for one in rules if one != EVERYTHING)]
    grouped = {name: [one for one in ordered if one.policy == name] for name in names}
    base = sum(one.row.cost for one in grouped[EVERYTHING] if one.row)
    every = tuple(_total(name, grouped[name], base, ours=name in ours) for name in names)
    return Totals(tuple(cases), ordered, every)


def _total(policy: str, outcomes: Sequence[Outcome], base: float, *, ours: bool) -> Total:
    rows = [one.row for one in outcomes if one.row]
    error = next((one.error for one in outcomes if one.error), "")
    row = pooled_rows(rows) if rows and not error else None
    share = row.cost / base if row and base else 1.0
    refused = sum(one.refused for one in outcomes)
    return Total(policy, ours, row, share, refused, sum(len(one.marks) for one in outcomes), error)
