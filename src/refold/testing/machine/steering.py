"""Rules: control entries, request records, forks."""

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from refold.log import Cleared, PartRef, Pinned, Requested, Rewound, Span, Titled, Unpinned, Value
from refold.testing.machine.base import BaseMachine, picks


class Steering(BaseMachine):
    """What a view reads is changed."""

    @precondition(lambda self: self.model.sessions)
    @rule(pick=picks, to=picks, what=st.sampled_from(("rewind", "clear", "pin", "unpin", "title")))
    def steer(self, pick: int, to: int, what: str) -> None:
        """Append a control entry that needs no more than a place."""
        session = self.session(pick)
        seq = to % len(session.entries) + 1
        values: dict[str, Value] = {
            "rewind": Rewound(seq),
            "clear": Cleared(),
            "pin": Pinned((PartRef(seq, 0),)),
            "unpin": Unpinned((PartRef(seq, 0),)),
            "title": Titled(f"title {seq}"),
        }
        self.append(session.name, [values[what]], pick=pick)

    @precondition(lambda self: self.model.sessions)
    @rule(pick=picks, first=picks, length=st.integers(1, 5))
    def record_request(self, pick: int, first: int, length: int) -> None:
        """Append a request record over some entries, as a difference to the one before."""
        session = self.session(pick)
        start = first % len(session.entries) + 1
        span = Span(start, min(start + length - 1, len(session.entries)))
        record = session.line().record
        chain = () if record is None else (record,)
        self.append(session.name, [Requested((span,), ["keep"], "m", "d", chain=chain)], pick=pick)

    @precondition(lambda self: self.model.sessions)
    @rule(pick=picks, at=picks, whole=st.booleans())
    def fork(self, pick: int, at: int, whole: bool) -> None:  # noqa: FBT001
        """Fork a session, which may be a fork itself."""
        session = self.session(pick)
        place = len(session.entries) if whole else at % len(session.entries) + 1
        name = self.new_name()
        made = self.run(self.log(pick).fork(session.name, name, at=None if whole else place))
        again = self.run(self.log(pick + 1).fork(session.name, name, at=place))
        assert made == again
        self.model.fork(session.name, name, place, made.updated_at)
