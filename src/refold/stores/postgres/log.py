"""The log protocol over the store's connections."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Protocol, TypeVar

from refold.errors import InvalidInput, LogError, StoreBusy
from refold.log.admit import check_drafts
from refold.log.artifact import Artifact
from refold.log.entry import Draft, Entry, Mark, Marked, Span, askable, check_mark
from refold.log.protocol import (
    Appended,
    Erased,
    Hit,
    Locks,
    Matches,
    Outlined,
    SessionInfo,
    SessionPage,
    Visible,
)
from refold.log.text import Term
from refold.stores.postgres import read as reading
from refold.stores.postgres.append import Marking, append_plain, fork, guess, look, marked, write
from refold.stores.postgres.connection import Address, Reading, Values, Writing
from refold.stores.postgres.forget import expire, forget, maybe_unused
from refold.stores.postgres.locks import LockConnection, PostgresLocks
from refold.stores.postgres.metrics import Measuring, measured
from refold.stores.postgres.read import Glance, KnownSessions, SessionRow, Statement
from refold.stores.postgres.search import index, matches, search, sessions

T = TypeVar("T")


class Server(Protocol):
    """What the log needs of the store it belongs to."""

    wait: float
    known: KnownSessions
    locking: LockConnection
    measuring: Measuring

    @property
    def address(self) -> Address:
        """Where the database is."""
        ...

    def now(self) -> int:
        """Milliseconds since 1970."""
        ...

    async def here(self) -> None:
        """Be ready for calls in the event loop that runs."""
        ...

    async def call(self, sql: str, values: Values) -> object:
        """Call one function, which is a transaction of its own; None if a unique index objects."""
        ...

    async def call_packed(self, what: Statement, values: Sequence[bytes | None]) -> int | None:
        """The same, with values that are packed already."""
        ...

    async def read(self, tenant: str, work: Callable[[Reading], Awaitable[T]]) -> T:
        """Do work that only reads."""
        ...

    async def glance(self, tenant: str, work: Callable[[Reading], Awaitable[T]]) -> T:
        """Do work that only reads one session."""
        ...

    async def write(self, tenant: str, work: Callable[[Writing], Awaitable[T]]) -> T:
        """Do work that writes."""
        ...


class PostgresLog:
    """The sessions of one tenant in a PostgreSQL database."""

    def __init__(self, server: Server, tenant: str) -> None:
        self.tenant = tenant
        self.measuring = server.measuring
        self._server = server

    def locks(self, purpose: str = "fold") -> Locks:
        """See `refold.log.Log.locks`."""
        return PostgresLocks(self._server.locking, self.tenant, purpose, self._server.here)

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
        """See `refold.log.Log.append`."""
        check_drafts(drafts)
        server, name = self._server, (self.tenant, session)
        if mark is not None:
            check_mark(mark, drafts)
            return await Marking(server, name, mark).append(drafts, expected, revision)
        done = None
        if revision is None:
            done = await append_plain(server, name, drafts, expected)
        if done is not None:
            return done
        known = guess(server.known.get(name), drafts)
        if known is not None:
            with suppress(LogError, InvalidInput):  # it may be out of date: look, and see
                done = await write(server, name, drafts, expected, known, revision=revision)
            if done is not None:
                return done
        until = monotonic() + server.wait
        async with server.known.deciding(name):  # or a process's own appends race each other
            return await self._decide(session, drafts, expected, revision, until)

    async def _decide(
        self,
        session: str,
        drafts: Sequence[Draft],
        expected: int | None,
        revision: int | None,
        until: float,
    ) -> Appended:
        server, name = self._server, (self.tenant, session)
        done = None
        while monotonic() < until:
            known = await self._read(partial(look, session=session, drafts=drafts))
            if known.row is not None and expected is None and revision is None:
                server.known.put(name, known.row)  # what needs no head needs not race for it
                done = await append_plain(server, name, drafts, expected)
            if done is None:
                done = await write(server, name, drafts, expected, known, revision=revision)
            if done is not None:
                return done
            self.measuring.decided_again()
        raise StoreBusy(f"Others append to session {session!r} all the time.")

    @measured
    async def marked(self, keys: Sequence[bytes]) -> list[Marked]:
        """See `refold.log.Log.marked`."""
        return await self._read(partial(marked, keys=askable(keys)))

    async def head(self, session: str) -> int:
        """See `refold.log.Log.head`."""
        return (await self.info(session)).entries

    @measured
    async def info(self, session: str) -> SessionInfo:
        """See `refold.log.Log.info`."""
        return (await self._outlined(session)).info

    @measured
    async def read(
        self, session: str, span: Span | None = None, *, whole: bool = True
    ) -> list[Entry]:
        """See `refold.log.Log.read`."""
        known = self._server.known.get((self.tenant, session))

        async def read(tx: Reading) -> list[Entry]:
            if known is not None and isinstance(tx, Glance) and tx.goes_by(known, span):
                row = known
            else:
                row = await self._row(tx, session)
            return await reading.read(tx, row, span, is_whole=whole)

        return await self._server.glance(self.tenant, read)

    @measured
    async def visible(self, session: str, *, last: int | None = None) -> Visible:
        """See `refold.log.Log.visible`."""
        work = partial(reading.visible, session=session, last=last)
        return await self._server.glance(self.tenant, work)

    @measured
    async def outlined(self, session: str) -> Outlined:
        """See `refold.log.Log.outlined`."""
        return await self._outlined(session)

    @measured
    async def sessions(
        self, *, search: str | None = None, limit: int = 50, page: str | None = None
    ) -> SessionPage:
        """See `refold.log.Log.sessions`."""
        if search is not None:
            await self._index()
        return await self._read(partial(sessions, search=search, limit=limit, page=page))

    @measured
    async def fork(self, session: str, new: str, *, at: int | None = None) -> SessionInfo:
        """See `refold.log.Log.fork`."""
        return await self._write(partial(fork, session=session, new=new, at=at))

    @measured
    async def forget(self, session: str, span: Span | None = None) -> Erased:
        """See `refold.log.Log.forget`.

        When it returns, nobody can read the text through SQL. What is left of it in the server's
        files goes when its owner next runs `refold store scrub`.
        """
        return await self._write(partial(forget, session=session, span=span))

    @measured
    async def expire(self, before: int, *, only: Collection[str] | None = None) -> list[str]:
        """See `refold.log.Log.expire`."""
        names = await self._read(partial(maybe_unused, before=before))
        names = [name for name in names if only is None or name in only]
        return [
            name
            for name in names
            if await self._write(partial(expire, session=name, before=before))
        ]

    @measured
    async def artifact(self, hash: str) -> Artifact:  # noqa: A002 - the glossary's word
        """See `refold.log.Log.artifact`."""
        return await self._read(partial(reading.artifact, hash_=hash))

    @measured
    async def search(self, query: str, *, session: str | None = None, limit: int = 20) -> list[Hit]:
        """See `refold.log.Log.search`."""
        await self._index()
        return await self._read(partial(search, query=query, session=session, limit=limit))

    @measured
    async def matches(
        self, terms: Sequence[Term], *, session: str | None = None, most: int = 2_000
    ) -> Matches:
        """See `refold.log.Log.matches`."""
        await self._index()
        return await self._read(partial(matches, terms=terms, session=session, most=most))

    async def _outlined(self, session: str) -> Outlined:
        async def outlined(tx: Reading) -> Outlined:
            row = await self._row(tx, session)
            return Outlined(reading.info(row, session), row.state.outline, row.revision)

        return await self._server.glance(self.tenant, outlined)

    async def _row(self, tx: Reading, session: str) -> SessionRow:
        """The session's row; whoever reads or appends next may go by it."""
        row = await reading.the_session(tx, session)
        self._server.known.learn((self.tenant, session), row)
        return row

    async def _index(self) -> None:
        await index(self._read, self._write)

    async def _read(self, work: Callable[[Reading], Awaitable[T]]) -> T:
        return await self._server.read(self.tenant, work)

    async def _write(self, work: Callable[[Writing], Awaitable[T]]) -> T:
        return await self._server.write(self.tenant, work)
