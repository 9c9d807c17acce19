import io
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Annotated, Any, Final, NamedTuple, cast

import typer
from typer.core import TyperGroup

from refold import __version__
from refold.cli.outcome import (
    INTERRUPTED,
    Failure,
    interrupted,
    last_flush,
    say_no_more,
    unwritten,
    write_json_error,
    write_json_failure,
)


class _Command(NamedTuple):
    """Where a command is defined. It is imported when it runs, so that each starts fast."""

    module: str
    attribute: str
    summary: str
    options_first: bool = False
    """Whether what follows the first argument is another program's, options included."""


_SECTIONS: Final[Mapping[str, Mapping[str, _Command]]] = {
    "Use": {
        "chat": _Command("chat.run", "chat", "Chat with a model, with its context in view."),
        "demo": _Command("demo.command", "demo", "Watch a long conversation fit a small window."),
        "lab": _Command("lab", "lab", "Measure what a context policy costs and loses."),
        "lab tune": _Command(
            "lab_tune", "tune_command", "Propose a profile from your own sessions."
        ),
        "ci": _Command("ci", "ci", "Fail if a change makes recorded sessions worse."),
        "wrap": _Command(
            "wrap.command", "wrap", "Run a coding agent, its context managed.", options_first=True
        ),
        "hooks": _Command("hooks.command", "hooks", "Give agents back what they compacted away."),
    },
    "Look": {
        "sessions": _Command("sessions", "sessions", "List the sessions, the newest first."),
        "show": _Command("sessions", "show", "Read a session."),
        "search": _Command("sessions", "search_", "Search all sessions, folded parts included."),
        "explain": _Command("explain", "explain", "Show what the next request sends, and why."),
        "receipt": _Command(
            "receipt", "receipt", "Compare what was billed with sending everything."
        ),
        "costs": _Command("costs", "costs", "Show what was paid by day, model or key."),
        "console": _Command("console", "console", "Look at sessions in a browser."),
        "models": _Command("models", "models", "Show windows, prices and limits of models."),
        "doctor": _Command("doctor", "doctor", "Check the installation, and say what to fix."),
    },
    "Manage": {
        "config": _Command("config", "config", "Show the settings and their origin, or set one."),
        "trust": _Command("trust", "trust", "Let a folder's project files set more."),
        "export": _Command("transfer", "export", "Write a session to a file."),
        "import": _Command("transfer", "import_", "Read sessions: a file, or other programs'."),
        "forget": _Command("store", "forget", "Erase a session, or entries of it, for good."),
        "board": _Command("board", "board", "Notes that sessions leave for later ones."),
    },
    "Run": {
        "up": _Command("up", "up", "Run a gateway for your programs in the background."),
        "down": _Command("up", "down", "End the gateway of refold up."),
        "env": _Command("env", "env", "Print what to set in a program to use the gateway."),
        "serve": _Command("serve", "serve", "Run the gateway and its HTTP API."),
        "mcp": _Command("mcp", "mcp", "Let a model search and reread its conversation (MCP)."),
        "worker": _Command("serve", "worker", "Run a worker that makes folds."),
        "keys": _Command("keys", "keys", "Manage who may use the service."),
        "store": _Command("store", "store", "Prepare and maintain a store."),
    },
}
COMMANDS: Final = {
    name: command for section in _SECTIONS.values() for name, command in section.items()
}


class _Commands(TyperGroup):
    """The commands, imported one at a time; an interrupted one says so."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - as typer has it
        super().__init__(**options)
        self.commands: Any = dict.fromkeys(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401, ARG002 - as typer has it
        if cmd_name in self.commands and self.commands[cmd_name] is None:
            self.commands[cmd_name] = import_command(cmd_name)
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - as typer has it
        """Commands of two words are looked for first: `lab` alone takes files."""
        words = " ".join(args[:2])
        if words in self.commands and words not in args:
            return words, self.get_command(ctx, words), args[2:]
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401, ARG002 - as typer has it
        width = max(map(len, COMMANDS))
        for title, section in _SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(name.ljust(width), command.summary) for name, command in section.items()]
                )

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - as typer has it
        words = [*ctx.args]
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:  # typer alone would end it without a word
            raise interrupted() from error
        except Exception as error:
            if "--json" in words and ctx.invoked_subcommand:
                _write_as_json(error, ctx.invoked_subcommand)
            raise


def _write_as_json(error: Exception, command: str) -> None:
    # Wrong usage: the class of these errors has no public name.
    format_message = getattr(error, "format_message", None)
    write = write_json_failure if command == "chat" else write_json_error
    if format_message:
        write("usage", format_message(), f"Look at: refold {command} --help")
    elif isinstance(error, Failure) and command != "chat":  # a chat's turn has written it
        write(error.code, error.what, error.fix)


def import_command(name: str) -> Any:  # noqa: ANN401 - typer names no type
    command = COMMANDS[name]
    function = getattr(import_module(f"refold.cli.{command.module}"), command.attribute)
    group = _typer(callback=lambda: None)
    if isinstance(function, typer.Typer):
        group.add_typer(function, name=name)
    else:
        settings = {"allow_interspersed_args": not command.options_first}
        group.command(name, context_settings=settings)(function)
    return typer.main.get_group(group).commands[name]


def _typer(**options: Any) -> typer.Typer:  # noqa: ANN401 - as typer has it
    # Plain text: brackets in a session's name must not become markup.
    return typer.Typer(
        add_completion="cls" in options,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        **options,
    )


app = _typer(
    cls=_Commands,
    name="refold",
    help="Compact, search, replay and serve LLM conversations.",
    epilog="Exit codes: 0 done, 1 an error (standard error says what to do), 2 wrong usage, "
    "130 interrupted, 141 output pipe closed.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _print_version(version: bool) -> None:  # noqa: FBT001 - typer calls it so
    if version:
        typer.echo(f"refold {__version__}")
        raise typer.Exit


@app.callback()
def refold(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            "-V",
            help="Show the version and exit.",
            callback=_print_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """Compact, search, replay and serve LLM conversations."""


def run() -> int:
    """Run the command line of this process; its exit code."""
    # A session's name may not fit the terminal's encoding: escape what does not.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            cast("io.TextIOWrapper", stream).reconfigure(errors="backslashreplace")
    try:
        app(prog_name="refold")
        code = 0
    except KeyboardInterrupt:
        code = interrupted().exit_code
    except OSError as error:  # of the output, as of --help
        return unwritten(error)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    if code == INTERRUPTED:
        say_no_more()
    return last_flush(code)
