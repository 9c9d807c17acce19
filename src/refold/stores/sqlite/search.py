"""Finding entries and sessions by their words; the word index, and the list of sessions."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby, islice
from operator import itemgetter

from refold.errors import WrittenByNewer
from refold.log.entry import Entry
from refold.log.excerpt import excerpt
from refold.log.outline import Segment
from refold.log.protocol import (
    Hit,
    Match,
    Matches,
    SessionInfo,
    SessionPage,
    page_after,
    parse_page,
)
from refold.log.text import UNICODE, WORDS_VERSION, Term, gather, index_words, text_of
from refold.log.text import terms as terms_of
from refold.stores.sql import statements
from refold.stores.sqlite.read import (
    LAST_SEQ,
    MINUTE,
    Reading,
    Writing,
    ends,
    entries_in,
    entry_of,
    key_of,
    place,
    require_session,
    segments,
    seq_of,
    whole,
)

SQL = statements("refold.stores.sqlite", "sql/search.sql")
SQL_INDEX = statements("refold.stores.sqlite", "sql/index.sql")
_SQL_LIST = statements("refold.stores.sqlite", "sql/list.sql")
_AT_ONCE = 200  # entries in one transaction, unless they are long: appends wait no longer than that
_LETTERS = 1_000_000  # of words in one transaction, about
_VERSION = "words_version"
_UNICODE = "unicode_version"


def search(tx: Reading, query: str, session: str | None, limit: int) -> list[Hit]:
    match = _all_terms(query)
    found = _within(tx, session, match, limit) if session else _everywhere(tx, match)
    hits: list[Hit] = []
    for name, place_ in islice(found, limit if limit >= 0 else None):
        seq = seq_of(place_)
        [entry] = whole(tx, entries_in(tx, Segment(key_of(place_), seq, seq)))
        hits.append(Hit(name, entry, excerpt(text_of(entry), query)))
    return hits


def matches(tx: Reading, terms: Sequence[Term], session: str | None, max_matches: int) -> Matches:
    """The entries that hold any of the terms; an index finds them, and few are read."""
    if session:
        row = require_session(tx, session)
        where = [ends(segment) for segment in reversed(segments(tx, row))]
        size = 1, row.state.messages
    else:
        where = None
        size = tx.db.execute(SQL["size"], (tx.tenant,)).fetchone()
    places = [_places(tx, term, where) for term in terms]
    gathered = gather(places, max_matches)
    found = tuple(_load_matches(tx, gathered, session))
    return Matches(found, tuple(map(len, places)), size[1], size[0])


def _sessions_with(tx: Reading, query: str) -> set[int]:
    match = _all_terms(query)
    if match is None:
        return set()
    places = [found for found, *_ in tx.db.execute(SQL["matches"], (match, tx.tenant))]
    return {key for found in places for key in _readers(tx, found)}


def _all_terms(query: str) -> str | None:
    runs = terms_of(query)
    return " AND ".join(f'"{" ".join(run)}"' for run in runs) if runs else None


def _places(tx: Reading, term: Term, where: Sequence[tuple[int, int]] | None) -> list[int]:
    if not any(term):
        return []
    match = " OR ".join(f'"{" ".join(run)}"' for run in term if run)
    if where is None:
        return [found for (found,) in tx.db.execute(SQL["places"], (match, tx.tenant))]
    return [
        found
        for first, last in where
        for (found,) in tx.db.execute(SQL["places_within"], (match, first, last))
    ]


def _load_matches(
    tx: Reading, gathered: dict[int, tuple[int, ...]], session: str | None
) -> Iterator[Match]:
    @cache
    def name_of(key: int) -> str | None:
        return tx.db.execute(SQL["name"], (key,)).fetchone()[0]

    yielded: set[tuple[bytes, int]] = set()
    rows = tx.db.execute(SQL["matched"], (json.dumps(list(gathered)),)).fetchall()
    for place_, id_, time, kind, scope, nth, size in rows:
        seq = seq_of(place_)
        if (id_, seq) not in yielded:
            yielded.add((id_, seq))
            name = session or name_of(key_of(place_))
            if name is None:
                # A fork is younger than what it reads: only a nameless session has older readers.
                readers = map(name_of, sorted(_readers(tx, place_)))
                name = next(reader for reader in readers if reader is not None)
            yield Match(name, seq, time, kind, scope, nth, _varint(size), gathered[place_])


def _varint(data: bytes) -> int:
    """A number as the index writes it: seven bits in a byte, the highest first."""
    value = 0
    for byte in data:
        value = value << 7 | byte & 0x7F
    return value


def _within(tx: Reading, session: str, match: str | None, limit: int) -> Iterator[tuple[str, int]]:
    row = require_session(tx, session)
    for segment in reversed(segments(tx, row)) if match else ():
        values = (match, *ends(segment), limit)
        for (found,) in tx.db.execute(SQL["matches_within"], values).fetchall():
            yield session, found


def _everywhere(tx: Reading, match: str | None) -> Iterator[tuple[str, int]]:
    """Each entry once, in the oldest session that reads it."""
    if match is None:
        return
    rows = tx.db.execute(SQL["matches"], (match, tx.tenant)).fetchall()
    for _, same in groupby(rows, itemgetter(1, 2)):
        places = [row[0] for row in same]
        for key, oldest in sorted((key, found) for found in places for key in _readers(tx, found)):
            (name,) = tx.db.execute(SQL["name"], (key,)).fetchone()
            if name is not None:
                yield name, oldest
                break


def _readers(tx: Reading, place_: int) -> set[int]:
    key, seq = key_of(place_), seq_of(place_)
    return {key, *(reader for (reader,) in tx.db.execute(SQL["readers"], (key, seq, seq)))}


# The word index, kept off the append path: each search first brings it up to date.


def unindexed(db: sqlite3.Connection) -> list[tuple[int, int]]:
    """The sessions with entries that are not indexed yet, and how far they go now."""
    return db.execute(SQL_INDEX["unindexed"]).fetchall()


def index_some(tx: Writing, key: int, upto: int) -> bool:
    """Index some entries of a session; whether more are left before `upto`."""
    check_words(tx)
    found = tx.db.execute(SQL_INDEX["progress"], (key,)).fetchone()
    if found is None:
        return False
    indexed, tenant = found
    ends = place(key, indexed + 1), place(key, LAST_SEQ)
    rows = tx.db.execute(SQL_INDEX["next_entries"], (*ends, _AT_ONCE)).fetchall()
    reached, letters, more = indexed, 0, len(rows) == _AT_ONCE
    for row in rows:
        if letters >= _LETTERS:
            more = True
            break
        entry = entry_of(row)
        if entry.holes:
            [entry] = whole(Reading(tx.db, tenant), [entry])
        if text := _indexed_text(entry):
            tx.db.execute(SQL_INDEX["add_words"], (row[0], text))
            letters += len(text)
        reached = seq_of(row[0])
    tx.db.execute(SQL_INDEX["set_progress"], (reached, more, key))
    tx.reach("index.written")
    return more and reached < upto


def check_words(tx: Writing) -> None:
    """Clear the index if another version of the word rules filled it."""
    version = _fact(tx, _VERSION)
    if version > WORDS_VERSION:
        raise WrittenByNewer("The store's word index was made by a newer Refold.")
    if version < WORDS_VERSION or _fact(tx, _UNICODE) != UNICODE:
        tx.db.execute(SQL_INDEX["empty_words"])
        tx.db.execute(SQL_INDEX["index_all_anew"])
        tx.db.execute(SQL_INDEX["set_fact"], (_VERSION, WORDS_VERSION))
        tx.db.execute(SQL_INDEX["set_fact"], (_UNICODE, UNICODE))


def _fact(tx: Writing, name: str) -> int:
    found = tx.db.execute(SQL_INDEX["fact"], (name,)).fetchone()
    return found[0] if found else 0


def unindex(tx: Writing, place_: int, entry: Entry, indexed: int) -> None:
    """Take an entry (read whole) out of the index, if it is in it."""
    if entry.seq <= indexed and (text := _indexed_text(entry)):
        tx.db.execute(SQL_INDEX["remove_words"], (place_, text))


def _indexed_text(entry: Entry) -> str:
    """What is indexed of an entry: its words, separated by spaces."""
    return " ".join(index_words(text_of(entry)))


def sessions(tx: Reading, search: str | None, limit: int, page: str | None) -> SessionPage:
    updated_at, key = parse_page(page)
    matching = set[int]() if search is None else _sessions_with(tx, search)
    rows = tx.db.execute(
        _SQL_LIST["newest"],
        {"tenant": tx.tenant, "used": updated_at // MINUTE, "updated_at": updated_at, "key": key},
    )
    shown: list[SessionInfo] = []
    last = ""
    for row_key, name, updated in rows:
        if search is None or row_key in matching or name.startswith(search):
            if len(shown) >= limit:
                return SessionPage(tuple(shown), last or None)
            shown.append(require_session(tx, name).info(name))
            last = page_after(updated, row_key)
    return SessionPage(tuple(shown))
