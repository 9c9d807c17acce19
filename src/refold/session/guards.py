"""Guards: what keeps a session from folding in vain is said once, with what to do about it."""

from collections.abc import Callable

from refold.fold.events import CompactionHeld, Guard
from refold.fold.summary import Summary
from refold.fold.trigger import Decision
from refold.fold.write.breaker import TOO_OFTEN

_REPEATED = 2  # times that a fold fails alike before that is said


class Guards:
    """Notices what would go on for ever, and tells those who watch."""

    def __init__(self, watch: Callable[[CompactionHeld], None]) -> None:
        self._watch = watch
        self._floor = False
        self._failed: tuple[str, int] = ("", 0)

    def decided(self, decision: Decision) -> None:
        """A decision was made: is what is always sent too large by itself?"""
        floor = next((one for one in decision.why if one.what == "floor"), None)
        if floor is not None and not self._floor:
            why = f"{floor.value:,} tokens are always sent, and folds begin at {floor.mark:,}"
            self._tell("floor above trigger", why)
        if decision.why or floor:
            self._floor = floor is not None

    def completed(self, summary: Summary, freed: int | None) -> bool:
        """A fold stands; `freed` is by how many tokens. Whether that was of use."""
        self._failed = ("", 0)
        refused = summary.report.refused if summary.report else ""
        if refused:
            left_alone = refused.startswith(TOO_OFTEN)
            self._tell("summariser left alone" if left_alone else "not believed", refused)
        if freed is None or freed > 0:
            return True
        self._tell("no progress", f"{-freed:,} tokens more than before")
        return False

    def failed(self, reason: str) -> None:
        """A fold was not made."""
        kind = reason.partition(";")[0]  # what it cost differs each time
        before, times = self._failed
        times = times + 1 if kind == before else 1
        self._failed = kind, times
        if times == _REPEATED:
            self._tell("repeated failure", reason)

    def _tell(self, guard: Guard, why: str) -> None:
        self._watch(CompactionHeld(guard, why))
