"""Rules: appending, once, twice, elsewhere and at once."""

import asyncio

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from refold.errors import Conflict, SessionForgotten
from refold.log import Appended, Artifact, Note, Opened, Value
from refold.testing.machine.base import BaseMachine, picks
from refold.testing.strategies import fillers, large_message, plain_values, texts


class Appending(BaseMachine):
    """Sessions are begun, and grow."""

    @rule(title=st.none() | texts)
    def open_session(self, title: str | None) -> None:
        """Begin a session, under a new name or one that was forgotten."""
        buried = sorted(self.model.buried - {*self.model.sessions})
        name = buried[0] if buried and self.names % 2 else self.new_name()
        self.append(name, [Opened("openai-chat", "balanced", title)], pick=self.names)

    @precondition(lambda self: self.model.sessions)
    @rule(pick=picks, values=st.lists(plain_values, min_size=1, max_size=4), anywhere=st.booleans())
    def append_plain(self, pick: int, values: list[Value], anywhere: bool) -> None:  # noqa: FBT001
        """Append messages and notes."""
        self.append(self.session(pick).name, values, pick=pick, anywhere=anywhere)

    @precondition(lambda self: self.model.sessions)
    @rule(pick=picks, filler=fillers, text=texts, attach=st.booleans())
    def append_large(self, pick: int, filler: str, text: str, attach: bool) -> None:  # noqa: FBT001
        """Append something that is kept as an artifact, perhaps with one attached."""
        artifacts = [Artifact.of(b"attached to many", "text/plain")] if attach else []
        message = large_message(filler, text)
        self.append(self.session(pick).name, [message], pick=pick, artifacts=artifacts)

    @precondition(lambda self: self.appends)
    @rule(pick=picks, expected=st.none() | st.integers(0, 20))
    def append_again(self, pick: int, expected: int | None) -> None:
        """Repeat an append whose acknowledgement was lost, even long ago."""
        name, drafts, life, first, mark = self.appends[pick % len(self.appends)]
        again = self.log(pick).append(name, drafts, expected=expected, mark=mark)
        session = self.model.sessions.get(name)
        if session is None or session.entries[0] is not life:
            self.refused(again, SessionForgotten, Conflict)
        else:
            assert self.run(again) == Appended(first.first, first.last, repeated=True)

    @precondition(lambda self: self.model.sessions)
    @rule(pick=picks, off=st.sampled_from((-1, 1, 7)))
    def append_elsewhere(self, pick: int, off: int) -> None:
        """Append where the head is not."""
        session = self.session(pick)
        drafts = [self.author.draft(Note("late"))]
        late = self.log(pick).append(session.name, drafts, expected=len(session.entries) + off)
        self.refused(late, Conflict)

    @precondition(lambda self: self.model.sessions)
    @rule(pick=picks, writers=st.integers(2, 4), anywhere=st.booleans())
    def append_at_once(self, pick: int, writers: int, anywhere: bool) -> None:  # noqa: FBT001
        """Several writers append to one session at the same time."""
        session = self.session(pick)
        expected = None if anywhere else len(session.entries)
        drafted = [
            (Note(f"writer {at}"), self.author.draft(Note(f"writer {at}"))) for at in range(writers)
        ]

        async def race() -> list[Appended | BaseException]:
            calls = (
                self.log(pick + at).append(session.name, [draft], expected=expected)
                for at, (_, draft) in enumerate(drafted)
            )
            return await asyncio.gather(*calls, return_exceptions=True)

        ends = self.run(race())
        won = [
            (end.first, one)
            for end, one in zip(ends, drafted, strict=True)
            if isinstance(end, Appended)
        ]
        lost = [end for end in ends if not isinstance(end, Appended)]
        assert all(isinstance(end, Conflict) for end in lost), lost
        assert len(won) == (writers if anywhere else 1)
        before = len(session.entries)
        assert sorted(first for first, _ in won) == list(range(before + 1, before + len(won) + 1))
        self.model.append(session.name, [one for _, one in sorted(won, key=lambda pair: pair[0])])
