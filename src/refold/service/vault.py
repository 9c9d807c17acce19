"""Providers' keys, one for each tenant and upstream, encrypted wherever they are kept."""

from pydantic import JsonValue

from refold.errors import ApiKeyNotFound, InvalidInput
from refold.log import Note
from refold.log.names import check_name
from refold.service.kept import Sealed
from refold.service.keyring import EVERYBODY, Keyring, check_tenant
from refold.service.sealing import Sealing

_LONGEST = 4_096


class Vault:
    """Keeps providers' keys. What was replaced or removed is forgotten, encrypted or not."""

    def __init__(self, keyring: Keyring, sealing: Sealing | None = None) -> None:
        """Keep them beside the keyring's keys; `sealing` is by REFOLD_MASTER_KEY unless told."""
        self._keyring = keyring
        self._sealing = sealing or Sealing.from_environment()

    def names(self, tenant: str | None = None) -> list[Sealed]:
        """What is kept for a tenant, or for all: no key is in clear."""
        kept = self._keyring.kept.upstreams.values()
        return [one for one in kept if tenant in (None, one.tenant)]

    def key_of(self, tenant: str, upstream: str) -> str | None:
        """A tenant's key for an upstream, else the one that is for all tenants."""
        kept = self._keyring.kept.upstreams
        found = kept.get((tenant, upstream)) or kept.get((EVERYBODY, upstream))
        if found is None:
            return None
        return self._sealing.open(found.sealed, found.tenant, found.upstream)

    async def put(self, tenant: str, upstream: str, secret: str, *, by: str = "") -> None:
        """Keep a tenant's key for an upstream; tenant `*` is all that have none of their own."""
        if tenant != EVERYBODY:
            check_tenant(tenant)
        check_name(upstream, "upstream")
        if not 0 < len(secret) <= _LONGEST or not secret.isprintable() or " " in secret:
            raise InvalidInput("That is no key of a provider.", "Give it as the provider shows it.")
        notes = self._notes(tenant, upstream, secret, by)
        await self._keyring.write(lambda: notes)
        await self._tidy()

    async def remove(self, tenant: str, upstream: str, *, by: str = "") -> None:
        """Forget a tenant's key for an upstream."""
        data: dict[str, JsonValue] = {
            "event": "upstream.removed",
            "tenant": tenant,
            "upstream": upstream,
            "by": by,
        }

        def notes() -> list[Note]:
            if (tenant, upstream) not in self._keyring.kept.upstreams:
                raise ApiKeyNotFound("No key is kept for this upstream.")
            return [Note(f"The key for {upstream} of tenant {tenant} was removed.", data)]

        await self._keyring.write(notes)
        await self._tidy()

    async def reseal(self) -> int:
        """Seal anew what is not under the newest master key; how many that were."""
        await self._keyring.look()
        done = 0
        for one in self.names():
            if not self._sealing.is_newest(one.sealed):
                done += await self._resealed(one)
        await self._tidy()
        return done

    async def _resealed(self, old: Sealed) -> bool:
        secret = self._sealing.open(old.sealed, old.tenant, old.upstream)
        written = self._notes(old.tenant, old.upstream, secret, "")

        def notes() -> list[Note]:
            """Nothing where somebody set or removed it meanwhile."""
            now = self._keyring.kept.upstreams.get((old.tenant, old.upstream))
            return written if now == old else []

        await self._keyring.write(notes)
        return self._keyring.kept.upstreams.get((old.tenant, old.upstream)) != old

    def _notes(self, tenant: str, upstream: str, secret: str, by: str) -> list[Note]:
        """Two notes: what happened, which stays, and the key, which goes when it is replaced."""
        about: dict[str, JsonValue] = {"tenant": tenant, "upstream": upstream}
        sealed = self._sealing.seal(secret, tenant, upstream)
        told = f"The key for {upstream} of tenant {tenant} was set."
        return [
            Note(told, {"event": "upstream.set", **about, "by": by}),
            Note("", {"event": "upstream.sealed", **about, "sealed": sealed}),
        ]

    async def _tidy(self) -> None:
        await self._keyring.erase(sorted(self._keyring.kept.stale))
