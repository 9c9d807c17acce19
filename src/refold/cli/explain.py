import asyncio
import json
import shutil
from typing import Annotated

import typer

from refold.cli.options import (
    STORE,
    SessionChoice,
    StoreOption,
    TenantOption,
    chosen,
    known_profile,
    log_to_read,
    models,
    profiles,
)
from refold.cli.outcome import exit_on_error
from refold.cli.output import in_colors, print_colored
from refold.log import DEFAULT_TENANT
from refold.session.explain import explanation
from refold.view.explain import NARROWEST, Explanation, pieces
from refold.view.profiles import PROFILES


def explain(  # noqa: PLR0913 - an option each
    session: SessionChoice = None,
    *,
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            metavar="NAME",
            help=f"Explain it for this profile instead of the session's: {', '.join(PROFILES)}.",
            autocompletion=profiles,
            callback=known_profile,
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="NAME",
            help="Explain it for this model: its window, and how it counts tokens.",
            autocompletion=models,
        ),
    ] = None,
    window: Annotated[
        int | None,
        typer.Option("--window", metavar="TOKENS", min=1, help="Override the model's window."),
    ] = None,
    target_tokens: Annotated[
        int | None,
        typer.Option(
            "--target-tokens",
            metavar="TOKENS",
            min=1,
            help="Rewrite older messages above this many tokens.",
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Show every part, ungrouped.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
    width: Annotated[
        int | None,
        typer.Option(
            "--width",
            metavar="COLUMNS",
            min=NARROWEST,
            help="Width in columns; default: the terminal's.",
        ),
    ] = None,
    store: StoreOption = STORE,
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    """Show what the next request would send, and why each part is in it or not.

    First how full the window is, then what is left out and why, then the session in order.
    Nothing is sent and nothing is changed.

    Example: refold explain support-42 --model anthropic:claude-sonnet-4-5
    """

    async def run() -> Explanation:
        async with log_to_read(store, tenant, gone="There is nothing left to explain.") as log:
            return await explanation(
                log,
                await chosen(log, session),
                profile=profile,
                model=model,
                window=window,
                target_tokens=target_tokens,
            )

    with exit_on_error():
        found = asyncio.run(run())
        columns = width or shutil.get_terminal_size().columns
        if as_json:
            typer.echo(json.dumps(found.as_json(), ensure_ascii=False))
        elif in_colors():
            print_colored(pieces(found, columns, every=every))
        else:
            typer.echo(found.as_text(columns, every=every), nl=False)
