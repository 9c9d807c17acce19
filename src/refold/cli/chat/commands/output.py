"""How commands print: calm, aligned, and clean whatever the text contains."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Protocol, runtime_checkable

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from refold.cli.chat.clean import cleaned
from refold.cli.chat.conversation import Conversation
from refold.cli.chat.plain import Plain
from refold.cli.chat.surface import Surface
from refold.cli.output import STYLES
from refold.log import SessionInfo, wall_clock
from refold.terminal_text import counted, first_words

NOTHING_SAID: Final = "Nothing was said in this session yet."
PREVIEW: Final = 2_000  # characters of a text that are shown beside a list

_AGES: Final = (
    (60, 1, "second"),
    (3_600, 60, "minute"),
    (86_400, 3_600, "hour"),
    (30 * 86_400, 86_400, "day"),
)
_JUST_NOW = 10  # seconds
_CHARS_PER_COLUMN = 8  # characters read for each column: the rest of a long text cannot be seen


class Chat(Protocol):
    """The chat that a command was typed in, as far as commands need it."""

    @property
    def conversation(self) -> Conversation: ...
    @property
    def surface(self) -> Surface: ...
    @property
    def known_sessions(self) -> Sequence[SessionInfo]: ...
    @property
    def known_models(self) -> Sequence[str]: ...
    async def note_endpoint(self) -> None: ...
    async def show_tail(self) -> None: ...
    async def leave(self) -> None: ...
    async def retry(self) -> bool: ...


@runtime_checkable
class DraftSurface(Protocol):
    """A surface that can put a text into the input line, to be edited and sent."""

    def offer(self, text: str) -> None: ...


Values = Sequence[tuple[str, str]]
"""What could follow a command, each with a few words about it."""


def fixed(*values: tuple[str, str]) -> Callable[[Chat, str], Values]:
    return lambda _chat, _typed: values


@dataclass(frozen=True, slots=True)
class Command:
    name: str  # without the slash
    usage: str
    about: str  # one line
    run: Callable[[Chat, str], Awaitable[None]]
    values: Callable[[Chat, str], Values] = fixed()  # noqa: RUF009 - a constant
    """What could follow. It must not block: it is called at each key."""


def say(chat: Chat, *what: RenderableType) -> None:
    """Show one or more things below each other, after an empty line."""
    show(chat.surface, *what)


def show(surface: Surface, *what: RenderableType) -> None:
    """The same, where there is no chat yet."""
    # A str would be read as markup.
    surface.show(Group(*(Text(one) if isinstance(one, str) else one for one in what)))


def draws_nothing(chat: Chat) -> bool:
    """Whether the output is read aloud, or goes into a pipe."""
    return isinstance(chat.surface, Plain)


def faint(text: str) -> Text:
    return Text(text, STYLES["faint"])


def strong(text: str) -> Text:
    return Text(text, STYLES["strong"])


def quoted(text: str, max_chars: int = 4_000) -> RenderableType:
    return Padding(Text(clean(shortened(text, max_chars))), (0, 0, 0, 2))


def shortened(text: str, max_chars: int) -> str:
    """The text, or its beginning and end with the characters between them counted."""
    if len(text) <= max_chars:
        return text
    head, tail = text[: max_chars * 3 // 4], text[-(max_chars // 4) :]
    return f"{head}\n… {counted(len(text) - len(head) - len(tail), 'character')} …\n{tail}"


def preview(text: str) -> str:
    return clean(shortened(text, PREVIEW))


def clean(text: str) -> str:
    """The text in lines, without anything that could move the cursor or change the screen."""
    return cleaned(text).expandtabs(4)


def words(text: str, width: int) -> str:
    """The beginning of a text on one line, clean."""
    return first_words(cleaned(text[: _CHARS_PER_COLUMN * width]), width)


def table(rows: Iterable[Sequence[str | Text]], *, right: Iterable[int] = ()) -> Table:
    """Rows with their columns aligned; the columns in `right` are aligned to the right."""
    cells = [*rows]
    grid = Table.grid(padding=(0, 2, 0, 0))
    right_aligned = set(right)
    for column in range(len(cells[0]) if cells else 0):
        last = column == len(cells[0]) - 1
        grid.add_column(
            justify="right" if column in right_aligned else "left",
            no_wrap=not last,
            overflow="fold" if last else "ellipsis",
        )
    for row in cells:
        grid.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return grid


def share(tokens: int, whole: int) -> str:
    if not tokens or not whole:
        return "0%"
    percent = 100 * tokens / whole
    return f"{percent:.0f}%" if percent >= 1 else "<1%"


def dollars(amount: float | None) -> str:
    if amount is None:
        return "unknown"
    return f"${amount:.2f}" if amount == 0 or amount >= 0.1 else f"${amount:.4f}"  # noqa: PLR2004


def ago(time: int, now: datetime | None = None) -> str:
    """A time in milliseconds since 1970, as people say it."""
    seconds = int(((now or wall_clock()).timestamp() * 1000 - time) // 1000)
    if seconds < _JUST_NOW:
        return "just now"
    for below, unit, name in _AGES:
        if seconds < below:
            return f"{counted(seconds // unit, name)} ago"
    return f"on {datetime.fromtimestamp(time / 1000, UTC).date().isoformat()}"


def number_in(typed: str) -> int | None:
    typed = typed.strip().removeprefix("#")
    return int(typed) if typed.isascii() and typed.isdigit() and len(typed) < 10 else None  # noqa: PLR2004 - no entry has a longer one
