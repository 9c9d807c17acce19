"""Finding entries and sessions by their words."""

import json
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from operator import itemgetter

from refold.log.entry import Entry
from refold.log.excerpt import excerpt
from refold.log.lineage import Segment
from refold.log.protocol import Hit, Match, Matches
from refold.log.text import Term, gather, terms, text_of
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
