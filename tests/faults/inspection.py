"""Looking at a store's file from outside: what must hold in it, whatever happened before.

Nothing here may run while this process has the file open as a store: closing a second handle
would let go of the first one's locks.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from uuid import UUID

from scenarios import open_store

from refold.log import Entry, Message
from refold.log.outline import CONTROL_KINDS, replay
from refold.log.text import index_words, text_of

_SEQ_BITS = 32
_INDEX = "words"
# Of the uploads, those that an entry uses; another one is nobody's, and is dropped by and by.
_CLAIMED = """
(SELECT artifact, place & 0xffffffff, data FROM upload_pieces JOIN uploads ON id = place >> 32
 WHERE artifact IS NOT NULL ORDER BY 1, 2)
"""


def contents(path: Path) -> dict[str, list[tuple]]:
    """Every row of every table, and every place of every word."""
    with _database(path) as db:
        found = {table: sorted(_rows(db, table), key=repr) for table in _tables(db)}
        # Random in each store: what counts is that it is signed.
        found["facts"] = [
            (name, "random" if name.startswith("owner ") else value)
            for name, value in found["facts"]
        ]
        del found["upload_pieces"]
        found["uploads"] = _rows(db, _CLAIMED)
        return {**found, _INDEX: sorted(_vocabulary(db))}


async def entries_of(path: Path) -> dict[str, list[Entry]]:
    """Every session as the log reads it."""
    async with open_store(path) as store:
        log = store.log()
        listed = await log.sessions(limit=1000)
        return {one.session: await log.read(one.session) for one in listed.sessions}


async def check(path: Path) -> None:
    """Everything that must hold in any store."""
    entries = await _check_sessions(path)
    with _database(path) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        _check_artifacts(db)
        _check_words(db, entries)
        # It counts as writing, so it comes last; closing takes it back.
        db.execute("INSERT INTO words (words) VALUES ('integrity-check')")


def files_of(path: Path) -> dict[str, bytes]:
    """The store's file and those that SQLite keeps beside it."""
    return {file.name: file.read_bytes() for file in path.parent.glob(f"{path.name}*")}


async def _check_sessions(path: Path) -> dict[UUID, Entry]:
    """No gaps, no id twice, and what is kept beside the entries agrees with them; all of them."""
    found: dict[UUID, Entry] = {}
    async with open_store(path) as store:
        log = store.log()
        for info in (await log.sessions(limit=1000)).sessions:
            entries = await log.read(info.session)
            assert [entry.seq for entry in entries] == list(range(1, info.entries + 1))
            assert len({entry.id for entry in entries}) == len(entries)
            assert info.messages == sum(entry.kind == Message.KIND for entry in entries)
            visible = await log.visible(info.session)
            assert visible.info == info
            assert visible.outline == replay(e for e in entries if e.kind in CONTROL_KINDS)
            found |= {entry.id: entry for entry in entries}
    return found


def _check_artifacts(db: sqlite3.Connection) -> None:
    """Each is counted as often as it is referred to, and none lies around."""
    used: Counter[str] = Counter()
    for (column,) in db.execute("SELECT artifacts FROM entries WHERE artifacts IS NOT NULL"):
        holes, attached = json.loads(column)
        used.update([*(hash_ for _, _, hash_, _ in holes), *attached])
    assert dict(db.execute("SELECT hash, uses FROM artifacts")) == used
    listed = db.execute("SELECT key FROM artifacts ORDER BY key").fetchall()
    stored = "SELECT key FROM artifact_data UNION ALL SELECT artifact FROM uploads"
    whole = f"SELECT key FROM ({stored}) WHERE key IS NOT NULL ORDER BY key"  # noqa: S608 - ours
    assert db.execute(whole).fetchall() == listed


def _check_words(db: sqlite3.Connection, entries: dict[UUID, Entry]) -> None:
    """The index holds the words of what it is said to hold, and no others; the rest is noted."""
    sessions = db.execute("SELECT key, indexed, unindexed FROM sessions").fetchall()
    indexed = {key: upto for key, upto, _ in sessions}
    noted = {key for key, _, unindexed in sessions if unindexed}
    expected: Counter[tuple[str, int, int]] = Counter()
    for place, id_ in db.execute("SELECT place, id FROM entries"):
        key, seq = place >> _SEQ_BITS, place & ((1 << _SEQ_BITS) - 1)
        if seq <= indexed[key]:
            said = index_words(text_of(entries[UUID(bytes=id_)]))
            expected.update((word, place, at) for at, word in enumerate(said))
        else:
            assert key in noted
    assert Counter(_vocabulary(db)) == expected


@contextmanager
def _database(path: Path) -> Iterator[sqlite3.Connection]:
    """The file as SQLite sees it, in one read transaction."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab('main', words, instance)")
        db.execute("BEGIN")
        yield db


def _tables(db: sqlite3.Connection) -> list[str]:
    """All but SQLite's own and those under the index, which may hold the same words otherwise."""
    found = db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
    return [name for (name,) in found if not name.startswith(("sqlite_", _INDEX))]


def _rows(db: sqlite3.Connection, table: str) -> list[tuple]:
    return db.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608 - our own tables


def _vocabulary(db: sqlite3.Connection) -> Iterator[tuple[str, int, int]]:
    return db.execute('SELECT term, doc, "offset" FROM temp.vocabulary')
