"""Finding entries and sessions by their words."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
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
    last_shown,
    page_after,
)
from refold.log.text import UNICODE, WORDS_VERSION, Term, gather, index_words, terms, text_of
from refold.stores.sql import statements
from refold.stores.sqlite.read import (
    LAST_SEQ,
    MINUTE,
    Reading,
    Writing,
    ends,
    entries_in,
    entry_of,
    info,
    key_of,
    place,
    segments,
    seq_of,
    the_session,
    whole,
)

SQL = statements("refold.stores.sqlite", "sql/search.sql")


def search(tx: Reading, query: str, session: str | None, limit: int) -> list[Hit]:
    """The entries that hold the query's terms, newest first."""
    match = _match(query)
    found = _within(tx, session, match, limit) if session else _everywhere(tx, match)
    hits: list[Hit] = []
    for name, at in found:
        if len(hits) == limit:
            break
        entry = _entry(tx, at)
        hits.append(Hit(name, entry, excerpt(text_of(entry), query)))
    return hits


def matches(tx: Reading, looked_for: Sequence[Term], session: str | None, most: int) -> Matches:
    """The entries that hold any of the terms; an index finds them, and few are read."""
    if session:
        row = the_session(tx, session)
        where = [ends(segment) for segment in reversed(segments(tx, row))]
        places = [_places_within(tx, term, where) for term in looked_for]
        size = 1, row.state.messages
    else:
        places = [_places(tx, term) for term in looked_for]
        size = tx.db.execute(SQL["size"], (tx.tenant,)).fetchone()
    taken = gather(places, most)
    found = tuple(_matched(tx, taken, session))
    return Matches(found, tuple(map(len, places)), size[1], size[0])


def sessions_with(tx: Reading, query: str) -> set[int]:
    """The keys of the sessions that read an entry with the query's terms."""
    match = _match(query)
    if match is None:
        return set()
    places = [at for at, *_ in tx.db.execute(SQL["matches"], (match, tx.tenant))]
    return {key for at in places for key in _reading(tx, at)}


def _match(query: str) -> str | None:
    runs = terms(query)
    return " AND ".join(f'"{" ".join(run)}"' for run in runs) if runs else None


def _places(tx: Reading, term: Term) -> list[int]:
    if not any(term):
        return []
    return [at for (at,) in tx.db.execute(SQL["places"], (_either(term), tx.tenant))]


def _places_within(tx: Reading, term: Term, where: Sequence[tuple[int, int]]) -> list[int]:
    if not any(term):
        return []
    match = _either(term)
    return [
        at
        for first, last in where
        for (at,) in tx.db.execute(SQL["places_within"], (match, first, last))
    ]


def _either(term: Term) -> str:
    return " OR ".join(f'"{" ".join(run)}"' for run in term if run)


def _matched(
    tx: Reading, taken: dict[int, tuple[int, ...]], session: str | None
) -> Iterator[Match]:
    """What a ranking needs of the entries at these places, each once."""

    @cache
    def named(key: int) -> str | None:
        return tx.db.execute(SQL["name"], (key,)).fetchone()[0]

    seen: set[tuple[bytes, int]] = set()
    rows = tx.db.execute(SQL["matched"], (json.dumps(list(taken)),)).fetchall()
    for at, id_, time, kind, scope, nth, size in rows:
        seq = seq_of(at)
        if (id_, seq) not in seen:
            seen.add((id_, seq))
            # A fork is younger than what it reads, so only a nameless session has an older reader.
            name = session or named(key_of(at)) or _first_name(tx, at)
            yield Match(name, seq, time, kind, scope, nth, _varint(size), taken[at])


def _first_name(tx: Reading, at: int) -> str:
    names = (tx.db.execute(SQL["name"], (key,)).fetchone()[0] for key in sorted(_reading(tx, at)))
    return next(name for name in names if name is not None)


def _varint(data: bytes) -> int:
    """A number as the index writes it: seven bits in a byte, the highest first."""
    value = 0
    for byte in data:
        value = value << 7 | byte & 0x7F
    return value


def _within(tx: Reading, session: str, match: str | None, limit: int) -> Iterator[tuple[str, int]]:
    row = the_session(tx, session)
    for segment in reversed(segments(tx, row)) if match else ():
        values = (match, *ends(segment), limit)
        for (at,) in tx.db.execute(SQL["matches_within"], values).fetchall():
            yield session, at


def _everywhere(tx: Reading, match: str | None) -> Iterator[tuple[str, int]]:
    """Each entry once, in the oldest session that reads it."""
    if match is None:
        return
    matches = tx.db.execute(SQL["matches"], (match, tx.tenant)).fetchall()
    for _, same in groupby(matches, itemgetter(1, 2)):
        places = [row[0] for row in same]
        for key, at in sorted((key, found) for found in places for key in _reading(tx, found)):
            (name,) = tx.db.execute(SQL["name"], (key,)).fetchone()
            if name is not None:
                yield name, at
                break


def _reading(tx: Reading, at: int) -> set[int]:
    key, seq = key_of(at), seq_of(at)
    return {key, *(reader for (reader,) in tx.db.execute(SQL["readers"], (key, seq, seq)))}


def _entry(tx: Reading, at: int) -> Entry:
    [entry] = whole(tx, entries_in(tx, Segment(key_of(at), seq_of(at), seq_of(at))))
    return entry


# The word index, kept off the append path: it is brought up to date by whoever searches.

SQL_INDEX = statements("refold.stores.sqlite", "sql/index.sql")
_AT_ONCE = 200  # entries in one transaction, unless they are long: appends wait no longer than that
_LETTERS = 1_000_000  # of words in one transaction, about
_VERSION = "words_version"
_UNICODE = "unicode_version"


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
    """Begin the index anew when this version makes other words than the one that filled it."""
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


def unindex(tx: Writing, at: int, entry: Entry, indexed: int) -> None:
    """Take an entry (read whole) out of the index, if it is in it."""
    if entry.seq <= indexed and (text := _indexed_text(entry)):
        tx.db.execute(SQL_INDEX["remove_words"], (at, text))


def _indexed_text(entry: Entry) -> str:
    """What the index is given of an entry: its words, with a space between each two."""
    return " ".join(index_words(text_of(entry)))


def merge(db: sqlite3.Connection) -> None:
    """Rewrite the index without what was taken out of it."""
    db.execute(SQL_INDEX["merge_words"])


# The list of sessions.

SQL_LISTING = statements("refold.stores.sqlite", "sql/list.sql")


def sessions(tx: Reading, search: str | None, limit: int, page: str | None) -> SessionPage:
    """A page of the sessions, last used first."""
    updated_at, key = last_shown(page)
    matching = set[int]() if search is None else sessions_with(tx, search)
    rows = tx.db.execute(
        SQL_LISTING["newest"],
        {"tenant": tx.tenant, "used": updated_at // MINUTE, "updated_at": updated_at, "key": key},
    )
    shown: list[SessionInfo] = []
    last = ""
    for row_key, name, updated in rows:
        if search is None or row_key in matching or name.startswith(search):
            if len(shown) >= limit:
                return SessionPage(tuple(shown), last or None)
            shown.append(info(the_session(tx, name), name))
            last = page_after(updated, row_key)
    return SessionPage(tuple(shown))
