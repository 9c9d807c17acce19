"""The store's file: opening it, and its connections."""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from time import monotonic, sleep
from typing import TypeVar

from refold.errors import ErasureUnfinished, NotAStore, StoreClosed, StoreNotFound, StoreReadOnly
from refold.log.codec import Clock, wall_clock
from refold.log.entry import check_name
from refold.log.forgotten import Forgotten
from refold.log.protocol import DEFAULT_TENANT, Store
from refold.stores.sql import Migration, Reach, check_applied, check_shipped, onwards, shipped_in
from refold.stores.sqlite.forget import erasure_under_way, forgotten, scrub
from refold.stores.sqlite.log import SqliteLog
from refold.stores.sqlite.ownership import sign
from refold.stores.sqlite.read import KnownSessions, Reading, Writing
from refold.stores.sqlite.writer import APPLICATION, Writer, connect, make_private, our_errors

# Numbered migrations, applied in order at open; gaps, changes and newer schemas are refused.

_RECORD = (
    "CREATE TABLE migrations"
    " (number INTEGER PRIMARY KEY, name TEXT NOT NULL, digest TEXT NOT NULL) STRICT"
)


def shipped() -> tuple[Migration, ...]:
    """The migrations of this version, the first first."""
    return shipped_in("refold.stores.sqlite")


def migrate(
    db: sqlite3.Connection, path: Path, migrations: Sequence[Migration], reach: Reach
) -> None:
    """Bring the store to the newest schema, one transaction for each step."""
    check_shipped(migrations)
    while _apply_next(db, path, migrations, reach):
        pass


def check_ours(db: sqlite3.Connection, path: Path) -> bool:
    """Whether the file is a store (or still empty: False); anything else is refused untouched."""
    # In this order: a store that another process makes meanwhile gets both in one transaction.
    tables = db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    application = db.execute("PRAGMA application_id").fetchone()[0]
    if application == APPLICATION:
        return True
    if application or tables:
        raise NotAStore(f"{path} is a database of another program.")
    return False


def _apply_next(
    db: sqlite3.Connection, path: Path, migrations: Sequence[Migration], reach: Reach
) -> bool:
    """Apply the first migration that is missing; another process may be doing the same."""
    db.execute("BEGIN IMMEDIATE")
    try:
        applied = _applied(db, path)
        check_applied(applied, str(path), migrations)
        if len(applied) == len(migrations):
            db.execute("ROLLBACK")
            return False
        migration = migrations[len(applied)]
        for statement in _statements(migration.script):
            db.execute(statement)
        db.execute(
            "INSERT INTO migrations VALUES (?, ?, ?)",
            (migration.number, migration.name, migration.digest),
        )
        if not applied:
            sign(db)  # with the tables, so that no crash leaves a store that is nobody's
        reach("migrate.written")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    reach("migrate.committed")
    return True


def _applied(db: sqlite3.Connection, path: Path) -> list[tuple[int, str]]:
    if not check_ours(db, path):
        db.execute(f"PRAGMA application_id = {APPLICATION}")
        db.execute(_RECORD)
    return db.execute("SELECT number, digest FROM migrations ORDER BY number").fetchall()


def _statements(script: str) -> list[str]:
    """The script's statements, one by one: running it whole would commit in between."""
    found: list[str] = []
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            found.append(statement)
            statement = ""
    return found


T = TypeVar("T")
_READERS = 4


class SqliteStore(Store):
    """Keeps logs in one SQLite file that any number of processes may open and write.

    `wait` is how many seconds to wait for a lock that another process holds. `clock` tells when
    sessions are forked and forgotten; `migrations` and `reach` are for tests.
    """

    def __init__(  # noqa: PLR0913 - all but the path have a default
        self,
        path: Path | str,
        *,
        create: bool = True,
        wait: float = 30.0,
        clock: Clock = wall_clock,
        migrations: Sequence[Migration] | None = None,
        reach: Reach = onwards,
    ) -> None:
        self.path = Path(path)
        self._create = create
        self._wait = wait
        self._clock = clock
        self._migrations = shipped() if migrations is None else migrations
        self._reach = reach
        self._known = KnownSessions()
        self._opening = Lock()
        self._scrub_later = False
        self._writer: Writer | None = None
        self._readers: ThreadPoolExecutor | None = None
        self._idle: SimpleQueue[sqlite3.Connection] = SimpleQueue()

    def log(self, tenant: str = DEFAULT_TENANT) -> SqliteLog:
        """The log of one tenant."""
        check_name(tenant, "tenant")
        return SqliteLog(self, tenant)

    async def open(self) -> None:
        """Open the file, making or migrating it when needed."""
        if self._writer is not None:
            return
        await asyncio.to_thread(self._open)
        try:
            await self._finish_erasure()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Finish what is queued and close the file."""
        if self._writer is None or self._readers is None:
            return
        writer, self._writer = self._writer, None
        readers, self._readers = self._readers, None
        await writer.close()
        await asyncio.to_thread(readers.shutdown)
        while not self._idle.empty():
            self._idle.get().close()

    async def read(self, tenant: str, work: Callable[[Reading], T]) -> T:
        """Do work that only reads, in one transaction on a connection of its own."""
        if self._readers is None:
            raise self._not_open()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers, self._read, tenant, work)

    def at_once(self, tenant: str, work: Callable[[Writing], T | None]) -> T | None:
        """Do work that is a single statement, if nobody else writes; None when it was not done."""
        if self._writer is None:
            raise self._not_open()
        tx = Writing(self._writer.db, tenant, self._known, 0, self._reach)
        return self._writer.at_once(work, tx)

    async def append(self, tenant: str, work: Callable[[Writing], T]) -> T:
        """Do quick work that writes, in a transaction that others may share."""
        if self._writer is None:
            raise self._not_open()
        now = self._now()
        return await self._writer.run(
            lambda db: work(Writing(db, tenant, self._known, now, self._reach))
        )

    async def write(self, tenant: str, work: Callable[[Writing], T]) -> T:
        """Do other work that writes, in a transaction of its own."""
        if self._writer is None:
            raise self._not_open()
        now = self._now()

        def transaction(db: sqlite3.Connection) -> T:
            db.execute("BEGIN IMMEDIATE")
            result = work(Writing(db, tenant, self._known, now, self._reach))
            self._reach("write.written")
            db.execute("COMMIT")
            self._reach("write.done")
            return result

        return await self._writer.alone(transaction)

    async def forgotten(self) -> list[Forgotten]:
        """What was forgotten, of all tenants."""
        return await self.read(DEFAULT_TENANT, forgotten)

    @asynccontextmanager
    async def erasing_many(self) -> AsyncGenerator[None]:
        """Scrub the files once at the end, however much is forgotten meanwhile."""
        self._scrub_later = True
        try:
            yield
        finally:
            self._scrub_later = False
        if await self.read(DEFAULT_TENANT, lambda tx: erasure_under_way(tx.db)):
            await self.scrub()

    async def scrub(self) -> None:
        """Scrub the files of what was forgotten."""
        if self._writer is None:
            raise self._not_open()
        if self._scrub_later:
            return  # a crash before that is finished at the next open, as any other
        await self._writer.alone(lambda db: scrub(db, self._reach))

    def _now(self) -> int:
        return int(self._clock().timestamp() * 1000)

    def _not_open(self) -> StoreClosed:
        return StoreClosed(f"The store {self.path} is not open.")

    def _open(self) -> None:
        with self._opening:
            if self._writer is None:
                self._open_file()

    def _open_file(self) -> None:
        try:
            self._check_path()
        except PermissionError as error:
            raise StoreReadOnly(f"The store {self.path} cannot be reached.") from error
        if self._create:
            make_private(self.path)
        with our_errors(self.path):
            db = connect(self.path, create=self._create, wait=self._wait)
            try:
                check_ours(db, self.path)
                _write_ahead(db, self._wait)
                migrate(db, self.path, self._migrations, self._reach)
                db.execute("PRAGMA busy_timeout = 0")
            except BaseException:
                db.close()
                raise
        self._known = KnownSessions()  # what an earlier connection knew may have changed since
        self._writer = Writer(db, self.path, self._known, wait=self._wait, reach=self._reach)
        self._readers = ThreadPoolExecutor(_READERS, "refold-sqlite-reader")

    def _check_path(self) -> None:
        if self.path.is_dir():
            raise NotAStore(f"{self.path} is a folder.", "Name a file in it.")
        if not self.path.parent.is_dir():
            raise StoreNotFound(f"There is no folder {self.path.parent}.", "Make it first.")
        if not self._create and not self.path.exists():
            raise StoreNotFound(f"There is no store at {self.path}.")
        size = self.path.stat().st_size if self.path.exists() else None
        # SQLite takes a file of one byte for an empty database, and would write over it.
        if size == 1 or (size == 0 and not self._create):
            raise NotAStore(f"The store {self.path} is not a database.")

    async def _finish_erasure(self) -> None:
        """Finish a forget that a crash interrupted; if readers are in its way, later."""
        if await self.read(DEFAULT_TENANT, lambda tx: erasure_under_way(tx.db)):
            with suppress(ErasureUnfinished):
                await self.scrub()

    def _read(self, tenant: str, work: Callable[[Reading], T]) -> T:
        with our_errors(self.path), self._reader() as db:
            db.execute("BEGIN")
            try:
                return work(Reading(db, tenant))
            finally:
                db.execute("ROLLBACK")

    @contextmanager
    def _reader(self) -> Generator[sqlite3.Connection]:
        if self._idle.empty():
            db = connect(self.path, create=False, wait=self._wait)
            db.execute("PRAGMA query_only = ON")
        else:
            db = self._idle.get()
        try:
            yield db
        finally:
            self._idle.put(db)


def _write_ahead(db: sqlite3.Connection, wait: float) -> None:
    """Turn on the write-ahead log; SQLite does not wait for others that do the same right now."""
    until = monotonic() + wait
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or monotonic() > until:
                raise
            sleep(0.01)
        else:
            return
