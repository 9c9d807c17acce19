"""Finding entries and sessions by their words."""

from asyncio import sleep
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple, Protocol, TypeVar
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
    last_shown,
    page_after,
)
from refold.log.text import (
    UNICODE,
    WORDS_VERSION,
    Run,
    Term,
    index_words,
    text_of,
)
from refold.log.text import (
    terms as terms_of,
)
from refold.stores.postgres.append import columns
from refold.stores.postgres.connection import Reading, Row, Writing
from refold.stores.postgres.read import (
    MINUTE,
    entry_of,
    info,
    segments,
    session_of,
    the_session,
    unpacked,
    whole,
)
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


# The word index, kept off the append path: it is brought up to date by whoever searches.
#
# A batch of entries is read without a lock. To write their words, a transaction first makes sure
# that
# nobody has forgotten any of them since, and keeps it so (a forget waits, an append does not); its
# last statement says how far the sessions are indexed now. Two that index the same entries at once
# write the same words, and one of them finds them there.
#
# A batch is kept small, in entries and in letters, so that it is written well within the time that
# a
# statement has. A single entry may be longer than that: its words are written in chunks, by as many
# statements as it takes (see `CHUNK_WORDS`).

SQL_INDEX = statements("refold.stores.postgres", "sql/index.sql")
T = TypeVar("T")
_ENTRIES: Final = 200  # read at once: of one session, and about as many in a batch of several
_SESSIONS: Final = 200
_WHOLE: Final = 20  # large bodies in memory at once
_LETTERS: Final = 1_000_000  # in a batch, about; and as many bytes of bodies are read at once
CHUNK_WORDS: Final = 20_000
"""An entry with more words is written in chunks of so many. Two that index an entry at once must
cut it alike: whoever changes this raises `WORDS_VERSION`."""
_BODY: Final = 6
_VERSION: Final = "words_version"
_UNICODE: Final = "unicode_version"


class Read(Protocol):
    """Does work in a transaction that only reads."""

    async def __call__(self, work: Callable[[Reading], Awaitable[T]], /) -> T:
        """Do the work."""
        ...


class Write(Protocol):
    """Does work in a transaction of its own; work that met another's is done again."""

    async def __call__(self, work: Callable[[Writing], Awaitable[T]], /) -> T:
        """Do the work."""
        ...


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
    """The words of some entries, as they are written."""

    lines: list[Line]
    chunks: list[Chunk]

    @property
    def letters(self) -> int:
        """How much there is to write."""
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


async def index(read: Read, write: Write) -> None:
    """Index what was appended up to now, a little at a time, so that appends go on."""
    waiting = await _unindexed(read, write)
    while waiting:
        tried = {one.key: one.head for one in _some(waiting)}
        batches, later = await read(partial(_next, keys=list(tried)))
        written = await write(partial(_write, batches=batches))
        if written is None:
            waiting = await _unindexed(read, write)
            continue
        left = later | {one.key for one in batches if one.key not in written}
        left |= {one.key for one in batches if one.reached < tried[one.key]}
        waiting = [one for one in waiting if one.key in left or one.key not in tried]


async def unindexed(tx: Reading) -> list[Unindexed] | None:
    """The sessions with entries that are not indexed yet; None where the words are not ours."""
    facts, found = await tx.together(
        (SQL_INDEX["facts"], (tx.tenant,)), (SQL_INDEX["unindexed"], (tx.tenant,))
    )
    return [Unindexed(*one) for one in found] if _are_ours(facts) else None


async def _unindexed(read: Read, write: Write) -> list[Unindexed]:
    while (found := await read(unindexed)) is None:
        after: int | None = 0
        while after is not None:
            after = await write(partial(_begin_anew, after=after))
    return found


def _are_ours(facts: Sequence[tuple[Any, ...]]) -> bool:
    """Whether the index was filled with words that this version finds.

    A Python that knows more characters begins it anew, one that knows fewer takes it as it is: else
    processes of two Pythons over one store would undo each other's work for ever.
    """
    known = dict(facts)
    if known.get(_VERSION, 0) > WORDS_VERSION:
        raise WrittenByNewer("The store's word index was made by a newer Refold.")
    return known.get(_VERSION) == WORDS_VERSION and known.get(_UNICODE, 0) >= UNICODE


def _some(waiting: Sequence[Unindexed]) -> Iterator[Unindexed]:
    """As many sessions as make a batch."""
    count = 0
    for one in waiting[:_SESSIONS]:
        yield one
        count += min(one.entries, _ENTRIES)
        if count >= _ENTRIES:
            return


async def _next(tx: Reading, keys: Sequence[int]) -> tuple[list[_Batch], set[int]]:
    """The words of the next entries of these sessions; for which of them there was no room."""
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
    """The words of the first of these entries, and of how many: until there is no room left."""
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
    """Add the words; of which sessions that was done. None where the words are not ours."""
    known = [[one[column] for one in batches] for column in range(3)]
    _, facts, kept = await tx.together(
        (SQL_INDEX["keep_version"], (tx.tenant, _VERSION)),
        (SQL_INDEX["facts"], (tx.tenant,)),
        (SQL_INDEX["keep_sessions"], (tx.tenant, *known)),
    )
    if not _are_ours(facts):
        return None
    unchanged = {key for (key,) in kept}
    ours = [one for one in batches if one.key in unchanged]
    new = [(one.key, *line) for one in ours for line in one.words.lines]
    chunks = [(one.key, *chunk) for one in ours for chunk in one.words.chunks]
    moved = [
        [one.key for one in ours],
        [one.indexed for one in ours],
        [one.reached for one in ours],
    ]
    for some in _statements(chunks):
        columns = [[chunk[column] for chunk in some] for column in range(5)]
        await tx.run(SQL_INDEX["add_chunks"], (tx.tenant, *columns))
    await tx.together(
        (
            SQL_INDEX["add_words"],
            (tx.tenant, *[[line[column] for line in new] for column in range(4)]),
        ),
        (SQL_INDEX["set_progress"], (tx.tenant, *moved)),
    )
    tx.reach("index.written")
    return unchanged


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


async def _begin_anew(tx: Writing, after: int) -> int | None:
    """Take some sessions out of the index, those after a key; the last of them, None when done."""
    if _are_ours(await tx.all(SQL_INDEX["facts"], (tx.tenant,))):
        return None
    held = [
        key for (key,) in await tx.all(SQL_INDEX["hold_indexed"], (tx.tenant, after, _SESSIONS))
    ]
    if held:
        await tx.together(
            (SQL_INDEX["drop_words"], (tx.tenant, held)),
            (SQL_INDEX["drop_chunks"], (tx.tenant, held)),
            (SQL_INDEX["index_anew"], (tx.tenant, held)),
        )
        return held[-1]
    # Nobody adds words while we hold this, so if none are left now, there are none.
    await tx.run(SQL_INDEX["hold_version"], (tx.tenant, _VERSION))
    if await tx.one(SQL_INDEX["hold_indexed"], (tx.tenant, 0, 1)):
        return 0
    await tx.together(
        (SQL_INDEX["set_fact"], (tx.tenant, _VERSION, WORDS_VERSION)),
        (SQL_INDEX["set_fact"], (tx.tenant, _UNICODE, UNICODE)),
    )
    return None


# The list of sessions.

SQL_LISTING = statements("refold.stores.postgres", "sql/list.sql")
_AT_ONCE: Final = 1_000
_FEW: Final = 1_000
_UPDATED_AT: Final = 6
_AFTER_ALL: Final = "\U0010ffff"  # of what may follow in a name, which is printable


class _Wanted(NamedTuple):
    """Which sessions to list."""

    keys: Sequence[int]
    prefix: str | None
    """Those whose names begin so, too; none where they are among the keys."""


async def sessions(tx: Reading, search: str | None, limit: int, page: str | None) -> SessionPage:
    """A page of the sessions, last used first."""
    wanted = None if search is None else await _wanted(tx, search)
    at, key = last_shown(page)
    after = _within_listing(at, END[0]), _within_listing(key, END[1])
    many = max(0, min(limit, _AT_ONCE)) + 1
    shown: list[SessionInfo] = []
    last = ""
    while True:
        rows = await _newest(tx, wanted, after, many)
        for name, *row in rows:
            if len(shown) >= limit:
                return SessionPage(tuple(shown), last or None)
            shown.append(info(await session_of(tx, tuple(row)), name))
            after = row[_UPDATED_AT], row[0]
            last = page_after(*after)
        if len(rows) < many:
            return SessionPage(tuple(shown))


async def _wanted(tx: Reading, search: str) -> _Wanted:
    keys = await sessions_with(tx, search)
    if not search.isprintable():  # then no name begins so
        return _Wanted(list(keys), None)
    if len(keys) <= _FEW:
        names = search, search + _AFTER_ALL, _FEW + 1
        named = {key for (key,) in await tx.all(SQL_LISTING["named"], (tx.tenant, *names))}
        if len(named) <= _FEW:
            return _Wanted(list(keys | named), None)
    return _Wanted(list(keys), search)


async def _newest(
    tx: Reading, wanted: _Wanted | None, after: tuple[int, int], many: int
) -> list[Row]:
    """The next sessions; few are looked up and sorted, of many the first in the list are found."""
    place = after[0] // MINUTE, *after, many
    if wanted is None:
        return await tx.all(SQL_LISTING["newest"], (tx.tenant, *place))
    if wanted.prefix is None:
        return await tx.all(SQL_LISTING["newest_of_few"], (tx.tenant, *after, many, wanted.keys))
    return await tx.all(
        SQL_LISTING["newest_of_many"], (tx.tenant, *place, wanted.keys, wanted.prefix)
    )


def _within_listing(number: int, most: int) -> int:
    return max(-most, min(number, most))
