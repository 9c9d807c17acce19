"""Session locks, and retries that survive cancellation.

Only the holder of a session's lock folds it. So if the log shows a running fold to the holder, that
fold's process is dead. A lock must be released when its process dies, however it dies: the
operating system releases what is locked with `flock`, and locks in memory are gone with the memory.
"""

import asyncio
import errno
import fcntl
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from threading import Lock as ThreadLock
from typing import TypeVar
from uuid import UUID

from refold.errors import StoreBusy, StoreFailed, StoreFull
from refold.log import Log, Span
from refold.log.protocol import LockHandle, Locks

__all__ = [
    "TRANSIENT",
    "FileLocks",
    "LockHandle",
    "LockTable",
    "Locks",
    "ProcessLocks",
    "retry_shielded",
]

TRANSIENT = (StoreBusy, StoreFull, StoreFailed)
"""Errors that may be gone in a moment."""
_PAUSES = (0.02, 0.1, 0.5, 1.0, 2.0)
"""Seconds to wait before each retry; then the error is raised."""
_NOTE_SIZE = 200
_MAX_REMOVED = 100
"""How often in a row a lock's file may be removed by others, who are done, while it is taken."""

T = TypeVar("T")
_Key = tuple[str, str, UUID, str]


class FileLocks:
    """Locks shared by all processes that use the same folder.

    Each locked session has one small file. Whoever lets go of the lock removes it, unless it notes
    a fold that has not ended. Only the holder removes a file, and a process that locked one which
    was removed meanwhile holds nothing: it notices, and tries again.
    """

    def __init__(self, folder: Path, tenant: str, purpose: str = "fold") -> None:
        self._folder = folder
        self._owner = tenant if purpose == "fold" else f"{tenant}\0{purpose}"

    @property
    def place(self) -> object:
        return self._folder.resolve()

    async def take(self, session: str) -> LockHandle | None:
        path = self._folder / f"{self._digest(session)}.lock"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            for _ in range(_MAX_REMOVED):
                file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    current = _is_at(path, file)
                except BaseException:
                    os.close(file)
                    raise
                if current:
                    return _FileLock(path, file)
                os.close(file)  # its holder removed it after we had opened it
        except BlockingIOError:
            return None
        except OSError as error:
            raise _lock_error(path, error) from error
        return None  # others take and release it all the time

    def _digest(self, session: str) -> str:
        return sha256(f"{self._owner}\0{session}".encode()).hexdigest()


class _FileLock:
    """A locked file. It holds the id of the last fold and how often that was attempted."""

    def __init__(self, path: Path, file: int) -> None:
        self._path = path
        self._file: int | None = file

    async def attempt(self, fold: UUID) -> int:
        if self._file is None:
            return 1
        with suppress(OSError, ValueError):  # a full disk must not prevent a fold from ending
            note = os.pread(self._file, _NOTE_SIZE, 0).decode(errors="replace")
            name, _, attempts = note.partition(" ")
            count = int(attempts) + 1 if name == str(fold) else 1
            new = f"{fold} {count}".encode()
            os.pwrite(self._file, new, 0)
            os.ftruncate(self._file, len(new))
            return count
        return 1

    def settle(self) -> None:
        if self._file is not None:
            with suppress(OSError):  # the file then stays until the next fold has ended
                os.ftruncate(self._file, 0)

    def release(self) -> None:
        if self._file is None:
            return
        file, self._file = self._file, None
        try:
            # Before it is unlocked: afterwards another process may hold it.
            with suppress(OSError):
                if not os.fstat(file).st_size and _is_at(self._path, file):
                    self._path.unlink()
            # Not by closing alone: a forked child may have the file open too.
            fcntl.flock(file, fcntl.LOCK_UN)
        finally:
            os.close(file)


def _is_at(path: Path, file: int) -> bool:
    """Whether the open file is the one at this path now."""
    with suppress(FileNotFoundError):
        return os.path.samestat(path.stat(), os.fstat(file))
    return False


class LockTable:
    """The locks of one store that are held. It is thread-safe."""

    def __init__(self) -> None:
        self._held: set[_Key] = set()
        self._guard = ThreadLock()

    def add(self, key: _Key) -> bool:
        with self._guard:
            if key in self._held:
                return False
            self._held.add(key)
            return True

    def discard(self, key: _Key) -> None:
        with self._guard:
            self._held.discard(key)


class ProcessLocks:
    """Locks within this process, for a store that no other process writes.

    The key includes the id of the session's first entry, because a forgotten session may be
    started again under the same name.
    """

    def __init__(self, log: Log, table: LockTable, purpose: str = "fold") -> None:
        self._log = log
        self._table = table
        self._purpose = purpose

    @property
    def place(self) -> object:
        return None

    async def take(self, session: str) -> LockHandle | None:
        opening, *_ = await self._log.read(session, Span(1, 1), whole=False)
        key = (self._log.tenant, session, opening.id, self._purpose)
        return _ProcessLock(key, self._table) if self._table.add(key) else None


class _ProcessLock:
    def __init__(self, key: _Key, table: LockTable) -> None:
        self._key: _Key | None = key
        self._table = table

    async def attempt(self, fold: UUID) -> int:  # noqa: ARG002 - what dies with its process is not retried
        return 1

    def settle(self) -> None:
        """Nothing to do: nothing was noted."""

    def release(self) -> None:
        if self._key is not None:
            self._table.discard(self._key)
            self._key = None


def _lock_error(path: Path, error: OSError) -> StoreFailed:
    if error.errno in {errno.EMFILE, errno.ENFILE}:
        return StoreFailed(
            f"The lock {path} cannot be taken: this process has too many files open.",
            "Raise its limit (ulimit -n), or run fewer conversations at once: a run holds one file "
            "open, and one more while its session is compacted.",
        )
    return StoreFailed(
        f"The lock {path} cannot be taken: {error.strerror}.",
        "Give the engine a folder for its locks that this user may write to.",
    )


async def retry_shielded(work: Callable[[], Awaitable[T]]) -> T:
    """Do idempotent work, retrying transient errors, even if the task is canceled meanwhile.

    The cancellation is not lost: it is delivered again when the work is done.
    """
    canceled = False
    try:
        for pause in _PAUSES:
            try:
                return await work()
            except asyncio.CancelledError:
                canceled = True
            except TRANSIENT:
                try:
                    await asyncio.sleep(pause)
                except asyncio.CancelledError:
                    canceled = True
        return await work()
    finally:
        if canceled and (task := asyncio.current_task()):
            task.uncancel()  # so that the count, which asyncio.timeout compares, stays the same
            task.cancel()
