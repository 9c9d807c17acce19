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
window forces, and folds that a person asks for. If one of these is made after all folds were
undone, it is open next, and what those before have cost stays in the promise.

Why it holds: a request that moves nothing costs at most what the whole one does, apart from what
was reread. So debt without rereads grows when a fold is made and at no other time, by P; rereads
stay below Q and the one that reaches it; and undoing the fold costs at most Q.
"""

from dataclasses import astuple, dataclass, field, replace
from typing import Literal, NamedTuple

from pydantic import JsonValue

Reason = Literal[
    "no debt", "not dearer", "gains", "over the window", "debt", "unfolded", "not smaller"
]

MovedBy = Literal["", "fold", "cut"]
"""What of ours made a request begin otherwise than the one before: nothing, a fold, or a cut."""


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

    def stated(self, request: NextRequest, rates: Rates) -> float:
        """The price that counts: also of text that was read back, which it makes part of a fold."""
        moved = 0 if request.cold else min(self.kept, request.kept, self.size)
        new = request.size - request.kept
        cached = 0 if request.cold else max(0, request.whole - new)
        whole = rates.cost(request.whole, cached)
        over = self.summary + rates.cost(self.size, moved) - whole
        return max(self.summary, self.price(request, rates), over)


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
        stated = move.stated(request, rates)
        owed = self.debt + self.unpaid
        if self.unfolded:
            return Verdict(allowed=False, why="unfolded", price=stated)
        if move.size > request.whole:  # every later request would cost more than the whole one
            return Verdict(allowed=False, why="not smaller", price=stated)
        if price <= 0:
            limit = self.outside + (0.0 if strict else self.price)
            if not stated or owed - self.rereads + stated <= limit:
                at_once = owed > 0 or strict
                return Verdict(allowed=True, why="not dearer", price=stated, at_once=at_once)
        if strict:
            gains = owed + stated <= 0
            return Verdict(gains, "gains" if gains else "debt", stated, at_once=True)
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
        more = max(0.0, price)
        return replace(self, outside=self.outside + more, unpaid=self.unpaid + more)

    def reopened(self) -> "OpenFold":
        """After all folds were undone, the rule did not decide another: rereads count again.

        What the ones before have cost, and undoing them, stays in the promise.
        """
        if not self.unfolded:
            return self
        outside = max(self.outside, self.debt + self.unpaid - self.price)
        return replace(
            self, outside=outside, rereads=0.0, unfolding=0.0, reread=0.0, unfolded=False
        )

    def with_moves(self, moves: "Ruled", outside: float = 0.0) -> "OpenFold":
        """With the moves that are recorded of a request, and others that the rule doesn't decide.

        What is nothing changes nothing: there may have been no debt meanwhile.
        """
        state = self.stating(moves.stated) if moves.stated else self
        if moves.outside + outside > 0:
            state = state.forced(moves.outside + outside)
        if moves.undone:
            state = state.without_folds(moves.unfolding)
        return state.reopened() if moves.reopened else state

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


class Ruled(NamedTuple):
    """What is recorded of a request for the rule; prices are dollars."""

    state: tuple[float, ...] = ()
    """The state before it."""
    chain: tuple[JsonValue, ...] = ()
    """What the accounts know of the requests before it, so that nobody need read those."""
    stated: float = 0.0
    """What folds were stated to cost since the request before."""
    outside: float = 0.0
    """The same of folds that the rule does not decide."""
    unfolding: float = 0.0
    """Q: what undoing the folds would cost."""
    undone: bool = False
    """Whether they were undone since the request before."""
    reopened: bool = False
    """Whether a fold was made after that, which the rule does not decide."""
    moved_by: MovedBy = ""
    carried: int = 0
    """Tokens in it that were read back."""

    def scaled(self, scale: float) -> "Ruled":
        """With prices by the provider's count, which is so many times ours."""
        return self._replace(
            stated=self.stated * scale,
            outside=self.outside * scale,
            unfolding=self.unfolding * scale,
        )


@dataclass(slots=True)
class RuleState:
    """The state of the rule after the newest request, and what that may still turn out to be."""

    now: OpenFold = field(default_factory=OpenFold)
    spent: float = 0.0
    """On summaries since the newest request."""
    _before: OpenFold | None = None
    """With the newest request's folds, but not its costs."""
    _paid: float = 0.0
    _unfolding: float = 0.0

    @property
    def if_reread(self) -> OpenFold:
        """The state if the newest request only asked for what is folded."""
        if self._before is None or self._before.unfolded:  # nothing was folded
            return self.now
        state = self._before.after(
            self._paid, 0, reread=max(0.0, self._paid), unfolding=self._unfolding
        )
        return state.with_summary(self.spent) if self.spent else state

    def spend(self, cost: float, *, outside: bool = False) -> None:
        """Take in what a summary cost."""
        self.now = (self.now.forced(cost) if outside else self.now).with_summary(cost)
        self.spent += cost

    def request(
        self, ruled: Ruled, paid: float, whole: float, *, reread: float, outside: float
    ) -> None:
        """Take in a request.

        Args:
            ruled: What was recorded of it.
            paid: What it cost, without what nothing of ours caused.
            whole: What it would have cost with the whole history.
            reread: Of `paid`, what was for text that was read back.
            outside: Of `paid`, what a cut of ours cost.
        """
        before = self.now.with_moves(ruled, outside)
        self._before, self._paid, self._unfolding = before, paid, ruled.unfolding
        self.spent = 0.0
        self.now = before.after(paid, whole, reread=reread, unfolding=ruled.unfolding)

    def retract(self) -> None:
        """The newest request only asked for what is folded: the whole account has none of it."""
        self.now, self._before = self.if_reread, None

    def skip(self) -> None:
        """The newest request has nothing to be compared with."""
        self._before, self.spent = None, 0.0

    def as_tuple(self) -> tuple[float, ...]:
        """The state as it is recorded."""
        before = astuple(self._before) if self._before else ()
        return (*astuple(self.now), self.spent, self._paid, self._unfolding, *before)

    @classmethod
    def of(cls, recorded: tuple[float, ...]) -> "RuleState":
        """The state that was recorded; a new one where nothing was."""
        width = len(astuple(OpenFold()))
        if len(recorded) < width + 3:
            return cls()
        spent, paid, unfolding = recorded[width : width + 3]
        before = recorded[width + 3 :]
        return cls(
            _open_fold(recorded[:width]),
            spent,
            _open_fold(before) if len(before) == width else None,
            paid,
            unfolding,
        )


def _open_fold(recorded: tuple[float, ...]) -> OpenFold:
    *sums, unfolded, outside = recorded
    return OpenFold(*sums, unfolded=bool(unfolded), outside=outside)
