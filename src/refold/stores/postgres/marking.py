"""Marks: keys by which entries are found again.

A mark goes to the server with the entries it is put on, in the same call. If the session's newest
mark is not where its writer knows it, the server appends nothing, as if a unique index objected;
then we read the session and see what it is.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Protocol, TypeVar

from refold.errors import InvalidInput, LogError, StoreBusy
from refold.log.entry import Draft
from refold.log.marking import Mark, Marked, check_newest
from refold.log.protocol import Appended
from refold.stores.postgres.append import SQL as APPEND
from refold.stores.postgres.append import Known, append_plain, guess, look, write
from refold.stores.postgres.measuring import Measuring
from refold.stores.postgres.packed import Statement, statement, whole_number
from refold.stores.postgres.rows import KnownSessions, Name
from refold.stores.postgres.transaction import Reading, Values
from refold.stores.sql import statements

T = TypeVar("T")
SQL = statements("refold.stores.postgres", "sql/marks.sql")
_PACKED = {
    APPEND["append_plain"].encode(): statement("append_plain_marked", SQL["append_plain"], 13)
}
_CALLS = {APPEND[name]: SQL[name] for name in ("append", "begin_session")}


class MarkServer(Protocol):
    """Where to write, and to read what a decision rests on."""

    wait: float
    known: KnownSessions
    measuring: Measuring

    def now(self) -> int:
        """Milliseconds since 1970."""
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


class Marking:
    """Where to write one append with its mark."""

    def __init__(self, server: MarkServer, name: Name, mark: Mark) -> None:
        self.known = server.known
        self._server = server
        self._name = name
        self._mark = mark
        self._newest: int | None = None

    def now(self) -> int:
        """Milliseconds since 1970."""
        return self._server.now()

    async def call(self, sql: str, values: Values) -> object:
        """Append and put the mark by one call; None if a unique index or a newer mark objects.

        Raises MarkConflict when it is known that a newer mark does.
        """
        self._check()
        mark = self._mark
        return await self._server.call(_CALLS[sql], (*values, mark.key, mark.after, mark.nth))

    async def call_packed(self, what: Statement, values: Sequence[bytes | None]) -> int | None:
        """The same for one plain draft, which is always the first."""
        self._check()
        key, _, after = self._mark
        put = key, None if after is None else whole_number(after)
        return await self._server.call_packed(_PACKED[what.sql], (*values, *put))

    async def append(
        self, drafts: Sequence[Draft], expected: int | None, revision: int | None
    ) -> Appended:
        """Append the drafts, by what is known if that will do."""
        name, done = self._name, None
        if revision is None:
            done = await append_plain(self, name, drafts, expected)
        known = guess(self.known.get(name), drafts) if done is None else None
        if known is not None:
            with suppress(LogError, InvalidInput):  # it may be out of date: look, and see
                done = await write(self, name, drafts, expected, known, revision=revision)
        if done is not None:
            return done
        async with self.known.deciding(name):
            return await self._decide(drafts, expected, revision)

    async def _decide(
        self, drafts: Sequence[Draft], expected: int | None, revision: int | None
    ) -> Appended:
        server, name = self._server, self._name
        until = monotonic() + server.wait
        while monotonic() < until:
            known = await server.read(name[0], partial(self._look, drafts=drafts))
            done = None
            if known.row and not known.facts.seen and expected is revision is None:
                self.known.put(name, known.row)  # what needs no head needs not race for it
                done = await append_plain(self, name, drafts, expected)
            if done is None:
                done = await write(self, name, drafts, expected, known, revision=revision)
            if done is not None:
                return done
            server.measuring.decided_again()
        raise StoreBusy(f"Others append to session {name[1]!r} all the time.")

    def _check(self) -> None:
        if self._newest is not None:
            check_newest(self._name[1], self._mark, self._newest)

    async def _look(self, tx: Reading, drafts: Sequence[Draft]) -> Known:
        known = await look(tx, self._name[1], drafts)
        self._newest = 0
        if known.row is not None:
            [(newest,)] = await tx.all(SQL["newest"], (tx.tenant, known.row.key))
            self._newest = newest or 0
        return known


async def marked(tx: Reading, keys: Sequence[bytes]) -> list[Marked]:
    """The entries with any of these keys, those marked last first."""
    if not keys:
        return []
    return [Marked(*row) for row in await tx.all(SQL["marked"], (tx.tenant, keys))]
