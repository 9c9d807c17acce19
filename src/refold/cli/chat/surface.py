"""Where a chat is displayed and typed: a terminal with a status line, or plain lines.

A chat hands its surface the events of each turn, in the order they happen.
"""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:  # a terminal is there before any of it is imported
    from rich.console import RenderableType

    from refold.cli.chat.status import Status
    from refold.fold.events import FoldEvent
    from refold.view import Event


@dataclass(frozen=True, slots=True)
class ChatOptions:
    store: str
    tenant: str
    session: str | None = None
    resume: bool = False  # resume the session; without one, pick it
    model: str | None = None
    base_url: str | None = None
    agent: str | None = None
    mcp: Path | None = None
    files: Path | None = None
    profile: str | None = None
    board: bool = True  # give new sessions the facts on this branch's board


@dataclass(frozen=True, slots=True)
class Prompt:
    """An earlier prompt, when a session is resumed."""

    text: str


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    call: str  # its id, repeated by its result
    tool: str
    arguments: str  # on one line, for people


@dataclass(frozen=True, slots=True)
class ToolResult:
    call: str
    tool: str
    text: str  # for people; it may be long
    seconds: float | None = None  # None: not known any more
    failed: bool = False


@dataclass(frozen=True, slots=True)
class ContextEvent:
    event: "Event | FoldEvent"


@dataclass(frozen=True, slots=True)
class RemoteMessage:
    """A message of this session that came from another terminal."""

    who: str  # `you` or `model`
    text: str


TurnEvent = (
    Prompt | TextDelta | ThinkingDelta | ToolCall | ToolResult | ContextEvent | RemoteMessage
)


class Row(NamedTuple):
    label: str
    detail: str = ""  # beside it, fainter
    preview: str = ""  # shown while it is selected; also searched


def is_message(line: str) -> bool:
    """Whether a typed line is for the model rather than a command."""
    return not line.strip().startswith("/")


def matching_rows(words: str, rows: Sequence[Row]) -> list[int]:
    """The indexes of the rows that contain all of these words."""
    parts = words.casefold().split()
    texts = (" ".join(row).casefold() for row in rows)
    return [index for index, text in enumerate(texts) if all(part in text for part in parts)]


class ChatCallbacks(NamedTuple):
    """What a surface asks and tells the chat. Each is quick, and may be called in any thread."""

    status: "Callable[[], Status]"
    interrupt: Callable[[], bool]
    """Ctrl-C was pressed: whether there was something to interrupt."""
    cancel: Callable[[], bool]
    """Escape was pressed: whether there was a fold or a turn to stop."""
    complete: Callable[[str], Sequence[tuple[str, str]]]
    """What the typed line could become, each with a few words about it."""


class Surface(Protocol):
    """Shows what happens and takes what is typed. Its chat calls it on its own event loop."""

    @property
    def width(self) -> int: ...

    def host(self, main: Callable[[], Coroutine[Any, Any, int]]) -> int:
        """Run the chat to its end and restore the terminal; returns what the chat returned.

        A terminal stays responsive while the chat is busy: it may have a thread of its own.
        """
        ...

    def begin(self, callbacks: ChatCallbacks) -> None:
        """The chat is ready: take the first thing that is typed."""
        ...

    async def read(self) -> str | None:
        """The next thing that was typed; None when the person leaves."""
        ...

    async def queued(self) -> Sequence[str]:
        """Take the messages that were typed meanwhile and not read yet, up to a command.

        From a pipe there are none: nobody there can see that a turn is waiting.
        """
        ...

    def show(self, what: "RenderableType", *, gap: bool = True) -> None:
        """Print something that stays, after an empty line if `gap`."""
        ...

    def on_event(self, event: TurnEvent) -> None: ...

    def settle(self) -> None:
        """The turn is over: what was shown as it streamed in, stays."""
        ...

    def refresh(self) -> None:
        """Called whenever the status has changed."""
        ...

    async def ask(self, question: str, answers: Sequence[str]) -> str | None:
        """Ask for one of these answers (the first is the default); None: Escape or Ctrl-C."""
        ...

    async def pick(self, title: str, rows: Sequence[Row]) -> int | None:
        """Let one row be picked, with search and preview; None: none."""
        ...
