"""Whose a store's file is: made or claimed by this user on this machine, or brought by somebody.

A folder may hold a `refold.db` that came with a clone. Commands use the one in their folder without
being told only if it is the user's own. So a file that is made here is signed: with a random number
and its keyed hash, whose key lies in the user's state folder and nowhere else. The signature stays
when the file is moved or written to, and nobody else can make one.
"""

import hmac
import os
import sqlite3
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path
from secrets import randbits, token_bytes
from typing import Final
from urllib.parse import quote
from uuid import uuid4

from refold.errors import StoreError
from refold.stores.sqlite.writer import APPLICATION, connect, our_errors
from refold.user_files import state_folder

_BITS: Final = 63  # a fact's value is a signed integer
_KEY_BYTES: Final = 32
_NUMBER, _SIGNATURE = "owner number", "owner signature"
_MAX_STEPS: Final = 100_000
"""Of SQLite's machine: a hostile file could make reading two facts take forever."""


def sign(db: sqlite3.Connection) -> None:
    """Mark a store as the user's own; where no key can be stored, leave it unsigned."""
    with suppress(OSError):
        number = randbits(_BITS)
        rows = [(_NUMBER, number), (_SIGNATURE, _signature(_key(create=True), number))]
        db.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", rows)


def claim(path: Path) -> None:
    with our_errors(path), closing(connect(path, create=False, wait=5.0)) as db:
        application = db.execute("PRAGMA application_id").fetchone()[0]
        if application == APPLICATION and _is_plain(db):
            sign(db)


def disown(path: Path) -> None:
    with our_errors(path), closing(connect(path, create=False, wait=5.0)) as db:
        db.execute("DELETE FROM facts WHERE name IN (?, ?)", (_NUMBER, _SIGNATURE))


def is_own_store(path: Path) -> bool:
    """Whether the user made or claimed the store at this path. It is read, and not changed."""
    if not path.is_file():
        return False
    try:
        with our_errors(path), closing(_reading(path)) as db:
            if not _is_plain(db):
                return False
            facts = dict(
                db.execute(
                    "SELECT name, value FROM facts WHERE name IN (?, ?)", (_NUMBER, _SIGNATURE)
                )
            )
            number, signature = facts.get(_NUMBER), facts.get(_SIGNATURE)
            if not (isinstance(number, int) and isinstance(signature, int)):
                return False
            return hmac.compare_digest(
                _bytes(_signature(_key(create=False), number)), _bytes(signature)
            )
    except (StoreError, OSError, OverflowError):
        return False


def _reading(path: Path) -> sqlite3.Connection:
    # Where nobody is writing, nothing is left beside the file: a reader would make two more.
    alone = "" if path.with_name(f"{path.name}-wal").exists() else "&immutable=1"
    address = f"file:{quote(str(path))}?mode=ro{alone}"
    db = sqlite3.connect(address, uri=True, timeout=1.0, isolation_level=None)
    db.execute("PRAGMA trusted_schema = OFF")
    db.set_progress_handler(lambda: 1, _MAX_STEPS)
    return db


def _is_plain(db: sqlite3.Connection) -> bool:
    """Whether `facts` is a table: a view of that name would run what its author wrote."""
    found = db.execute("SELECT type FROM sqlite_schema WHERE name = 'facts'").fetchall()
    return found == [("table",)]


def _signature(key: bytes, number: int) -> int:
    digest = hmac.digest(key, _bytes(number), sha256)
    return int.from_bytes(digest[:8]) >> (64 - _BITS)


def _bytes(number: int) -> bytes:
    return number.to_bytes(8, signed=True)


def _key(*, create: bool) -> bytes:
    path = state_folder() / "owner-key"
    with suppress(FileNotFoundError):
        return _read_key(path)
    if not create:
        raise FileNotFoundError(path)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = path.with_name(f".owner-key-{uuid4().hex}")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(token_bytes(_KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        # Unlike a rename, a link does not replace the key that another process made meanwhile.
        with suppress(FileExistsError):
            os.link(part, path)
    finally:
        part.unlink(missing_ok=True)
    return _read_key(path)


def _read_key(path: Path) -> bytes:
    key = path.read_bytes()
    if len(key) != _KEY_BYTES:
        raise OSError(f"{path} is no key")
    return key
