"""Rules: folds begin, are made, fail and are taken back."""

from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from refold.log import (
    Cleared,
    FoldCompleted,
    FoldFailed,
    FoldStarted,
    FoldStepped,
    FoldUndone,
    Span,
)
from refold.log.span import spans_of
from refold.testing.machine.base import BaseMachine, picks
from refold.testing.strategies import texts


class Folding(BaseMachine):
    """The past is folded."""

    @precondition(lambda self: self.model.sessions)
    @rule(pick=picks, first=picks, length=st.integers(1, 6), completes=st.booleans())
    def fold(self, pick: int, first: int, length: int, completes: bool) -> None:  # noqa: FBT001
        """Start a fold over some of the line, and end it or leave it running."""
        session = self.session(pick)
        line = session.line().seqs
        if not line:
            return
        start = first % len(line)
        spans = spans_of(line[start : start + length])
        fold = UUID(int=self.author.draft(Cleared()).id.int)
        self.append(session.name, [FoldStarted(fold, spans, "manual")], pick=pick)
        if completes:
            self.append(
                session.name, [FoldCompleted(fold, spans, {"text": "summary of beta"})], pick=pick
            )

    @precondition(lambda self: self.model.sessions)
    @rule(pick=picks, first=picks, length=st.integers(1, 6), text=texts)
    def step_fold(self, pick: int, first: int, length: int, text: str) -> None:
        """Record a step of making a fold, which goes with what it is about."""
        session = self.session(pick)
        start = first % len(session.entries) + 1
        span = Span(start, min(start + length - 1, len(session.entries)))
        running = sorted(session.running())
        fold = running[pick % len(running)] if running else UUID(int=pick)
        step = FoldStepped(fold, f"chunk {first}", {"text": text})
        self.append(session.name, [step], pick=pick, rests_on=(span,))

    @precondition(lambda self: any(one.running() for one in self.model.sessions.values()))
    @rule(pick=picks)
    def fail_fold(self, pick: int) -> None:
        """End a running fold without a summary."""
        running = [
            (one.name, fold)
            for one in self.model.sessions.values()
            for fold in sorted(one.running())
        ]
        name, fold = running[pick % len(running)]
        self.append(name, [FoldFailed(fold, "cancelled")], pick=pick)

    @precondition(lambda self: any(one.line().folds for one in self.model.sessions.values()))
    @rule(pick=picks)
    def undo_fold(self, pick: int) -> None:
        """Take back a fold that stands."""
        standing = [
            (one.name, fold)
            for one in self.model.sessions.values()
            for _, fold, _ in one.line().standing()
        ]
        name, fold = standing[pick % len(standing)]
        self.append(name, [FoldUndone(fold)], pick=pick)
