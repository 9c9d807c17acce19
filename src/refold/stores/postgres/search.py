"""Finding entries and sessions by their words."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from uuid import UUID

from refold.log.excerpt import excerpt
from refold.log.protocol import Hit, Match, Matches
from refold.log.text import Run, Term, index_words, text_of
from refold.log.text import terms as terms_of
from refold.stores.postgres.fork import columns
from refold.stores.postgres.read import segments, the_session, whole
from refold.stores.postgres.rows import entry_of, unpacked
from refold.stores.postgres.transaction import Reading, Row
from refold.stores.sql import statements

SQL = statements("refold.stores.postgres", "sql/search.sql")
_MOST = (1 << 63) - 1


async def search(tx: Reading, query: str, session: str | None, limit: int) -> list[Hit]:
    """The entries that hold the query's terms, newest first."""
    runs = _runs(query)
    limit = max(0, min(limit, _MOST))
    if session is not None:
        found = await _within(tx, session, runs, limit)
    else:
        found = await tx.all(SQL["found"], (tx.tenant, runs, limit)) if runs else []
    keys, seqs = [key for _, key, _ in found], [seq for _, _, seq in found]
    rows = await tx.all(SQL["entries_at"], (tx.tenant, keys, seqs)) if found else []
    at = {(row[0], row[1]): nth for nth, row in enumerate(rows)}
    entries = await whole(tx, map(entry_of, rows))
    ordered = [(name, entries[at[key, seq]]) for name, key, seq in found]
    return [Hit(name, entry, excerpt(text_of(entry), query)) for name, entry in ordered]


async def matches(tx: Reading, terms: Sequence[Term], session: str | None, most: int) -> Matches:
    """The entries that hold any of the terms; an index finds them, and few are read."""
    where: tuple[object, ...] = None, None, None
    if session is not None:
        row = await the_session(tx, session)
        where = columns(await segments(tx, row))
        size = 1, row.state.messages
    else:
        size = await tx.one(SQL["size"], (tx.tenant,)) or (0, 0)
    runs = [(nth, run) for nth, term in enumerate(terms) for run in _findable(term)]
    wanted = [nth for nth, _ in runs], [run for _, run in runs]
    rows: list[Row] = []
    if runs:
        rows = await tx.all(SQL["matches"], (tx.tenant, *wanted, max(0, min(most, _MOST)), *where))
    counts: dict[int, int] = (
        dict(zip(rows[0][0] or (), rows[0][1] or (), strict=True)) if rows else {}
    )
    holding = tuple(counts.get(nth, 0) for nth in range(len(terms)))
    return Matches(tuple(_matched(rows, session)), holding, size[1], size[0])


async def sessions_with(tx: Reading, query: str) -> set[int]:
    """The keys of the sessions that read an entry with the query's terms."""
    runs = _runs(query)
    found = await tx.all(SQL["sessions_with"], (tx.tenant, runs)) if runs else []
    return {key for (key,) in found}


def _runs(query: str) -> list[str]:
    """The query's terms, each once."""
    return list(dict.fromkeys(" ".join(run) for run in terms_of(query)))


def _findable(term: Term) -> Iterator[str]:
    """The runs of a term that any entry could hold."""
    yield from dict.fromkeys(" ".join(run) for run in term if _may_be_held(run))


def _may_be_held(run: Run) -> bool:
    return bool(run) and index_words(" ".join(run)) == list(run)


async def _within(
    tx: Reading, session: str, runs: Sequence[str], limit: int
) -> list[tuple[Any, ...]]:
    row = await the_session(tx, session)
    where = columns(await segments(tx, row))
    found = await tx.all(SQL["found_within"], (runs, *where, limit)) if runs else []
    return [(session, *place) for place in found]


def _matched(rows: Iterable[Row], session: str | None) -> Iterator[Match]:
    """What a ranking needs of the entries, each once."""
    seen: set[tuple[UUID, int]] = set()
    for _, _, held, name, seq, id_, at, kind, scope, nth, size in rows:
        if held is not None and (id_, seq) not in seen:
            seen.add((id_, seq))
            yield Match(session or name, seq, at, kind, unpacked(scope), nth, size, tuple(held))
