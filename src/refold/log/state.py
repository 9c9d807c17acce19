"""What a store keeps of a session beside its entries."""

from typing import NamedTuple

from refold.log.outline import Outline
from refold.log.protocol import SessionInfo


class State(NamedTuple):
    """What a store keeps of a session beside its entries."""

    head: int
    messages: int
    format: str
    profile: str
    created_at: int
    updated_at: int
    outline: Outline
    not_before: int = 0
    """When a session of the same name was forgotten: no draft made before that may come back."""

    def info(self, session: str, forked_from: str | None, forked_at: int | None) -> SessionInfo:
        """The state as a list of sessions shows it."""
        return SessionInfo(
            session=session,
            title=self.outline.title,
            format=self.format,
            profile=self.profile,
            created_at=self.created_at,
            updated_at=self.updated_at,
            entries=self.head,
            messages=self.messages,
            forked_from=forked_from,
            forked_at=forked_at,
        )


def fork_state(state: State, at: int, messages: int, outline: Outline, now: int) -> State:
    """The state of a new fork of a session at one of its entries."""
    return State(at, messages, state.format, state.profile, now, now, outline)
