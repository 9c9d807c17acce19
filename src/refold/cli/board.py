"""`refold board`: what earlier sessions on a branch left, and filling it."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from refold.cli.options import (
    STORE,
    JsonOption,
    SessionName,
    StoreOption,
    TenantOption,
    log_to_read,
    store_at,
)
from refold.cli.outcome import exit_on_error, require_extra
from refold.cli.output import aligned
from refold.errors import InvalidInput
from refold.log import DEFAULT_TENANT, Log
from refold.memory import Board, Consolidated, branch_of, consolidate
from refold.terminal_text import counted

board = typer.Typer(
    name="board",
    help="What sessions on a branch of a repository leave to later ones.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
FolderOption = Annotated[
    Path,
    typer.Option("--folder", metavar="DIR", help="A folder on that branch.", show_default="this"),
]
HERE = Path()
T = TypeVar("T")


@board.command("show")
def show(
    *,
    folder: FolderOption = HERE,
    as_json: JsonOption = False,
    store: StoreOption = STORE,
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    """Show the facts on the board, with their numbers and the sessions that they come from.

    Example: refold board show
    """

    async def facts(found: Board, _: Log) -> str:
        stand = await found.state()
        if as_json:
            return json.dumps([asdict(fact) for fact in stand.facts])
        rows = [(str(fact.number), fact.text, fact.session or "") for fact in stand.facts]
        return "\n".join(aligned(rows)) or f"Nothing is on the board of {found.branch.title}."

    typer.echo(_with_board(folder, store, tenant, facts, create=False))


@board.command("add")
def add(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The fact, on one line.")],
    *,
    folder: FolderOption = HERE,
    as_json: JsonOption = False,
    store: StoreOption = STORE,
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    """Put a fact on the board. Only a person can remove it.

    Example: refold board add "Tests need PostgreSQL 15 or newer."
    """
    fact = _with_board(folder, store, tenant, lambda found, _: found.add(text))
    typer.echo(json.dumps(asdict(fact)) if as_json else f"On the board: {fact.text}")


@board.command("prune")
def prune(
    number: Annotated[int, typer.Argument(metavar="NUMBER", help="The fact's number.")],
    *,
    folder: FolderOption = HERE,
    as_json: JsonOption = False,
    store: StoreOption = STORE,
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    """Remove a fact from the board. The log keeps it; `refold forget` erases its source.

    Example: refold board prune 12
    """
    fact = _with_board(folder, store, tenant, lambda found, _: found.prune(number), create=False)
    typer.echo(json.dumps(asdict(fact)) if as_json else f"No longer on the board: {fact.text}")


@board.command("run")
def run(  # noqa: PLR0913 - an option each
    session: SessionName,
    *,
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", metavar="PROVIDER:MODEL", help="The model that reads."),
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option("--base-url", metavar="URL", help="The address of a local server."),
    ] = None,
    folder: FolderOption = HERE,
    as_json: JsonOption = False,
    store: StoreOption = STORE,
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    """Have a model read what is new in a session, and put what is worth keeping on the board.

    The session stays as it is. What the model adds must be backed by the session.

    Example: refold board run support-42
    """

    async def read(found: Board, log: Log) -> Consolidated:
        from refold.cli.chat.models.providers import (  # noqa: PLC0415 - an extra's
            chosen_model,
            model_of,
        )
        from refold.models.summarizer import RemAgent  # noqa: PLC0415 - an extra's
        from refold.settings import load_settings  # noqa: PLC0415 - only here

        await log.head(session)  # before a model is looked for
        settings = load_settings(None)
        choice = chosen_model(model, settings, os.environ, base_url=base_url)
        rem = RemAgent(model_of(choice, os.environ), settings.models)
        return await consolidate(log, session, found, rem)

    with require_extra("chat"):
        result = _with_board(folder, store, tenant, read, create=False)
    typer.echo(json.dumps(asdict(result)) if as_json else "\n".join(consolidation_lines(result)))


def consolidation_lines(result: Consolidated) -> list[str]:
    if not result.messages:
        return ["Nothing was said that the board does not know yet."]
    lines = [f"Read {counted(result.messages, 'message')}; the session is unchanged."]
    lines += [f"  + {fact.text}" for fact in result.added]
    lines += [f"  - {fact.text}" for fact in result.pruned]
    if not result.added and not result.pruned:
        lines.append("Nothing in it was worth the board.")
    if result.left:
        lines.append("There is more to read: run it again to go on.")
    return lines


def _with_board(
    folder: Path,
    store: str,
    tenant: str,
    work: Callable[[Board, Log], Awaitable[T]],
    *,
    create: bool = True,
) -> T:
    """The result of `work` on the board of the branch that the folder is on."""

    async def run() -> T:
        if create:
            async with store_at(store, create=True) as opened:
                log = opened.log(tenant)
                return await work(Board(log, branch_of(folder)), log)
        async with log_to_read(store, tenant, gone="Nothing of it can be read.") as log:
            return await work(Board(log, branch_of(folder)), log)

    with exit_on_error():
        if not folder.is_dir():
            raise InvalidInput(f"There is no folder {str(folder)!r}.", "Name one with --folder.")
        return asyncio.run(run())
