"""Connections to a store's file, and the errors of SQLite in our words."""

import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

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


def make_private(path: Path) -> None:
    """Make the file of a new store for its owner alone; one that is there stays as it is.

    SQLite gives its write-ahead log and its index the mode of the file that they belong to.
    """
    # It is made under another name: closing a file ends all locks that this process has on it, and
    # by its own name another connection might have some already. Where that fails, SQLite tells.
    path = Path(os.path.realpath(path))
    if path.exists():
        return
    empty = path.with_name(f".refold-{uuid4().hex}.part")
    with suppress(OSError):
        os.close(os.open(empty, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    with suppress(OSError):
        os.link(empty, path)
    with suppress(OSError):
        empty.unlink()


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
