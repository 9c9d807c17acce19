"""Erasing entries, and everything that was derived from them, so that nobody can read them.

Who forgets does so alone in its tenant, and holds the rows of all sessions that are touched, before
it reads what they hold: an append to one of them waits, and is then decided again. The bytes that
PostgreSQL leaves behind are noted, and go with the owner's `scrub`.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from refold.errors import StoreCorrupt
from refold.log.admit import NOTHING, fallen, tombstone
from refold.log.entry import MAIN_SCOPE, Entry, Span, intersect, subtract, union
from refold.log.kinds import KINDS, FoldStarted
from refold.log.outline import Segment, dump, replay
from refold.log.protocol import Erased
from refold.stores.postgres.append import SQL_MARKING as MARKS
from refold.stores.postgres.append import columns, hashes_in, lock_tenant
from refold.stores.postgres.connection import Reading, Writing
from refold.stores.postgres.read import (
    LAST_SEQ,
    MINUTE,
    SessionRow,
    entry_of,
    find_session,
    packed,
    segments,
    the_session,
    unpacked,
    whole,
)
from refold.stores.postgres.read import (
    SQL as READ,
)
from refold.stores.sql import statements

# Taking text out of the tables: entries, their words, and the artifacts that nothing uses now.

SQL = statements("refold.stores.postgres", "sql/forget.sql")
_KEEPING: Final = [kind.KIND for kind in KINDS if kind.KEPT]
_AT_ONCE: Final = 10_000  # entries in one statement, so that none takes long
_READ: Final = 1_000  # entries in memory


@dataclass(slots=True)
class Spans:
    """Spans of entries, by the key of the session that holds them."""

    by_key: dict[int, tuple[Span, ...]] = field(default_factory=dict[int, tuple[Span, ...]])

    def add(self, key: int, spans: Iterable[Span]) -> None:
        """Add spans of one session."""
        if more := tuple(spans):
            self.by_key[key] = union((*self.by_key.get(key, ()), *more))

    def parts(self) -> list[Segment]:
        """Each span, with its holder."""
        return [
            Segment(key, span.first, span.last)
            for key, spans in self.by_key.items()
            for span in spans
        ]


class Eraser:
    """Erases entries, and knows in the end what else has to go with them."""

    def __init__(self, tx: Writing) -> None:
        self._tx = tx
        self._holders: set[int] = set()
        self._folds: set[UUID] = set()
        self._uses: Counter[str] = Counter()
        self._marks = 0
        self._chunks = 0

    async def make_tombstones(self, parts: Sequence[Segment]) -> None:
        """Leave of the entries what may be kept."""
        self._holders |= {part.source for part in parts}
        for some in _batches(parts, _READ):
            await self._keep(some)
        ends = packed(MAIN_SCOPE)
        for some in _batches(parts, _AT_ONCE):
            where = (self._tx.tenant, *columns(some))
            await self._tx.run(SQL["erase"], (*where, NOTHING, ends))
            await self._tx.run(SQL["drop_words"], where)
            self._chunks += await self._tx.run(SQL["drop_chunks"], where)
            self._marks += await self._tx.run(MARKS["drop"], where)

    async def remove(self, parts: Sequence[Segment]) -> None:
        """Remove the entries."""
        self._holders |= {part.source for part in parts}
        for some in _batches(parts, _AT_ONCE):
            where = (self._tx.tenant, *columns(some))
            gone = await self._tx.all(SQL["drop_entries"], (*where, FoldStarted.KIND))
            await self._tx.run(SQL["drop_words"], where)
            self._chunks += await self._tx.run(SQL["drop_chunks"], where)
            self._folds |= {fold for fold, _ in gone if fold is not None}
            self._uses.update(hash_ for _, column in gone for hash_ in hashes_in(column))

    async def unmark(self, key: int) -> None:
        """Take all marks off the entries of a session."""
        self._marks += await self._tx.run(MARKS["drop_all"], (self._tx.tenant, key))

    async def finish(self) -> None:
        """Let go of the artifacts and the folds, and note where bytes of all this still lie."""
        tx = self._tx
        unused = await self._release()
        if self._folds:
            await tx.run(SQL["forget_folds"], (tx.tenant, sorted(self._folds)))
        await tx.run(SQL["note_erasure"], (sorted(self._holders), unused))
        if self._marks:
            await tx.run(MARKS["note_erased"])
        if self._chunks:
            await tx.run(SQL["note_erased_chunks"])

    async def _keep(self, parts: Sequence[Segment]) -> None:
        """Make tombstones of those entries of which something may be kept or is to be released."""
        tx = self._tx
        rows = await tx.all(SQL["keeping"], (tx.tenant, *columns(parts), _KEEPING))
        if not rows:
            return
        entries = [entry_of(row) for row in rows]
        self._folds |= {entry.id for entry in entries if entry.kind == FoldStarted.KIND}
        self._uses.update(hash_ for entry in entries for hash_ in entry.artifacts)
        kept = [entry if entry.kind in _KEEPING else entry._replace(holes=()) for entry in entries]
        left = [tombstone(entry).body for entry in await whole(tx, kept)]
        places = [[row[column] for row in rows] for column in range(3)]
        await tx.run(SQL["erase_keeping"], (tx.tenant, *places, left, packed(MAIN_SCOPE)))

    async def _release(self) -> list[bytes]:
        """Count the uses that are gone; the hashes of what nothing uses any more."""
        if not self._uses:
            return []
        tx = self._tx
        hashes = [packed(hash_) for hash_ in self._uses]
        left = await tx.all(SQL["drop_uses"], (tx.tenant, hashes, list(self._uses.values())))
        if len(left) < len(hashes):
            lost = min(self._uses.keys() - {unpacked(hash_) for hash_, _ in left})
            raise StoreCorrupt(f"An entry refers to artifact {lost}, which is not there.")
        unused = [hash_ for hash_, uses in left if uses <= 0]
        if unused:
            await tx.run(SQL["drop_artifacts"], (tx.tenant, unused))
        return unused


def _batches(parts: Iterable[Segment], size: int) -> Iterator[list[Segment]]:
    """The same entries, in lists that hold no more than so many."""
    batch: list[Segment] = []
    room = size
    for part in parts:
        first = part.first
        while first <= part.last:
            last = min(part.last, first + room - 1)
            batch.append(Segment(part.source, first, last))
            room -= last - first + 1
            first = last + 1
            if room == 0:
                yield batch
                batch, room = [], size
    if batch:
        yield batch


TO_SCRUB: Final = ("tables and indexes", "write-ahead log")
"""What keeps the bytes until the next scrub."""


async def forget(tx: Writing, session: str, span: Span | None) -> Erased:
    """Make the entries unreadable."""
    await lock_tenant(tx)
    await _hold(tx, session)
    row = await the_session(tx, session)
    own = Span(row.own_from, LAST_SEQ)
    named = await _living(tx, await segments(tx, row, span or own))
    family = _Family(tx)
    gone, derived = await _gone(tx, family, named)
    eraser = Eraser(tx)
    if span is None:
        family.reading.pop(row.key, None)
        await eraser.make_tombstones((await _outliving(tx, row.key, gone)).parts())
        await _replay(tx, family, gone)
        await _bury(tx, session, row, eraser)
    else:
        await eraser.make_tombstones(gone.parts())
        await _replay(tx, family, gone)
    await eraser.finish()
    tx.reach("forget.erased")
    return Erased(session, sum(map(len, named.parts())), derived, TO_SCRUB)


async def maybe_unused(tx: Reading, before: int) -> list[str]:
    """The sessions that may not have been used since then."""
    found = await tx.all(SQL["maybe_unused"], (tx.tenant, max(0, min(before // MINUTE, LAST_SEQ))))
    return [name for (name,) in found]


async def expire(tx: Writing, session: str, before: int) -> bool:
    """Let go of a session, if it is unused; its living forks keep what they read."""
    await lock_tenant(tx)
    await _hold(tx, session)
    row = await find_session(tx, session)
    if row is None or row.state.updated_at >= before:
        return False
    eraser = Eraser(tx)
    await _bury(tx, session, row, eraser)
    await eraser.finish()
    tx.reach("expire.erased")
    return True


class _Family:
    """The sessions that hold or read what is forgotten: held fast, and each read once."""

    def __init__(self, tx: Writing) -> None:
        self._tx = tx
        self._held: set[int] = set()
        self._seen = Spans()
        self._derived: dict[int, list[Entry]] = {}
        self.reading: dict[int, list[Segment]] = {}
        """Where the entries of each session with a name lie."""

    async def follow(self, gone: Spans) -> None:
        """Hold all sessions that hold or read any of this."""
        tx = self._tx
        readers = await tx.all(SQL["readers"], (tx.tenant, *columns(gone.parts())))
        new = ({key for (key,) in readers} | gone.by_key.keys()) - self._held
        if not new:
            return
        self._held |= new
        rows = await tx.all(SQL["hold_sessions"], (tx.tenant, sorted(new)))
        named = [(key, own_from, head) for key, name, own_from, head in rows if name is not None]
        for key, _, _ in named:
            self.reading[key] = []
        shared = await tx.all(SQL["segments"], (tx.tenant, [key for key, _, _ in named]))
        for key, source, first, last in shared:
            self.reading[key].append(Segment(source, first, last))
        for key, own_from, head in named:
            if head >= own_from:
                self.reading[key].append(Segment(key, own_from, head))
        await self._look([part for key, _, _ in named for part in self.reading[key]])

    def fallen(self, gone: Spans) -> list[tuple[int, Entry]]:
        """The entries, and who holds them, that rest on a gone one and are not gone themselves."""
        found: list[tuple[int, Entry]] = []
        for parts in self.reading.values():
            lost = [
                span
                for part in parts
                for span in intersect([_span(part)], gone.by_key.get(part.source, ()))
            ]
            if lost:
                derived = {
                    entry.seq: (part.source, entry)
                    for part in parts
                    for entry in self._derived.get(part.source, ())
                    if entry.seq in _span(part)
                }
                entries = [entry for _, entry in derived.values()]
                found += [derived[entry.seq] for entry in fallen(lost, entries)]
        return found

    async def _look(self, parts: Iterable[Segment]) -> None:
        """Read which of these entries are derived from others, unless they are known."""
        new = Spans()
        for part in parts:
            new.add(part.source, subtract([_span(part)], self._seen.by_key.get(part.source, ())))
        for part in new.parts():
            self._seen.add(part.source, [_span(part)])
        values = (self._tx.tenant, *columns(new.parts()))
        for row in await self._tx.all(SQL["derived"], values):
            self._derived.setdefault(row[0], []).append(entry_of(row))


async def _hold(tx: Writing, session: str) -> None:
    """Hold the session, those whose entries it reads, and its forks."""
    if session.isprintable():
        await tx.run(SQL["hold_family"], (tx.tenant, session))


async def _living(tx: Writing, parts: Iterable[Segment]) -> Spans:
    """The entries of these that are not forgotten yet."""
    living = Spans()
    for key, first, last in await tx.all(SQL["living"], (tx.tenant, *columns(parts))):
        living.add(key, [Span(first, last)])
    return living


async def _gone(tx: Writing, family: _Family, named: Spans) -> tuple[Spans, int]:
    """The named entries with all that rests on them, and how many those are."""
    gone = Spans(dict(named.by_key))
    derived: set[UUID] = set()
    while True:
        await _add_copies(tx, gone)
        await family.follow(gone)
        found = family.fallen(gone)
        if not found:
            return gone, len(derived)
        derived |= {entry.id for _, entry in found}
        for key, entry in found:
            gone.add(key, [Span(entry.seq, entry.seq)])


async def _add_copies(tx: Writing, gone: Spans) -> None:
    """Go along with the copies that forks have made, and with what they were copied from."""
    todo = gone.parts()
    while todo:
        found = await tx.all(SQL["copies"], (tx.tenant, *columns(todo)))
        new = Spans()
        for key, first, last in found:
            new.add(key, subtract([Span(first, last)], gone.by_key.get(key, ())))
        todo = new.parts()
        for part in todo:
            gone.add(part.source, [_span(part)])


async def _outliving(tx: Writing, key: int, gone: Spans) -> Spans:
    """Those that forks go on reading when a session is removed with all else."""
    read = await _still_read(tx, [key])
    left = Spans(dict(gone.by_key))
    left.by_key[key] = intersect(gone.by_key.get(key, ()), read.by_key.get(key, ()))
    return left


async def _replay(tx: Writing, family: _Family, gone: Spans) -> None:
    """Make the outlines of all readers again, and let nobody go on from what they were."""
    where = Spans()
    for parts in family.reading.values():
        for part in parts:
            where.add(part.source, [_span(part)])
    rows = await tx.all(READ["controls"], (tx.tenant, *columns(where.parts())))
    steering: dict[int, list[Entry]] = {}
    for row, entry in zip(rows, await whole(tx, map(entry_of, rows)), strict=True):
        steering.setdefault(row[0], []).append(entry)
    outlines = [dump(replay(_read(parts, steering))) for parts in family.reading.values()]
    await tx.run(SQL["set_outlines"], (tx.tenant, list(family.reading), outlines))
    others = gone.by_key.keys() - family.reading.keys()
    await tx.run(SQL["raise_revisions"], (tx.tenant, sorted(others)))


def _read(parts: Iterable[Segment], entries: dict[int, list[Entry]]) -> list[Entry]:
    """Those of the entries, given by who holds them, that these parts show."""
    found = [e for part in parts for e in entries.get(part.source, ()) if e.seq in _span(part)]
    return sorted(found, key=lambda entry: entry.seq)


async def _bury(tx: Writing, session: str, row: SessionRow, eraser: Eraser) -> None:
    """Let go of a session's name and of every entry that no living session reads."""
    sources = await tx.all(SQL["sources"], (tx.tenant, row.key))
    # Not before its newest entry, though the clock was set back since.
    forgotten_at = max(tx.now, row.state.updated_at)
    await tx.run(SQL["add_tombstone"], (tx.tenant, session, forgotten_at))
    await tx.run(SQL["unname"], (tx.tenant, row.key))
    await tx.run(SQL["orphan_forks"], (tx.tenant, session))
    await tx.run(SQL["drop_segments"], (tx.tenant, row.key))
    await eraser.unmark(row.key)
    await _sweep(tx, {row.key, *(source for (source,) in sources)}, eraser)


async def _sweep(tx: Writing, keys: Collection[int], eraser: Eraser) -> None:
    """Remove what no fork reads of nameless sessions, and those of whom nothing is read."""
    nameless = await tx.all(SQL["nameless"], (tx.tenant, sorted(keys)))
    read = await _still_read(tx, [key for key, _ in nameless])
    unread = Spans()
    for key, head in nameless:
        unread.add(key, subtract([Span(1, head)], read.by_key.get(key, ())))
    await eraser.remove(unread.parts())
    for key, _ in nameless:
        if key in read.by_key:
            await tx.run(SQL["end_earlier"], (tx.tenant, key))
        else:
            await tx.run(SQL["drop_copies"], (tx.tenant, key))
            await tx.run(SQL["drop_session"], (tx.tenant, key))


async def _still_read(tx: Writing, keys: Sequence[int]) -> Spans:
    """What forks read of these sessions."""
    read = Spans()
    for key, first, last in await tx.all(SQL["still_read"], (tx.tenant, keys)):
        read.add(key, [Span(first, last)])
    return read


def _span(part: Segment) -> Span:
    return Span(part.first, part.last)
