"""Rules: entries and sessions are forgotten."""

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from refold.log import Span
from refold.testing.machine.base import BaseMachine, picks
from refold.testing.model import Kept, ModelLog


class Forgetting(BaseMachine):
    """Some of it is erased for good."""

    @precondition(lambda self: self.model.sessions)
    @rule(pick=picks, first=picks, length=st.integers(1, 4))
    def forget_span(self, pick: int, first: int, length: int) -> None:
        """Erase some entries."""
        session = self.session(pick)
        start = first % len(session.entries) + 1
        erased = self.run(self.log(pick).forget(session.name, Span(start, start + length - 1)))
        named = session.entries[start - 1 : start - 1 + length]
        living, dead = _counts(self.model, named)
        self.model.forget(named)
        assert erased.entries == living
        assert erased.derived == _counts(self.model, named)[1] - dead - living

    @precondition(lambda self: len(self.model.sessions) > 1)
    @rule(pick=picks)
    def forget_session(self, pick: int) -> None:
        """Erase a whole session, in its forks too."""
        session = self.session(pick)
        self.run(self.log(pick).forget(session.name))
        self.model.forget(session.entries[session.own_from - 1 :])
        self.model.bury(session.name)

    @precondition(lambda self: len(self.model.sessions) > 1)
    @rule(pick=picks)
    def expire(self, pick: int) -> None:
        """Let the sessions go that were used before one of them."""
        before = self.session(pick).used
        gone = self.run(self.log(pick).expire(before))
        old = sorted(name for name, one in self.model.sessions.items() if one.used < before)
        assert gone == old
        for name in old:
            self.model.bury(name)


def _counts(model: ModelLog, named: list[Kept]) -> tuple[int, int]:
    """How many of the named are not forgotten, and how many of all entries are."""
    everything = {kept for session in model.sessions.values() for kept in session.entries}
    living = sum(not kept.forgotten for kept in named)
    return living, sum(kept.forgotten for kept in everything)
