"""Connections to a store's file, and the errors of SQLite in our words."""

import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from refold.errors import (
    NotAStore,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFailed,
    StoreFull,
    StoreNotFound,
    StoreReadOnly,
)

APPLICATION = 0x5246_4C44
"""What our files carry in their header, so that a stranger's database is known at once."""

_ERRORS: dict[int, tuple[type[StoreError], str]] = {
    sqlite3.SQLITE_BUSY: (StoreBusy, "is locked by another process"),
    sqlite3.SQLITE_LOCKED: (StoreBusy, "is locked by another process"),
    sqlite3.SQLITE_FULL: (StoreFull, "cannot grow: the disk is full"),
    sqlite3.SQLITE_READONLY: (StoreReadOnly, "cannot be written"),
    sqlite3.SQLITE_PERM: (StoreReadOnly, "cannot be written"),
    sqlite3.SQLITE_CORRUPT: (StoreCorrupt, "is damaged"),
    sqlite3.SQLITE_NOTADB: (NotAStore, "is not a database"),
    sqlite3.SQLITE_CANTOPEN: (StoreNotFound, "cannot be opened"),
}


def connect(path: Path, *, create: bool, wait: float) -> sqlite3.Connection:
    """A connection that commits only where we say so, and waits `wait` seconds for a lock."""
    mode = "rwc" if create else "rw"
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode={mode}",
        uri=True,
        timeout=wait,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    try:
        # FULL: an acknowledged append has reached the disk, also in write-ahead mode.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA secure_delete = ON")
    except sqlite3.Error:  # the first to read the file, which may be no database
        connection.close()
        raise
    return connection


@contextmanager
def our_errors(path: Path) -> Generator[None]:
    """Turn what SQLite raises into an error that says what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise explained(path, error) from error


def explained(path: Path, error: sqlite3.Error) -> StoreError:
    """The error of ours that a SQLite error stands for."""
    code: int = getattr(error, "sqlite_errorcode", 0) or 0
    kind, what = _ERRORS.get(code & 0xFF, (StoreFailed, f"failed: {error}"))
    if kind is StoreNotFound and not _may_be_written(path):
        kind = StoreReadOnly
    return kind(f"The store {path} {what}.")


def _may_be_written(path: Path) -> bool:
    return os.access(path if path.exists() else path.parent, os.R_OK | os.W_OK)
