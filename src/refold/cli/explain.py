import asyncio
import json
import shutil
from collections.abc import Iterator
from typing import Annotated

import typer
from pydantic import JsonValue

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
from refold.cli.output import Line, in_colors, print_colored, print_lines
from refold.fold.compactor import Preview
from refold.fold.economics import Worth
from refold.log import DEFAULT_TENANT
from refold.models import ModelSettings
from refold.models.experience import Setup
from refold.session.compaction import preview_of, worth_now
from refold.session.explain import explanation
from refold.settings import load_settings
from refold.terminal_text import Piece, wrapped
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
    fold: Annotated[
        bool, typer.Option("--fold", help="Also show what a fold would do now, and its price.")
    ] = False,
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
    """Show what the next request would send, and why each part is in or out.

    It shows how full the window is, then what is left out and why, then the session in order.
    Nothing is sent, and nothing is changed. An imported session is explained for the model that its
    recording names.

    Example: refold explain support-42 --model anthropic:claude-sonnet-4-5
    """

    async def run() -> tuple[Explanation, Worth | None, Preview | None]:
        async with log_to_read(store, tenant, gone="There is nothing left to explain.") as log:
            name = await chosen(log, session)
            found = await explanation(
                log,
                name,
                profile=profile,
                model=model,
                window=window,
                target_tokens=target_tokens,
            )
            setup = _setup(found, window)
            worth = await worth_now(log, name, setup)
            return found, worth, await preview_of(log, name, setup) if fold else None

    with exit_on_error():
        found, worth, folded = asyncio.run(run())
        columns = width or shutil.get_terminal_size().columns
        if as_json:
            more = {"decision": worth.as_json()} if worth else {}
            more |= {"fold": _as_json(folded)} if folded else {}
            typer.echo(json.dumps(found.as_json() | more, ensure_ascii=False))
            return
        if in_colors():
            print_colored(pieces(found, columns, every=every))
        else:
            typer.echo(found.as_text(columns, every=every), nl=False)
        if found.budget.window is None:
            typer.echo("\nGive the window with --window N.")
        if worth:
            lines = wrapped(str(worth), min(columns, 100))
            print_lines([[], *([Piece(line)] for line in lines)])
        if folded:
            print_lines([*_fold_lines(folded)])


def _setup(found: Explanation, window: int | None) -> Setup:
    settings, model = load_settings(found.profile), found.model or ""
    models = {**settings.models}
    if window:
        models[model] = (models.get(model) or ModelSettings()).model_copy(update={"window": window})
    return Setup.of(model, settings.profile, models=models)


def _as_json(fold: Preview) -> dict[str, JsonValue]:
    return {
        "messages": fold.messages,
        "kept": fold.kept,
        "request_before": fold.request_before,
        "request_after": fold.request_after,
        "cost_before": fold.cost_before,
        "cost_after": fold.cost_after,
        "price": fold.price,
        "saves": fold.saves,
        "pays_after": fold.pays_after,
    }


def _fold_lines(fold: Preview) -> Iterator[Line]:
    yield []
    yield [Piece("A fold now", "strong")]
    yield from ([Piece(f"  {sentence}")] for sentence in fold.sentences)
