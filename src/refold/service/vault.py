"""Provider keys, one for each tenant and upstream, encrypted under the service's master key."""

import base64
import json
import os
import secrets
from collections.abc import Sequence
from hashlib import sha256
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from refold.errors import ApiKeyNotFound, InvalidInput, MasterKeyWrong
from refold.log import Note
from refold.log.entry import check_name
from refold.service.keys import EVERYBODY, Keyring, Sealed, check_tenant, event_note

VARIABLE: Final = "REFOLD_MASTER_KEY"
_VERSION: Final = "v1"
_KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_MAX_SECRET: Final = 4_096


def new_master_key() -> str:
    """A new master key, in the variable's form."""
    return base64.b64encode(secrets.token_bytes(_KEY_BYTES)).decode()


class Sealing:
    """Encrypts with the newest master key, and decrypts with whichever key sealed a text.

    A sealed text is bound to some names: with others it does not open.
    """

    def __init__(self, masters: Sequence[bytes] = ()) -> None:
        self._ciphers = {_key_id(master): AESGCM(master) for master in masters}

    @classmethod
    def from_environment(cls) -> "Sealing":
        """From REFOLD_MASTER_KEY: one key, or several separated by commas, newest first."""
        return cls(_masters(os.environ.get(VARIABLE, "")))

    def __repr__(self) -> str:
        return f"Sealing({len(self._ciphers)} keys)"

    def seal(self, text: str, *names: str) -> str:
        for key_id, cipher in self._ciphers.items():
            nonce = secrets.token_bytes(_NONCE_BYTES)
            inside = cipher.encrypt(nonce, text.encode(), _bound(names))
            return f"{_VERSION}.{key_id}.{base64.b64encode(nonce + inside).decode()}"
        raise _missing()

    def open(self, sealed: str, *names: str) -> str:
        version, _, rest = sealed.partition(".")
        key_id, _, inside = rest.partition(".")
        if version != _VERSION:
            raise MasterKeyWrong("A newer Refold sealed this key.", "Upgrade Refold.")
        if not self._ciphers:
            raise _missing()
        if key_id not in self._ciphers:
            raise MasterKeyWrong(
                f"The key was sealed under another master key than those in {VARIABLE}.",
                f"Add the old one to {VARIABLE}, after a comma, then run "
                "`refold keys upstream reseal`; or set the upstream's key again.",
            )
        try:
            raw, cipher = base64.b64decode(inside, validate=True), self._ciphers[key_id]
            return cipher.decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], _bound(names)).decode()
        except (InvalidTag, ValueError) as error:
            raise MasterKeyWrong(
                "A sealed key was changed, or moved to another tenant or upstream.",
                "Set it again: refold keys upstream set",
            ) from error

    def is_newest(self, sealed: str) -> bool:
        return sealed.startswith(f"{_VERSION}.{next(iter(self._ciphers), '-')}.")


def _masters(text: str) -> list[bytes]:
    return [_master(word) for word in text.replace(",", " ").split()]


def _master(text: str) -> bytes:
    try:
        key = base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True)
    except ValueError:  # no base64, or no ASCII
        key = b""
    if len(key) != _KEY_BYTES:
        raise MasterKeyWrong(
            f"{VARIABLE} holds something that is not a key of {_KEY_BYTES} bytes in base64.",
            "Create one with `refold keys master-key`.",
        )
    return key


def _key_id(master: bytes) -> str:
    """A truncated hash, safe to store."""
    return sha256(b"refold master key\0" + master).hexdigest()[:16]


def _bound(names: Sequence[str]) -> bytes:
    return json.dumps(["refold", *names]).encode()


def _missing() -> MasterKeyWrong:
    return MasterKeyWrong(f"{VARIABLE} is not set, so upstreams' keys can't be stored or read.")


class Vault:
    """Stores provider keys. A replaced or removed key is forgotten, though it was encrypted."""

    def __init__(self, keyring: Keyring, sealing: Sealing | None = None) -> None:
        self._keyring = keyring
        self._sealing = sealing or Sealing.from_environment()

    def names(self, tenant: str | None = None) -> list[Sealed]:
        """The stored keys of a tenant, or of all, encrypted."""
        sealed = self._keyring.records.upstreams.values()
        return [key for key in sealed if tenant in (None, key.tenant)]

    def key_of(self, tenant: str, upstream: str) -> str | None:
        """A tenant's key for an upstream, else the fallback for all tenants."""
        keys = self._keyring.records.upstreams
        key = keys.get((tenant, upstream)) or keys.get((EVERYBODY, upstream))
        return None if key is None else self._open(key)

    async def put(self, tenant: str, upstream: str, secret: str, *, by: str = "") -> None:
        """Store a tenant's key for an upstream; `*` is the fallback for tenants without one."""
        if tenant != EVERYBODY:
            check_tenant(tenant)
        check_name(upstream, "upstream")
        if not 0 < len(secret) <= _MAX_SECRET or not secret.isprintable() or " " in secret:
            raise InvalidInput("That is not a provider's key.", "Give it as the provider shows it.")
        notes = self._notes(tenant, upstream, secret, by)
        await self._keyring.write(lambda: notes)
        await self._tidy()

    async def remove(self, tenant: str, upstream: str, *, by: str = "") -> None:
        words = f"The key for {upstream} of tenant {tenant} was removed."
        note = event_note(words, "upstream.removed", tenant=tenant, upstream=upstream, by=by)

        def notes() -> list[Note]:
            if (tenant, upstream) not in self._keyring.records.upstreams:
                raise ApiKeyNotFound("No key is stored for this upstream.")
            return [note]

        await self._keyring.write(notes)
        await self._tidy()

    async def reseal(self) -> int:
        """Seal what is not under the newest master key again; returns how many keys that were."""
        await self._keyring.refresh()
        outdated = [key for key in self.names() if not self._sealing.is_newest(key.sealed)]
        count = sum([await self._reseal_key(key) for key in outdated])
        await self._tidy()
        return count

    async def _reseal_key(self, old: Sealed) -> bool:
        name = (old.tenant, old.upstream)
        resealed = self._notes(*name, self._open(old), "")

        def notes() -> list[Note]:
            # Nothing if somebody set or removed it meanwhile.
            return resealed if self._keyring.records.upstreams.get(name) == old else []

        await self._keyring.write(notes)
        return self._keyring.records.upstreams.get(name) != old

    def _open(self, key: Sealed) -> str:
        return self._sealing.open(key.sealed, key.tenant, key.upstream)

    def _notes(self, tenant: str, upstream: str, secret: str, by: str) -> list[Note]:
        """Two notes: the event, which stays, and the key, which is forgotten when replaced."""
        sealed = self._sealing.seal(secret, tenant, upstream)
        words = f"The key for {upstream} of tenant {tenant} was set."
        return [
            event_note(words, "upstream.set", tenant=tenant, upstream=upstream, by=by),
            event_note("", "upstream.sealed", tenant=tenant, upstream=upstream, sealed=sealed),
        ]

    async def _tidy(self) -> None:
        await self._keyring.erase(sorted(self._keyring.records.stale))
