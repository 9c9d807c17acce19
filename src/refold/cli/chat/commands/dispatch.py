"""Which commands there are, and how a typed line becomes one of them."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

from rich.console import RenderableType

from refold.cli.chat.commands.compact import compact, pin, unfold
from refold.cli.chat.commands.context import context, context_values, history
from refold.cli.chat.commands.explain import (
    board,
    board_values,
    explain,
    explain_values,
    export,
    export_values,
    subconscious,
)
from refold.cli.chat.commands.model import config, config_values, model, model_values
from refold.cli.chat.commands.output import (
    Chat,
    Command,
    Values,
    clean,
    faint,
    is_plain,
    say,
    strong,
    table,
    words,
)
from refold.cli.chat.commands.sessions import fork, session, session_names, session_values, sessions
from refold.cli.chat.commands.undo import clear, redo, rewind, rewind_values, undo
from refold.cli.chat.errors import unkeyed
from refold.errors import RefoldError

# `/help` and `/quit`.

_MOST_HELPING: Final = 20
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
    found = [*command.values(chat, "")][:_MOST_HELPING]
    return [table(found)] if found else []


async def leave(chat: Chat, typed: str) -> None:  # noqa: ARG001 - as every command
    """Leave; the session is kept."""
    await chat.leave()


_OTHER_NAMES: Final = {"exit": "quit", "q": "quit", "resume": "sessions", "new": "clear"}
_MOST: Final = 200
"""Completions that anybody would look through."""
_WHY: Final = 200
"""Columns of an error that nobody foresaw."""


async def _help(chat: Chat, typed: str) -> None:
    show_help(chat, _BY_NAME, typed)


def _names(chat: Chat, typed: str) -> Values:  # noqa: ARG001 - as every other
    return [(one.name, one.about) for one in COMMANDS]


def _run_only(chat: Chat, typed: str) -> Values:  # noqa: ARG001 - as every other
    return (("run", "read this session now"),)


COMMANDS: Final[tuple[Command, ...]] = (
    Command(
        "context",
        "/context [open|N|clear]",
        "how full the window is, and of what",
        context,
        context_values,
    ),
    Command("history", "/history", "how long the conversation is", history),
    Command(
        "explain", "/explain [all]", "what would be sent now, and why", explain, explain_values
    ),
    Command("compact", "/compact [focus]", "fold older messages, after a preview", compact),
    Command("unfold", "/unfold [N]", "read what lies beneath a fold", unfold),
    Command("pin", "/pin [entry]", "keep something in view, folded or not", pin),
    Command("undo", "/undo", "take back the last turn, fold or clearing", undo),
    Command("redo", "/redo", "bring back what was taken back", redo),
    Command(
        "rewind", "/rewind [N]", "go back to before one of your messages", rewind, rewind_values
    ),
    Command("clear", "/clear", "begin anew; the log keeps everything", clear),
    Command("sessions", "/sessions [search]", "go to another session", sessions, session_names),
    Command(
        "session",
        "/session [checkpoints [N]]",
        "this session, and its checkpoints",
        session,
        session_values,
    ),
    Command("fork", "/fork [name]", "go on in a copy; this session stays", fork),
    Command(
        "export", "/export [form] [file]", "write the session to a file", export, export_values
    ),
    Command("model", "/model [name]", "let another model answer", model, model_values),
    Command(
        "config",
        "/config [key [value]]",
        "show settings; set one and keep it",
        config,
        config_values,
    ),
    Command(
        "board",
        "/board [add|prune …]",
        "what later sessions on this branch are told",
        board,
        board_values,
    ),
    Command(
        "subconscious",
        "/subconscious run",
        "put what is worth it on the board",
        subconscious,
        _run_only,
    ),
    Command("help", "/help [command]", "this list", _help, _names),
    Command("quit", "/quit", "leave; the session is kept", leave),
)
"""As /help shows them."""

_BY_NAME: Final = {one.name: one for one in COMMANDS}


async def run(chat: Chat, line: str) -> None:
    """Run what was typed; whatever goes wrong is said in words."""
    name, rest = _split(line)
    command = _BY_NAME.get(_OTHER_NAMES.get(name, name))
    if command is None and name:
        _unknown(chat, name)
        return
    command = command or _BY_NAME["help"]
    try:
        await command.run(chat, rest.strip())
    except RefoldError as error:
        say(chat, clean(error.what), faint(clean(error.fix)))
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        said = f"{where}{error.strerror or error}."
        say(chat, clean(said), faint("Check the path, or choose another."))
    except Exception as error:  # noqa: BLE001 - whatever it is, the chat goes on
        why = words(unkeyed(f"{type(error).__name__}: {error}"), _WHY)
        said = f"/help {command.name} says what it takes; `refold doctor` looks for faults."
        say(chat, f"/{command.name} failed: {why}", faint(f"The chat goes on. {said}"))
    chat.surface.refresh()


def completions(chat: Chat, line: str) -> list[tuple[str, str]]:
    """What the typed line could become, each with a few words about it."""
    if not line.startswith("/"):
        return []
    name, rest = _split(line)
    if name and not line[len(name) + 1 :]:
        return [(f"/{one.name}", one.about) for one in COMMANDS if one.name.startswith(name)]
    if not name:
        return [(f"/{one.name}", one.about) for one in COMMANDS]
    command = _BY_NAME.get(name)
    if command is None:
        return []
    typed = rest.lower().strip()
    offered = command.values(chat, rest.lstrip())
    found = [one for one in offered if one[0].lower().startswith(typed)]
    found += [one for one in offered if one not in found and typed in one[0].lower()]
    return [(f"/{name} {value}", about) for value, about in found[:_MOST]]


def _split(line: str) -> tuple[str, str]:
    """The name of the command, and what follows it."""
    name, *rest = line.strip("\n").lstrip().removeprefix("/").split(maxsplit=1) or [""]
    return name.lower(), rest[0] if rest else ""


def _unknown(chat: Chat, name: str) -> None:
    near = [one.name for one in COMMANDS if name and one.name.startswith(name)]
    near += [one for one in get_close_matches(name, _BY_NAME, n=3) if one not in near]
    said = f"There is no command /{words(name, 40)}."
    if near:
        said += f" Did you mean {' or '.join(f'/{one}' for one in near)}?"
    say(chat, said, faint("/help lists them all."))
