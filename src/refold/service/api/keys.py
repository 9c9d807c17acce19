"""Keys: a tenant's own, and those of providers that are kept for it. For admins only."""

import time
from typing import Annotated, Final

from fastapi import APIRouter, Path

from refold.errors import LimitReached
from refold.service.api import schemas as answers
from refold.service.api.routing import Admin, OfService, Route
from refold.service.api.schemas import NewKey, Rotation, UpstreamKey, moment
from refold.service.keys import Made

router = APIRouter(tags=["keys"], route_class=Route)
MOST_KEYS: Final = 1_000
"""Keys and upstreams, of each, that a tenant may have."""
_DAY: Final = 24 * 60 * 60 * 1000
KeyId = Annotated[str, Path(pattern=r"^[a-z0-9]{1,64}$", description="The key's id.")]
UpstreamName = Annotated[
    str,
    Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="As the settings name it."),
]


@router.get("/keys", summary="List the keys")
async def list_keys(caller: Admin, service: OfService) -> answers.Keys:
    """Of the caller's own tenant, also those that are expired or revoked."""
    await service.keyring.current()
    now = _now()
    own = service.keyring.keys(caller.tenant)
    return answers.Keys(keys=[answers.Key.of(one, now) for one in own])


@router.post("/keys", status_code=201, summary="Make a key")
async def create_key(caller: Admin, service: OfService, given: NewKey) -> answers.MadeKey:
    """For the caller's own tenant. Its secret is told in this answer, and never again."""
    if len(service.keyring.keys(caller.tenant)) >= MOST_KEYS:
        raise LimitReached("The tenant has as many keys as it may have.", 60)
    until = None if given.days is None else _now() + given.days * _DAY
    made = await service.keyring.create(
        caller.tenant, given.roles, name=given.name, until=until, by=caller.key
    )
    return _made(made)


@router.post("/keys/{key}/rotate", summary="Give a key a new secret")
async def rotate_key(
    caller: Admin, service: OfService, key: KeyId, given: Rotation
) -> answers.MadeKey:
    """The old secret stays valid for a while, so that nobody is shut out."""
    made = await service.keyring.rotate(
        key, overlap=given.overlap, tenant=caller.tenant, by=caller.key
    )
    return _made(made)


@router.delete("/keys/{key}", summary="Revoke a key")
async def revoke_key(caller: Admin, service: OfService, key: KeyId) -> answers.Key:
    """For good; other processes refuse it within about a second."""
    revoked = await service.keyring.revoke(key, tenant=caller.tenant, by=caller.key)
    return answers.Key.of(revoked, _now())


@router.get("/upstreams", summary="List the upstreams for which a key is kept")
async def list_upstream_keys(caller: Admin, service: OfService) -> answers.Upstreams:
    """The caller's own; the keys themselves are never told."""
    await service.keyring.current()
    return _upstreams(service, caller.tenant)


@router.put("/upstreams/{upstream}/key", summary="Keep a provider's key")
async def set_upstream_key(
    caller: Admin, service: OfService, upstream: UpstreamName, given: UpstreamKey
) -> answers.Upstreams:
    """It is encrypted where it is kept, and used for this tenant's requests only."""
    if len(service.vault.names(caller.tenant)) >= MOST_KEYS:
        raise LimitReached("The tenant has as many upstreams as it may have.", 60)
    await service.vault.put(caller.tenant, upstream, given.key, by=caller.key)
    return _upstreams(service, caller.tenant)


@router.delete("/upstreams/{upstream}/key", summary="Forget a provider's key")
async def remove_upstream_key(
    caller: Admin, service: OfService, upstream: UpstreamName
) -> answers.Upstreams:
    """It is erased as `forget` erases entries, and it was only ever stored encrypted."""
    await service.vault.remove(caller.tenant, upstream, by=caller.key)
    return _upstreams(service, caller.tenant)


@router.get("/quota", summary="See the tenant's quota")
async def get_quota(caller: Admin, service: OfService) -> answers.Quota:
    """Who runs the service sets it; a tenant cannot raise its own."""
    await service.keyring.current()
    quota = service.keyring.quota(caller.tenant)
    return answers.Quota(tokens=quota.tokens, cost=quota.cost)


def _upstreams(service: OfService, tenant: str) -> answers.Upstreams:
    kept = sorted(service.vault.names(tenant), key=lambda one: one.upstream)
    return answers.Upstreams(
        upstreams=[answers.Upstream(upstream=one.upstream, since=moment(one.at)) for one in kept]
    )


def _made(made: Made) -> answers.MadeKey:
    told = answers.Key.of(made.key, _now()).model_dump()
    return answers.MadeKey(**told, secret=made.secret)


def _now() -> int:
    return time.time_ns() // 1_000_000
