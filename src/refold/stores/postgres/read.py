"""Rows, packed statements, and reading sessions through forks' segments or by single calls."""

from asyncio import Lock, timeout
from collections.abc import Awaitable, Callable, Iterable, Sequence
from operator import attrgetter
from struct import Struct
from typing import Any, Final, NamedTuple, Protocol, TypeVar, cast
from uuid import UUID
from weakref import WeakKeyDictionary, WeakValueDictionary

from psycopg import OperationalError, generators
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGresult

from refold.errors import ArtifactNotFound, StoreCorrupt
from refold.log.admit import missing
from refold.log.artifact import Artifact
from refold.log.entry import Entry, Span, restore, spans_of, subtract
from refold.log.outline import Outline, Segment, chain_of, load, replay, within
from refold.log.protocol import SessionInfo, State, Visible
from refold.stores.postgres.connection import (
    Connection,
    Reading,
    Row,
    Values,
    Writing,
    execute,
)
from refold.stores.postgres.metrics import Measuring
from refold.stores.sql import load_artifacts, load_rests_on, statements
from refold.stores.totals import KnownAccounts

SQL = statements("refold.stores.postgres", "sql/read.sql")
_SQL_GLANCE: Final = statements("refold.stores.postgres", "sql/glance.sql")
LAST_SEQ: Final = (1 << 63) - 1
MINUTE: Final = 60_000
_MAX_CACHED: Final = 10_000
_MAX_ENTRIES: Final = 1_000
_KEY, _OWN_FROM, _REVISION = 0, 9, 11  # the columns of a session's row
_ALL: Final = Span(1, LAST_SEQ)

T = TypeVar("T")
Name = tuple[str, str]
"""A tenant and the name of one of its sessions."""


# One statement whose values are packed here, and not by the driver. The driver inspects each value,
# and makes a cursor, to find out what we know already: for an append that takes about as long as
# all else the client does.

whole_number: Final = Struct("!q").pack
"""A whole number as `bigint`."""
truth: Final = (b"\0", b"\1")
"""False and true as `boolean`."""
_NO_SUCH_STATEMENT: Final = "26000"
_IS_PREPARED: Final = "42P05"


class Statement(NamedTuple):
    """A statement that returns one whole number or nothing; its values go in binary form."""

    name: bytes
    sql: bytes
    formats: list[int]


def statement(name: str, sql: str, values: int) -> Statement:
    return Statement(f"refold_{name}".encode(), sql.encode(), [Format.BINARY] * values)


class Packed:
    """Runs such statements, prepared once on each connection where `prepare` is on."""

    def __init__(self, *, prepare: bool) -> None:
        self._prepare = prepare
        self._prepared: WeakKeyDictionary[Connection, set[bytes]] = WeakKeyDictionary()

    async def run(
        self, connection: Connection, what: Statement, values: Sequence[bytes | None]
    ) -> int | None:
        pgconn = connection.pgconn
        if not self._prepare:
            pgconn.send_query_params(
                what.sql, values, param_formats=what.formats, result_format=Format.BINARY
            )
            return _number(connection, await _answer(connection))
        if what.name not in self._prepared.get(connection, ()):
            await self._make(connection, what)
        pgconn.send_query_prepared(what.name, values, what.formats, Format.BINARY)
        result = await _answer(connection)
        if _code(result) != _NO_SUCH_STATEMENT:
            return _number(connection, result)
        # After some statements, such as a rollback, the driver lets go of all that is prepared.
        await self._make(connection, what)
        pgconn.send_query_prepared(what.name, values, what.formats, Format.BINARY)
        return _number(connection, await _answer(connection))

    async def _make(self, connection: Connection, what: Statement) -> None:
        connection.pgconn.send_prepare(what.name, what.sql)
        result = await _answer(connection)
        if _code(result) != _IS_PREPARED:  # by a call that was canceled before it noted that
            _check(connection, result)
        self._prepared.setdefault(connection, set()).add(what.name)


async def _answer(connection: Connection) -> PGresult:
    results = await connection.wait(generators.execute(connection.pgconn))
    if not results:
        raise OperationalError("the server gave no answer")
    return results[-1]


def _code(result: PGresult) -> str | None:
    if result.status != ExecStatus.FATAL_ERROR:
        return None
    return error_from_result(result).sqlstate


def _check(connection: Connection, result: PGresult) -> None:
    if result.status == ExecStatus.FATAL_ERROR:
        raise error_from_result(result, encoding=connection.info.encoding)


def _number(connection: Connection, result: PGresult) -> int | None:
    _check(connection, result)
    value = result.get_value(0, 0)
    return None if value is None else int.from_bytes(value, signed=True)


class SessionRow(NamedTuple):
    key: int
    state: State
    own_from: int
    forked_from: str | None
    revision: int
    """Raised by every change that is no append."""
    indexed: int
    """Up to where its entries were indexed when it was read; this may have moved since."""

    def info(self, session: str) -> SessionInfo:
        return self.state.info(session, self.own_from, self.forked_from)


class SessionCache:
    """Session rows as this process last saw them.

    They may be out of date: what is decided by them is written only if the session still has the
    head and the revision they say.
    """

    def __init__(self) -> None:
        self._rows: dict[Name, SessionRow] = {}
        self._accounts: dict[Name, KnownAccounts] = {}
        self._deciding: WeakValueDictionary[Name, Lock] = WeakValueDictionary()

    def get(self, name: Name) -> SessionRow | None:
        return self._rows.get(name)

    def put(self, name: Name, row: SessionRow) -> None:
        if len(self._rows) >= _MAX_CACHED and name not in self._rows:
            del self._rows[next(iter(self._rows))]
        self._rows[name] = row

    def learn(self, name: Name, row: SessionRow) -> None:
        """Cache the row as it was read, unless what was written meanwhile is newer."""
        cached = self._rows.get(name)
        if (
            cached is None
            or cached.key != row.key
            or (cached.revision, cached.state.head) < (row.revision, row.state.head)
        ):
            self.put(name, row)

    def drop(self, name: Name) -> None:
        self._rows.pop(name, None)

    def accounts(self, name: Name, key: int) -> KnownAccounts | None:
        """How the accounts of the session with this key stood last."""
        known = self._accounts.get(name)
        return known if known is not None and known.key == key else None

    def put_accounts(self, name: Name, known: KnownAccounts | None) -> None:
        self._accounts.pop(name, None)
        if known is not None:
            if len(self._accounts) >= _MAX_CACHED:
                del self._accounts[next(iter(self._accounts))]
            self._accounts[name] = known

    def deciding(self, name: Name) -> Lock:
        """Held while this process reads the session and decides what to append."""
        return self._deciding.setdefault(name, Lock())

    def clear(self) -> None:
        self._rows.clear()
        self._accounts.clear()


class Database(Protocol):
    """What appends and the index need of a store."""

    cache: SessionCache
    measuring: Measuring
    wait: float

    def now(self) -> int: ...

    async def call(self, sql: str, values: Values) -> object: ...

    async def call_packed(self, what: Statement, values: Sequence[bytes | None]) -> int | None: ...

    async def read(self, tenant: str, work: Callable[[Reading], Awaitable[T]]) -> T: ...

    async def write(self, tenant: str, work: Callable[[Writing], Awaitable[T]]) -> T: ...


def entry_of(row: tuple[Any, ...]) -> Entry:
    _, seq, id_, at, kind, version, body, scope, rests_on, artifacts, forgotten = row
    holes, attached = load_artifacts(artifacts)
    return Entry(
        seq,
        id_,
        at,
        kind,
        version,
        body,
        unpacked(scope),
        load_rests_on(rests_on),
        holes,
        attached,
        forgotten,
    )


def packed(text: str) -> bytes:
    """A text that may hold any character at all, as its column keeps it; a hash too."""
    return text.encode("utf-8", "surrogatepass")


def unpacked(column: bytes) -> str:
    return column.decode("utf-8", "surrogatepass")


def columns(parts: Iterable[Segment]) -> tuple[list[int], list[int], list[int]]:
    """Segments as statements take them: sources, firsts, lasts."""
    segments = list(parts)
    return [s.source for s in segments], [s.first for s in segments], [s.last for s in segments]


async def find_session(tx: Reading, session: str) -> SessionRow | None:
    if not session.isprintable():  # no session has such a name, and no text can hold each of them
        return None
    row = await tx.first(SQL["session"], (tx.tenant, session))
    return None if row is None else await session_of(tx, row)


async def session_of(tx: Reading, found: Row) -> SessionRow:
    """The session of a row that was selected as `session` does it."""
    key, head, messages, form, profile, created, updated, stored, not_before, *others = found
    state = State(
        head, messages, unpacked(form), unpacked(profile), created, updated, Outline(), not_before
    )
    row = SessionRow(key, state, *others)
    outline = load(stored) or replay(await controls(tx, row))
    return row._replace(state=state._replace(outline=outline))


async def require_session(tx: Reading, session: str) -> SessionRow:
    """The session's row, or an error that says whether it was ever there."""
    row = await find_session(tx, session)
    if row is None:
        raise missing(session, await forgotten_at(tx, session))
    return row


async def forgotten_at(tx: Reading, session: str) -> int:
    if not session.isprintable():
        return 0
    found = await tx.first(SQL["forgotten_at"], (tx.tenant, session))
    return found[0] if found else 0


async def segments(tx: Reading, row: SessionRow, spans: Sequence[Span] = (_ALL,)) -> list[Segment]:
    """Where the entries of the spans lie; the spans are in order and do not meet."""
    found: list[Segment] = []
    if spans and spans[0].first < row.own_from:
        ends = spans[0].first, min(spans[-1].last, LAST_SEQ)
        inherited = await tx.all(SQL["segments"], (tx.tenant, row.key, *ends))
        found = [Segment(*segment) for segment in inherited]
    if row.state.head >= row.own_from:
        found.append(Segment(row.key, row.own_from, row.state.head))
    return [segment for span in spans for segment in within(found, span)]


async def read(
    tx: Reading, row: SessionRow, spans: Sequence[Span] = (_ALL,), *, is_whole: bool = True
) -> list[Entry]:
    """The entries of the spans that exist; the spans are in order and do not meet."""
    parts = await segments(tx, row, spans)
    if len(parts) == 1:
        values = tx.tenant, parts[0].source, parts[0].first, parts[0].last
        entries = _in_order(await tx.all(SQL["entries"], values))
    else:
        entries = await _of_many(tx, SQL["entries_of_many"], parts)
    expected = sum(map(len, parts))
    if len(entries) != expected:
        raise StoreCorrupt(f"Of {expected} entries of a session, {len(entries)} are there.")
    return await whole(tx, entries) if is_whole else entries


async def controls(tx: Reading, row: SessionRow, upto: int = LAST_SEQ) -> list[Entry]:
    """The control entries up to a seq, request records without their bodies."""
    parts = await segments(tx, row, [Span(1, upto)])
    return await whole(tx, await _of_many(tx, SQL["controls"], parts))


async def entries_with_ids(tx: Reading, row: SessionRow, ids: Sequence[UUID]) -> dict[UUID, Entry]:
    parts = await segments(tx, row)
    found = await whole(tx, await _of_many(tx, SQL["seen"], parts, list(ids)))
    return {entry.id: entry for entry in found}


async def whole(tx: Reading, entries: Iterable[Entry]) -> list[Entry]:
    found = list(entries)
    hashes = {hole.hash for entry in found for hole in entry.holes}
    if not hashes:
        return found
    stored = await _artifacts(tx, hashes)

    def fetch(hash_: str) -> bytes:
        if hash_ not in stored:
            raise StoreCorrupt(f"An entry refers to artifact {hash_}, which is gone.")
        return stored[hash_].data

    return [restore(entry, fetch) for entry in found]


async def artifact(tx: Reading, hash_: str) -> Artifact:
    stored = await _artifacts(tx, [hash_])
    if hash_ not in stored:
        raise ArtifactNotFound(f"There is no artifact {hash_}.")
    return stored[hash_]


async def visible(tx: Reading, session: str, last: int | None) -> Visible:
    row = await require_session(tx, session)
    outline = row.state.outline
    needed = outline.needed(row.state.head, last)
    entries = {entry.seq: entry for entry in await read(tx, row, needed)}
    if outline.record is not None:
        chain = subtract(spans_of(chain_of(entries[outline.record])), needed)
        if chain:
            entries |= {entry.seq: entry for entry in await read(tx, row, chain)}
    return Visible(row.info(session), outline, tuple(entries[seq] for seq in sorted(entries)))


async def _of_many(tx: Reading, sql: str, parts: Sequence[Segment], *more: object) -> list[Entry]:
    """The entries that one statement finds in the segments, in the order of their seqs."""
    if not parts:
        return []
    return _in_order(await tx.all(sql, (tx.tenant, *columns(parts), *more)))


def _in_order(rows: Iterable[Row]) -> list[Entry]:
    return sorted(map(entry_of, rows), key=attrgetter("seq"))


async def _artifacts(tx: Reading, hashes: Iterable[str]) -> dict[str, Artifact]:
    found = await tx.all(SQL["artifacts"], (tx.tenant, [packed(hash_) for hash_ in sorted(hashes)]))
    stored: dict[str, Artifact] = {}
    for hash_, data, media_type in found:
        name = unpacked(hash_)
        stored[name] = Artifact.of(data, unpacked(media_type))
        if stored[name].hash != name:
            raise StoreCorrupt(f"Artifact {name} is damaged.")
    return stored


class Changed(Exception):
    """The session is not what it was, or more is needed than calls can give."""


class Glance(Reading):
    """Reads one session by single calls, without a transaction around them.

    Nearly every read is of a session that is no fork: its row, some of its entries, perhaps
    artifacts. Entries never change unless the revision of their session does, so what the calls
    give belongs together for as long as that is the same. Where it is not, or where there is more
    to read, Changed is raised and the work is done again in a transaction. That saves two or three
    round trips to the server.
    """

    _session: tuple[int, int] | None = None
    """Its key and revision."""

    def use(self, row: SessionRow, span: Span | None) -> bool:
        """Whether the span can be read by the session's cached row; if outdated, calls raise."""
        if span is None or row.own_from > 1 or span.last > row.state.head:
            return False
        self._session = row.key, row.revision
        return True

    async def all(self, sql: str, values: Values = ()) -> list[Row]:
        call, named = self._translated(sql, values)
        async with timeout(self._limit):
            rows = await (await execute(self.connection, call, named)).fetchall()
        if not rows:
            raise Changed
        return rows

    async def first(self, sql: str, values: Values = ()) -> Row | None:
        row = (await self.all(sql, values))[0]
        if sql == SQL["session"]:
            if row[_OWN_FROM] > 1:
                raise Changed
            self._session = row[_KEY], row[_REVISION]
        return row

    def _translated(self, sql: str, values: Values) -> tuple[str, Values]:
        if sql == SQL["session"]:
            return _SQL_GLANCE["session"], values
        if self._session is None:
            raise Changed
        if sql == SQL["artifacts"]:
            return _SQL_GLANCE["artifacts"], (self.tenant, *self._session, values[1])
        if sql == SQL["entries"]:
            firsts, lasts = [values[2]], [values[3]]
        elif sql == SQL["entries_of_many"]:
            firsts, lasts = values[2:]
        else:
            raise Changed
        if sum(cast("list[int]", lasts)) - sum(cast("list[int]", firsts)) > _MAX_ENTRIES:
            raise Changed
        return _SQL_GLANCE["entries"], (self.tenant, *self._session, firsts, lasts)
