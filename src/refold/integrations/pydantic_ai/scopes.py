"""Where a run belongs: a session of its own, or, as a delegation, a scope within another's.

A run that another run starts, in a tool or in any other code of its own, has no field that says so.
So while a run is at work, a context variable names it.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import NamedTuple

from pydantic_ai.models import Model, infer_model

from refold.errors import InvalidInput, SessionNotFound
from refold.integrations.pydantic_ai.pydantic_ai_compat import is_generated_id
from refold.log import MAIN_SCOPE, Log
from refold.memory import Board, Consolidated, consolidate
from refold.models.catalog import Overrides


class Place(NamedTuple):
    """Where the messages of a run are logged, and whose they are."""

    session: str
    scope: str = MAIN_SCOPE

    @property
    def delegated(self) -> bool:
        """Whether another run waits for this one."""
        return self.scope != MAIN_SCOPE


@dataclass(eq=False)
class Caller:
    """A run that is at work."""

    kept: object
    """In which store."""
    place: Place
    room: int = 0
    """While a tool of it is at work: the most tokens that its requests may have."""
    above: "Caller | None" = None
    """Whose tool, or other code, started that run."""
    over: bool = False
    """It has ended, though a task that it started may go on."""

    def within(self, kept: object, session: str) -> "Caller | None":
        """The nearest run of this session that waits for what is at work."""
        if (self.kept, self.place.session) == (kept, session) and not self.over:
            return self
        return self.above.within(kept, session) if self.above else None


_CALLER: ContextVar[Caller | None] = ContextVar("refold.caller", default=None)


@contextmanager
def calling(kept: object, place: Place, room: int = 0) -> Generator[None]:
    """While a run, or a tool of it, is at work."""
    above = _CALLER.get()
    if above is not None and above.place == place:
        above = above.above
    caller = Caller(kept, place, room, above)
    token = _CALLER.set(caller)
    try:
        yield
    finally:
        caller.over = True
        _CALLER.reset(token)


def current() -> Caller | None:
    """The run that is at work."""
    return _CALLER.get()


async def place_of(log: Log, kept: object, conversation: str, agent: str | None, run: str) -> Place:
    """The place of a run.

    A run within a tool of another is delegated work, unless it names a conversation of its own; so
    is one that names, anywhere within a run, a conversation whose turn that run holds.
    """
    found = _CALLER.get()
    if found is None:
        return Place(conversation)
    waiting = found.within(kept, conversation)
    in_tool = found.kept == kept and found.room and not found.over
    if waiting is None and not (in_tool and await _made_up(log, conversation)):
        return Place(conversation)
    session, scope = (waiting or found).place
    name = (agent or "agent").replace("/", "-")
    return Place(session, f"{scope.rstrip('/')}/{name}-{run[-8:]}")


async def _made_up(log: Log, conversation: str) -> bool:
    """Whether nobody chose this id: it is as Pydantic AI makes them, and the log knows it not."""
    if not is_generated_id(conversation):
        return False
    try:
        await log.head(conversation)
    except SessionNotFound:
        return True
    return False


# What a conversation is told of earlier ones: the board, as it stood when it began.


async def told(board: Board | None, log: Log, place: Place) -> str | None:
    """The words for a run at this place; delegated work is told by who delegates."""
    if board is None or place.delegated:
        return None
    begun = (await log.info(place.session)).created_at
    return (await board.state(before=begun)).text or None


async def consolidated(
    board: Board | None, log: Log, session: str, model: Model | str, models: Overrides
) -> Consolidated:
    """What came of having this model read a session for the board."""
    if board is None:
        raise InvalidInput(
            "There is no board to put anything on.",
            "Give one: Refold(board=branch_of(Path.cwd())).",
        )
    from refold.models.summarizer import RemAgent  # noqa: PLC0415 - only who asks for it needs it

    return await consolidate(log, session, board, RemAgent(infer_model(model), models))
