"""`refold chat`."""

import sys
from pathlib import Path
from typing import Annotated, TextIO, cast

import typer

from refold.cli.chat.wanted import Wanted
from refold.cli.choosing import ProfileChoice
from refold.cli.completing import session_names
from refold.cli.options import STORE, StoreOption, TenantOption, able, where_is
from refold.cli.outcome import explained, needing
from refold.errors import InvalidInput
from refold.log import DEFAULT_TENANT


def chat(  # noqa: PLR0913 - an option each
    session: Annotated[
        str | None,
        typer.Argument(
            metavar="[SESSION]",
            help="The session to go on with, or the name of a new one.",
            show_default=False,
            autocompletion=session_names,
        ),
    ] = None,
    *,
    resume: Annotated[
        bool,
        typer.Option("--resume", "-r", help="Go on with SESSION; without a name, pick one."),
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            metavar="PROVIDER:MODEL",
            help="The model; `local` is a server on this machine.",
        ),
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option("--base-url", metavar="URL", help="The address of the local server."),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option("--agent", metavar="MODULE:NAME", help="Talk with this Pydantic AI agent."),
    ] = None,
    mcp: Annotated[
        Path | None,
        typer.Option("--mcp", metavar="FILE", help="Offer the tools of these MCP servers."),
    ] = None,
    files: Annotated[
        Path | None,
        typer.Option("--files", metavar="DIR", help="Let the model read (only) in this folder."),
    ] = None,
    profile: ProfileChoice = None,
    board: Annotated[
        bool,
        typer.Option(
            "--board/--no-board",
            help="Tell a new session what earlier ones left on this branch's board.",
        ),
    ] = True,
    prompt: Annotated[
        str | None,
        typer.Option("--prompt", "-p", metavar="TEXT", help="Say this, print the answer, end."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="With -p: print JSON.")] = False,
    plain: Annotated[
        bool, typer.Option("--plain", help="Plain lines only, for screen readers and logs.")
    ] = False,
    store: StoreOption = STORE,
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    """Talk with a model, and see and steer what it remembers.

    It takes the first key it finds (ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY and others),
    or a server on this machine. Without either: `refold demo`.

    Example: refold chat --files . --resume
    """
    wanted = Wanted(
        where_is(store), tenant, session, resume, model, base_url, agent, mcp, files, profile, board
    )
    with explained(), needing("chat"):
        from refold.cli.chat.running import run_chat, run_prompt  # noqa: PLC0415 - an extra's

        if prompt is not None or as_json:
            code = run_prompt(wanted, _with_input(prompt), as_json=as_json)
        else:
            code = run_chat(wanted, plain=plain or not _streams() or not able())
    raise typer.Exit(code)


def _with_input(prompt: str | None) -> str:
    """What to say: the option, and what comes through a pipe."""
    stdin = cast("TextIO | None", sys.stdin)
    piped = "" if stdin is None or stdin.isatty() else stdin.read().strip()
    said = "\n\n".join(part for part in (prompt, piped) if part)
    if not said:
        raise InvalidInput("There is nothing to say.", 'Say it with -p "…", or through a pipe.')
    return said


def _streams() -> bool:
    """Whether there are an input and an output: a program may be started without."""
    return None not in cast("tuple[TextIO | None, ...]", (sys.stdin, sys.stdout))
