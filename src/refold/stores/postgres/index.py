"""The word index, kept off the append path: it is brought up to date by whoever searches.

A batch of entries is read without a lock. To write their words, a transaction first makes sure that
nobody has forgotten any of them since, and keeps it so (a forget waits, an append does not); its
last statement says how far the sessions are indexed now. Two that index the same entries at once
write the same words, and one of them finds them there.

A batch is kept small, in entries and in letters, so that it is written well within the time that a
statement has. A single entry may be longer than that: its words are written in chunks, by as many
statements as it takes (see `CHUNK_WORDS`).
"""

from asyncio import sleep
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from refold.errors import WrittenByNewer
from refold.log.entry import Entry
from refold.log.text import UNICODE, WORDS_VERSION, index_words, text_of
from refold.stores.postgres.read import whole
from refold.stores.postgres.rows import entry_of
from refold.stores.postgres.transaction import Reading, Writing
from refold.stores.sql import statements

SQL = statements("refold.stores.postgres", "sql/index.sql")
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
    facts, found = await tx.together((SQL["facts"], (tx.tenant,)), (SQL["unindexed"], (tx.tenant,)))
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
    rows = await tx.all(SQL["next_entries"], (tx.tenant, keys, _ENTRIES, _LETTERS))
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
        (SQL["keep_version"], (tx.tenant, _VERSION)),
        (SQL["facts"], (tx.tenant,)),
        (SQL["keep_sessions"], (tx.tenant, *known)),
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
        await tx.run(SQL["add_chunks"], (tx.tenant, *columns))
    await tx.together(
        (SQL["add_words"], (tx.tenant, *[[line[column] for line in new] for column in range(4)])),
        (SQL["set_progress"], (tx.tenant, *moved)),
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
    if _are_ours(await tx.all(SQL["facts"], (tx.tenant,))):
        return None
    held = [key for (key,) in await tx.all(SQL["hold_indexed"], (tx.tenant, after, _SESSIONS))]
    if held:
        await tx.together(
            (SQL["drop_words"], (tx.tenant, held)),
            (SQL["drop_chunks"], (tx.tenant, held)),
            (SQL["index_anew"], (tx.tenant, held)),
        )
        return held[-1]
    # Nobody adds words while we hold this, so if none are left now, there are none.
    await tx.run(SQL["hold_version"], (tx.tenant, _VERSION))
    if await tx.one(SQL["hold_indexed"], (tx.tenant, 0, 1)):
        return 0
    await tx.together(
        (SQL["set_fact"], (tx.tenant, _VERSION, WORDS_VERSION)),
        (SQL["set_fact"], (tx.tenant, _UNICODE, UNICODE)),
    )
    return None
