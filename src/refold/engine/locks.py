"""Locks: who holds a session's lock may fold it, and knows that nobody else does.

So a fold that the log calls running, found by who holds the lock, is dead. A lock must go when its
process dies, however it dies: the operating system takes back what is locked with `flock`, and
what lies in memory goes with the memory.
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
from refold.log.protocol import Held, Locks

__all__ = [
    "PASSING",
    "FileLocks",
    "Held",
    "LockTable",
    "Locks",
    "ProcessLocks",
    "retry_shielded",
]


_NOTE_SIZE = 200


class FileLocks:
    """Locks that hold between all processes that use the same folder.

    One empty or nearly empty file a session. They are never removed here: a process that locks a
    file while another removes it would hold a lock that nobody else can see.
    """

    def __init__(self, folder: Path, tenant: str, purpose: str = "fold") -> None:
        self._folder = folder
        self._whose = tenant if purpose == "fold" else f"{tenant}\0{purpose}"

    @property
    def place(self) -> object:
        return self._folder.resolve()

    async def take(self, session: str) -> Held | None:
        path = self._folder / f"{_digest(self._whose, session)}.lock"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _refused(path, error) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return None
        except OSError as error:
            os.close(file)
            raise _refused(path, error) from error
        return _FileLock(file)


class _FileLock:
    """A locked file, and in it the fold made last and how often it was begun."""

    def __init__(self, file: int) -> None:
        self._file: int | None = file

    async def attempt(self, fold: UUID) -> int:
        if self._file is None:
            return 1
        with suppress(OSError, ValueError):  # a disk that is full must not keep a fold from ending
            said = os.pread(self._file, _NOTE_SIZE, 0).decode(errors="replace")
            name, _, times = said.partition(" ")
            count = int(times) + 1 if name == str(fold) else 1
            note = f"{fold} {count}".encode()
            os.pwrite(self._file, note, 0)
            os.ftruncate(self._file, len(note))
            return count
        return 1

    def release(self) -> None:
        if self._file is None:
            return
        file, self._file = self._file, None
        try:
            # Not by closing alone: a forked child may have the file open too.
            fcntl.flock(file, fcntl.LOCK_UN)
        finally:
            os.close(file)


class LockTable:
    """The locks of one store that are held. Engines may ask from several threads."""

    def __init__(self) -> None:
        self._held: set[_Key] = set()
        self._guard = ThreadLock()

    def add(self, key: "_Key") -> bool:
        with self._guard:
            if key in self._held:
                return False
            self._held.add(key)
            return True

    def discard(self, key: "_Key") -> None:
        with self._guard:
            self._held.discard(key)


class ProcessLocks:
    """Locks that hold within this process, for a store that no other process writes.

    A session is known by its name and its opening's id: a session that was forgotten and begun
    again under its name is another one.
    """

    def __init__(self, log: Log, table: LockTable, purpose: str = "fold") -> None:
        self._log = log
        self._table = table
        self._purpose = purpose

    @property
    def place(self) -> object:
        return None

    async def take(self, session: str) -> Held | None:
        opening, *_ = await self._log.read(session, Span(1, 1), whole=False)
        key = (self._log.tenant, session, opening.id, self._purpose)
        return _ProcessLock(key, self._table) if self._table.add(key) else None


_Key = tuple[str, str, UUID, str]


class _ProcessLock:
    def __init__(self, key: _Key, table: LockTable) -> None:
        self._key: _Key | None = key
        self._table = table

    async def attempt(self, fold: UUID) -> int:  # noqa: ARG002 - what dies with its process is not tried again
        return 1

    def release(self) -> None:
        if self._key is not None:
            self._table.discard(self._key)
            self._key = None


def _digest(whose: str, session: str) -> str:
    return sha256(f"{whose}\0{session}".encode()).hexdigest()


def _refused(path: Path, error: OSError) -> StoreFailed:
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


# Doing what must be done to its end, though the task be cancelled or the store busy.

T = TypeVar("T")
_PAUSES = (0.02, 0.1, 0.5, 1.0, 2.0)
"""Seconds to wait before each repetition; after the last one it is given up."""
PASSING = (StoreBusy, StoreFull, StoreFailed)
"""What may be otherwise in a moment."""


async def retry_shielded(work: Callable[[], Awaitable[T]]) -> T:
    """Do work that may be repeated, until it is done or was tried too often.

    A cancellation that comes meanwhile is not lost: it comes again when the work is done.
    """
    cancelled = False
    try:
        for pause in _PAUSES:
            try:
                return await work()
            except asyncio.CancelledError:
                cancelled = True
            except PASSING:
                cancelled |= await _slept(pause)
        return await work()
    finally:
        if cancelled:
            _cancel_again()


async def _slept(seconds: float) -> bool:
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        return True
    return False


def _cancel_again() -> None:
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()  # whoever counts the cancellations (asyncio.timeout) finds them unchanged
        task.cancel()
