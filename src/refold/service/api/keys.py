"""Keys of a tenant, and the provider keys stored for it. For admins only."""

import time
from typing import Annotated, Final

from fastapi import APIRouter, Path

from refold.errors import LimitReached
from refold.service.api import schemas
from refold.service.api.routing import Admin, Route, ServiceDep
from refold.service.api.schemas import NewKey, Rotation, UpstreamKey
from refold.service.service import Service

router = APIRouter(tags=["keys"], route_class=Route)
MAX_KEYS: Final = 1_000
"""How many keys, and how many upstreams, a tenant may have."""
_DAY: Final = 24 * 60 * 60 * 1000
KeyId = Annotated[str, Path(pattern=r"^[a-z0-9]{1,64}$", description="The key's id.")]
UpstreamName = Annotated[
    str,
    Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="As the settings name it."),
]


@router.get("/keys", summary="List the keys")
async def list_keys(caller: Admin, service: ServiceDep) -> schemas.Keys:
    """Of the caller's own tenant, also those that are expired or revoked."""
    await service.keyring.refresh_if_stale()
    now = _now()
    own = service.keyring.keys(caller.tenant)
    return schemas.Keys(keys=[schemas.Key.of(key, now) for key in own])


@router.post("/keys", status_code=201, summary="Make a key")
async def create_key(caller: Admin, service: ServiceDep, body: NewKey) -> schemas.MadeKey:
    """For the caller's own tenant. Its secret is told in this answer, and never again."""
    if len(service.keyring.keys(caller.tenant)) >= MAX_KEYS:
        raise LimitReached("The tenant has as many keys as it may have.", 60)
    until = None if body.days is None else _now() + body.days * _DAY
    issued = await service.keyring.create(
        caller.tenant, body.roles, name=body.name, until=until, by=caller.key
    )
    return schemas.MadeKey.of(issued.key, _now(), secret=issued.secret)


@router.post("/keys/{key}/rotate", summary="Give a key a new secret")
async def rotate_key(
    caller: Admin, service: ServiceDep, key: KeyId, body: Rotation
) -> schemas.MadeKey:
    """The old secret stays valid for a while, so that nobody is shut out."""
    issued = await service.keyring.rotate(
        key, overlap=body.overlap, tenant=caller.tenant, by=caller.key
    )
    return schemas.MadeKey.of(issued.key, _now(), secret=issued.secret)


@router.delete("/keys/{key}", summary="Revoke a key")
async def revoke_key(caller: Admin, service: ServiceDep, key: KeyId) -> schemas.Key:
    """For good; other processes refuse it within about a second."""
    revoked = await service.keyring.revoke(key, tenant=caller.tenant, by=caller.key)
    return schemas.Key.of(revoked, _now())


@router.get("/upstreams", summary="List the upstreams for which a key is kept")
async def list_upstream_keys(caller: Admin, service: ServiceDep) -> schemas.Upstreams:
    """The caller's own; the keys themselves are never told."""
    await service.keyring.refresh_if_stale()
    return _upstreams(service, caller.tenant)


@router.put("/upstreams/{upstream}/key", summary="Keep a provider's key")
async def set_upstream_key(
    caller: Admin, service: ServiceDep, upstream: UpstreamName, body: UpstreamKey
) -> schemas.Upstreams:
    """It is encrypted where it is kept, and used for this tenant's requests only."""
    if len(service.vault.names(caller.tenant)) >= MAX_KEYS:
        raise LimitReached("The tenant has as many upstreams as it may have.", 60)
    await service.vault.put(caller.tenant, upstream, body.key, by=caller.key)
    return _upstreams(service, caller.tenant)


@router.delete("/upstreams/{upstream}/key", summary="Forget a provider's key")
async def remove_upstream_key(
    caller: Admin, service: ServiceDep, upstream: UpstreamName
) -> schemas.Upstreams:
    """It is erased as `forget` erases entries, and it was only ever stored encrypted."""
    await service.vault.remove(caller.tenant, upstream, by=caller.key)
    return _upstreams(service, caller.tenant)


@router.get("/quota", summary="See the tenant's quota")
async def get_quota(caller: Admin, service: ServiceDep) -> schemas.Quota:
    """Who runs the service sets it; a tenant cannot raise its own."""
    await service.keyring.refresh_if_stale()
    return schemas.Quota.model_validate(service.keyring.quota(caller.tenant))


def _upstreams(service: Service, tenant: str) -> schemas.Upstreams:
    sealed = sorted(service.vault.names(tenant), key=lambda key: key.upstream)
    return schemas.Upstreams.model_validate({"upstreams": sealed})


def _now() -> int:
    return time.time_ns() // 1_000_000
