"""The rule of the open fold over a session's log: what each request added to the debt.

`refold.fold.debt` is the rule itself, in numbers. Here, a session's requests become its numbers,
and its state is written down with each of them: whoever opens the session continues from the newest
one, and reads nothing else. A receipt reads the same states.
"""

from dataclasses import astuple, dataclass, field
from typing import Literal, NamedTuple

from refold.fold.debt import OpenFold

MovedBy = Literal["", "fold", "cut"]
"""What of ours made a request begin otherwise than the one before: nothing, a fold, or a cut."""


class Ruled(NamedTuple):
    """What is recorded of a request for the rule; prices are dollars."""

    state: tuple[float, ...] = ()
    """The state before it."""
    chain: tuple[float, ...] = ()
    """What the accounts know of the requests before it, so that nobody need read those."""
    stated: float = 0.0
    """What folds were stated to cost since the request before."""
    outside: float = 0.0
    """The same of folds that the rule does not decide."""
    unfolding: float = 0.0
    """Q: what undoing the folds would cost."""
    undone: bool = False
    """Whether they were undone since the request before."""
    moved_by: MovedBy = ""
    carried: int = 0
    """Tokens in it that were read back."""


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
        before = self.now.stating(ruled.stated) if ruled.stated else self.now
        if ruled.outside + outside > 0:
            before = before.forced(ruled.outside + outside)
        if ruled.undone:
            before = before.without_folds(ruled.unfolding)
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
