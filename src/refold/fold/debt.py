"""Never more than one compaction behind: what folding has cost so far, and whether it may go on.

Two accounts hold the same requests and the same answers. *Paid* is what was billed, summaries and
rereads included. *Whole* is what the full history would have cost: read from the cache where the
pause was within its lifetime, else written. *Debt* is paid less whole.

The rule: whatever moves the prefix and is dearer than the next request without it waits until debt
is at most 0, counting what a fold since the last request was stated to cost. What is not dearer,
because the cache is cold or has no discount, may go on at any time, if its summary fits under the
stated price. Where rereads have cost as much as writing everything from the oldest fold on, the
folds are undone, what was reread leaves the request with them, and nothing is folded while there
is debt.

The promise: at every request debt is at most P + 2Q + one reread, and at most P without rereads. P
is the stated price of the open fold, retries included, and Q the most that undoing it would have
cost since there was no debt. Q covers what was said after the fold too, because undoing a fold
moves all that follows it: with the folded text alone, the promise would be false. Moves that the
rule does not decide add their own prices to the promise, on a line of their own: those that the
window forces, and folds that a person asks for.

Why it holds: a request that moves nothing costs at most what the whole one does, apart from what
was reread. So debt without rereads grows when a fold is made and at no other time, by P; rereads
stay below Q and the one that reaches it; and undoing the fold costs at most Q.
"""

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

Reason = Literal[
    "no debt", "not dearer", "gains", "over the window", "debt", "unfolded", "not smaller"
]


class Rates(NamedTuple):
    """What a token of input costs, in any unit. Without a cache's discount, both are the same."""

    read: float
    """A token that begins this request as it began the one before, while the cache is warm."""
    write: float

    def cost(self, size: int, cached: int) -> float:
        return self.read * cached + self.write * (size - cached)


class NextRequest(NamedTuple):
    """The next request if nothing moves its prefix."""

    size: int
    """Tokens."""
    kept: int
    """Of these, those that the request before had too."""
    whole: int
    """Tokens that it would have with the whole history."""
    cold: bool = False
    """Whether the cache has expired since."""


class Move(NamedTuple):
    """A change of the prefix: a fold, or any other rewrite of what was sent."""

    kept: int
    """Tokens before the first that it changes."""
    size: int
    """Tokens of the request after it."""
    summary: float = 0.0
    """The most that its summary can cost, retries included."""

    def price(self, request: NextRequest, rates: Rates) -> float:
        """What it adds to the cost of the next request; negative where it is cheaper at once."""
        moved = 0 if request.cold else min(self.kept, request.kept, self.size)
        still = 0 if request.cold else request.kept
        return self.summary + rates.cost(self.size, moved) - rates.cost(request.size, still)


class Verdict(NamedTuple):
    """Whether a move may be made now, and why."""

    allowed: bool
    why: Reason
    price: float = 0.0
    at_once: bool = False
    """Whether that is so for this request alone: in the background it could come too late."""


@dataclass(frozen=True, slots=True)
class OpenFold:
    """The state of the rule: what the open fold was stated to cost, and what has come of it."""

    debt: float = 0.0
    """Paid less whole."""
    price: float = 0.0
    """P: stated when it was begun; 0 where there is no debt."""
    unpaid: float = 0.0
    """Of what was stated since the last request, what is not in the debt yet."""
    rereads: float = 0.0
    """What was paid for rereads since debt was last at most 0."""
    unfolding: float = 0.0
    """Q: the most that undoing it would have cost since debt was last at most 0."""
    reread: float = 0.0
    """The dearest of these rereads."""
    unfolded: bool = False
    """Whether it was undone, and there is still debt."""
    outside: float = 0.0
    """What moves cost that the rule does not decide, since debt was last at most 0."""

    @property
    def promise(self) -> float:
        """What debt may not exceed now."""
        rereads = 2 * self.unfolding + self.reread if self.rereads else 0.0
        return self.price + self.outside + rereads

    def may(
        self, move: Move, request: NextRequest, rates: Rates, *, strict: bool = False
    ) -> Verdict:
        """Whether this move may be made before the next request."""
        price = move.price(request, rates)
        stated = max(price, move.summary)
        owed = self.debt + self.unpaid
        if self.unfolded:
            return Verdict(allowed=False, why="unfolded", price=stated)
        if move.size > request.whole:  # every later request would cost more than the whole one
            return Verdict(allowed=False, why="not smaller", price=stated)
        if price <= 0:
            limit = self.outside + (0.0 if strict else self.price)
            if not move.summary or owed - self.rereads + move.summary <= limit:
                at_once = owed > 0 or strict
                return Verdict(allowed=True, why="not dearer", price=stated, at_once=at_once)
        if strict:
            gains = owed + stated <= 0
            return Verdict(gains, "gains" if gains else "debt", stated)
        return Verdict(owed <= 0, "no debt" if owed <= 0 else "debt", stated)

    def must_unfold(self, unfolding: float) -> bool:
        """Whether rereads have cost as much as undoing the folds: `unfolding` is its price now."""
        return not self.unfolded and 0 < max(unfolding, self.unfolding) <= self.rereads

    def stating(self, price: float) -> "OpenFold":
        """A fold begins, or takes effect later and for more than was stated when it began."""
        unpaid = self.unpaid + max(0.0, price)
        return replace(self, price=max(self.price, price), unpaid=unpaid)

    def forced(self, price: float) -> "OpenFold":
        """A move that the rule does not decide is made, for this price."""
        return replace(self, outside=self.outside + max(0.0, price))

    def without_folds(self, unfolding: float) -> "OpenFold":
        """All folds are undone before the next request."""
        return replace(self, unfolding=max(self.unfolding, unfolding), unfolded=True)

    def with_summary(self, cost: float) -> "OpenFold":
        """The state after a call for a summary, used or not; the fold's price still stands."""
        return replace(self, debt=self.debt + cost, unpaid=max(0.0, self.unpaid - cost))

    def after(
        self, paid: float, whole: float, *, reread: float = 0.0, unfolding: float = 0.0
    ) -> "OpenFold":
        """The state after a request.

        Args:
            paid: What it cost.
            whole: What it would have cost with the whole history; 0 for one that is extra.
            reread: Of `paid`, what was for rereads: extra requests, and text that is in the context
                again.
            unfolding: What undoing the folds would have cost.
        """
        debt = self.debt + paid - whole
        if debt <= 0:
            return OpenFold(debt)
        return replace(
            self,
            debt=debt,
            unpaid=0.0,
            rereads=self.rereads + reread,
            unfolding=max(self.unfolding, unfolding),
            reread=max(self.reread, reread),
        )


def price_of_unfolding(rates: Rates, whole: int, kept: int) -> float:
    """Q: to write everything that follows the `kept` tokens before the oldest fold once."""
    return rates.write * max(0, whole - kept)
