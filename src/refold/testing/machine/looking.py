"""Rules: looking at sessions, for words, and after a store was opened anew."""

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from refold.log.text import found, terms, text_of
from refold.testing.machine.base import BaseMachine, picks
from refold.testing.model import Kept
from refold.testing.strategies import WORDS


class Looking(BaseMachine):
    """What is held is compared in the middle of a history."""

    @rule(pick=picks)
    def reopen(self, pick: int) -> None:
        """Close a store and open it again."""
        at = pick % len(self.stores)
        if self.PEERS == 1:
            return  # what only one store holds, as in memory, is gone when it is closed
        self.run(self.stores[at].close())
        self.stores[at] = self.new_store()
        self.run(self.stores[at].open())

    @precondition(lambda self: self.model.sessions)
    @rule(pick=picks, last=st.none() | st.integers(0, 5))
    def look(self, pick: int, last: int | None) -> None:
        """Check one session."""
        self.check_session(self.log(pick), self.session(pick), last)

    @rule(pick=picks, words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=2))
    def look_for(self, pick: int, words: list[str]) -> None:
        """Search, in one session and everywhere."""
        query = " ".join(words)
        log = self.log(pick)
        everywhere = self.run(log.search(query, limit=1000))
        expected = {
            kept.draft.id
            for session in self.model.sessions.values()
            for kept in session.entries
            if _matches(kept, query)
        }
        assert {hit.entry.id for hit in everywhere} == expected
        assert len(everywhere) == len(expected)
        for hit in everywhere:
            assert hit.entry.id in {
                kept.draft.id for kept in self.model.sessions[hit.session].entries
            }
        listed = self.run(log.sessions(search=query, limit=1000)).sessions
        assert {info.session for info in listed} == {
            name
            for name, session in self.model.sessions.items()
            if any(_matches(kept, query) for kept in session.entries)
        }
        if self.model.sessions:
            session = self.session(pick)
            hits = self.run(log.search(query, session=session.name, limit=1000))
            assert [hit.entry.seq for hit in hits] == [
                seq
                for seq in range(len(session.entries), 0, -1)
                if _matches(session.entries[seq - 1], query)
            ]


def _matches(kept: Kept, query: str) -> bool:
    return not kept.forgotten and found(terms(query), text_of(kept.draft))
