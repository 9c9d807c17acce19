"""Money: what was paid, by whom, beside sending everything, and what became dearer.

The figures are those of the API's `/costs`: daily totals that each append keeps.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from functools import reduce
from typing import Annotated, Final, Literal, NamedTuple, cast

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import AfterValidator, BeforeValidator

from refold.console.pages import Page, dollars, page
from refold.console.replays import MAX_SESSIONS
from refold.log import DEFAULT_TENANT
from refold.models.receipt import Receipt
from refold.service.api.costs import costs_by_tenant, quota_of
from refold.service.api.routing import CallerLog, Reader, ServiceDep, SessionName
from refold.service.api.schemas import moment
from refold.service.api.sessions import state_of
from refold.service.callers import Caller
from refold.service.keys import Keyring
from refold.service.service import Service
from refold.session.costs import (
    MAX_DEARER,
    Period,
    RequestCost,
    billed_sessions,
    costs_in,
    costs_of_requests,
    dearer_sessions,
)
from refold.terminal_text import counted

router = APIRouter(route_class=Page)
PERIODS: Final = (7, 30, 90)
WIDTH, LEFT, RIGHT, TOP, HEIGHT, BOTTOM = 1_200, 70, 12, 14, 240, 26
_LINES: Final = 4
_MAX_WIDE: Final = 90.0
_MAX_LABELS: Final = 10
_SHOWN: Final = 0.00005
"""Dollars: less is shown as nothing."""
CAUSES: Final = {
    "summary": "a model wrote a summary",
    "recall": "recall calls and rereads of what is folded",
    "tools": "definitions of the recall tools",
    "miss": "the provider's cache was gone, not because of Refold",
    "prefix": "the beginning changed, so it was not read from the cache",
    "other": "other differences: older cache prices, counted tokens",
}
_SENT_LESS: Final = "saved, because less was sent"
_MAX_LISTED: Final = 100
"""Sessions of a day that are listed."""
DaysShown = Annotated[Literal[7, 30, 90], BeforeValidator(int), Query()]


def _plausible(day: date) -> date:
    if not date(2000, 1, 1) <= day < date.max:
        raise ValueError("There were no requests then.")
    return day


PastDay = Annotated[date, AfterValidator(_plausible), Path()]


class Bar(NamedTuple):
    """A day in the picture: what was paid, before what everything would have cost."""

    day: str
    x: float
    width: float
    paid: float
    """Where the top of what was paid is, from above."""
    whole: float
    receipt: Receipt
    label: str
    """Its date, where there is room for it."""


class Tick(NamedTuple):
    """A line of the scale."""

    y: float
    label: str


class Chart(NamedTuple):
    """The picture, in the units of its own coordinates."""

    bars: list[Bar]
    ticks: list[Tick]
    bottom: float
    height: float


class Cost(NamedTuple):
    """What is in what was paid that sending everything would not have had."""

    name: str
    dollars: float
    words: str


def chart(days: dict[str, Receipt]) -> Chart:
    """The picture of these days."""
    bottom, room = TOP + HEIGHT, WIDTH - LEFT - RIGHT
    wide = min(_MAX_WIDE, room / max(1, len(days)))
    most = _rounded(max((max(x.billed, instead(x)) for x in days.values()), default=0.0))

    def y(amount: float) -> float:
        return bottom - max(0.0, amount) / most * HEIGHT

    every = -(-len(days) // _MAX_LABELS)
    bars = [
        Bar(
            *(day, LEFT + nth * wide, wide * 0.8, y(receipt.billed), y(instead(receipt)), receipt),
            day[5:] if (len(days) - 1 - nth) % every == 0 else "",
        )
        for nth, (day, receipt) in enumerate(days.items())
    ]
    amounts = [nth * most / _LINES for nth in range(_LINES + 1)]
    return Chart(bars, [Tick(y(each), dollars(each)) for each in amounts], bottom, bottom + BOTTOM)


def _rounded(amount: float) -> float:
    """The top of a scale that ends above this amount."""
    power = 0.0001
    while amount > power * 10:
        power *= 10
    return next(
        step * power for step in (1, 1.2, 1.6, 2, 3, 4, 5, 6, 8, 10) if step * power >= amount
    )


def instead(receipt: Receipt) -> float:
    """What would have been billed with everything in each request that can be compared."""
    return receipt.everything


def costs_of_refold(total: Receipt) -> list[Cost]:
    """What is in what was paid because Refold manages the context, and what spoiled the cache."""
    calls = counted(total.summaries, "call")
    if total.unused:
        calls += f", {total.unused:,} of them unused ({dollars(total.unused_cost)})"
    rereads, misses = counted(total.rereads, "request"), counted(total.misses, "request")
    found = (
        Cost("Summaries", total.summaries_cost, calls),
        Cost(
            "Recall and rereads",
            total.rereads_cost,
            f"{rereads} that only read back what is folded",
        ),
        Cost("Added tools", total.added_cost, "the definitions of the recall tools"),
        Cost("Cache misses", total.misses_cost, f"{misses}, not because of Refold"),
    )
    return [each for each in found if each.dollars > 0]


def causes_of(receipt: Receipt) -> list[tuple[str, float]]:
    """Why a session cost more than with everything, the largest cause first."""
    causes = {
        "summary": receipt.summaries_cost - receipt.forced_cost,
        "recall": receipt.rereads_cost,
        "tools": receipt.added_cost,
        "miss": receipt.misses_cost,
    }
    causes["prefix"] = receipt.debt - sum(causes.values())
    return _largest(causes)


def _largest(causes: dict[str, float]) -> list[tuple[str, float]]:
    found = [(CAUSES[name], amount) for name, amount in causes.items() if amount >= _SHOWN]
    found.sort(key=lambda each: -each[1])
    saved = sum(causes.values()) - sum(amount for _, amount in found)
    return [*found, *([(_SENT_LESS, saved)] if saved <= -_SHOWN else [])]


@router.get("/money")
async def show_money(
    request: Request, caller: Reader, log: CallerLog, service: ServiceDep, days: DaysShown = 30
) -> Response:
    """What was paid and saved; administrators see keys and quotas, operators all tenants."""
    period = Period.of(days)
    costs = await costs_in(log, period)
    dearer = await dearer_sessions(log, period)
    # The console of a store alone has neither keys nor tenants.
    keyring = cast("Keyring | None", service.keyring)
    tenants: dict[str, Receipt] = {}
    if keyring is not None and _is_operator(caller):
        tenants, _ = await costs_by_tenant(service, period)
    may_see_keys = keyring is not None and caller.may("admin")
    names = {key.id: key.name for key in keyring.keys(caller.tenant)} if keyring else {}
    return page(
        request,
        "money.html",
        days=days,
        periods=PERIODS,
        today=datetime.now(UTC).date(),
        one_day=timedelta(1),
        costs=costs,
        total=costs.total,
        chart=chart(costs.by_day),
        extras=costs_of_refold(costs.total),
        keys=costs.by_key if may_see_keys else {},
        key_names=names,
        tenants=tenants if len(tenants) > 1 else {},
        dearer=[
            (name, receipt, causes_of(receipt))
            for name, receipt in dearer.items()
            if receipt.debt >= _SHOWN
        ],
        quota=_quota(service, caller) if may_see_keys else None,
        instead=instead,
    )


@router.get("/money/{day}")
async def show_day(request: Request, _: Reader, log: CallerLog, day: PastDay) -> Response:
    """What was paid on one day, by session."""
    costs = await costs_in(log, Period.on(day))
    sessions = await billed_sessions(log, costs.period, _MAX_LISTED)
    today = datetime.now(UTC).date()
    return page(
        request,
        "money_day.html",
        day=day,
        today=today,
        one_day=timedelta(1),
        periods=PERIODS,
        costs=costs,
        total=costs.total,
        extras=costs_of_refold(costs.total),
        sessions=sessions,
        tried=[*sessions][:MAX_SESSIONS],
        instead=instead,
    )


@router.get("/sessions/{session}/costs")
async def show_session_costs(
    request: Request, _: Reader, log: CallerLog, session: SessionName
) -> Response:
    """The requests of a session that became dearer, and why."""
    costs = await costs_of_requests(log, session)
    dearer = sorted((each for each in costs if each.debt >= _SHOWN), key=lambda each: -each.debt)
    total = reduce(Receipt.plus, (each.receipt for each in costs), Receipt())
    return page(
        request,
        "session_costs.html",
        state=await state_of(log, session),
        total=total,
        extras=costs_of_refold(total),
        dearer=[(each, _largest(each.causes)) for each in dearer[:MAX_DEARER]],
        more=max(0, len(dearer) - MAX_DEARER),
        instead=instead,
        moment=moment,
        links=_links(dearer),
    )


def _links(dearer: Sequence[RequestCost]) -> dict[int, str]:
    """Where each leads: a request's page, or the timeline at a fold's entry."""
    return {
        each.request: f"/requests/{each.request}" if each.what == "request" else
        f"?at={each.request}#e{each.request}"
        for each in dearer
    }  # fmt: skip


def _is_operator(caller: Caller) -> bool:
    return caller.tenant == DEFAULT_TENANT and caller.may("admin")


def _quota(service: Service, caller: Caller) -> dict[str, object] | None:
    """The quota and what is used of it today; None without one."""
    quota = quota_of(service, caller.tenant)
    return quota if quota["tokens"] or quota["cost"] else None
