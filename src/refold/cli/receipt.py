"""`refold receipt`: what was billed, next to what sending everything would have cost."""

import asyncio
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, Literal, NamedTuple

import typer

from refold.cli.options import (
    STORE,
    JsonOption,
    StoreOption,
    TenantOption,
    log_to_read,
    session_names,
)
from refold.cli.outcome import exit_on_error
from refold.cli.output import Line, print_lines, terminal_width
from refold.errors import InvalidInput
from refold.log import DEFAULT_TENANT
from refold.log.entry import check_name
from refold.models.accounts import LIFETIME, receipt_of, receipts
from refold.models.receipt import Receipt
from refold.terminal_text import Piece, counted, padded, wrapped

Lifetime = Literal["5m", "1h"]
_LIFETIMES: Final[dict[Lifetime, float]] = {"5m": LIFETIME, "1h": 3_600.0}
_SPANS: Final = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_SPAN: Final = re.compile(r"(\d{1,5})([mhdw])")
_MAX_SESSIONS: Final = 10
"""How many sessions with debt are listed."""
ABOUT: Final = (
    "This is an account of the same conversation, not of what the agent would have done otherwise: "
    "the same requests and answers at the recorded prices."
)


class _Result(NamedTuple):
    total: Receipt
    sessions: dict[str, Receipt]


def receipt(  # noqa: PLR0913 - an option each
    session: Annotated[
        str | None,
        typer.Argument(
            metavar="[SESSION]",
            help="The session's name; default: all of the tenant's.",
            show_default=False,
            autocompletion=session_names,
        ),
    ] = None,
    *,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Only requests since 2026-11-30, 2026-11-30T12:00, or 90m, 12h, 7d, 4w ago.",
        ),
    ] = None,
    lifetime: Annotated[
        Lifetime,
        typer.Option(
            metavar="5m|1h", help="How long the provider's cache lasts after its last use."
        ),
    ] = "5m",
    as_json: JsonOption = False,
    store: StoreOption = STORE,
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    """Compare what was billed with what sending everything would have cost.

    Both figures are for the same requests and answers, at the prices that were recorded with them.
    What was billed includes all summaries, used or not, and recall calls and rereads. The figures
    come from the log alone, so the same log always gives the same receipt.

    Example: refold receipt support-42
    """
    with exit_on_error():
        if session is not None:
            check_name(session)
        start = _moment(since, datetime.now(UTC)) if since else 0
        result = asyncio.run(_read(session, start, _LIFETIMES[lifetime], store, tenant))
        if as_json:
            own = {name: one.as_json() for name, one in result.sessions.items()}
            about = {"session": session, "tenant": tenant, "since": start or None}
            total = {**about, "lifetime": _LIFETIMES[lifetime], **result.total.as_json()}
            typer.echo(json.dumps(total if session else {**total, "sessions": own}, indent=2))
        else:
            what = f"Session {session!r}" if session else counted(len(result.sessions), "session")
            lines = list(_lines(what, result, lifetime, since))
            print_lines(lines)


def _moment(text: str, now: datetime) -> int:
    """The moment that a text names, in milliseconds since 1970; without a zone, it is local."""
    if span := _SPAN.fullmatch(text):
        moment = now - timedelta(**{_SPANS[span[2]]: int(span[1])})
    else:
        try:
            moment = datetime.fromisoformat(text).astimezone()
        except ValueError:
            what = f"{text!r} is not a time."
            fix = "Use --since 2026-11-30, --since 2026-11-30T12:00, or --since 7d."
            raise InvalidInput(what, fix) from None
    return int(moment.timestamp() * 1000)


async def _read(
    session: str | None, since: int, lifetime: float, address: str, tenant: str
) -> _Result:
    async with log_to_read(address, tenant, gone="Its requests are gone for good.") as log:
        if session is not None:
            own = await receipt_of(log, session, lifetime, since=since)
            return _Result(own, {session: own})
        total, found = Receipt(), dict[str, Receipt]()
        async for name, each in receipts(log, lifetime, since=since):
            if each.requests or each.summaries:
                found[name], total = each, total.plus(each)
        return _Result(total, found)


def _lines(what: str, result: _Result, lifetime: Lifetime, since: str | None) -> Iterator[Line]:
    total = result.total
    requests, calls = counted(total.requests, "request"), counted(total.summaries, "call")
    summaries = f", {calls} for summaries" if total.summaries else ""
    suffix = f", since {since}" if since else ""
    yield [Piece(f"{what}: {requests}{summaries}{suffix}", "strong")]
    yield []
    if total.compared:
        yield from _compared(total)
    yield from _table("Not compared", _not_compared(total))
    if len(result.sessions) > 1:
        owing = sorted(result.sessions.items(), key=lambda item: -item[1].debt)
        rows = [
            (name, each.debt, f"paid {_dollars(each.paid)}, whole {_dollars(each.whole)}")
            for name, each in owing
            if each.debt - each.apart > 0
        ]
        yield from _table("Sessions with debt", rows[:_MAX_SESSIONS])
    for text in _notes(total, lifetime):
        for line in wrapped(text, min(100, terminal_width())):
            yield [Piece(line, "faint")]


def _compared(total: Receipt) -> Iterator[Line]:
    share = f"{abs(total.debt) / total.whole:.0%} " if total.whole else ""
    than = "more" if total.debt > 0 else "less"
    rows = [
        ("paid", total.paid, ""),
        ("whole", total.whole, "the same requests with the whole history"),
        ("debt", total.debt, f"{share}{than} than sending everything"),
    ]
    yield from _table("", rows)
    calls, unused = counted(total.summaries, "call"), ""
    if total.unused:
        unused = f", {total.unused} not used ({_dollars(total.unused_cost)})"
    rereads = counted(total.rereads, "request")
    missed = counted(total.misses, "request")
    rows = [
        ("summaries", total.summaries_cost - total.forced_cost, f"{calls}{unused}"),
        ("recall, rereads", total.rereads_cost, f"{rereads} that only read what is folded"),
        ("added tools", total.added_cost, "the definitions of the recall tools"),
        ("cache misses", total.misses_cost, f"{missed}, not caused by Refold"),
    ]
    yield from _table("Of what was paid", [row for row in rows if row[1]])
    highest = f"Highest debt at any request: {_dollars(total.highest)}"
    yield [Piece(f"{highest}, without added tools and cache misses.")]
    if total.promised:
        beyond = ", with folds that the window forced or you asked for" * bool(total.outside_cost)
        text = f"Promised at most: {_dollars(total.promised)}{beyond}"
        broken = f"; exceeded at {counted(total.broken, 'request')}" if total.broken else ""
        yield [Piece(f"{text}{broken}.")]
    yield []


def _not_compared(total: Receipt) -> list[tuple[str, float, str]]:
    over, older = counted(total.over_window, "request"), counted(total.older, "request")
    forced = counted(total.forced, "call")
    rows = [
        (
            "over the window",
            total.over_window_cost - total.forced_cost,
            f"{over} whose whole history does not fit: nothing to compare with",
        ),
        ("forced folds", total.forced_cost, f"{forced} for summaries that the window forced"),
        ("older records", total.older_cost, f"{older} recorded by an earlier version"),
    ]
    return [row for row in rows if row[1]]


def _table(title: str, rows: list[tuple[str, float, str]]) -> Iterator[Line]:
    if not rows:
        return
    if title:
        yield [Piece(title, "faint")]
    width = max(15, *(len(name) for name, _, _ in rows))
    for name, dollars, what in rows:
        amount = padded(_dollars(dollars), 11, right=True)
        yield [Piece(f"  {padded(name, width)} {amount}"), Piece(f"  {what}".rstrip(), "faint")]
    yield []


def _notes(total: Receipt, lifetime: Lifetime) -> Iterator[str]:
    yield ABOUT
    minutes = int(_LIFETIMES[lifetime] // 60)
    yield f"After a pause of more than {minutes} minutes, the cache is taken to be empty."
    if total.reported:
        error = _dollars(total.error * total.whole)
        yield (
            "Tokens that were not sent are counted by Refold and corrected by what the provider "
            f"reported for those that were. From one request to the next, that was off by "
            f"{total.error:.1%}, so the whole may be off by about {error}."
        )
    if total.estimated:
        yield f"The usage of {counted(total.estimated, 'request')} was not reported: it is counted."
    if total.unpriced:
        entries = counted(total.unpriced, "request or summary", "requests or summaries")
        yield f"Left out: {entries} of models whose prices are unknown."


def _dollars(amount: float) -> str:
    sign = "-" if amount < -0.00005 else ""  # noqa: PLR2004 - what is shown as 0
    return f"{sign}${abs(amount):,.4f}"
