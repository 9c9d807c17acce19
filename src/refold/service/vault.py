"""Providers' keys, one for each tenant and upstream, encrypted wherever they are kept."""

import base64
import json
import os
import secrets
from collections.abc import Sequence
from hashlib import sha256
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pydantic import JsonValue

from refold.errors import ApiKeyNotFound, InvalidInput, MasterKeyWrong
from refold.log import Note
from refold.log.entry import check_name
from refold.service.keys import EVERYBODY, Keyring, Sealed, check_tenant

# Encrypting what must be read again: providers' keys, under the master key of the service.

VARIABLE: Final = "REFOLD_MASTER_KEY"
_VERSION: Final = "v1"
_BYTES: Final = 32
_NONCE: Final = 12


def new_master_key() -> str:
    """A new master key, as the variable holds it."""
    return base64.b64encode(secrets.token_bytes(_BYTES)).decode()


class Sealing:
    """Seals with the newest master key, and opens with whichever sealed it.

    What is sealed is bound to some names: under others it does not open.
    """

    def __init__(self, masters: Sequence[bytes] = ()) -> None:
        self._ciphers = {_mark(one): AESGCM(one) for one in masters}

    @classmethod
    def from_environment(cls) -> "Sealing":
        """By REFOLD_MASTER_KEY: one key, or several with commas between, newest first."""
        return cls(_masters(os.environ.get(VARIABLE, "")))

    def __repr__(self) -> str:
        """Nothing of the keys."""
        return f"Sealing({len(self._ciphers)} keys)"

    def seal(self, text: str, *names: str) -> str:
        """The text, sealed and bound to the names."""
        for mark, cipher in self._ciphers.items():
            nonce = secrets.token_bytes(_NONCE)
            inside = cipher.encrypt(nonce, text.encode(), _bound(names))
            return f"{_VERSION}.{mark}.{base64.b64encode(nonce + inside).decode()}"
        raise _missing()

    def open(self, sealed: str, *names: str) -> str:
        """What was sealed."""
        version, _, rest = sealed.partition(".")
        mark, _, inside = rest.partition(".")
        if version != _VERSION:
            raise MasterKeyWrong("A newer Refold sealed this key.", "Upgrade Refold.")
        if not self._ciphers:
            raise _missing()
        if mark not in self._ciphers:
            raise MasterKeyWrong(
                f"The key was sealed under another master key than those in {VARIABLE}.",
                f"Add the old one to {VARIABLE}, behind a comma, then run "
                "`refold keys upstream reseal`; or set the upstream's key anew.",
            )
        try:
            raw = base64.b64decode(inside, validate=True)
            return self._ciphers[mark].decrypt(raw[:_NONCE], raw[_NONCE:], _bound(names)).decode()
        except (InvalidTag, ValueError) as error:
            raise MasterKeyWrong(
                "A sealed key was changed, or moved to another tenant or upstream.",
                "Set it anew: refold keys upstream set",
            ) from error

    def is_newest(self, sealed: str) -> bool:
        """Whether it was sealed under the newest master key."""
        return sealed.startswith(f"{_VERSION}.{next(iter(self._ciphers), '-')}.")


def _masters(text: str) -> list[bytes]:
    return [_master(one) for one in text.replace(",", " ").split()]


def _master(text: str) -> bytes:
    try:
        key = base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True)
    except ValueError:  # no base64, or no ASCII
        key = b""
    if len(key) != _BYTES:
        raise MasterKeyWrong(
            f"{VARIABLE} holds something that is no key of {_BYTES} bytes in base64.",
            "Make one with `refold keys master-key`.",
        )
    return key


def _mark(master: bytes) -> str:
    """By which a master key is known again, without telling anything of it."""
    return sha256(b"refold master key\0" + master).hexdigest()[:16]


def _bound(names: Sequence[str]) -> bytes:
    return json.dumps(["refold", *names]).encode()


def _missing() -> MasterKeyWrong:
    return MasterKeyWrong(f"{VARIABLE} is not set, so no upstream's key can be kept or read.")


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
