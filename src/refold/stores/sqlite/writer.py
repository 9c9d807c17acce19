"""Connections to a store's file, SQLite's errors in our words, and the one writer.

Many callers share the writer's commits: whatever waits when a transaction begins is written in it
and acknowledged after its commit, so concurrent appends share one flush to the disk.

Where the transaction runs depends on what it costs. Handing work to a thread and back takes the
event loop about as long as a short commit does, so while commits are short they run on the event
loop itself, without waiting for any lock. As soon as one takes longer (a slow disk, large batches),
or another process holds the lock, a thread does them and the loop stays free.
"""

import asyncio
import os
import sqlite3
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import groupby
from pathlib import Path
from threading import Lock
from time import monotonic, perf_counter, sleep
from typing import Any, TypeVar, cast
from urllib.parse import quote
from uuid import uuid4

from refold.errors import (
    NotAStore,
    RefoldError,
    StoreBusy,
    StoreClosed,
    StoreCorrupt,
    StoreError,
    StoreFailed,
    StoreFull,
    StoreNotFound,
    StoreReadOnly,
)
from refold.stores.sql import Reach
from refold.stores.sqlite.read import SessionCache

A = TypeVar("A")
T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]
"""Reads, checks and then writes; when it raises an error of ours, it has written nothing."""

LOOP_LIMIT = 0.010
"""How long, in seconds, transactions may hold up one turn of the event loop."""
_POLL = 0.002
"""Seconds between two looks whether another process has let go of the lock."""
_MAX_JOBS = 256
_SMOOTHING = 8
APPLICATION = 0x5246_4C44
"""The application id in the header of our files, so that other databases are refused."""

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
    """A connection without implicit commits that waits `wait` seconds for a lock."""
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
    try:
        yield
    except sqlite3.Error as error:
        raise explained(path, error) from error


def explained(path: Path, error: sqlite3.Error) -> StoreError:
    code: int = getattr(error, "sqlite_errorcode", 0) or 0
    kind, what = _ERRORS.get(code & 0xFF, (StoreFailed, f"failed: {error}"))
    target = path if path.exists() else path.parent
    if kind is StoreNotFound and not os.access(target, os.R_OK | os.W_OK):
        kind = StoreReadOnly
    return kind(f"The store {path} {what}.")


class _Job:
    __slots__ = ("error", "future", "result", "work")

    def __init__(self, work: Work[Any], future: asyncio.Future[Any]) -> None:
        self.work = work
        self.future = future
        self.result: object = None
        self.error: BaseException | None = None

    def settle(self) -> None:
        if self.future.done():  # its caller was canceled; what was written stays written
            return
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.error)


class Writer:
    """Runs work in transactions of one connection; concurrent pieces share one."""

    def __init__(
        self, db: sqlite3.Connection, path: Path, cache: SessionCache, *, wait: float, reach: Reach
    ) -> None:
        self.db = db
        self._path = path
        self._cache = cache
        self._wait = wait
        self._reach = reach
        self._pending: deque[_Job] = deque()
        self._queue = Lock()
        self._connection = Lock()
        self._draining = False
        self._closed = False
        self._pace = 0.0  # what a transaction takes in bad moments of late, in seconds
        self._held = 0.0  # what this turn of the event loop has spent on transactions
        self._crowded = False  # whether the last shared transaction had more than one job
        self._thread = ThreadPoolExecutor(1, "refold-sqlite-writer")

    def at_once(self, statement: Callable[[A], T | None], given: A) -> T | None:
        """Run a single statement right here, if nobody else writes and the loop is not held up.

        None when that is not so, or when the statement could not do it.
        """
        if self._crowded or self._pending or self._held > LOOP_LIMIT or self._pace > LOOP_LIMIT:
            return None
        if self._closed or not self._connection.acquire(blocking=False):
            return None
        if not self._held:
            asyncio.get_running_loop().call_soon(self._new_turn)
        start = perf_counter()
        try:
            return statement(given)
        except sqlite3.Error:  # whatever it is, the usual way will meet it again and explain it
            return None
        finally:
            self._connection.release()
            self._held += self._timed(start)

    async def run(self, work: Work[T]) -> T:
        """Do the work in a transaction; when this returns, it is on the disk."""
        if self._closed:
            raise StoreClosed(f"The store {self._path} is closed.")
        loop = asyncio.get_running_loop()
        job = _Job(work, loop.create_future())
        self._pending.append(job)
        # By the next turn of the loop every task that is ready to append has queued its work.
        loop.call_soon(self._begin)
        return cast("T", await job.future)

    async def alone(self, work: Work[T]) -> T:
        """Do work that manages its own transactions, in the writer's thread."""
        if self._closed:
            raise StoreClosed(f"The store {self._path} is closed.")
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._alone, work)

    async def close(self) -> None:
        self._closed = True
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, self._drain)
        await loop.run_in_executor(self._thread, self.db.close)
        self._thread.shutdown(wait=False)

    def _new_turn(self) -> None:
        self._held = 0.0

    def _begin(self) -> None:
        """On the event loop: commit here if that is quick, else let the thread do it."""
        if not self._pending or self._on_loop():
            return
        with self._queue:
            if self._draining:
                return
            self._draining = True
        self._thread.submit(self._drain)

    def _on_loop(self) -> bool:
        """Commit what is queued without waiting for anything; False when that is not possible."""
        if self._pace > LOOP_LIMIT or not self._connection.acquire(blocking=False):
            return False
        try:
            jobs = self._take()
            self._crowded = len(jobs) > 1
            if not self._together(jobs):
                self._pending.extendleft(reversed(jobs))
                return False
        finally:
            self._connection.release()
        _settle(jobs)
        return True

    def _drain(self) -> None:
        try:
            self._drain_queue()
        except BaseException as error:  # noqa: BLE001 - whoever waits is told
            with self._connection, self._queue:
                self._draining = False
                jobs = [*self._pending]
                self._pending.clear()
            for job in jobs:
                job.error = error
            _settle(jobs)

    def _drain_queue(self) -> None:
        while True:
            with self._connection:
                jobs = self._take()
                if not jobs:
                    with self._queue:
                        if not self._pending:
                            self._draining = False
                            return
                    continue
                if not self._patiently(jobs):
                    for job in jobs:
                        job.error = StoreBusy(f"The store {self._path} stays locked.")
            _settle(jobs)

    def _patiently(self, jobs: list[_Job]) -> bool:
        """Commit the jobs as soon as no other process holds the lock; False after `wait`."""
        until = monotonic() + self._wait
        while not self._together(jobs):
            if monotonic() > until:
                return False
            # SQLite itself would look every 25 ms, then every 100, and miss the short moments that
            # another process leaves between two pieces of something large.
            sleep(_POLL)
        return True

    def _alone(self, work: Work[T]) -> T:
        with self._connection, self._patience():
            self._cache.clear()
            try:
                return work(self.db)
            except sqlite3.Error as error:
                raise explained(self._path, error) from error
            finally:
                self._roll_back()

    def _take(self) -> list[_Job]:
        """The queued jobs, or some of them; call only while holding the connection."""
        jobs: list[_Job] = []
        while self._pending and len(jobs) < _MAX_JOBS:
            job = self._pending.popleft()
            if not job.future.cancelled():
                jobs.append(job)
        return jobs

    def _together(self, jobs: list[_Job]) -> bool:
        """Commit the jobs in one transaction; False when another process holds the lock."""
        start = perf_counter()
        try:
            self._commit(jobs)
        except Exception as error:  # noqa: BLE001 - whoever waits is told
            self._roll_back()
            if _is_locked(error):
                return False
            self._one_by_one(jobs, error)
        except (
            BaseException
        ):  # an interrupt: nothing was acknowledged, and the next turn tries again
            self._roll_back()
            self._pending.extendleft(reversed(jobs))
            raise
        self._timed(start)
        return True

    def _timed(self, start: float) -> float:
        taken = perf_counter() - start
        # Up at once and down slowly: the second transaction that takes long is not the loop's. Its
        # disk may be busy with what another process writes.
        self._pace = max(taken, self._pace + (taken - self._pace) / _SMOOTHING)
        return taken

    def _one_by_one(self, jobs: list[_Job], error: Exception) -> None:
        """One job spoiled the transaction: commit each of the others by itself."""
        if len(jobs) == 1:
            failed = explained(self._path, error) if isinstance(error, sqlite3.Error) else error
            jobs[0].error = failed
            return
        for job in jobs:
            try:
                self._commit([job])
            except Exception as its_own:  # noqa: BLE001 - whoever waits is told
                self._roll_back()
                self._one_by_one([job], its_own)

    def _commit(self, jobs: list[_Job]) -> None:
        self.db.execute("BEGIN IMMEDIATE")
        self._cache.begin(self.db)
        for job in jobs:
            job.error = None
            try:
                job.result = job.work(self.db)
            except RefoldError as error:
                job.error = error
        self._reach("commit.written")
        self.db.execute("COMMIT")
        self._cache.commit()
        self._reach("commit.done")

    def _roll_back(self) -> None:
        self._cache.clear()
        if self.db.in_transaction:
            self.db.execute("ROLLBACK")

    @contextmanager
    def _patience(self) -> Generator[None]:
        """Wait for locks: only in the thread, never on the event loop."""
        self.db.execute(f"PRAGMA busy_timeout = {int(self._wait * 1000)}")
        try:
            yield
        finally:
            self.db.execute("PRAGMA busy_timeout = 0")


def _is_locked(error: Exception) -> bool:
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF == sqlite3.SQLITE_BUSY


def _settle(jobs: list[_Job]) -> None:
    try:
        here = asyncio.get_running_loop()
    except RuntimeError:
        here = None
    for loop, its in groupby(jobs, lambda job: job.future.get_loop()):
        if loop is here:
            _tell(list(its))
        else:
            with suppress(RuntimeError):  # the loop was closed: nobody waits there any more
                loop.call_soon_threadsafe(_tell, list(its))


def _tell(jobs: list[_Job]) -> None:
    for job in jobs:
        job.settle()
