"""Encrypting what must be read again: providers' keys, under the master key of the service."""

import base64
import json
import os
import secrets
from collections.abc import Sequence
from hashlib import sha256
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from refold.errors import MasterKeyWrong

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
