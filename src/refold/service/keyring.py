"""The keys of the service: made, rotated, revoked, and known again by their secret's hash."""

import asyncio
import hmac
import time
from collections.abc import Callable, Collection, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from pydantic import JsonValue

from refold.errors import ApiKeyNotFound, Conflict, InvalidInput, StoreError
from refold.log import Author, Log, Note, Store
from refold.log.names import check_name
from refold.service.journal import TENANT, Journal
from refold.service.kept import ROLES, Kept, Key, Quota, Role
from refold.service.secrets import hash_of, is_secret, new_id, new_secret

EVERYBODY: Final = "*"
"""Stands for all tenants where an upstream's key is kept; no tenant is called so."""
OVERLAP: Final = 24 * 60 * 60.0
"""Seconds that the old secret is valid beside the new one, unless told otherwise."""
_SESSION: Final = "keys"
_FRESH: Final = 1.0  # seconds that nobody looks what other processes wrote
_PAUSE: Final = 0.05  # seconds between two looks, however many wrong keys come
_TRIES: Final = 20


class Made(NamedTuple):
    """A key with its new secret, which is told this once."""

    key: Key
    secret: str

    def __repr__(self) -> str:
        """Without the secret."""
        return f"Made({self.key!r})"


class Keyring:
    """Knows the keys of all tenants. Changes of other processes are seen within a second."""

    def __init__(
        self,
        log: Log,
        *,
        author: Author | None = None,
        now: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        tick: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make a keyring over the log of the service's own tenant: see `keyring_of`."""
        if log.tenant != TENANT:
            raise InvalidInput("That is no log of the service's own tenant.", "Use keyring_of.")
        self._journal = Journal(log, _SESSION, author)
        self._kept = Kept()
        self._now = now
        self._tick = tick
        self._looking = asyncio.Lock()
        self._looked = float("-inf")
        self._failed_looks = 0
        self._failure: StoreError | None = None

    @property
    def age(self) -> float:
        """Seconds since the keys were last read."""
        return self._tick() - self._looked

    @property
    def kept(self) -> Kept:
        """What is known by now."""
        return self._kept

    @property
    def any(self) -> bool:
        """Whether a key was ever made: from then on, nobody is let in without one."""
        return bool(self._kept.keys) or self._journal.forgotten

    async def look(self) -> None:
        """Take in what any process wrote before this call."""
        asked, failed_looks = self._tick(), self._failed_looks
        async with self._looking:
            if self._looked >= asked:
                return  # who looked while we waited has seen it
            if self._failure is not None and self._failed_looks > failed_looks:
                # The look that we waited for failed. One after the other would each wait as long.
                raise self._failure.with_traceback(None)
            pause = self._looked + _PAUSE - self._tick()
            if pause > 0:
                await asyncio.sleep(pause)
            began = self._tick()
            try:
                news = await self._journal.news()
            except StoreError as error:
                self._failure = error
                self._failed_looks += 1
                raise
            if not self._journal.upto:
                self._kept = Kept()  # nothing was written yet, or all of it was forgotten
            for note in news:
                self._kept.take(note)
            self._looked = began

    async def current(self) -> None:
        """Take in what others wrote, unless that was done just now."""
        if self._tick() - self._looked >= _FRESH:
            await self.look()

    async def find(self, secret: str) -> Key | None:
        """The key that this is a valid secret of."""
        if not is_secret(secret):
            return None
        await self.current()
        hashed = hash_of(secret)
        found = self._valid(hashed)
        if found is None:
            await self.look()  # it may have been made a moment ago, elsewhere
            found = self._valid(hashed)
        return found

    def known(self, secret: str) -> Key | None:
        """The key that this is a valid secret of, by what was read before."""
        return self._valid(hash_of(secret)) if is_secret(secret) else None

    def keys(self, tenant: str | None = None) -> list[Key]:
        """The keys of a tenant, or of all, oldest first."""
        return [one for one in self._kept.keys.values() if tenant in (None, one.tenant)]

    def state(self, key: Key) -> str:
        """Whether it is active, expired or revoked."""
        return key.state(self._now())

    async def create(
        self,
        tenant: str,
        roles: Collection[Role],
        *,
        name: str = "",
        until: int | None = None,
        by: str = "",
    ) -> Made:
        """Make a key.

        Args:
            tenant: Whose sessions it opens.
            roles: What it is good for.
            name: For people.
            until: When it expires, milliseconds since 1970.
            by: Who made it: a key's id.
        """
        check_tenant(tenant)
        _check(roles, name, until, self._now())
        key = new_id()
        secret = new_secret(key)
        data: dict[str, JsonValue] = {
            "event": "key.created",
            "id": key,
            "tenant": tenant,
            "roles": [one for one in ROLES if one in roles],
            "name": name,
            "hash": hash_of(secret),
            "until": until,
            "by": by,
        }
        await self.write(lambda: [Note(f"Key {key} was made for tenant {tenant}.", data)])
        return Made(self._kept.keys[key], secret)

    async def rotate(
        self, key: str, *, overlap: float = OVERLAP, tenant: str | None = None, by: str = ""
    ) -> Made:
        """Give a key a new secret; the old one is valid for `overlap` more seconds.

        With `tenant`, the key must be that tenant's.
        """
        if not 0 <= overlap <= 366 * OVERLAP:
            raise InvalidInput(f"The old secret cannot stay valid for {overlap} seconds.")
        secret = new_secret(key)

        def notes() -> list[Note]:
            self._active(key, tenant)
            end = self._now() + round(overlap * 1000)
            data: dict[str, JsonValue] = {
                "event": "key.rotated",
                "id": key,
                "hash": hash_of(secret),
                "old_until": end,
                "by": by,
            }
            return [Note(f"Key {key} has a new secret.", data)]

        await self.write(notes)
        return Made(self._kept.keys[key], secret)

    async def revoke(self, key: str, *, tenant: str | None = None, by: str = "") -> Key:
        """End a key, now and for good; doing it again changes nothing."""

        def notes() -> list[Note]:
            if self.key(key, tenant).revoked_at is not None:
                return []
            data: dict[str, JsonValue] = {"event": "key.revoked", "id": key, "by": by}
            return [Note(f"Key {key} was revoked.", data)]

        await self.write(notes)
        return self._kept.keys[key]

    def quota(self, tenant: str) -> Quota:
        """What a tenant may use in a day, where that was said."""
        return self._kept.quotas.get(tenant, Quota())

    async def set_quota(self, tenant: str, quota: Quota, *, by: str = "") -> None:
        """Say what a tenant may use in a day."""
        check_tenant(tenant)
        if (quota.tokens or 0) < 0 or not 0 <= (quota.cost or 0) < float("inf"):
            raise InvalidInput("A quota is a number that is not negative.")
        data: dict[str, JsonValue] = {"event": "quota.set", "tenant": tenant, **quota._asdict()}
        data["by"] = by
        await self.write(lambda: [Note(f"Tenant {tenant} has another quota.", data)])

    def owner(self, tenant: str, first_entry: UUID) -> str | None:
        """The id of the key that a session was handed over to, if it was."""
        return self._kept.owners.get((tenant, str(first_entry)))

    async def hand_over(self, tenant: str, first_entry: UUID, key: str, *, by: str = "") -> Key:
        """Let a session belong to another key of its tenant from now on.

        A session is known by the id of its log's first entry: one that is begun again by the same
        name is another.
        """

        def notes() -> list[Note]:
            self._active(key, tenant)
            data: dict[str, JsonValue] = {
                "event": "session.handed-over",
                "tenant": tenant,
                "first_entry": str(first_entry),
                "key": key,
                "by": by,
            }
            return [Note(f"A session of tenant {tenant} was handed over to key {key}.", data)]

        await self.write(notes)
        return self._kept.keys[key]

    def key(self, key: str, tenant: str | None = None) -> Key:
        """The key of this id; another tenant's is as if it never was."""
        found = self._kept.keys.get(key)
        if found is None or tenant not in (None, found.tenant):
            raise ApiKeyNotFound("There is no such key.")
        return found

    async def write(self, notes: Callable[[], Sequence[Note]]) -> None:
        """Write what `notes` says of how things stand; it is asked again when they have changed."""
        for last in range(_TRIES):
            await self.look()
            written = notes()
            if not written:
                return
            try:
                await self._journal.add(written)
            except Conflict:
                if last == _TRIES - 1:
                    raise
                continue
            await self.look()
            return

    async def erase(self, seqs: Sequence[int]) -> None:
        """Have notes forgotten whose secrets nobody needs any more."""
        await self._journal.erase(seqs)
        self._kept.stale.difference_update(seqs)

    def _valid(self, hashed: str) -> Key | None:
        key = self._kept.keys.get(self._kept.by_hash.get(hashed, ""))
        if key is None or not key.takes(hashed, self._now()):
            return None
        return key if any(hmac.compare_digest(one.hash, hashed) for one in key.secrets) else None

    def _active(self, key: str, tenant: str | None) -> Key:
        found = self.key(key, tenant)
        if found.state(self._now()) != "active":
            raise InvalidInput(
                f"Key {key} is {found.state(self._now())}.", "Make a new one: refold keys create"
            )
        return found


def keyring_of(store: Store) -> Keyring:
    """The keyring of a store."""
    return Keyring(store.log(TENANT))


def check_tenant(tenant: str) -> None:
    """Refuse a name that no tenant of the service may have."""
    check_name(tenant, "tenant")
    if tenant in (TENANT, EVERYBODY):
        raise InvalidInput(f"{tenant!r} is no tenant's name.", "Use another name.")


def _check(roles: Collection[Role], name: str, until: int | None, now: int) -> None:
    if not roles or not set(roles) <= set(ROLES):
        raise InvalidInput("A key has at least one role.", f"They are: {', '.join(ROLES)}.")
    if name:
        check_name(name, "key")
    if until is not None and until <= now:
        raise InvalidInput("A key cannot expire before it is made.", "Name a time to come.")
