"""The store's file: opening and migrating it, its connections, and the log protocol over them."""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Callable, Collection, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from time import monotonic, perf_counter, sleep
from typing import TypeVar

from refold.engine.locks import FileLocks
from refold.errors import (
    ErasureUnfinished,
    InvalidEntry,
    NotAStore,
    RefoldError,
    StoreClosed,
    StoreNotFound,
    StoreReadOnly,
)
from refold.log.admit import check_drafts, lift_large
from refold.log.artifact import Artifact
from refold.log.codec import Clock, wall_clock
from refold.log.entry import Draft, Entry, Mark, Marked, Span, check_mark, check_name, valid_keys
from refold.log.erasure_list import Forgotten
from refold.log.protocol import (
    DEFAULT_TENANT,
    Appended,
    Erased,
    Hit,
    Locks,
    Matches,
    Outlined,
    SessionInfo,
    SessionPage,
    Store,
    Total,
    Totals,
    Visible,
)
from refold.log.text import Term
from refold.stores.forget_journal import ForgetJournal, JournalPath, beside
from refold.stores.sql import Migration, Reach, check_applied, check_shipped, onwards, shipped_in
from refold.stores.sqlite import read as reading
from refold.stores.sqlite import totals
from refold.stores.sqlite.append import append, append_alone, fork, marked
from refold.stores.sqlite.forget import (
    erasure_pending,
    expire,
    forget,
    forgotten,
    maybe_unused,
    scrub,
)
from refold.stores.sqlite.ownership import sign
from refold.stores.sqlite.read import (
    MAX_INLINE,
    MAX_PAUSE,
    Reading,
    SessionCache,
    Writing,
    abandoned,
    add_piece,
    begin,
    drop_some,
    is_stored,
    pieces_of,
)
from refold.stores.sqlite.search import index_some, matches, search, sessions, unindexed
from refold.stores.sqlite.writer import APPLICATION, Writer, connect, make_private, our_errors
from refold.stores.totals import Basis, Booking, count_again

T = TypeVar("T")
_READERS = 4
_MIGRATIONS_TABLE = (
    "CREATE TABLE migrations"
    " (number INTEGER PRIMARY KEY, name TEXT NOT NULL, digest TEXT NOT NULL) STRICT"
)


class SqliteStore(Store):
    """Keeps logs in one SQLite file that any number of processes may open and write.

    `wait` is how many seconds to wait for a lock that another process holds. `forget_journal` is
    the file in which erasures are listed, by default beside this one. `clock` dates forks and
    forgotten sessions; `migrations` and `reach` are for tests.
    """

    def __init__(  # noqa: PLR0913 - all but the path have a default
        self,
        path: Path | str,
        *,
        create: bool = True,
        wait: float = 30.0,
        forget_journal: JournalPath = None,
        clock: Clock = wall_clock,
        migrations: Sequence[Migration] | None = None,
        reach: Reach = onwards,
    ) -> None:
        self.path = Path(path)
        self.forget_journal = ForgetJournal(forget_journal, beside(self.path))
        self._create = create
        self._wait = wait
        self._clock = clock
        self._migrations = shipped() if migrations is None else migrations
        self._reach = reach
        self._cache = SessionCache()
        self._opening = Lock()
        self._scrub_later = False
        self._writer: Writer | None = None
        self._readers: ThreadPoolExecutor | None = None
        self._idle: SimpleQueue[sqlite3.Connection] = SimpleQueue()

    def log(self, tenant: str = DEFAULT_TENANT) -> "SqliteLog":
        check_name(tenant, "tenant")
        return SqliteLog(self, tenant)

    async def open(self) -> None:
        """Open the file, making or migrating it when needed."""
        if self._writer is not None:
            return
        await asyncio.to_thread(self._open)
        try:  # to finish a forget that a crash interrupted; if readers are in its way, later
            with suppress(ErasureUnfinished):
                await self._scrub_if_pending()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
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
        writer = self._open_writer()
        return writer.at_once(work, Writing(writer.db, tenant, self._cache, 0, self._reach))

    async def append(self, tenant: str, work: Callable[[Writing], T]) -> T:
        """Do quick work that writes, in a transaction that others may share."""
        now = self._now()
        return await self._open_writer().run(
            lambda db: work(Writing(db, tenant, self._cache, now, self._reach))
        )

    async def write(self, tenant: str, work: Callable[[Writing], T]) -> T:
        """Do other work that writes, in a transaction of its own."""
        now = self._now()

        def transaction(db: sqlite3.Connection) -> T:
            db.execute("BEGIN IMMEDIATE")
            result = work(Writing(db, tenant, self._cache, now, self._reach))
            self._reach("write.written")
            db.execute("COMMIT")
            self._reach("write.done")
            return result

        return await self._open_writer().alone(transaction)

    async def forgotten(self) -> list[Forgotten]:
        return await self.read(DEFAULT_TENANT, forgotten)

    @asynccontextmanager
    async def erasing_many(self) -> AsyncGenerator[None]:
        """Scrub the files once at the end, however much is forgotten meanwhile."""
        self._scrub_later = True
        try:
            yield
        finally:
            self._scrub_later = False
        await self._scrub_if_pending()

    async def scrub(self) -> None:
        """Erase the bytes of what was forgotten from the files."""
        writer = self._open_writer()
        if not self._scrub_later:  # a crash before then is finished at the next open, as any other
            await writer.alone(lambda db: scrub(db, self._reach))

    async def _scrub_if_pending(self) -> None:
        if await self.read(DEFAULT_TENANT, lambda tx: erasure_pending(tx.db)):
            await self.scrub()

    def _now(self) -> int:
        return int(self._clock().timestamp() * 1000)

    def _open_writer(self) -> Writer:
        if self._writer is None:
            raise self._not_open()
        return self._writer

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
                check_shipped(self._migrations)
                while _apply_next(db, self.path, self._migrations, self._reach):
                    pass
                db.execute("PRAGMA busy_timeout = 0")
            except BaseException:
                db.close()
                raise
        self._cache = SessionCache()  # what an earlier connection read may have changed since
        self._writer = Writer(db, self.path, self._cache, wait=self._wait, reach=self._reach)
        self._readers = ThreadPoolExecutor(_READERS, "refold-sqlite-reader")

    def _check_path(self) -> None:
        if self.path.is_dir():
            raise NotAStore(f"{self.path} is a folder.", "Name a file in it.")
        if not self.path.parent.is_dir():
            raise StoreNotFound(
                f"There is no folder {self.path.parent}.",
                "Create it first, or choose another path.",
            )
        if not self._create and not self.path.exists():
            raise StoreNotFound(f"There is no store at {self.path}.")
        size = self.path.stat().st_size if self.path.exists() else None
        # SQLite takes a file of one byte for an empty database, and would write over it.
        if size == 1 or (size == 0 and not self._create):
            raise NotAStore(f"The store {self.path} is not a database.")

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


class SqliteLog:
    def __init__(self, store: SqliteStore, tenant: str) -> None:
        self.tenant = tenant
        self._store = store

    def locks(self, purpose: str = "fold") -> Locks:
        return FileLocks(Path(f"{self._store.path.absolute()}-locks"), self.tenant, purpose)

    async def append(
        self,
        session: str,
        drafts: Sequence[Draft],
        *,
        expected: int | None,
        revision: int | None = None,
        mark: Mark | None = None,
    ) -> Appended:
        if revision is not None:
            raise InvalidEntry("This store counts no revisions.", "Append without one.")
        check_drafts(drafts)
        if mark is not None:
            check_mark(mark, drafts)
        else:
            appended = self._store.at_once(
                self.tenant, lambda tx: append_alone(tx, session, drafts, expected)
            )
            if appended is not None:
                return appended
        lifted = lift_large(drafts)
        artifacts = [artifact for _, _, found in lifted.values() for artifact in found]
        artifacts += [artifact for draft in drafts for artifact in draft.attached]
        large = {item.hash: item for item in artifacts if len(item.data) > MAX_INLINE}
        uploads: dict[str, int] = {}

        def work(tx: Writing) -> Appended:
            tx.uploads = uploads
            return append(tx, session, drafts, expected, mark, lifted)

        if not large:
            return await self._append(work)
        try:
            for artifact in large.values():
                await self._upload(artifact, uploads)
            return await self._append(work)
        finally:
            with suppress(RefoldError):  # the next upload does it
                await self._drop_unclaimed(uploads.values())

    async def _drop_unclaimed(self, uploads: Iterable[int]) -> None:
        """Drop those that no append claimed: it failed, or another one was quicker."""
        for upload in {*uploads, *await self._read(abandoned)}:
            while await self._append(partial(drop_some, upload=upload)):
                pass

    async def _upload(self, artifact: Artifact, uploads: dict[str, int]) -> None:
        """Write the data of a large artifact, with pauses in which others write."""
        if await self._read(lambda tx: is_stored(tx, artifact)):
            return
        upload = uploads[artifact.hash] = await self._append(begin)
        for number, piece in pieces_of(artifact):
            start = perf_counter()
            write_piece = partial(add_piece, upload=upload, number=number, piece=piece)
            if not await self._append(write_piece):
                del uploads[artifact.hash]
                return
            # Other processes poll for the lock, and without a pause would never find it free.
            await asyncio.sleep(min(MAX_PAUSE, perf_counter() - start))

    async def marked(self, keys: Sequence[bytes]) -> list[Marked]:
        return await self._read(partial(marked, keys=valid_keys(keys)))

    async def head(self, session: str) -> int:
        return (await self.info(session)).entries

    async def info(self, session: str) -> SessionInfo:
        return (await self.outlined(session)).info

    async def read(
        self, session: str, span: Span | None = None, *, whole: bool = True
    ) -> list[Entry]:
        return await self._read(
            lambda tx: reading.read(tx, reading.require_session(tx, session), span, is_whole=whole)
        )

    async def visible(self, session: str, *, last: int | None = None) -> Visible:
        return await self._read(partial(reading.visible, session=session, last=last))

    async def outlined(self, session: str) -> Outlined:
        return await self._read(partial(reading.outlined, session=session))

    async def sessions(
        self, *, search: str | None = None, limit: int = 50, page: str | None = None
    ) -> SessionPage:
        if search is not None:
            await self._index()
        return await self._read(partial(sessions, search=search, limit=limit, page=page))

    async def fork(self, session: str, new: str, *, at: int | None = None) -> SessionInfo:
        return await self._write(partial(fork, session=session, new=new, at=at))

    async def forget(self, session: str, span: Span | None = None) -> Erased:
        journal = self._store.forget_journal
        erased = await self._write(partial(forget, journal=journal, session=session, span=span))
        await self._store.scrub()
        return erased

    async def expire(self, before: int, *, only: Collection[str] | None = None) -> list[str]:
        names = await self._read(partial(maybe_unused, before=before))
        journal = self._store.forget_journal
        expired = [
            name
            for name in names
            if (only is None or name in only)
            and await self._write(partial(expire, journal=journal, session=name, before=before))
        ]
        if expired:
            await self._store.scrub()
        return expired

    async def artifact(self, hash: str) -> Artifact:  # noqa: A002 - the glossary's word
        return await self._read(partial(reading.artifact, hash_=hash))

    async def search(self, query: str, *, session: str | None = None, limit: int = 20) -> list[Hit]:
        await self._index()
        return await self._read(partial(search, query=query, session=session, limit=limit))

    async def matches(
        self, terms: Sequence[Term], *, session: str | None = None, max_matches: int = 2_000
    ) -> Matches:
        await self._index()
        return await self._read(
            partial(matches, terms=terms, session=session, max_matches=max_matches)
        )

    async def totals(self, first: int, last: int) -> Totals:
        return await self._read(partial(totals.totals, first=first, last=last))

    async def dearest(
        self, first: int, last: int, *, limit: int = 20, every: bool = False
    ) -> list[Total]:
        work = partial(totals.dearest, first=first, last=last, limit=limit, every=every)
        return await self._read(work)

    async def recount(self, limit: int = 20, *, anew: bool = False) -> int:
        if anew:
            await self._write(totals.count_all_later)
        await count_again(self, limit)
        return await self._read(totals.uncounted_sessions)

    async def uncounted(self, limit: int) -> list[str]:
        return await self._read(partial(totals.some_uncounted, limit=limit))

    async def count_basis(self, session: str) -> Basis | None:
        return await self._read(partial(totals.count_basis, session=session))

    async def put_count(self, session: str, basis: Basis, booking: Booking) -> bool:
        put = partial(totals.put_count, session=session, basis=basis, booking=booking)
        return await self._append(put)

    async def _index(self) -> None:
        """Index what was appended up to now, a little at a time, so that appends go on."""
        for key, head in await self._read(lambda tx: unindexed(tx.db)):
            while await self._write(partial(index_some, key=key, upto=head)):
                pass

    async def _read(self, work: Callable[[Reading], T]) -> T:
        return await self._store.read(self.tenant, work)

    async def _append(self, work: Callable[[Writing], T]) -> T:
        return await self._store.append(self.tenant, work)

    async def _write(self, work: Callable[[Writing], T]) -> T:
        return await self._store.write(self.tenant, work)


def shipped() -> tuple[Migration, ...]:
    return shipped_in("refold.stores.sqlite")


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
        if not check_ours(db, path):
            db.execute(f"PRAGMA application_id = {APPLICATION}")
            db.execute(_MIGRATIONS_TABLE)
        applied = db.execute("SELECT number, digest FROM migrations ORDER BY number").fetchall()
        check_applied(applied, str(path), migrations)
        if len(applied) == len(migrations):
            db.execute("ROLLBACK")
            return False
        migration = migrations[len(applied)]
        statement = ""
        for line in migration.script.splitlines(keepends=True):
            statement += line  # one by one: running the script whole would commit in between
            if sqlite3.complete_statement(statement):
                db.execute(statement)
                statement = ""
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
