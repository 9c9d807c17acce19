"""Where a run is logged: in its own session, or, if it is delegated work, in a scope of another's.

No field tells that a run was started by another run, in a tool or elsewhere. So a context variable
names the run that is active.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import NamedTuple

from refold.errors import SessionNotFound
from refold.integrations.pydantic_ai.pydantic_ai_compat import is_generated_id
from refold.log import MAIN_SCOPE, Log


class Place(NamedTuple):
    """The session and scope in which a run's messages are logged."""

    session: str
    scope: str = MAIN_SCOPE

    @property
    def delegated(self) -> bool:
        return self.scope != MAIN_SCOPE


@dataclass(eq=False)
class Caller:
    """An active run, or a tool call of it."""

    store: object
    """Identifies the store that it logs to."""
    place: Place
    room: int = 0
    """In a tool call: how many tokens the run's requests may have."""
    parent: "Caller | None" = None
    """The run whose tool, or other code, started this one."""
    ended: bool = False
    """A task that it started may outlive it."""

    def find(self, store: object, session: str) -> "Caller | None":
        """The nearest run of this session that waits for this one."""
        if (self.store, self.place.session) == (store, session) and not self.ended:
            return self
        return self.parent.find(store, session) if self.parent else None


_CALLER: ContextVar[Caller | None] = ContextVar("refold.caller", default=None)


@contextmanager
def active_caller(store: object, place: Place, room: int = 0) -> Generator[None]:
    parent = _CALLER.get()
    if parent is not None and parent.place == place:
        parent = parent.parent
    caller = Caller(store, place, room, parent)
    token = _CALLER.set(caller)
    try:
        yield
    finally:
        caller.ended = True
        _CALLER.reset(token)


def current_caller() -> Caller | None:
    return _CALLER.get()


async def place_of(
    log: Log, store: object, conversation: str, agent: str | None, run: str
) -> Place:
    """Where to log a run.

    A run within a tool call of another run is delegated work, unless it names its own conversation.
    So is a run that names, anywhere within another run, a conversation whose turn that run holds.
    """
    caller = _CALLER.get()
    if caller is None:
        return Place(conversation)
    waiting = caller.find(store, conversation)
    in_tool = caller.store == store and caller.room and not caller.ended
    if waiting is None and not (in_tool and await _is_unnamed(log, conversation)):
        return Place(conversation)
    session, scope = (waiting or caller).place
    name = (agent or "agent").replace("/", "-")
    return Place(session, f"{scope.rstrip('/')}/{name}-{run[-8:]}")


async def _is_unnamed(log: Log, conversation: str) -> bool:
    """Whether nobody chose this id: it looks generated, and the log does not have it."""
    if not is_generated_id(conversation):
        return False
    try:
        await log.head(conversation)
    except SessionNotFound:
        return True
    return False
