"""`refold costs`: what was paid by day, model or key, beside sending everything."""

import asyncio
import json
from collections.abc import Iterator
from functools import reduce
from typing import Annotated, Final, Literal

import typer

from refold.cli.options import STORE, JsonOption, StoreOption, TenantOption, log_to_read
from refold.cli.outcome import exit_on_error
from refold.cli.output import Line, print_lines
from refold.log import DEFAULT_TENANT
from refold.models.receipt import Receipt
from refold.session.costs import Costs, Period, costs_in
from refold.terminal_text import Piece, counted, padded

By = Literal["day", "model", "key"]
_WIDTHS: Final = {"requests": 10, "tokens sent": 13, "paid": 12, "everything": 12, "saved": 12}
_MIN_NAME: Final = 12
_NAMELESS: Final = {"model": "not recorded", "key": "none", "day": ""}


def costs(
    *,
    days: Annotated[
        int,
        typer.Option(metavar="N", min=1, max=3_650, help="How many days, today included (UTC)."),
    ] = 7,
    by: Annotated[
        By, typer.Option(metavar="day|model|key", help="Show one line per day, model or key.")
    ] = "day",
    as_json: JsonOption = False,
    store: StoreOption = STORE,
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    """Show what was paid by day, model or key, next to the cost of sending everything.

    The figures are daily totals that are updated with each request, so a long history takes no
    longer. A summary counts toward the model and the key of its conversation.

    Example: refold costs --days 30 --by model
    """
    with exit_on_error():
        found = asyncio.run(_read(days, store, tenant))
        rows = {"day": found.by_day, "model": found.by_model, "key": found.by_key}[by]
        if as_json:
            own = {name: receipt.as_json() for name, receipt in rows.items()}
            about = {"tenant": tenant, "days": days, "complete": found.complete}
            total = {**about, "sessions": found.sessions, **found.total.as_json()}
            typer.echo(json.dumps({**total, "by": by, "rows": own}, indent=2))
        else:
            used = {name: receipt for name, receipt in rows.items() if receipt != Receipt()}
            print_lines([*_lines(found, used, by, days)])


async def _read(days: int, address: str, tenant: str) -> Costs:
    async with log_to_read(address, tenant, gone="Its requests are gone for good.") as log:
        return await costs_in(log, Period.of(days))


def _lines(found: Costs, rows: dict[str, Receipt], by: By, days: int) -> Iterator[Line]:
    requests, sessions = (
        counted(found.total.requests, "request"),
        counted(found.sessions, "session"),
    )
    span = "Today" if days == 1 else f"The last {days} days"
    yield [Piece(f"{span}: {requests} in {sessions}", "strong")]
    yield []
    names = {name: name or _NAMELESS[by] for name in rows}
    width = max(_MIN_NAME, *map(len, names.values())) if names else _MIN_NAME
    head = "".join(padded(name, size, right=True) for name, size in _WIDTHS.items())
    yield [Piece(f"  {padded(by, width)}{head}", "faint")]
    for name, receipt in rows.items():
        yield [Piece(f"  {padded(names[name], width)}{_figures(receipt)}")]
    if len(rows) > 1:
        total = reduce(Receipt.plus, rows.values(), Receipt())
        yield [Piece(f"  {padded('total', width)}{_figures(total)}", "strong")]
    yield []
    if rows:
        yield [
            Piece("everything: the same requests, each with the full history; if that is", "faint")
        ]
        yield [Piece("longer than the window, as paid.", "faint")]
    if found.total.unpriced:
        entries = counted(found.total.unpriced, "request or summary", "requests or summaries")
        yield [Piece(f"Left out: {entries} of models whose prices are unknown.", "faint")]
    if not found.complete:
        words = "Some sessions are not counted yet. To count all of them: refold store recount"
        yield [Piece(words, "faint")]


def _figures(receipt: Receipt) -> str:
    figures = (
        f"{receipt.requests:,}",
        f"{receipt.input:,}",
        _dollars(receipt.billed),
        _dollars(receipt.everything),
        _dollars(-receipt.debt),
    )
    sizes = _WIDTHS.values()
    return "".join(
        padded(each, size, right=True) for each, size in zip(figures, sizes, strict=True)
    )


def _dollars(amount: float) -> str:
    sign = "-" if amount < -0.00005 else ""  # noqa: PLR2004 - what is shown as 0
    return f"{sign}${abs(amount):,.4f}"
