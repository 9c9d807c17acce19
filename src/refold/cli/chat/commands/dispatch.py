"""Which commands there are, and how a typed line becomes one of them."""

from difflib import get_close_matches
from typing import Final

from refold.cli.chat.commands.compact import compact, pin, unfold
from refold.cli.chat.commands.context import context, history
from refold.cli.chat.commands.explain import board, explain, export, export_values, subconscious
from refold.cli.chat.commands.model import allow, config, config_values, model, model_values
from refold.cli.chat.commands.output import (
    Chat,
    Command,
    Values,
    clean,
    draws_nothing,
    faint,
    fixed,
    say,
    strong,
    table,
    words,
)
from refold.cli.chat.commands.sessions import fork, session, session_names, sessions
from refold.cli.chat.commands.undo import clear, redo, rewind, rewind_values, undo
from refold.cli.chat.errors import without_keys
from refold.errors import RefoldError
from refold.user_files import file_fix

_ALIASES: Final = {"exit": "quit", "q": "quit", "resume": "sessions", "new": "clear"}
_MAX_COMPLETIONS: Final = 200
_MAX_HELP_VALUES: Final = 20
_ERROR_WIDTH: Final = 200  # columns of an unforeseen error
_KEYS: Final = (
    ("Enter", "send"),
    ("Alt-Enter", "a new line"),
    ("Tab", "complete a command or its value"),
    ("Up, Down", "what you typed before"),
    ("Esc", "interrupt the answer, or cancel the fold that is being made"),
    ("Ctrl-C", "interrupt the answer; twice: leave"),
)


async def show_help(chat: Chat, typed: str) -> None:
    command = _BY_NAME.get(typed.removeprefix("/"))
    if command is not None:
        values = [*command.values(chat, "")][:_MAX_HELP_VALUES]
        say(chat, strong(command.usage), command.about, *([table(values)] if values else []))
        return
    say(
        chat,
        strong("Say something, or use a command:"),
        table((one.usage, one.about) for one in COMMANDS),
        strong("\nKeys"),
        table(key for key in _KEYS if key[0] == "Ctrl-C" or not draws_nothing(chat)),
        faint("The log keeps this conversation until you forget it or its retention ends."),
    )


async def retry(chat: Chat, typed: str) -> None:  # noqa: ARG001 - as every command
    if not await chat.retry():
        say(chat, "There is nothing to send again: your last message was answered.")


async def leave(chat: Chat, typed: str) -> None:  # noqa: ARG001 - as every command
    await chat.leave()


def _names(chat: Chat, typed: str) -> Values:  # noqa: ARG001 - the signature of all
    return [(command.name, command.about) for command in COMMANDS]


COMMANDS: Final[tuple[Command, ...]] = (
    Command(
        "context",
        "/context [open|N|clear]",
        "how full the window is, and of what",
        context,
        fixed(
            ("open", "pick a part of it and read it"),
            ("1", "read the largest part"),
            ("clear", "begin anew; the log keeps everything"),
        ),
    ),
    Command("history", "/history", "how long the conversation is", history),
    Command(
        "explain",
        "/explain [all]",
        "what would be sent now, and why",
        explain,
        fixed(("all", "every part on a line of its own")),
    ),
    Command("compact", "/compact [focus]", "fold older messages, after a preview", compact),
    Command("unfold", "/unfold [N]", "read what lies beneath a fold", unfold),
    Command("pin", "/pin [entry]", "keep something in view, folded or not", pin),
    Command(
        "allow",
        "/allow [tool [no]]",
        "allow a tool that needs permission",
        allow,
    ),
    Command("undo", "/undo", "take back the last turn, fold or clearing", undo),
    Command("redo", "/redo", "bring back what was taken back", redo),
    Command(
        "rewind", "/rewind [N]", "go back to before one of your messages", rewind, rewind_values
    ),
    Command("retry", "/retry", "send a message that got no answer again", retry),
    Command("clear", "/clear", "begin anew; the log keeps everything", clear),
    Command("sessions", "/sessions [search]", "go to another session", sessions, session_names),
    Command(
        "session",
        "/session [checkpoints [N]]",
        "this session, and its folds",
        session,
        fixed(("checkpoints", "the folds of this session, numbered")),
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
        fixed(("add", "put a fact there"), ("prune", "take one away, by its number")),
    ),
    Command(
        "subconscious",
        "/subconscious run",
        "put what is worth keeping on the board",
        subconscious,
        fixed(("run", "read this session now")),
    ),
    Command("help", "/help [command]", "this list", show_help, _names),
    Command("quit", "/quit", "leave; the session is kept", leave),
)
_BY_NAME: Final = {command.name: command for command in COMMANDS}


async def run(chat: Chat, line: str) -> None:
    """Run the typed command; any failure is shown, and the chat goes on."""
    name, rest = _split(line)
    command = _BY_NAME.get(_ALIASES.get(name, name))
    if command is None and name:
        _show_unknown(chat, name)
        return
    command = command or _BY_NAME["help"]
    if rest.strip() and " " not in command.usage:
        say(chat, f"/{command.name} takes no argument.", faint(f"{command.about.capitalize()}."))
        return
    try:
        await command.run(chat, rest.strip())
    except RefoldError as error:
        say(chat, clean(error.what), faint(clean(error.fix)))
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        what = f"{where}{error.strerror or error}."
        say(chat, clean(what), faint(clean(file_fix(error))))
    except Exception as error:  # noqa: BLE001 - whatever it is, the chat goes on
        why = words(without_keys(f"{type(error).__name__}: {error}"), _ERROR_WIDTH)
        fix = f"/help {command.name} says what it takes; `refold doctor` checks the installation."
        say(chat, f"/{command.name} failed: {why}", faint(f"The chat goes on. {fix}"))
    chat.surface.refresh()


def completions(chat: Chat, line: str) -> list[tuple[str, str]]:
    if not line.startswith("/"):
        return []
    name, rest = _split(line)
    if not name or not line[len(name) + 1 :]:
        return [(f"/{one.name}", one.about) for one in COMMANDS if one.name.startswith(name)]
    command = _BY_NAME.get(name)
    if command is None:
        return []
    typed = rest.lower().strip()
    values = command.values(chat, rest.lstrip())
    matches = [value for value in values if value[0].lower().startswith(typed)]
    matches += [value for value in values if value not in matches and typed in value[0].lower()]
    return [(f"/{name} {value}", about) for value, about in matches[:_MAX_COMPLETIONS]]


def _split(line: str) -> tuple[str, str]:
    name, *rest = line.strip("\n").lstrip().removeprefix("/").split(maxsplit=1) or [""]
    return name.lower(), rest[0] if rest else ""


def _show_unknown(chat: Chat, name: str) -> None:
    near = [command.name for command in COMMANDS if command.name.startswith(name)]
    near += [match for match in get_close_matches(name, _BY_NAME, n=3) if match not in near]
    what = f"There is no command /{words(name, 40)}."
    if near:
        what += f" Did you mean {' or '.join(f'/{command}' for command in near)}?"
    say(chat, what, faint("/help lists them all."))
