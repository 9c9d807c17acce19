"""Keys of a tenant, the provider keys stored for it, and all tenants. For admins only."""

import time
from typing import Annotated, Final

from fastapi import APIRouter, Path, Query

from refold.errors import LimitReached
from refold.log.entry import LONGEST_NAME
from refold.memory.board import is_internal
from refold.models.receipt import Receipt
from refold.service.api import schemas
from refold.service.api.costs import tenants_of
from refold.service.api.routing import Admin, Operator, Route, ServiceDep
from refold.service.api.schemas import Days, NewKey, NewQuota, Rotation, UpstreamKey
from refold.service.keys import Quota, check_tenant
from refold.service.service import Service
from refold.session.costs import Period, costs_in, usage_of

router = APIRouter(tags=["keys"], route_class=Route)
MAX_KEYS: Final = 1_000
"""How many keys, and how many upstreams, a tenant may have."""
_PAGE: Final = 500
_MAX_SESSIONS: Final = 2_000
"""Sessions of a tenant that are counted for one answer."""
TenantName = Annotated[
    str, Path(max_length=LONGEST_NAME, description="A slash in it is written %2F.")
]
AfterTenant = Annotated[
    str, Query(max_length=LONGEST_NAME, description="Begin behind this tenant.")
]
TenantLimit = Annotated[int, Query(ge=1, le=100)]
_DAY: Final = 24 * 60 * 60 * 1000
KeyId = Annotated[str, Path(pattern=r"^[a-z0-9]{1,64}$", description="The key's id.")]
UpstreamName = Annotated[
    str,
    Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="As the settings name it."),
]


@router.get("/keys", summary="List the keys")
async def list_keys(caller: Admin, service: ServiceDep) -> schemas.Keys:
    """Those of the caller's tenant, including expired and revoked ones."""
    await service.keyring.refresh_if_stale()
    now = _now()
    own = service.keyring.keys(caller.tenant)
    return schemas.Keys(keys=[schemas.Key.of(key, now) for key in own])


@router.post("/keys", status_code=201, summary="Create a key")
async def create_key(caller: Admin, service: ServiceDep, body: NewKey) -> schemas.MadeKey:
    """For the caller's tenant. Only this response contains its secret."""
    if len(service.keyring.keys(caller.tenant)) >= MAX_KEYS:
        raise LimitReached("The tenant has reached its maximum number of keys.", 60)
    until = None if body.days is None else _now() + body.days * _DAY
    issued = await service.keyring.create(
        caller.tenant, body.roles, name=body.name, until=until, by=caller.key
    )
    return schemas.MadeKey.of(issued.key, _now(), secret=issued.secret)


@router.post("/keys/{key}/rotate", summary="Rotate a key")
async def rotate_key(
    caller: Admin, service: ServiceDep, key: KeyId, body: Rotation
) -> schemas.MadeKey:
    """The old secret stays valid for a while, so that clients can switch."""
    issued = await service.keyring.rotate(
        key, overlap=body.overlap, tenant=caller.tenant, by=caller.key
    )
    return schemas.MadeKey.of(issued.key, _now(), secret=issued.secret)


@router.delete("/keys/{key}", summary="Revoke a key")
async def revoke_key(caller: Admin, service: ServiceDep, key: KeyId) -> schemas.Key:
    """Permanently. Other processes refuse it within about a second."""
    revoked = await service.keyring.revoke(key, tenant=caller.tenant, by=caller.key)
    return schemas.Key.of(revoked, _now())


@router.get("/upstreams", summary="List the upstreams with a stored key")
async def list_upstream_keys(caller: Admin, service: ServiceDep) -> schemas.Upstreams:
    """Those of the caller's tenant. The keys themselves are never returned."""
    await service.keyring.refresh_if_stale()
    return _upstreams(service, caller.tenant)


@router.put("/upstreams/{upstream}/key", summary="Store a provider's key")
async def set_upstream_key(
    caller: Admin, service: ServiceDep, upstream: UpstreamName, body: UpstreamKey
) -> schemas.Upstreams:
    """It is stored encrypted, and used for this tenant's requests only."""
    if len(service.vault.names(caller.tenant)) >= MAX_KEYS:
        raise LimitReached("The tenant has reached its maximum number of upstreams.", 60)
    await service.vault.put(caller.tenant, upstream, body.key, by=caller.key)
    return _upstreams(service, caller.tenant)


@router.delete("/upstreams/{upstream}/key", summary="Delete a provider's key")
async def remove_upstream_key(
    caller: Admin, service: ServiceDep, upstream: UpstreamName
) -> schemas.Upstreams:
    """It is erased as `forget` erases entries; it was only stored encrypted."""
    await service.vault.remove(caller.tenant, upstream, by=caller.key)
    return _upstreams(service, caller.tenant)


@router.get("/quota", summary="Get the caller's quota")
async def get_quota(caller: Admin, service: ServiceDep) -> schemas.Quota:
    """Operators set it; a tenant cannot raise its own."""
    await service.keyring.refresh_if_stale()
    return schemas.Quota.model_validate(service.keyring.quota(caller.tenant))


@router.get("/tenants", summary="List the tenants")
async def list_tenants(
    _: Operator,
    service: ServiceDep,
    after: AfterTenant = "",
    limit: TenantLimit = 20,
    days: Days = 7,
) -> schemas.Tenants:
    """Those that have or had a key or a quota, and `default`.

    Only for admins of the tenant `default`.
    """
    names = [name for name in await tenants_of(service) if name > after]
    found = [await _tenant(service, name, days) for name in names[:limit]]
    more = names[limit - 1] if len(names) > limit else None
    return schemas.Tenants(tenants=found, next=more)


@router.get("/usage/tenants", summary="Get usage and cost of all tenants")
async def usage_across_tenants(
    _: Operator, service: ServiceDep, days: Days = 7
) -> schemas.UsageAcrossTenants:
    """Of all sessions that are there; what was forgotten is not counted. Days are UTC.

    Only for admins of the tenant `default`.
    """
    period = Period.of(days)
    by_day: dict[str, Receipt] = {}
    by_tenant: dict[str, Receipt] = {}
    whole = True
    for tenant in await tenants_of(service):
        costs = await costs_in(service.store.log(tenant), period)
        whole = whole and costs.complete
        by_tenant[tenant] = costs.total
        for day, receipt in costs.by_day.items():
            by_day[day] = by_day.get(day, Receipt()).plus(receipt)
    return schemas.UsageAcrossTenants.model_validate(
        {
            "days": [{**usage_of(receipt), "day": day} for day, receipt in by_day.items()],
            "tenants": {tenant: usage_of(receipt) for tenant, receipt in by_tenant.items()},
            "whole": whole,
        }
    )


@router.get("/tenants/{tenant}/quota", summary="Get a tenant's quota")
async def get_tenant_quota(
    _: Operator, service: ServiceDep, tenant: TenantName
) -> schemas.TenantQuota:
    """With what it has used of it today. Only for admins of the tenant `default`."""
    check_tenant(tenant)
    await service.keyring.refresh_if_stale()
    return schemas.TenantQuota.model_validate(_quota(service, tenant))


@router.put("/tenants/{tenant}/quota", summary="Set a tenant's quota")
async def set_tenant_quota(
    caller: Operator, service: ServiceDep, tenant: TenantName, body: NewQuota
) -> schemas.TenantQuota:
    """Every process applies it within seconds. Only for admins of the tenant `default`."""
    await service.keyring.set_quota(tenant, Quota(body.tokens, body.cost), by=caller.key)
    return schemas.TenantQuota.model_validate(_quota(service, tenant))


async def _tenant(service: Service, tenant: str, days: int) -> schemas.Tenant:
    log = service.store.log(tenant)
    sessions, page = 0, None
    while sessions < _MAX_SESSIONS:
        listed = await log.sessions(limit=_PAGE, page=page)
        sessions += sum(not is_internal(info) for info in listed.sessions)
        if (page := listed.next) is None:
            break
    costs = await costs_in(log, Period.of(days))
    keys = [key for key in service.keyring.keys(tenant) if service.keyring.state(key) == "active"]
    return schemas.Tenant.model_validate(
        {
            **_quota(service, tenant),
            "sessions": sessions,
            "keys": len(keys),
            "usage": usage_of(costs.total),
            "whole": costs.complete and page is None,
        }
    )


def _quota(service: Service, tenant: str) -> dict[str, object]:
    used = service.quotas.used(tenant)
    quota = service.keyring.quota(tenant)
    return {
        **quota._asdict(),
        "tenant": tenant,
        "used_tokens": used.tokens,
        "used_cost": used.cost,
    }


def _upstreams(service: Service, tenant: str) -> schemas.Upstreams:
    sealed = sorted(service.vault.names(tenant), key=lambda key: key.upstream)
    return schemas.Upstreams.model_validate({"upstreams": sealed})


def _now() -> int:
    return time.time_ns() // 1_000_000
