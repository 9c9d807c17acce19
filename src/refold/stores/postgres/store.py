"""The store in a PostgreSQL database: its transactions, and the log protocol over them."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from time import monotonic
from typing import TypeVar

from psycopg.errors import UniqueViolation

from refold.errors import InvalidInput, StoreBusy
from refold.log.admit import check_drafts
from refold.log.artifact import Artifact
from refold.log.codec import Clock, wall_clock
from refold.log.entry import Draft, Entry, Mark, Marked, Span, check_mark, check_name, valid_keys
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
from refold.stores.forget_journal import ForgetJournal, JournalPath
from refold.stores.postgres import read as reading
from refold.stores.postgres import totals
from refold.stores.postgres.append import Append, fork, marked
from refold.stores.postgres.connection import (
    Address,
    Connection,
    Pool,
    Reading,
    Values,
    Writing,
    execute,
)
from refold.stores.postgres.forget import expire, forget, maybe_unused
from refold.stores.postgres.locks import LockConnection, PostgresLocks
from refold.stores.postgres.metrics import Measuring, Pooled, measured
from refold.stores.postgres.migrate import check_schema, shipped, warn_if_not_kept
from refold.stores.postgres.pool import CallTimeouts, Connections
from refold.stores.postgres.read import (
    Changed,
    Glance,
    Packed,
    SessionCache,
    SessionRow,
    Statement,
)
from refold.stores.postgres.search import index, matches, search, sessions
from refold.stores.sql import Migration, Reach, check_shipped, onwards
from refold.stores.totals import Basis, Booking, count_again

T = TypeVar("T")
_TRANSACTION_ID = "SELECT pg_current_xact_id()::text"
_TRANSACTION_STATUS = "SELECT pg_xact_status($1::xid8)"
_UNDECIDED = "in progress"
_PAUSE = 0.1


class PostgresStore(Store):
    """Keeps logs in a PostgreSQL database that any number of machines may use.

    `refold store migrate` makes its tables. `wait` is how many seconds to try again when the
    server is gone for a while or others are in the way. `locks` is the address for the locks of
    sessions, which need a connection that stays: give one where `address` is a pooler's.
    `measuring` says what is measured, and where it goes. `forget_journal` is the file in which
    erasures are listed; without it, none are. `clock` tells when sessions are forked and
    forgotten; `migrations` and `reach` are for tests.
    """

    def __init__(  # noqa: PLR0913 - all but the address have a default
        self,
        address: str,
        *,
        pool: Pool | None = None,
        wait: float = 30.0,
        locks: str | None = None,
        measuring: Measuring | None = None,
        forget_journal: JournalPath = None,
        clock: Clock = wall_clock,
        reach: Reach = onwards,
        migrations: Sequence[Migration] | None = None,
    ) -> None:
        self.wait = wait
        self.cache = SessionCache()
        self.forget_journal = ForgetJournal(forget_journal)
        self.measuring = measuring or Measuring()
        self._pool = pool or Pool()
        self._connections = Connections(Address(address), self._pool, wait, self.measuring)
        self.locking = LockConnection(Address(locks or address), self._pool, wait)
        self._timeouts = CallTimeouts(self._pool.limit)
        self._packed = Packed(prepare=self._pool.prepare)
        self._clock = clock
        self._reach = reach
        self._migrations = shipped() if migrations is None else migrations
        self._opening: asyncio.Lock | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._watched: Pooled | None = None

    @property
    def address(self) -> Address:
        return self._connections.address

    def log(self, tenant: str = DEFAULT_TENANT) -> "PostgresLog":
        check_name(tenant, "tenant")
        return PostgresLog(self, tenant)

    async def open(self) -> None:
        """Connect, and check that the schema is the one that this version works with."""
        check_shipped(self._migrations)
        if self._loop is not None:
            await self.here()
        self._loop = asyncio.get_running_loop()
        self._opening = self._opening or asyncio.Lock()

        async def check(connection: Connection) -> None:
            await check_schema(connection, self.address, self._migrations)
            await warn_if_not_kept(connection, self.address)

        async with self._opening:
            if not self._connections.is_open:
                self.cache.clear()
                await self._connections.open(check)
                self.locking.open()
                self._watched = self.measuring.watch(str(self.address), self.stats)

    async def close(self) -> None:
        self._watched = None
        if self._loop is not None:
            await self.here()
        await self.locking.close()
        await self._connections.close()
        self._opening = self._loop = None

    async def here(self) -> None:
        """Be ready for calls in the event loop that runs.

        Connections belong to the loop that made them. When that one has ended, new ones are made.
        """
        loop = asyncio.get_running_loop()
        if loop is self._loop or self._loop is None:
            return
        if not self._loop.is_closed():
            raise InvalidInput(
                f"The store {self.address} is used in another event loop.",
                "Open a store of its own in each event loop.",
            )
        self._connections.abandon()
        self.locking.abandon()
        self._timeouts = CallTimeouts(self._pool.limit)
        self._opening = self._loop = None
        await self.open()

    def stats(self) -> dict[str, int]:
        return self._connections.stats()

    def now(self) -> int:
        return int(self._clock().timestamp() * 1000)

    async def call(self, sql: str, values: Values) -> object:
        """Call one function, which is a transaction of its own; None if a unique index objects."""

        async def call(connection: Connection) -> object:
            self._reach("append.begun")
            try:
                cursor = await self._timeouts.run(execute(connection, sql, values))
            except UniqueViolation:
                return None
            self._reach("append.done")
            found = await cursor.fetchone()
            return found[0] if found else None

        await self.here()
        return await self._connections.run(call)

    async def call_packed(self, what: Statement, values: Sequence[bytes | None]) -> int | None:
        async def call(connection: Connection) -> int | None:
            self._reach("append.begun")
            try:
                result = await self._timeouts.run(self._packed.run(connection, what, values))
            except UniqueViolation:
                return None
            self._reach("append.done")
            return result

        if asyncio.get_running_loop() is not self._loop:
            await self.here()
        return await self._connections.run(call)

    async def read(self, tenant: str, work: Callable[[Reading], Awaitable[T]]) -> T:
        async def transaction(connection: Connection) -> T:
            tx = Reading(connection, tenant, 0, self._reach, self._pool.limit)
            result = await work(tx)
            await tx.end()
            return result

        await self.here()
        return await self._connections.run(transaction)

    async def glance(self, tenant: str, work: Callable[[Reading], Awaitable[T]]) -> T:
        """Do work that only reads one session, by single calls if they are enough."""

        async def calls(connection: Connection) -> T:
            return await work(Glance(connection, tenant, 0, self._reach, self._pool.limit))

        await self.here()
        try:
            return await self._connections.run(calls)
        except Changed:
            return await self.read(tenant, work)

    async def write(self, tenant: str, work: Callable[[Writing], Awaitable[T]]) -> T:
        """Do work that writes, in a transaction of its own.

        When the connection breaks while it is being committed, the server is asked what came of
        it, so the work is done once.
        """
        now = self.now()
        committing: list[tuple[str, T]] = []

        async def transaction(connection: Connection) -> T:
            if committing:
                transaction_id, result = committing[-1]
                if await self._committed(connection, transaction_id):
                    return result
                committing.clear()
            tx = Writing(connection, tenant, now, self._reach, self._pool.limit)
            result = await work(tx)
            self._reach("write.written")
            [(transaction_id,)] = await tx.all(_TRANSACTION_ID)
            committing.append((transaction_id, result))
            await tx.commit()
            self._reach("write.done")
            return result

        await self.here()
        return await self._connections.run(transaction)

    async def _committed(self, connection: Connection, transaction_id: str) -> bool:
        """Whether a transaction was committed; the server may not know that its client is gone."""
        until = monotonic() + self.wait
        while monotonic() < until:
            status = await execute(connection, _TRANSACTION_STATUS, (transaction_id,))
            found = await status.fetchone()
            if found is None or found[0] != _UNDECIDED:
                return found is not None and found[0] == "committed"
            await asyncio.sleep(_PAUSE)
        raise StoreBusy(
            f"It is not known whether the store {self.address} did it: the connection broke, and "
            "the server has not noticed yet.",
            "Do it again in a while. If it was done, that changes nothing more.",
        )


class PostgresLog:
    def __init__(self, store: PostgresStore, tenant: str) -> None:
        self.tenant = tenant
        self.measuring = store.measuring
        self._store = store

    def locks(self, purpose: str = "fold") -> Locks:
        return PostgresLocks(self._store.locking, self.tenant, purpose, self._store.here)

    @measured
    async def append(
        self,
        session: str,
        drafts: Sequence[Draft],
        *,
        expected: int | None,
        revision: int | None = None,
        mark: Mark | None = None,
    ) -> Appended:
        check_drafts(drafts)
        if mark is not None:
            check_mark(mark, drafts)
        append = Append(self._store, (self.tenant, session), mark)
        return await append.run(drafts, expected, revision)

    @measured
    async def marked(self, keys: Sequence[bytes]) -> list[Marked]:
        return await self._read(partial(marked, keys=valid_keys(keys)))

    async def head(self, session: str) -> int:
        return (await self.info(session)).entries

    @measured
    async def info(self, session: str) -> SessionInfo:
        return (await self._outlined(session)).info

    @measured
    async def read(
        self, session: str, span: Span | None = None, *, whole: bool = True
    ) -> list[Entry]:
        cached = self._store.cache.get((self.tenant, session))

        async def read(tx: Reading) -> list[Entry]:
            if cached is not None and isinstance(tx, Glance) and tx.use(cached, span):
                row = cached
            else:
                row = await self._row(tx, session)
            spans = [span or Span(1, reading.LAST_SEQ)]
            return await reading.read(tx, row, spans, is_whole=whole)

        return await self._store.glance(self.tenant, read)

    @measured
    async def visible(self, session: str, *, last: int | None = None) -> Visible:
        work = partial(reading.visible, session=session, last=last)
        return await self._store.glance(self.tenant, work)

    @measured
    async def outlined(self, session: str) -> Outlined:
        return await self._outlined(session)

    @measured
    async def sessions(
        self, *, search: str | None = None, limit: int = 50, page: str | None = None
    ) -> SessionPage:
        if search is not None:
            await index(self._store, self.tenant)
        return await self._read(partial(sessions, search=search, limit=limit, page=page))

    @measured
    async def fork(self, session: str, new: str, *, at: int | None = None) -> SessionInfo:
        return await self._write(partial(fork, session=session, new=new, at=at))

    @measured
    async def forget(self, session: str, span: Span | None = None) -> Erased:
        """When it returns, nobody can read the text through SQL.

        What is left of it in the server's files goes with the owner's next `refold store scrub`.
        """
        journal = self._store.forget_journal
        return await self._write(partial(forget, journal=journal, session=session, span=span))

    @measured
    async def expire(self, before: int, *, only: Collection[str] | None = None) -> list[str]:
        names = await self._read(partial(maybe_unused, before=before))
        journal = self._store.forget_journal
        return [
            name
            for name in names
            if (only is None or name in only)
            and await self._write(partial(expire, journal=journal, session=name, before=before))
        ]

    @measured
    async def artifact(self, hash: str) -> Artifact:  # noqa: A002 - the glossary's word
        return await self._read(partial(reading.artifact, hash_=hash))

    @measured
    async def search(self, query: str, *, session: str | None = None, limit: int = 20) -> list[Hit]:
        await index(self._store, self.tenant)
        return await self._read(partial(search, query=query, session=session, limit=limit))

    @measured
    async def matches(
        self, terms: Sequence[Term], *, session: str | None = None, max_matches: int = 2_000
    ) -> Matches:
        await index(self._store, self.tenant)
        work = partial(matches, terms=terms, session=session, max_matches=max_matches)
        return await self._read(work)

    @measured
    async def totals(self, first: int, last: int) -> Totals:
        return await self._read(partial(totals.totals, first=first, last=last))

    @measured
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
        return await self._write(put)

    async def _outlined(self, session: str) -> Outlined:
        async def outlined(tx: Reading) -> Outlined:
            row = await self._row(tx, session)
            return Outlined(row.info(session), row.state.outline, row.revision)

        return await self._store.glance(self.tenant, outlined)

    async def _row(self, tx: Reading, session: str) -> SessionRow:
        """The session's row, which later reads and appends may use."""
        row = await reading.require_session(tx, session)
        self._store.cache.learn((self.tenant, session), row)
        return row

    async def _read(self, work: Callable[[Reading], Awaitable[T]]) -> T:
        return await self._store.read(self.tenant, work)

    async def _write(self, work: Callable[[Writing], Awaitable[T]]) -> T:
        return await self._store.write(self.tenant, work)
