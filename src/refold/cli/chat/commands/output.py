"""How commands say something: calm, aligned, and clean whatever was said by others."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Protocol, runtime_checkable

from pydantic_ai.models import Model
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from refold.cli.chat.clean import cleaned
from refold.cli.chat.endpoint import Endpoint
from refold.cli.chat.plain import Plain
from refold.cli.chat.status import Status
from refold.cli.chat.surface import Surface
from refold.cli.output import STYLES
from refold.log import Log, SessionInfo, wall_clock
from refold.memory import Board, Consolidated
from refold.session import Compacted, Session
from refold.settings import Settings
from refold.view import Profile
from refold.view.explanation import first_words

# What a command works on: the chat that it was typed in.


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


NOTHING_SAID: Final = "Nothing was said in this session yet."
WIDEST: Final = 100
"""Columns beyond which lines of text are hard to read."""

_AGES: Final = (
    (60, 1, "second"),
    (3_600, 60, "minute"),
    (86_400, 3_600, "hour"),
    (30 * 86_400, 86_400, "day"),
)
_JUST_NOW = 10  # seconds
_READ = 8
"""Characters read for each column wanted: the rest of a long text cannot be seen."""


def say(chat: Chat, *what: RenderableType) -> None:
    """Show one or more lines or things below each other, after an empty line."""
    show(chat.surface, *what)


def show(surface: Surface, *what: RenderableType) -> None:
    """The same, where there is no chat yet."""
    surface.show(Group(*map(_renderable, what)))


def _renderable(what: RenderableType) -> RenderableType:
    return Text(what) if isinstance(what, str) else what  # a str would be read as markup


def is_plain(chat: Chat) -> bool:
    """Whether nothing is drawn: it is read aloud, or goes into a pipe."""
    return isinstance(chat.surface, Plain)


def faint(text: str) -> Text:
    """Said beside what matters."""
    return Text(text, STYLES["faint"])


def strong(text: str) -> Text:
    """A heading, or the one line that matters."""
    return Text(text, STYLES["strong"])


def quoted(text: str, most: int = 4_000) -> RenderableType:
    """What somebody said, set in a little; its beginning and end where it is long."""
    return Padding(Text(clean(shortened(text, most))), (0, 0, 0, 2))


def shortened(text: str, most: int) -> str:
    """The text, or its beginning and end with what lies between counted."""
    if len(text) <= most:
        return text
    head, tail = text[: most * 3 // 4], text[-(most // 4) :]
    return f"{head}\n… {len(text) - len(head) - len(tail):,} characters …\n{tail}"


def clean(text: str) -> str:
    """The text in lines, without anything that could move the cursor or change the screen."""
    return cleaned(text).expandtabs(4)


def table(rows: Iterable[Sequence[str | Text]], *, right: Iterable[int] = ()) -> Table:
    """Rows with their columns aligned; those named in `right` end together."""
    found = [*rows]
    made = Table.grid(padding=(0, 2, 0, 0))
    ends = set(right)
    for at in range(len(found[0]) if found else 0):
        last = at == len(found[0]) - 1
        made.add_column(
            justify="right" if at in ends else "left",
            no_wrap=not last,
            overflow="fold" if last else "ellipsis",
        )
    for row in found:
        made.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return made


def counted(number: int, one: str, many: str | None = None) -> str:
    """`1 message`, `1,204 messages`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def share(tokens: int, whole: int) -> str:
    """How much of the whole, in percent."""
    if not tokens or not whole:
        return "0%"
    found = 100 * tokens / whole
    return f"{found:.0f}%" if found >= 1 else "<1%"


def dollars(amount: float | None) -> str:
    """An amount; what is not known is said to be so."""
    if amount is None:
        return "unknown"
    return f"${amount:.2f}" if amount == 0 or amount >= 0.1 else f"${amount:.4f}"  # noqa: PLR2004


def ago(at: int, now: datetime | None = None) -> str:
    """A time in milliseconds since 1970, as people say it."""
    seconds = int(((now or wall_clock()).timestamp() * 1000 - at) // 1000)
    if seconds < _JUST_NOW:
        return "just now"
    for below, unit, name in _AGES:
        if seconds < below:
            return f"{counted(seconds // unit, name)} ago"
    return f"on {datetime.fromtimestamp(at / 1000, UTC).date().isoformat()}"


def words(text: str, width: int) -> str:
    """The beginning of a text on one line, clean."""
    return first_words(cleaned(text[: _READ * width]), width)


def number_in(typed: str) -> int | None:
    """The number that was typed, if it is one."""
    typed = typed.strip().removeprefix("#")
    return int(typed) if typed.isascii() and typed.isdigit() and len(typed) < 10 else None  # noqa: PLR2004 - no entry has a longer one
