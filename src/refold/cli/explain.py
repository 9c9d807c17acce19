"""`refold explain`."""

import asyncio
import json
import os
import shutil
import sys
from typing import Annotated, NamedTuple

import typer

from refold.cli.colours import print_coloured
from refold.cli.options import STORE, StoreOption, TenantOption
from refold.cli.outcome import explained
from refold.cli.reading import log_to_read
from refold.fold.sizing import while_folding
from refold.log import CODEC, DEFAULT_TENANT, Entry, Log, Requested, Span, Visible
from refold.log.admit import check_name
from refold.log.span import spans_of, subtract, up_to
from refold.models import WELL_KNOWN, ModelSettings, budget_for, counter_for
from refold.recall.records import last_record
from refold.settings import load_settings
from refold.view.explain import Explanation
from refold.view.explain import explain as explain_request
from refold.view.explain_text import NARROWEST, pieces
from refold.view.profiles import PROFILES, Profile
from refold.view.project import project
from refold.view.sheet import Sheet
from refold.wire import wire_for


class _Wanted(NamedTuple):
    """What the request is to be explained for."""

    profile: str | None
    model: str | None
    window: int | None
    target_tokens: int | None


def explain(  # noqa: PLR0913 - an option each
    session: Annotated[
        str, typer.Argument(metavar="SESSION", help="The session's name.", show_default=False)
    ],
    *,
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            metavar="NAME",
            help=f"Explain it for this profile instead of the session's: {', '.join(PROFILES)}.",
            autocompletion=lambda: list(PROFILES),
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="NAME",
            help="Explain it for this model: its window, and how it counts tokens.",
            autocompletion=lambda: list(WELL_KNOWN),
        ),
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(
            "--window", metavar="TOKENS", min=1, help="The model's window, if you know better."
        ),
    ] = None,
    target_tokens: Annotated[
        int | None,
        typer.Option(
            "--target-tokens",
            metavar="TOKENS",
            min=1,
            help="Rewrite the past above this many tokens.",
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Show every part, ungrouped.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
    width: Annotated[
        int | None,
        typer.Option(
            "--width", metavar="COLUMNS", min=NARROWEST, help="Columns; else the terminal's."
        ),
    ] = None,
    store: StoreOption = STORE,
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    """Show what the next request would send, and why each part is in it or not.

    First how full the window is, then what is left out and why, then the session in order.
    Nothing is sent and nothing is changed.
    """
    with explained():
        check_name(session)
        wanted = _Wanted(profile, model, window, target_tokens)
        found = asyncio.run(_explained(session, store, tenant, wanted))
        if as_json:
            typer.echo(json.dumps(found.as_json(), ensure_ascii=False))
        else:
            _show(found, width or shutil.get_terminal_size().columns, every=every)


def _show(found: Explanation, width: int, *, every: bool) -> None:
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        print_coloured(pieces(found, width, every=every))
    else:
        typer.echo(found.as_text(width, every=every), nl=False)


async def _explained(session: str, address: str, tenant: str, wanted: _Wanted) -> Explanation:
    async with log_to_read(address, tenant, gone="There is nothing left to explain.") as log:
        return await _of_session(log, session, wanted)


async def _of_session(log: Log, session: str, wanted: _Wanted) -> Explanation:
    settings = load_settings(wanted.profile or (await log.info(session)).profile)
    visible = await log.visible(session, last=settings.profile.window.read or None)
    values = _retargeted(_followed(settings.profile, visible), wanted)
    before = await last_record(log, session, visible.outline.record)
    model = wanted.model or await _last_model(log, session, visible) or ""
    counter = counter_for(model)
    known = {model: ModelSettings(window=wanted.window)} if wanted.window else {}
    budget = budget_for(model, values, counter=counter, models={**settings.models, **known})
    apart = values.delegates == "apart"
    sheet = Sheet.of(visible, wire_for(visible.info.format), counter, apart=apart)
    plan = project(sheet, values, budget, before and before.plan)
    entries = (*visible.entries, *await _others(log, visible))
    return explain_request(
        sheet, plan, budget, info=visible.info, model=model or None, entries=entries
    )


async def _last_model(log: Log, session: str, visible: Visible) -> str | None:
    """The model of the newest request."""
    at = visible.outline.record
    for entry in await log.read(session, Span(at, at)) if at else []:
        match CODEC.decode(entry):
            case Requested(model=model):
                return model
            case _:
                pass
    return None


def _followed(values: Profile, visible: Visible) -> Profile:
    """The values by which the session is planned: one with folds goes on folding."""
    return while_folding(values) if visible.outline.folds and values.fold.breadcrumb else values


def _retargeted(values: Profile, wanted: _Wanted) -> Profile:
    if wanted.target_tokens is None:
        return values
    rewrite = values.rewrite.model_copy(update={"target_tokens": wanted.target_tokens})
    return values.model_copy(update={"rewrite": rewrite})


async def _others(log: Log, visible: Visible) -> list[Entry]:
    """The entries that the view does not need, because the explanation tells of them, too."""
    seen = spans_of(entry.seq for entry in visible.entries)
    missing = subtract(up_to(visible.info.entries), seen)
    return [entry for span in missing for entry in await log.read(visible.info.session, span)]
