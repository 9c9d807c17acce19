"""Finding entries and sessions by their words; the word index, and the list of sessions."""

from asyncio import sleep
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple
from uuid import UUID

from refold.errors import WrittenByNewer
from refold.log.entry import Entry
from refold.log.excerpt import excerpt
from refold.log.protocol import (
    END,
    Hit,
    Match,
    Matches,
    SessionInfo,
    SessionPage,
    page_after,
    parse_page,
)
from refold.log.text import (
    UNICODE,
    WORDS_VERSION,
    Term,
    index_words,
    text_of,
)
from refold.log.text import (
    terms as terms_of,
)
from refold.stores.postgres.connection import Reading, Row, Writing
from refold.stores.postgres.read import (
    MINUTE,
    Database,
    columns,
    entry_of,
    require_session,
    segments,
    session_of,
    unpacked,
    whole,
)
from refold.stores.sql import statements

SQL = statements("refold.stores.postgres", "sql/search.sql")
SQL_INDEX = statements("refold.stores.postgres", "sql/index.sql")
_SQL_LIST = statements("refold.stores.postgres", "sql/list.sql")
_MAX_LIMIT = (1 << 63) - 1
_ENTRIES: Final = 200  # read at once: of one session, and about as many in a batch of several
_SESSIONS: Final = 200
_WHOLE: Final = 20  # large bodies in memory at once
_LETTERS: Final = 1_000_000  # in a batch, about; and as many bytes of bodies are read at once
CHUNK_WORDS: Final = 20_000
"""An entry with more words is written in chunks of so many. Two processes that index an entry at
once must cut it alike: a change of this must raise `WORDS_VERSION`."""
_BODY: Final = 6
_VERSION: Final = "words_version"
_UNICODE: Final = "unicode_version"
_PAGE: Final = 1_000
_FEW: Final = 1_000
_UPDATED_AT: Final = 6
_AFTER_ALL: Final = "\U0010ffff"  # of what may follow in a name, which is printable


async def search(tx: Reading, query: str, session: str | None, limit: int) -> list[Hit]:
    runs = _runs(query)
    limit = max(0, min(limit, _MAX_LIMIT))
    if session is not None:
        row = await require_session(tx, session)
        where = columns(await segments(tx, row))
        rows = await tx.all(SQL["found_within"], (runs, *where, limit)) if runs else []
        found: list[Row] = [(session, *place) for place in rows]
    else:
        found = await tx.all(SQL["found"], (tx.tenant, runs, limit)) if runs else []
    keys, seqs = [key for _, key, _ in found], [seq for _, _, seq in found]
    rows = await tx.all(SQL["entries_at"], (tx.tenant, keys, seqs)) if found else []
    index_of = {(row[0], row[1]): index for index, row in enumerate(rows)}
    entries = await whole(tx, map(entry_of, rows))
    ordered = [(name, entries[index_of[key, seq]]) for name, key, seq in found]
    return [Hit(name, entry, excerpt(text_of(entry), query)) for name, entry in ordered]


async def matches(
    tx: Reading, terms: Sequence[Term], session: str | None, max_matches: int
) -> Matches:
    """The entries that hold any of the terms; an index finds them, and few are read."""
    where: tuple[object, ...] = None, None, None
    if session is not None:
        row = await require_session(tx, session)
        where = columns(await segments(tx, row))
        size = 1, row.state.messages
    else:
        size = await tx.first(SQL["size"], (tx.tenant,)) or (0, 0)
    runs = [(nth, run) for nth, term in enumerate(terms) for run in _findable(term)]
    rows: list[Row] = []
    if runs:
        looked_for = [nth for nth, _ in runs], [run for _, run in runs]
        limit = max(0, min(max_matches, _MAX_LIMIT))
        rows = await tx.all(SQL["matches"], (tx.tenant, *looked_for, limit, *where))
    counts: dict[int, int] = (
        dict(zip(rows[0][0] or (), rows[0][1] or (), strict=True)) if rows else {}
    )
    holding = tuple(counts.get(nth, 0) for nth in range(len(terms)))
    return Matches(tuple(_unique_matches(rows, session)), holding, size[1], size[0])


def _runs(query: str) -> list[str]:
    return list(dict.fromkeys(" ".join(run) for run in terms_of(query)))


def _findable(term: Term) -> Iterator[str]:
    """The runs of a term that any entry could hold."""
    runs = [run for run in term if run and index_words(" ".join(run)) == list(run)]
    yield from dict.fromkeys(map(" ".join, runs))


def _unique_matches(rows: Iterable[Row], session: str | None) -> Iterator[Match]:
    yielded: set[tuple[UUID, int]] = set()
    for _, _, terms, name, seq, id_, at, kind, scope, nth, size in rows:
        if terms is not None and (id_, seq) not in yielded:
            yielded.add((id_, seq))
            yield Match(session or name, seq, at, kind, unpacked(scope), nth, size, tuple(terms))


# The word index, kept off the append path: each search first brings it up to date.
#
# A batch of entries is read without a lock. To write their words, a transaction first makes sure
# that nobody has forgotten any of them since, and keeps it so (a forget waits, an append does not);
# its last statement notes how far the sessions are indexed now. Two processes that index the same
# entries at once write the same words, and one of them finds them there.
#
# A batch is kept small, in entries and in letters, so that it is written well within the time that
# a statement has. A single entry may be longer than that: its words are written in chunks, by as
# many statements as it takes (see `CHUNK_WORDS`).


class Unindexed(NamedTuple):
    """A session with entries that may not be indexed yet."""

    key: int
    head: int
    entries: int
    """About how many they are."""


Line = tuple[int, int, str]
"""Seq, how many words, the words."""
Chunk = tuple[int, int, int, str]
"""Seq, which chunk of the entry's words, how many words the entry has, the words of the chunk."""


class _Words(NamedTuple):
    lines: list[Line]
    chunks: list[Chunk]

    @property
    def letters(self) -> int:
        return sum(len(row[-1]) for row in (*self.lines, *self.chunks))

    def add(self, seq: int, words: Sequence[str]) -> int:
        """Add an entry's words; how many letters they have."""
        if len(words) <= CHUNK_WORDS:
            line = " ".join(words)
            self.lines.append((seq, len(words), line))
            return len(line)
        letters = 0
        for chunk, first in enumerate(range(0, len(words), CHUNK_WORDS), 1):
            line = " ".join(words[first : first + CHUNK_WORDS])
            self.chunks.append((seq, chunk, len(words), line))
            letters += len(line)
        return letters


class _Batch(NamedTuple):
    """The words of a session's next entries, and what was known of it when they were read."""

    key: int
    indexed: int
    revision: int
    reached: int
    words: _Words


async def index(store: Database, tenant: str) -> None:
    """Index what was appended up to now, a little at a time, so that appends go on."""
    waiting = await _unindexed(store, tenant)
    while waiting:
        tried = {session.key: session.head for session in _next_sessions(waiting)}
        batches, later = await store.read(tenant, partial(_next, keys=list(tried)))
        written = await store.write(tenant, partial(_write, batches=batches))
        if written is None:
            waiting = await _unindexed(store, tenant)
            continue
        left = later | {batch.key for batch in batches if batch.key not in written}
        left |= {batch.key for batch in batches if batch.reached < tried[batch.key]}
        waiting = [
            session for session in waiting if session.key in left or session.key not in tried
        ]


async def unindexed(tx: Reading) -> list[Unindexed] | None:
    """The sessions with entries that are not indexed yet; None where the words are not ours."""
    facts, found = await tx.together(
        (SQL_INDEX["facts"], (tx.tenant,)), (SQL_INDEX["unindexed"], (tx.tenant,))
    )
    return [Unindexed(*row) for row in found] if _are_ours(facts) else None


async def _unindexed(store: Database, tenant: str) -> list[Unindexed]:
    while (waiting := await store.read(tenant, unindexed)) is None:
        after: int | None = 0
        while after is not None:
            after = await store.write(tenant, partial(_clear_some, after=after))
    return waiting


def _are_ours(facts: Sequence[tuple[Any, ...]]) -> bool:
    """Whether the index was filled with words that this version finds.

    A Python that knows more characters rebuilds it, one that knows fewer accepts it as it is:
    otherwise processes of two Pythons over one store would undo each other's work forever.
    """
    versions = dict(facts)
    if versions.get(_VERSION, 0) > WORDS_VERSION:
        raise WrittenByNewer("The store's word index was made by a newer Refold.")
    return versions.get(_VERSION) == WORDS_VERSION and versions.get(_UNICODE, 0) >= UNICODE


def _next_sessions(waiting: Sequence[Unindexed]) -> Iterator[Unindexed]:
    count = 0
    for session in waiting[:_SESSIONS]:
        yield session
        count += min(session.entries, _ENTRIES)
        if count >= _ENTRIES:
            return


async def _next(tx: Reading, keys: Sequence[int]) -> tuple[list[_Batch], set[int]]:
    """The words of the next entries of these sessions; the sessions for which there was no room."""
    rows = await tx.all(SQL_INDEX["next_entries"], (tx.tenant, keys, _ENTRIES, _LETTERS))
    batches: list[_Batch] = []
    later: set[int] = set()
    room = _LETTERS
    for (key, head, indexed, revision), same in groupby(rows, itemgetter(0, 1, 2, 3)):
        found = [row[4:] for row in same if row[4] is not None]
        entries = [entry_of(row) for row in found if row[_BODY] is not None]
        taken, words = await _words(tx, entries, room)
        room -= words.letters
        if taken == len(found) < _ENTRIES:
            batches.append(_Batch(key, indexed, revision, max(head, indexed), words))
        elif taken:
            batches.append(_Batch(key, indexed, revision, entries[taken - 1].seq, words))
        else:
            later.add(key)
    return batches, later


async def _words(tx: Reading, entries: Sequence[Entry], room: int) -> tuple[int, _Words]:
    """The words of the first of these entries, as many as there is room for, and how many."""
    words = _Words([], [])
    taken = 0
    while taken < len(entries) and room > 0:
        for entry in await whole(tx, entries[taken : taken + _WHOLE]):
            if room <= 0:
                break
            taken += 1
            there = index_words(text_of(entry))
            if there:
                room -= words.add(entry.seq, there)
        await sleep(0)  # others on this loop have waited for the splitting of words
    return taken, words


async def _write(tx: Writing, batches: Sequence[_Batch]) -> set[int] | None:
    """Add the words; for which sessions that was done. None where the words are not ours."""
    _, facts, unchanged_rows = await tx.together(
        (SQL_INDEX["keep_version"], (tx.tenant, _VERSION)),
        (SQL_INDEX["facts"], (tx.tenant,)),
        (SQL_INDEX["keep_sessions"], (tx.tenant, *_transpose(batches, 3))),
    )
    if not _are_ours(facts):
        return None
    unchanged = {key for (key,) in unchanged_rows}
    ours = [batch for batch in batches if batch.key in unchanged]
    lines = [(batch.key, *line) for batch in ours for line in batch.words.lines]
    chunks = [(batch.key, *chunk) for batch in ours for chunk in batch.words.chunks]
    progress = [(batch.key, batch.indexed, batch.reached) for batch in ours]
    for some in _statements(chunks):
        await tx.run(SQL_INDEX["add_chunks"], (tx.tenant, *_transpose(some, 5)))
    await tx.together(
        (SQL_INDEX["add_words"], (tx.tenant, *_transpose(lines, 4))),
        (SQL_INDEX["set_progress"], (tx.tenant, *_transpose(progress, 3))),
    )
    tx.reach("index.written")
    return unchanged


def _transpose(rows: Sequence[Row], width: int) -> list[list[object]]:
    """The first columns of the rows, as statements take them."""
    return [[row[column] for row in rows] for column in range(width)]


def _statements(chunks: Sequence[tuple[int, *Chunk]]) -> Iterator[list[tuple[int, *Chunk]]]:
    """The chunks in lists of about as many letters as one statement may write."""
    some: list[tuple[int, *Chunk]] = []
    letters = 0
    for chunk in chunks:
        some.append(chunk)
        letters += len(chunk[-1])
        if letters >= _LETTERS:
            yield some
            some, letters = [], 0
    if some:
        yield some


async def _clear_some(tx: Writing, after: int) -> int | None:
    """Remove some sessions after a key from the index; the last of them, None when done."""
    if _are_ours(await tx.all(SQL_INDEX["facts"], (tx.tenant,))):
        return None
    rows = await tx.all(SQL_INDEX["hold_indexed"], (tx.tenant, after, _SESSIONS))
    if rows:
        values = tx.tenant, [key for (key,) in rows]
        await tx.together(
            (SQL_INDEX["drop_words"], values),
            (SQL_INDEX["drop_chunks"], values),
            (SQL_INDEX["index_anew"], values),
        )
        return rows[-1][0]
    # Nobody adds words while we hold this, so if none are left now, there are none.
    await tx.run(SQL_INDEX["hold_version"], (tx.tenant, _VERSION))
    if await tx.first(SQL_INDEX["hold_indexed"], (tx.tenant, 0, 1)):
        return 0
    await tx.together(
        (SQL_INDEX["set_fact"], (tx.tenant, _VERSION, WORDS_VERSION)),
        (SQL_INDEX["set_fact"], (tx.tenant, _UNICODE, UNICODE)),
    )
    return None


class _Filter(NamedTuple):
    keys: Sequence[int]
    prefix: str | None
    """Sessions whose names begin so are listed too; None where they are among the keys."""


async def sessions(tx: Reading, search: str | None, limit: int, page: str | None) -> SessionPage:
    only = None if search is None else await _filter(tx, search)
    updated_at, key = parse_page(page)
    after = max(-END[0], min(updated_at, END[0])), max(-END[1], min(key, END[1]))
    count = max(0, min(limit, _PAGE)) + 1
    shown: list[SessionInfo] = []
    last = ""
    while True:
        rows = await _next_in_list(tx, only, after, count)
        for name, *row in rows:
            if len(shown) >= limit:
                return SessionPage(tuple(shown), last or None)
            shown.append((await session_of(tx, tuple(row))).info(name))
            after = row[_UPDATED_AT], row[0]
            last = page_after(*after)
        if len(rows) < count:
            return SessionPage(tuple(shown))


async def _filter(tx: Reading, search: str) -> _Filter:
    runs = _runs(search)
    rows = await tx.all(SQL["sessions_with"], (tx.tenant, runs)) if runs else []
    keys = {key for (key,) in rows}
    if not search.isprintable():  # then no name begins so
        return _Filter(list(keys), None)
    if len(keys) <= _FEW:
        names = search, search + _AFTER_ALL, _FEW + 1
        named = {key for (key,) in await tx.all(_SQL_LIST["named"], (tx.tenant, *names))}
        if len(named) <= _FEW:
            return _Filter(list(keys | named), None)
    return _Filter(list(keys), search)


async def _next_in_list(
    tx: Reading, only: _Filter | None, after: tuple[int, int], count: int
) -> list[Row]:
    """The next sessions; few are looked up and sorted, of many the first in the list are found."""
    where = after[0] // MINUTE, *after, count
    if only is None:
        return await tx.all(_SQL_LIST["newest"], (tx.tenant, *where))
    if only.prefix is None:
        return await tx.all(_SQL_LIST["newest_of_few"], (tx.tenant, *after, count, only.keys))
    return await tx.all(_SQL_LIST["newest_of_many"], (tx.tenant, *where, only.keys, only.prefix))
