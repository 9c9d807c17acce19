"""Costs: what a tenant used and paid by day, model and key, beside sending everything, and why.

The answers come from the daily totals that each append keeps, so none of them reads a session. Only
sessions that are not counted yet are read, a few with each question; `refold store recount` counts
all of them.
"""

from functools import reduce
from typing import Final

from fastapi import APIRouter

from refold.log import DEFAULT_TENANT
from refold.models.accounts import LIFETIME, receipts
from refold.models.receipt import Receipt
from refold.service.api import schemas
from refold.service.api.routing import CallerLog, Operator, Reader, Route, ServiceDep, SessionName
from refold.service.api.schemas import Days, Lifetime
from refold.service.service import Service
from refold.session.costs import (
    MAX_DEARER,
    Period,
    costs_in,
    costs_of_requests,
    dearer_sessions,
    dearest_first,
    usage_of,
)

router = APIRouter(tags=["usage"], route_class=Route)
_MAX_SCANNED: Final = 2_000
"""Sessions that are read for another lifetime of the cache than the totals were kept for."""


@router.get("/costs", summary="Get costs and savings by day, model and key")
async def tenant_costs(
    caller: Reader, log: CallerLog, service: ServiceDep, days: Days = 30
) -> schemas.Costs:
    """Compared with what the same requests would have cost with the full history. Days are UTC.

    It reads daily totals, which every append keeps. A summary counts with the model and the key of
    the request before it. What was forgotten with its session is not counted. Administrators also
    see keys and the quota. `dearer` are the sessions that cost more in these days than with
    everything.
    """
    is_admin = caller.may("admin")
    costs = await costs_in(log, Period.of(days))
    return schemas.Costs.model_validate(
        {
            "total": costs.total.as_json(),
            "sessions": costs.sessions,
            "complete": costs.complete,
            "days": _named("day", costs.by_day),
            "models": _named("model", costs.by_model),
            "keys": _named("key", costs.by_key) if is_admin else None,
            "dearer": _named("session", await dearer_sessions(log, costs.period)),
            "quota": quota_of(service, caller.tenant) if is_admin else None,
        }
    )


@router.get("/costs/tenants", summary="Get costs and savings of all tenants")
async def costs_of_tenants(
    _: Operator, service: ServiceDep, days: Days = 30
) -> schemas.TenantCosts:
    """The tenant that paid most comes first. Only for admins of the tenant `default`."""
    found, complete = await costs_by_tenant(service, Period.of(days))
    total = reduce(Receipt.plus, found.values(), Receipt())
    values = {"total": total.as_json(), "tenants": _named("tenant", found), "complete": complete}
    return schemas.TenantCosts.model_validate(values)


@router.get("/sessions/{session}/costs", summary="Get the requests that cost more, and why")
async def session_costs(_: Reader, log: CallerLog, session: SessionName) -> schemas.SessionCosts:
    """The requests and summaries of a session that added most to its debt, with their causes.

    The session is read from its beginning. `debt` is what a request cost more than with everything;
    causes are dollars, and add up to it.
    """
    costs = await costs_of_requests(log, session)
    dearer = sorted((cost for cost in costs if cost.debt > 0), key=lambda cost: -cost.debt)
    return schemas.SessionCosts.model_validate(
        {
            "session": session,
            "total": reduce(Receipt.plus, (cost.receipt for cost in costs), Receipt()).as_json(),
            "dearer": [cost.as_json() for cost in dearer[:MAX_DEARER]],
        }
    )


@router.get("/usage", summary="Get usage and cost by day")
async def tenant_usage(_: Reader, log: CallerLog, days: Days = 7) -> schemas.TenantUsage:
    """Of all sessions that are there; what was forgotten is not counted. Days are UTC."""
    costs = await costs_in(log, Period.of(days))
    usage = [{**usage_of(receipt), "day": day} for day, receipt in costs.by_day.items()]
    return schemas.TenantUsage.model_validate({"days": usage, "whole": costs.complete})


@router.get("/receipt", summary="Get the receipt of all sessions")
async def tenant_receipt(
    _: Reader, log: CallerLog, days: Days = 7, lifetime: Lifetime = LIFETIME
) -> schemas.TenantReceipt:
    """Of all sessions that are there.

    It reads daily totals, which are kept for a cache that lives five minutes. With another
    `lifetime`, each session is read from its beginning: up to 2,000, and it takes a while.
    """
    period = Period.of(days)
    if lifetime == LIFETIME:
        costs = await costs_in(log, period)
        values = {**costs.total.as_json(), "sessions": costs.sessions, "complete": costs.complete}
        return schemas.TenantReceipt.model_validate(values)
    total, count, complete = Receipt(), 0, True
    async for _name, receipt in receipts(log, lifetime, since=period.begins_at):
        if count == _MAX_SCANNED:
            complete = False
            break
        total, count = total.plus(receipt), count + 1
    values = {**total.as_json(), "sessions": count, "complete": complete}
    return schemas.TenantReceipt.model_validate(values)


async def costs_by_tenant(service: Service, period: Period) -> tuple[dict[str, Receipt], bool]:
    """What each tenant paid, most first, and whether all sessions are counted."""
    found: dict[str, Receipt] = {}
    complete = True
    for tenant in await tenants_of(service):
        costs = await costs_in(service.store.log(tenant), period)
        found[tenant], complete = costs.total, complete and costs.complete
    return dearest_first(found), complete


async def tenants_of(service: Service) -> list[str]:
    """Those that have or had a key or a quota, and `default`."""
    await service.keyring.refresh_if_stale()
    keys = {key.tenant for key in service.keyring.keys()}  # noqa: SIM118 - no dict
    return sorted({DEFAULT_TENANT, *keys, *service.keyring.records.quotas})


def quota_of(service: Service, tenant: str) -> dict[str, object]:
    """The quota that counts for a tenant, and what it has used of it."""
    used = service.quotas.used(tenant)
    quota = service.quotas.quota(tenant)
    return {
        **quota._asdict(),
        "tenant": tenant,
        "used_tokens": used.tokens,
        "used_cost": used.cost,
    }


def _named(what: str, receipts: dict[str, Receipt]) -> list[dict[str, object]]:
    return [{**receipt.as_json(), what: name} for name, receipt in receipts.items()]
