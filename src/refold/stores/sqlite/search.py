"""Finding entries and sessions by their words."""

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter

from refold.log.entry import Entry
from refold.log.lineage import Segment
from refold.log.protocol import Hit
from refold.log.text import excerpt, terms, text_of
from refold.stores.sql import statements
from refold.stores.sqlite.read import entries_in, segments, the_session, whole
from refold.stores.sqlite.rows import ends, key_of, seq_of
from refold.stores.sqlite.transaction import Reading

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
        places = [found[0] for found in same]
        for key, at in sorted((key, place) for place in places for key in _reading(tx, place)):
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
