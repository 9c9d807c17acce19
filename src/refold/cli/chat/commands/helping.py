"""`/help` and `/quit`."""

from collections.abc import Mapping
from typing import Final

from rich.console import RenderableType

from refold.cli.chat.commands.saying import faint, is_plain, say, strong, table
from refold.cli.chat.commands.works_on import Chat, Command

_MOST: Final = 20
"""Values of a command that are listed."""
_KEYS: Final = (
    ("Enter", "send"),
    ("Alt-Enter", "a new line"),
    ("Tab", "complete a command or its value"),
    ("Up, Down", "what you typed before"),
    ("Esc", "cancel the fold that is being made"),
    ("Ctrl-C", "interrupt the answer; twice: leave"),
)


def show_help(chat: Chat, commands: Mapping[str, Command], typed: str) -> None:
    """All commands with a line each, or one of them."""
    wanted = typed.removeprefix("/")
    if wanted in commands:
        one = commands[wanted]
        say(chat, strong(one.usage), one.about, *_values(chat, one))
        return
    rows = [(one.usage, one.about) for one in commands.values()]
    say(
        chat,
        strong("Say something, or use a command:"),
        table(rows),
        strong("\nKeys"),
        table(one for one in _KEYS if one[0] == "Ctrl-C" or not is_plain(chat)),
        faint("The log keeps this conversation until you forget it or its retention ends."),
    )


def _values(chat: Chat, command: Command) -> list[RenderableType]:
    found = [*command.values(chat, "")][:_MOST]
    return [table(found)] if found else []


async def leave(chat: Chat, typed: str) -> None:  # noqa: ARG001 - as every command
    """Leave; the session is kept."""
    await chat.leave()
