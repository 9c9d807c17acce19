"""The commands, put together."""

import io
import sys
from typing import Annotated, Any, cast

import typer
from typer.core import TyperGroup

from refold import __version__
from refold.cli.board import board
from refold.cli.chat.command import chat
from refold.cli.config import config
from refold.cli.demo.command import demo
from refold.cli.doctor import doctor
from refold.cli.explain import explain
from refold.cli.exporting import export
from refold.cli.forgetting import forget
from refold.cli.importing import import_
from refold.cli.keys import keys
from refold.cli.lab import lab
from refold.cli.models import models
from refold.cli.outcome import INTERRUPTED, interrupted, say_no_more
from refold.cli.searching import search_
from refold.cli.serve import serve
from refold.cli.sessions import sessions
from refold.cli.showing import show
from refold.cli.store_command import store
from refold.cli.worker import worker


class _Commands(TyperGroup):
    """The commands; typer alone would end an interrupted one without a word."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - as typer has it
        """Run the command that was typed."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            interrupted()
            raise typer.Exit(INTERRUPTED) from error


app = typer.Typer(
    cls=_Commands,
    name="refold",
    help="Keep every word of an agent's conversation, and look after where it is kept.",
    epilog="Exit codes: 0 done, 1 an error (standard error says what to do), 2 wrong usage, "
    "130 interrupted, 141 nobody reads the output.",
    no_args_is_help=True,
    # Plain text: what is printed is meant literally, brackets in a session's name included.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)
app.add_typer(board)
app.command("chat")(chat)
app.command("config")(config)
app.command("demo")(demo)
app.command("doctor")(doctor)
app.command("explain")(explain)
app.command("export")(export)
app.command("forget")(forget)
app.command("import")(import_)
app.add_typer(keys)
app.command("lab")(lab)
app.command("models")(models)
app.command("search")(search_)
app.command("serve")(serve)
app.command("sessions")(sessions)
app.command("show")(show)
app.add_typer(store)
app.command("worker")(worker)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it so
    if wanted:
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
    """Keep every word of an agent's conversation, and look after where it is kept."""


def run() -> int:
    """Run the command line of this process; its exit code."""
    _print_any_character()
    try:
        app(prog_name="refold")
    except KeyboardInterrupt:
        interrupted()
        say_no_more()
        return INTERRUPTED
    except SystemExit as ended:
        if ended.code == INTERRUPTED:
            say_no_more()
        raise
    return 0


def _print_any_character() -> None:
    """A session's name may not fit the terminal's encoding: escape what does not."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            cast("io.TextIOWrapper", stream).reconfigure(errors="backslashreplace")
