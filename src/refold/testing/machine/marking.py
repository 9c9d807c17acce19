"""Rules: appending with marks, and finding by them."""

import asyncio

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from refold.errors import MarkConflict
from refold.log import Appended, Mark, Note, Value
from refold.testing.machine.base import KEYS, BaseMachine, picks
from refold.testing.strategies import plain_values


class Marking(BaseMachine):
    """Entries get marks, one after the other."""

    @precondition(lambda self: self.model.sessions)
    @rule(
        pick=picks,
        values=st.lists(plain_values, min_size=1, max_size=3),
        key=st.sampled_from(KEYS),
        knows=st.booleans(),
    )
    def append_marked(
        self,
        pick: int,
        values: list[Value],
        key: bytes,
        knows: bool,  # noqa: FBT001
    ) -> None:
        """Append with a mark, after the newest one or wherever that is."""
        name = self.session(pick).name
        after = self.model.newest_marks(name)[0] if knows else None
        mark = Mark(key, pick % len(values), after)
        self.append(name, values, pick=pick, anywhere=not knows, mark=mark)

    @precondition(lambda self: self.model.sessions)
    @rule(pick=picks, off=st.sampled_from((-1, 1, 7)), anywhere=st.booleans())
    def append_after_another_mark(self, pick: int, off: int, anywhere: bool) -> None:  # noqa: FBT001
        """Append after a mark that is not the newest."""
        session = self.session(pick)
        newest, _ = self.model.newest_marks(session.name)
        mark = Mark(KEYS[0], 0, abs(newest + off))
        drafts = [self.author.draft(Note("late"))]
        expected = None if anywhere else len(session.entries)
        late = self.log(pick).append(session.name, drafts, expected=expected, mark=mark)
        self.refused(late, MarkConflict)

    @precondition(lambda self: self.model.sessions)
    @rule(pick=picks, writers=st.integers(2, 4))
    def append_marked_at_once(self, pick: int, writers: int) -> None:
        """Several writers append after the same mark; one of them does."""
        session = self.session(pick)
        mark = Mark(KEYS[pick % len(KEYS)], 0, self.model.newest_marks(session.name)[0])
        notes = [Note(f"writer {at}") for at in range(writers)]
        drafts = [self.author.draft(note) for note in notes]

        async def race() -> list[Appended | BaseException]:
            calls = (
                self.log(pick + at).append(session.name, [draft], expected=None, mark=mark)
                for at, draft in enumerate(drafts)
            )
            return await asyncio.gather(*calls, return_exceptions=True)

        ends = self.run(race())
        won = [at for at, end in enumerate(ends) if isinstance(end, Appended)]
        lost = [end for end in ends if not isinstance(end, Appended)]
        assert all(isinstance(end, MarkConflict) for end in lost), lost
        assert len(won) == 1
        self.model.append(session.name, [(notes[won[0]], drafts[won[0]])])
        self.model.marks.append((mark.key, session.name, len(session.entries)))

    @rule(pick=picks)
    def look_for_marks(self, pick: int) -> None:
        """Find all marked entries."""
        self.check_marks(self.log(pick))
