"""Reading sessions and entries, through the segments of forks."""

import json
from asyncio import Lock, timeout
from collections.abc import Iterable, Sequence
from operator import attrgetter
from struct import Struct
from typing import Any, Final, NamedTuple
from uuid import UUID
from weakref import WeakKeyDictionary, WeakValueDictionary

from psycopg import OperationalError, generators
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGresult

from refold.errors import ArtifactNotFound, StoreCorrupt
from refold.log.admit import missing
from refold.log.artifact import Artifact, Hole, lower
from refold.log.entry import Entry, Span, spans_of, subtract
from refold.log.outline import Outline, Segment, chain_of, load, replay, within
from refold.log.protocol import SessionInfo, State, Visible
from refold.stores.postgres.connection import Connection, Reading, Values, execute
from refold.stores.postgres.connection import Row as RowRead
from refold.stores.sql import statements

# One statement with values that are packed here, and not by the driver.
#
# The driver looks at each value, and makes a cursor, to find out what we know already. For an
# append
# that takes about as long as all else the client does.

whole_number: Final = Struct("!q").pack
"""A whole number as `bigint`."""
truth: Final = (b"\0", b"\1")
"""False and true as `boolean`."""
_NO_SUCH_STATEMENT: Final = "26000"
_IS_PREPARED: Final = "42P05"


class Statement(NamedTuple):
    """A statement that gives one whole number, or nothing; all its values go in binary form."""

    name: bytes
    sql: bytes
    formats: list[int]


def statement(name: str, sql: str, values: int) -> Statement:
    """A statement of so many values."""
    return Statement(f"refold_{name}".encode(), sql.encode(), [Format.BINARY] * values)


class Packed:
    """Runs such statements, each prepared once on each connection where that is wanted."""

    def __init__(self, *, prepare: bool) -> None:
        self._prepare = prepare
        self._prepared: WeakKeyDictionary[Connection, set[bytes]] = WeakKeyDictionary()

    async def run(
        self, connection: Connection, what: Statement, values: Sequence[bytes | None]
    ) -> int | None:
        """What the statement gives."""
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
        if _code(result) != _IS_PREPARED:  # by a call that was cancelled before it noted that
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


# Rows of the tables, and the values they stand for.

LAST_SEQ: Final = (1 << 63) - 1
MINUTE: Final = 60_000
_MOST_KNOWN: Final = 10_000

Row = tuple[int, int, UUID, int, str, int, bytes, bytes, str | None, str | None, bool]
"""An entry as the statements select it: session, seq, id, at, kind, version, body, scope, rests_on,
artifacts, forgotten."""


class SessionRow(NamedTuple):
    """A session as it lies in its table."""

    key: int
    state: State
    own_from: int
    forked_from: str | None
    revision: int
    """Raised by every change that is no append."""
    indexed: int
    """Up to where its entries were indexed when it was read; this may have moved since."""

    @property
    def forked_at(self) -> int | None:
        """The last entry it shares with the session it was forked from."""
        return None if self.forked_from is None else self.own_from - 1


Name = tuple[str, str]
"""A tenant and the name of one of its sessions."""


class KnownSessions:
    """Session rows as this process last saw them.

    They may be out of date: what is decided by them is written only if the session still has the
    head and the revision they say.
    """

    def __init__(self) -> None:
        self._rows: dict[Name, SessionRow] = {}
        self._deciding: WeakValueDictionary[Name, Lock] = WeakValueDictionary()

    def get(self, name: Name) -> SessionRow | None:
        """The session's row, if it is known."""
        return self._rows.get(name)

    def put(self, name: Name, row: SessionRow) -> None:
        """The row as it is now."""
        if len(self._rows) >= _MOST_KNOWN and name not in self._rows:
            del self._rows[next(iter(self._rows))]
        self._rows[name] = row

    def learn(self, name: Name, row: SessionRow) -> None:
        """The row as it was read; what was written meanwhile may be newer."""
        there = self._rows.get(name)
        if there is None or there.key != row.key or _age(there) < _age(row):
            self.put(name, row)

    def drop(self, name: Name) -> None:
        """The row is not what it was."""
        self._rows.pop(name, None)

    def deciding(self, name: Name) -> Lock:
        """Held by the one in this process who reads the session and decides what to append."""
        return self._deciding.setdefault(name, Lock())

    def clear(self) -> None:
        """Nothing is known any more."""
        self._rows.clear()


def _age(row: SessionRow) -> tuple[int, int]:
    return row.revision, row.state.head


def entry_of(row: tuple[Any, ...]) -> Entry:
    """The entry of a row (see `Row`)."""
    _, seq, id_, at, kind, version, body, scope, rests_on, artifacts, forgotten = row
    holes, attached = _artifacts_rows(artifacts)
    return Entry(
        seq,
        id_,
        at,
        kind,
        version,
        body,
        unpacked(scope),
        tuple(Span(first, last) for first, last in json.loads(rests_on)) if rests_on else (),
        holes,
        attached,
        forgotten,
    )


def rests_on_of(entry: Entry) -> str | None:
    """The column that says what an entry rests on."""
    return _json([[span.first, span.last] for span in entry.rests_on]) if entry.rests_on else None


def artifacts_of(entry: Entry) -> str | None:
    """The column that says which artifacts an entry refers to."""
    if not entry.holes and not entry.attached:
        return None
    holes = [[hole.offset, hole.length, hole.hash, hole.form] for hole in entry.holes]
    return _json([holes, list(entry.attached)])


def packed(text: str) -> bytes:
    """A text that may hold any character at all, as its column keeps it; a hash too."""
    return text.encode("utf-8", "surrogatepass")


def unpacked(column: bytes) -> str:
    """The text of such a column."""
    return column.decode("utf-8", "surrogatepass")


def _artifacts_rows(column: str | None) -> tuple[tuple[Hole, ...], tuple[str, ...]]:
    if column is None:
        return (), ()
    holes, attached = json.loads(column)
    return tuple(Hole(*hole) for hole in holes), tuple(attached)


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


SQL = statements("refold.stores.postgres", "sql/read.sql")
_seq = attrgetter("seq")


async def find_session(tx: Reading, session: str) -> SessionRow | None:
    """The session's row, if it is there."""
    if not session.isprintable():  # no session has such a name, and no text can hold each of them
        return None
    found = await tx.one(SQL["session"], (tx.tenant, session))
    return None if found is None else await session_of(tx, found)


async def session_of(tx: Reading, found: RowRead) -> SessionRow:
    """The session of a row that was selected as `session` does it."""
    key, head, messages, form, profile, created, updated, kept, not_before, *others = found
    state = State(
        head, messages, unpacked(form), unpacked(profile), created, updated, Outline(), not_before
    )
    row = SessionRow(key, state, *others)
    outline = load(kept) or replay(await controls(tx, row))
    return row._replace(state=state._replace(outline=outline))


async def the_session(tx: Reading, session: str) -> SessionRow:
    """The session's row, or an error that says whether it was ever there."""
    row = await find_session(tx, session)
    if row is None:
        raise missing(session, await forgotten_at(tx, session))
    return row


async def forgotten_at(tx: Reading, session: str) -> int:
    """When a session of that name was last forgotten; 0 if never."""
    if not session.isprintable():
        return 0
    found = await tx.one(SQL["forgotten_at"], (tx.tenant, session))
    return found[0] if found else 0


def info(row: SessionRow, session: str) -> SessionInfo:
    """The session as a list shows it."""
    return row.state.info(session, row.forked_from, row.forked_at)


async def segments(tx: Reading, row: SessionRow, span: Span | None = None) -> list[Segment]:
    """Where the session's entries lie, or those of the span, in the order of their seqs."""
    return await _segments(tx, row, [span or Span(1, LAST_SEQ)])


async def _segments(tx: Reading, row: SessionRow, spans: Sequence[Span]) -> list[Segment]:
    """Where the entries of the spans lie, which are in order."""
    found: list[Segment] = []
    if spans and spans[0].first < row.own_from:
        ends = spans[0].first, min(spans[-1].last, LAST_SEQ)
        inherited = await tx.all(SQL["segments"], (tx.tenant, row.key, *ends))
        found = [Segment(*segment) for segment in inherited]
    if row.state.head >= row.own_from:
        found.append(Segment(row.key, row.own_from, row.state.head))
    return [segment for span in spans for segment in within(found, span)]


async def read(
    tx: Reading, row: SessionRow, span: Span | None, *, is_whole: bool = True
) -> list[Entry]:
    """The entries of the span that exist."""
    return await _read_many(tx, row, [span or Span(1, LAST_SEQ)], is_whole=is_whole)


async def _read_many(
    tx: Reading, row: SessionRow, spans: Sequence[Span], *, is_whole: bool = True
) -> list[Entry]:
    """The entries of the spans that exist; the spans are in order and do not meet."""
    parts = await _segments(tx, row, spans)
    if len(parts) == 1:
        entries = await entries_in(tx, parts[0])
    else:
        entries = _complete(parts, await _of_many(tx, SQL["entries_of_many"], parts))
    return await whole(tx, entries) if is_whole else entries


async def entries_in(tx: Reading, segment: Segment) -> list[Entry]:
    """The entries of one segment, as they lie."""
    ends = segment.source, segment.first, segment.last
    found = await tx.all(SQL["entries"], (tx.tenant, *ends))
    return _complete([segment], sorted(map(entry_of, found), key=_seq))


async def controls(tx: Reading, row: SessionRow, upto: int = LAST_SEQ) -> list[Entry]:
    """The control entries up to a seq, request records without their bodies."""
    parts = await segments(tx, row, Span(1, upto))
    return await whole(tx, await _of_many(tx, SQL["controls"], parts))


async def seen(tx: Reading, row: SessionRow, ids: Sequence[UUID]) -> dict[UUID, Entry]:
    """The session's entries with these ids, its own and shared ones, whole."""
    parts = await segments(tx, row)
    found = await whole(tx, await _of_many(tx, SQL["seen"], parts, list(ids)))
    return {entry.id: entry for entry in found}


async def whole(tx: Reading, entries: Iterable[Entry]) -> list[Entry]:
    """The entries with what was lifted out of their bodies put back."""
    found = list(entries)
    hashes = {hole.hash for entry in found for hole in entry.holes}
    if not hashes:
        return found
    stored = await _artifacts(tx, hashes)

    def fetch(hash_: str) -> bytes:
        if hash_ not in stored:
            raise StoreCorrupt(f"An entry refers to artifact {hash_}, which is gone.")
        return stored[hash_].data

    return [
        entry._replace(body=lower(entry.body, entry.holes, fetch), holes=())
        if entry.holes
        else entry
        for entry in found
    ]


async def artifact(tx: Reading, hash_: str) -> Artifact:
    """The artifact under a hash."""
    stored = await _artifacts(tx, [hash_])
    if hash_ not in stored:
        raise ArtifactNotFound(f"There is no artifact {hash_}.")
    return stored[hash_]


async def visible(tx: Reading, session: str, last: int | None) -> Visible:
    """What a view is made of."""
    row = await the_session(tx, session)
    outline = row.state.outline
    needed = outline.needed(row.state.head, last)
    entries = {entry.seq: entry for entry in await _read_many(tx, row, needed)}
    if outline.record is not None:
        chain = subtract(spans_of(chain_of(entries[outline.record])), needed)
        if chain:
            entries |= {entry.seq: entry for entry in await _read_many(tx, row, chain)}
    return Visible(info(row, session), outline, tuple(entries[seq] for seq in sorted(entries)))


async def _of_many(tx: Reading, sql: str, parts: Sequence[Segment], *more: object) -> list[Entry]:
    """The entries that one statement finds in the segments, in the order of their seqs."""
    if not parts:
        return []
    sources = [part.source for part in parts]
    firsts = [part.first for part in parts]
    lasts = [part.last for part in parts]
    found = await tx.all(sql, (tx.tenant, sources, firsts, lasts, *more))
    return sorted(map(entry_of, found), key=_seq)


def _complete(parts: Sequence[Segment], entries: list[Entry]) -> list[Entry]:
    expected = sum(len(part) for part in parts)
    if len(entries) != expected:
        raise StoreCorrupt(f"Of {expected} entries of a session, {len(entries)} are there.")
    return entries


async def _artifacts(tx: Reading, hashes: Iterable[str]) -> dict[str, Artifact]:
    found = await tx.all(SQL["artifacts"], (tx.tenant, [packed(one) for one in sorted(hashes)]))
    stored: dict[str, Artifact] = {}
    for hash_, data, media_type in found:
        name = unpacked(hash_)
        stored[name] = Artifact.of(data, unpacked(media_type))
        if stored[name].hash != name:
            raise StoreCorrupt(f"Artifact {name} is damaged.")
    return stored


# Reading a session by single calls, without a transaction around them.
#
# Nearly every read is of a session that is no fork: its row, some of its entries, perhaps
# artifacts.
# Entries never change unless the revision of their session does, so what the calls give belongs
# together for as long as that is the same. Where it is not, or where there is more to read, the
# work
# is done again in a transaction. That spares two or three ways to the server.

SQL_GLANCE: Final = statements("refold.stores.postgres", "sql/glance.sql")
_MOST_ENTRIES: Final = 1_000
_KEY, _OWN_FROM, _REVISION = 0, 9, 11


class Changed(Exception):
    """The session is not what it was, or more is needed than calls can give."""


class Glance(Reading):
    """Reads one session by calls; raises Changed where a transaction is needed."""

    _known: tuple[int, int] | None = None

    def goes_by(self, row: SessionRow, span: Span | None) -> bool:
        """Whether the span can be read by what is known of its session.

        If that is not so any more, the calls give nothing.
        """
        if span is None or row.own_from > 1 or span.last > row.state.head:
            return False
        self._known = row.key, row.revision
        return True

    async def all(self, sql: str, values: Values = ()) -> list[RowRead]:
        """The rows a statement gives."""
        call, named = self._translated(sql, values)
        async with timeout(self._limit):
            rows = await (await execute(self.connection, call, named)).fetchall()
        if not rows:
            raise Changed
        return rows

    async def one(self, sql: str, values: Values = ()) -> RowRead | None:
        """The first row a statement gives."""
        row = (await self.all(sql, values))[0]
        if sql == SQL["session"]:
            if row[_OWN_FROM] > 1:
                raise Changed
            self._known = row[_KEY], row[_REVISION]
        return row

    def _translated(self, sql: str, values: Values) -> tuple[str, Values]:
        """The call that does what the statement does."""
        if sql == SQL["session"]:
            return SQL_GLANCE["session"], values
        if self._known is None:
            raise Changed
        if sql == SQL["artifacts"]:
            return SQL_GLANCE["artifacts"], (self.tenant, *self._known, values[1])
        if sql == SQL["entries"]:
            _, _, first, last = values
            return self._entries([first], [last])
        if sql == SQL["entries_of_many"]:
            _, _, firsts, lasts = values
            return self._entries(firsts, lasts)
        raise Changed

    def _entries(self, firsts: Any, lasts: Any) -> tuple[str, Values]:  # noqa: ANN401 - lists of seqs
        if sum(lasts) - sum(firsts) > _MOST_ENTRIES or self._known is None:
            raise Changed
        return SQL_GLANCE["entries"], (self.tenant, *self._known, firsts, lasts)
