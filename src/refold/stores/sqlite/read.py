"""Rows and transactions; uploads of large artifacts; reading sessions through forks' segments."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import time
from typing import Final, NamedTuple
from uuid import UUID

from refold.errors import ArtifactNotFound, StoreCorrupt
from refold.log.admit import missing
from refold.log.artifact import Artifact
from refold.log.entry import Entry, Span, restore, spans_of, subtract
from refold.log.outline import CONTROL_KINDS, Outline, Segment, chain_of, load, replay, within
from refold.log.protocol import Outlined, SessionInfo, State, Visible
from refold.stores.sql import (
    Reach,
    dump_artifacts,
    dump_rests_on,
    load_artifacts,
    load_rests_on,
    statements,
)
from refold.stores.totals import KnownAccounts

SQL = statements("refold.stores.sqlite", "sql/read.sql")
SQL_UPLOADS: Final = statements("refold.stores.sqlite", "sql/uploads.sql")
SEQ_BITS = 32
LAST_SEQ = (1 << SEQ_BITS) - 1
MINUTE = 60_000
MAX_INLINE: Final = 512 * 1024
"""Bytes of an artifact that an append writes itself."""
PIECE: Final = 512 * 1024
"""Bytes of an upload that one transaction writes."""
MAX_PAUSE: Final = 0.01
"""Seconds between two of them: several times as long as the others wait between two looks."""
_ABANDONED: Final = 3_600_000
"""Milliseconds after which an upload belongs to a process that died."""
_MAX_CACHED = 10_000
_DATA_VERSION = statements("refold.stores.sqlite", "sql/append.sql")["data_version"]

Row = tuple[int, bytes, int, str, int, bytes, str, str | None, str | None, int]
"""An entry as the statements select it: place, id, at, kind, version, body, scope, rests_on,
artifacts, forgotten."""


def place(key: int, seq: int) -> int:
    """The position of an entry in its table: those of a session are consecutive."""
    return key << SEQ_BITS | seq


def key_of(place: int) -> int:
    return place >> SEQ_BITS


def seq_of(place: int) -> int:
    return place & LAST_SEQ


def ends(segment: Segment) -> tuple[int, int]:
    return place(segment.source, segment.first), place(segment.source, segment.last)


class SessionRow(NamedTuple):
    key: int
    state: State
    used: int
    own_from: int
    forked_from: str | None
    revision: int
    unindexed: bool

    def info(self, session: str) -> SessionInfo:
        return self.state.info(session, self.own_from, self.forked_from)


Name = tuple[str, str]
"""A tenant and the name of one of its sessions."""


class SessionCache:
    """Session rows, and accounts of sessions, as the writer's connection last saw them.

    They are valid until another connection commits, which SQLite's data version tells. That saves
    an append from reading its session again.
    """

    def __init__(self) -> None:
        self._rows: dict[Name, SessionRow] = {}
        self._staged: dict[Name, SessionRow] = {}
        self._accounts: dict[int, KnownAccounts] = {}
        self._staged_accounts: dict[int, KnownAccounts] = {}
        self._version = -1

    def begin(self, db: sqlite3.Connection) -> None:
        """Begin a transaction: drop what others may have changed."""
        version = db.execute(_DATA_VERSION).fetchone()[0]
        if version != self._version or len(self._rows) > _MAX_CACHED:
            self._rows.clear()
            self._accounts.clear()
            self._version = version
        self._staged.clear()
        self._staged_accounts.clear()

    def get(self, name: Name) -> SessionRow | None:
        return self._staged.get(name) or self._rows.get(name)

    def stage(self, name: Name, row: SessionRow) -> None:
        """Set the row as this transaction leaves it."""
        self._staged[name] = row

    def put(self, name: Name, row: SessionRow) -> None:
        """Set the row as a statement that was a transaction of its own has left it."""
        self._rows[name] = row

    def accounts(self, key: int) -> KnownAccounts | None:
        """How the accounts of the session with this key stand."""
        return self._staged_accounts.get(key) or self._accounts.get(key)

    def stage_accounts(self, known: KnownAccounts) -> None:
        """Set the accounts as this transaction leaves them."""
        self._staged_accounts[known.key] = known

    def drop_accounts(self) -> None:
        """Forget all accounts: something else than an append changes them."""
        self._accounts.clear()
        self._staged_accounts.clear()

    def commit(self) -> None:
        self._rows.update(self._staged)
        self._accounts.update(self._staged_accounts)
        self._staged.clear()
        self._staged_accounts.clear()

    def clear(self) -> None:
        self._rows.clear()
        self._staged.clear()
        self.drop_accounts()


def entry_of(row: Row) -> Entry:
    place_, id_, at, kind, version, body, scope, rests_on, artifacts, forgotten = row
    holes, attached = load_artifacts(artifacts)
    try:
        body.decode()  # a body is JSON, and SQLite keeps no checksums of its pages
    except UnicodeDecodeError:
        raise StoreCorrupt("An entry of a session is damaged.") from None
    return Entry(
        seq_of(place_),
        UUID(bytes=id_),
        at,
        kind,
        version,
        body,
        scope,
        load_rests_on(rests_on),
        holes,
        attached,
        bool(forgotten),
    )


def row_of(entry: Entry, key: int, messages: int) -> Sequence[object]:
    """The columns of an entry, in the order of `add_entry`."""
    return (
        place(key, entry.seq),
        entry.id.bytes,
        entry.at,
        entry.kind,
        entry.version,
        entry.scope,
        messages,
        int(entry.kind in CONTROL_KINDS),  # an int: sqlite3 is slow with booleans
        int(entry.forgotten),
        dump_rests_on(entry),
        dump_artifacts(entry),
        entry.body,
    )


@dataclass(slots=True)
class Reading:
    db: sqlite3.Connection
    tenant: str


@dataclass(slots=True)
class Writing(Reading):
    cache: SessionCache
    now: int
    reach: Reach
    uploads: Mapping[str, int] = field(default_factory=dict[str, int])
    """Artifacts whose data was uploaded before, by their hash."""


# Large artifacts, written piece by piece before the entry that uses them.
#
# SQLite has one write lock for everybody. A message of 31 MB in one transaction holds it for as
# long as the disk takes for 31 MB, and all tenants wait. So its data is uploaded first, a piece in
# each transaction, with pauses in which others write. The append itself then only claims the
# upload.
#
# An upload that no append claimed is dropped: by the process that made it, or, if that died, by the
# next one that uploads. `forget` drops all of them at once, because one may hold a copy of
# forgotten text. That is safe at any time: an append whose upload was dropped writes the data
# itself.


def is_stored(tx: Reading, artifact: Artifact) -> bool:
    found = tx.db.execute(SQL_UPLOADS["has_artifact"], (tx.tenant, artifact.hash)).fetchone()
    return found is not None


def begin(tx: Writing) -> int:
    return tx.db.execute(SQL_UPLOADS["begin"], (_now(),)).lastrowid or 0


def pieces_of(artifact: Artifact) -> Iterator[tuple[int, bytes]]:
    for number, start in enumerate(range(0, len(artifact.data), PIECE)):
        yield number, artifact.data[start : start + PIECE]


def add_piece(tx: Writing, upload: int, number: int, piece: bytes) -> bool:
    """Write a piece; False when the upload is gone."""
    tx.reach("upload.begun")
    values = place(upload, number), piece, upload
    return tx.db.execute(SQL_UPLOADS["add_piece"], values).rowcount > 0


def claim(tx: Writing, upload: int, key: int) -> bool:
    """Make an upload the data of an artifact; False when it is gone."""
    return tx.db.execute(SQL_UPLOADS["claim"], (key, upload)).rowcount > 0


def data_of(tx: Reading, key: int) -> bytes:
    found = tx.db.execute(SQL_UPLOADS["of_artifact"], (key,)).fetchone()
    pieces = tx.db.execute(SQL_UPLOADS["pieces"], _ends(found[0])) if found else ()
    return b"".join(data for (data,) in pieces)


def drop_data(tx: Writing, key: int) -> None:
    """Drop the uploaded data of an artifact that nobody uses any more."""
    for (upload,) in tx.db.execute(SQL_UPLOADS["of_artifact"], (key,)).fetchall():
        _drop(tx.db, upload)


def abandoned(tx: Reading) -> list[int]:
    """The uploads whose append never came."""
    before = _now() - _ABANDONED
    return [upload for (upload,) in tx.db.execute(SQL_UPLOADS["unclaimed"], (before,)).fetchall()]


def drop_some(tx: Writing, upload: int) -> bool:
    """Drop a piece of an unclaimed upload; whether there are more."""
    if not tx.db.execute(SQL_UPLOADS["give_up"], (upload,)).rowcount:
        return False
    if tx.db.execute(SQL_UPLOADS["drop_piece"], _ends(upload)).rowcount:
        return True
    tx.db.execute(SQL_UPLOADS["drop"], (upload,))
    return False


def drop_unclaimed(db: sqlite3.Connection) -> None:
    """Drop all uploads that no append has claimed, also those under way."""
    db.execute("BEGIN IMMEDIATE")
    try:
        for (upload,) in db.execute(SQL_UPLOADS["unclaimed"], (_now() + _ABANDONED,)).fetchall():
            _drop(db, upload)
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise


def _drop(db: sqlite3.Connection, upload: int) -> None:
    db.execute(SQL_UPLOADS["drop_pieces"], _ends(upload))
    db.execute(SQL_UPLOADS["drop"], (upload,))


def _ends(upload: int) -> tuple[int, int]:
    return place(upload, 0), place(upload, LAST_SEQ)


def _now() -> int:
    return int(time() * 1_000)


def find_session(tx: Reading, session: str) -> SessionRow | None:
    found = tx.db.execute(SQL["session"], (tx.tenant, session)).fetchone()
    if found is None:
        return None
    key, form, profile, created, used, stored, not_before, own_from, before, forked = found[:10]
    unindexed, revision, *newest = found[10:]
    head, at, messages = newest if newest[0] is not None else (own_from - 1, created, before)
    state = State(head, messages, form, profile, created, at, Outline(), not_before)
    row = SessionRow(key, state, used, own_from, forked, revision, unindexed=bool(unindexed))
    outline = load(stored) or replay(controls(tx, row))
    return row._replace(state=state._replace(outline=outline))


def require_session(tx: Reading, session: str) -> SessionRow:
    """The session's row, or an error that says whether it was ever there."""
    row = find_session(tx, session)
    if row is None:
        raise missing(session, forgotten_at(tx, session))
    return row


def forgotten_at(tx: Reading, session: str) -> int:
    found = tx.db.execute(SQL["forgotten_at"], (tx.tenant, session)).fetchone()
    return found[0] if found else 0


def segments(tx: Reading, row: SessionRow, span: Span | None = None) -> list[Segment]:
    """Where the session's entries lie, or those of the span, in the order of their seqs."""
    span = span or Span(1, LAST_SEQ)
    found: list[Segment] = []
    if span.first < row.own_from:
        inherited = tx.db.execute(SQL["segments"], (row.key, span.first, span.last))
        found = [Segment(*segment) for segment in inherited]
    if row.state.head >= row.own_from:
        found.append(Segment(row.key, row.own_from, row.state.head))
    return list(within(found, span))


def read(tx: Reading, row: SessionRow, span: Span | None, *, is_whole: bool = True) -> list[Entry]:
    entries = [entry for segment in segments(tx, row, span) for entry in entries_in(tx, segment)]
    return whole(tx, entries) if is_whole else entries


def entries_in(tx: Reading, segment: Segment) -> list[Entry]:
    entries = [entry_of(found) for found in tx.db.execute(SQL["entries"], ends(segment))]
    if len(entries) != len(segment):
        raise StoreCorrupt(f"Of {len(segment)} entries of a session, {len(entries)} are there.")
    return entries


def controls(tx: Reading, row: SessionRow, upto: int = LAST_SEQ) -> list[Entry]:
    """The control entries up to a seq, request records without their bodies."""
    entries: list[Entry] = []
    for segment in segments(tx, row, Span(1, upto)):
        entries += map(entry_of, tx.db.execute(SQL["controls"], ends(segment)))
    return whole(tx, entries)


def whole(tx: Reading, entries: Iterable[Entry]) -> list[Entry]:
    def fetch(hash_: str) -> bytes:
        try:
            return artifact(tx, hash_).data
        except ArtifactNotFound as error:
            raise StoreCorrupt(f"An entry refers to artifact {hash_}, which is gone.") from error

    return [restore(entry, fetch) for entry in entries]


def artifact(tx: Reading, hash_: str) -> Artifact:
    found = tx.db.execute(SQL["artifact"], (tx.tenant, hash_)).fetchone()
    if found is None:
        raise ArtifactNotFound(f"There is no artifact {hash_}.")
    key, data, media_type = found
    stored = Artifact.of(data_of(tx, key) if data is None else data, media_type)
    if stored.hash != hash_:
        raise StoreCorrupt(f"Artifact {hash_} is damaged.")
    return stored


def outlined(tx: Reading, session: str) -> Outlined:
    row = require_session(tx, session)
    return Outlined(row.info(session), row.state.outline)


def visible(tx: Reading, session: str, last: int | None) -> Visible:
    row = require_session(tx, session)
    outline = row.state.outline
    needed = outline.needed(row.state.head, last)
    entries = {entry.seq: entry for span in needed for entry in read(tx, row, span)}
    if outline.record is not None:
        chain = spans_of(chain_of(entries[outline.record]))
        for span in subtract(chain, needed):
            entries |= {entry.seq: entry for entry in read(tx, row, span)}
    return Visible(row.info(session), outline, tuple(entries[seq] for seq in sorted(entries)))
