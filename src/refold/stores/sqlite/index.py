"""The word index, kept off the append path: it is brought up to date by whoever searches."""

import sqlite3

from refold.errors import WrittenByNewer
from refold.log.entry import Entry
from refold.log.text import UNICODE, WORDS_VERSION, index_words, text_of
from refold.stores.sql import statements
from refold.stores.sqlite.read import whole
from refold.stores.sqlite.rows import LAST_SEQ, entry_of, place, seq_of
from refold.stores.sqlite.transaction import Reading, Writing

SQL = statements("refold.stores.sqlite", "sql/index.sql")
_AT_ONCE = 200  # entries in one transaction, unless they are long: appends wait no longer than that
_LETTERS = 1_000_000  # of words in one transaction, about
_VERSION = "words_version"
_UNICODE = "unicode_version"


def unindexed(db: sqlite3.Connection) -> list[tuple[int, int]]:
    """The sessions with entries that are not indexed yet, and how far they go now."""
    return db.execute(SQL["unindexed"]).fetchall()


def index_some(tx: Writing, key: int, upto: int) -> bool:
    """Index some entries of a session; whether more are left before `upto`."""
    check_words(tx)
    found = tx.db.execute(SQL["progress"], (key,)).fetchone()
    if found is None:
        return False
    indexed, tenant = found
    ends = place(key, indexed + 1), place(key, LAST_SEQ)
    rows = tx.db.execute(SQL["next_entries"], (*ends, _AT_ONCE)).fetchall()
    reached, letters, more = indexed, 0, len(rows) == _AT_ONCE
    for row in rows:
        if letters >= _LETTERS:
            more = True
            break
        entry = entry_of(row)
        if entry.holes:
            [entry] = whole(Reading(tx.db, tenant), [entry])
        if text := _indexed_text(entry):
            tx.db.execute(SQL["add_words"], (row[0], text))
            letters += len(text)
        reached = seq_of(row[0])
    tx.db.execute(SQL["set_progress"], (reached, more, key))
    tx.reach("index.written")
    return more and reached < upto


def check_words(tx: Writing) -> None:
    """Begin the index anew when this version makes other words than the one that filled it."""
    version = _fact(tx, _VERSION)
    if version > WORDS_VERSION:
        raise WrittenByNewer("The store's word index was made by a newer Refold.")
    if version < WORDS_VERSION or _fact(tx, _UNICODE) != UNICODE:
        tx.db.execute(SQL["empty_words"])
        tx.db.execute(SQL["index_all_anew"])
        tx.db.execute(SQL["set_fact"], (_VERSION, WORDS_VERSION))
        tx.db.execute(SQL["set_fact"], (_UNICODE, UNICODE))


def _fact(tx: Writing, name: str) -> int:
    found = tx.db.execute(SQL["fact"], (name,)).fetchone()
    return found[0] if found else 0


def unindex(tx: Writing, at: int, entry: Entry, indexed: int) -> None:
    """Take an entry (read whole) out of the index, if it is in it."""
    if entry.seq <= indexed and (text := _indexed_text(entry)):
        tx.db.execute(SQL["remove_words"], (at, text))


def _indexed_text(entry: Entry) -> str:
    """What the index is given of an entry: its words, with a space between each two."""
    return " ".join(index_words(text_of(entry)))


def merge(db: sqlite3.Connection) -> None:
    """Rewrite the index without what was taken out of it."""
    db.execute(SQL["merge_words"])
