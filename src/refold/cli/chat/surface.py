"""Where a chat is seen and typed: a terminal with a status line, or plain lines."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple, Protocol

from rich.console import RenderableType

from refold.cli.chat.events import Heard
from refold.cli.chat.status import Status


class Row(NamedTuple):
    """Something to pick from a list."""

    label: str
    detail: str = ""
    """Beside it, fainter."""
    preview: str = ""
    """Shown while it is selected; also searched."""


class Listening(NamedTuple):
    """What a surface asks and tells the chat. Each is quick, and may be called in any thread."""

    status: Callable[[], Status]
    """What the status line shows now."""
    interrupt: Callable[[], bool]
    """Ctrl-C was pressed: whether there was something to interrupt."""
    cancel: Callable[[], bool]
    """Escape was pressed: whether there was a fold to cancel."""
    complete: Callable[[str], Sequence[tuple[str, str]]]
    """What the typed line could become, each with a few words about it."""


class Surface(Protocol):
    """Shows what happens and takes what is typed. Its chat calls it on its own event loop."""

    @property
    def width(self) -> int:
        """Columns."""
        ...

    def host(self, main: Callable[[], Coroutine[Any, Any, int]]) -> int:
        """Run the chat to its end and give the terminal back as it was; what the chat returned.

        A terminal stays awake whatever the chat is at: it may have a thread of its own.
        """
        ...

    def begin(self, listening: Listening) -> None:
        """The chat is ready to listen: take the first thing that is typed."""
        ...

    async def read(self) -> str | None:
        """The next thing that was typed; None when the person leaves."""
        ...

    def show(self, what: RenderableType, *, gap: bool = True) -> None:
        """Print something that stays, after an empty line unless told."""
        ...

    def hear(self, heard: Heard) -> None:
        """Show what a turn gives to hear, as it comes."""
        ...

    def settle(self) -> None:
        """The turn is over: what was shown as it came, stays."""
        ...

    def refresh(self) -> None:
        """The status has changed."""
        ...

    async def ask(self, question: str, answers: Sequence[str]) -> str | None:
        """Ask for one of these answers (the first is the default); None: Escape or Ctrl-C."""
        ...

    async def pick(self, title: str, rows: Sequence[Row]) -> int | None:
        """Let one row be picked, with search and preview; None: none."""
        ...
