"""What a command works on: the chat that it was typed in."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from pydantic_ai.models import Model

from refold.cli.chat.endpoint import Endpoint
from refold.cli.chat.status import Status
from refold.cli.chat.surface import Surface
from refold.log import Log, SessionInfo
from refold.memory import Board, Consolidated
from refold.session import Compacted, Session
from refold.settings import Settings
from refold.view import Profile


class Talk(Protocol):
    """The conversation, as far as commands need it."""

    @property
    def log(self) -> Log:
        """Where it is kept."""
        ...

    @property
    def name(self) -> str:
        """The session's."""
        ...

    @property
    def model(self) -> Model:
        """Who answers."""
        ...

    @property
    def profile(self) -> Profile:
        """How it is managed."""
        ...

    @property
    def settings(self) -> Settings:
        """Those that apply."""
        ...

    @property
    def status(self) -> Status:
        """What there is to say of it now."""
        ...

    @property
    def board(self) -> Board | None:
        """What later sessions are told."""
        ...

    async def consolidate(self) -> Consolidated:
        """Read what is new in the session, for the board. Raises NotRemembered."""
        ...

    async def session(self) -> Session | None:
        """The session, to steer it; None before anything was said."""
        ...

    def alone(self) -> AbstractAsyncContextManager[None]:
        """While nobody answers in it, here or elsewhere. Raises SessionBusy when somebody does."""
        ...

    async def compact(self, focus: str | None = None) -> Compacted:
        """Fold now. Raises FoldError; then nothing has changed."""
        ...

    def model_named(self, name: str) -> Model:
        """The model of that name. Raises RefoldError with the nearest names."""
        ...

    async def must_fold_for(self, model: Model) -> bool:
        """Whether the view is too large for that model."""
        ...

    async def switch(self, model: Model) -> None:
        """Go on with that model; fold first where it must."""
        ...

    def model_at(self, endpoint: Endpoint) -> Model:
        """The model that answers there. Raises NoModel where it cannot be had any more."""
        ...

    async def go_to(self, name: str, model: Model | None = None) -> None:
        """Go on in another session, there or not; with another model, if one is given."""
        ...

    async def reload(self) -> None:
        """Settings were changed."""
        ...


class Chat(Protocol):
    """The chat, as far as commands need it."""

    @property
    def conversation(self) -> Talk:
        """What is talked in."""
        ...

    @property
    def surface(self) -> Surface:
        """Where it is seen and typed."""
        ...

    @property
    def known_sessions(self) -> Sequence[SessionInfo]:
        """The newest sessions."""
        ...

    @property
    def known_models(self) -> Sequence[str]:
        """Models that could be talked with."""
        ...

    async def note_endpoint(self) -> None:
        """Have the session say which model answers in it now."""
        ...

    async def show_tail(self) -> None:
        """Show the last words of the session that was gone to."""
        ...

    async def leave(self) -> None:
        """The person wants to go."""
        ...


@runtime_checkable
class Offering(Protocol):
    """A surface that can put a text where one types, to be changed and sent."""

    def offer(self, text: str) -> None:
        """Put it there."""
        ...


Values = Sequence[tuple[str, str]]
"""What could stand after a command, each with a few words about it."""


def nothing(chat: Chat, typed: str) -> Values:  # noqa: ARG001 - as every other
    """For commands that take nothing, or anything."""
    return ()


@dataclass(frozen=True, slots=True)
class Command:
    """A slash command."""

    name: str
    """Without the slash."""
    usage: str
    about: str
    """One line."""
    run: Callable[[Chat, str], Awaitable[None]]
    values: Callable[[Chat, str], Values] = nothing
    """What could follow, without any waiting: this is asked at each key."""
