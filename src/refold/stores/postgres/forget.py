"""Erasing entries, and everything that was derived from them, so that nobody can read them.

A forget runs alone in its tenant, and locks the rows of all sessions that it touches before it
reads what they hold: an append to one of them waits, and is then decided again. The bytes that
PostgreSQL leaves behind are noted, and the owner's `scrub` removes them.
"""

from asyncio import to_thread
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final
from uuid import UUID

from refold.errors import StoreCorrupt
from refold.log.admit import NOTHING, dependents, tombstone
from refold.log.entry import MAIN_SCOPE, Entry, Span, intersect, subtract
from refold.log.kinds import KINDS, FoldStarted
from refold.log.outline import Segment, dump, replay
from refold.log.protocol import Erased
from refold.stores.forget_journal import ForgetJournal
from refold.stores.postgres.append import SQL_MARKS, artifact_hashes, lock_tenant
from refold.stores.postgres.connection import Reading, Writing
from refold.stores.postgres.read import (
    LAST_SEQ,
    MINUTE,
    SessionRow,
    columns,
    entry_of,
    find_session,
    packed,
    require_session,
    segments,
    unpacked,
    whole,
)
from refold.stores.postgres.read import SQL as SQL_READ
from refold.stores.postgres.read import read as entries_of
from refold.stores.postgres.totals import count_later, drop_totals
from refold.stores.sql import SessionSpans, statements

SQL = statements("refold.stores.postgres", "sql/forget.sql")
TO_SCRUB: Final = ("tables and indexes", "write-ahead log")
"""What keeps the bytes until the next scrub."""
_KINDS_WITH_KEPT_FIELDS: Final = [kind.KIND for kind in KINDS if kind.KEPT]
_AT_ONCE: Final = 10_000  # entries in one statement, so that none takes long
_READ: Final = 1_000  # entries in memory


class Eraser:
    """Erases entries, and collects what else has to be removed with them."""

    def __init__(self, tx: Writing) -> None:
        self._tx = tx
        self._holders: set[int] = set()
        self._folds: set[UUID] = set()
        self._uses: Counter[str] = Counter()
        self._marks = 0
        self._chunks = 0

    async def make_tombstones(self, parts: Sequence[Segment]) -> None:
        self._holders |= {part.source for part in parts}
        for some in _batches(parts, _READ):
            await self._keep_fields(some)
        ends = packed(MAIN_SCOPE)
        for some in _batches(parts, _AT_ONCE):
            where = (self._tx.tenant, *columns(some))
            await self._tx.run(SQL["erase"], (*where, NOTHING, ends))
            await self._tx.run(SQL["drop_words"], where)
            self._chunks += await self._tx.run(SQL["drop_chunks"], where)
            self._marks += await self._tx.run(SQL_MARKS["drop"], where)

    async def remove(self, parts: Sequence[Segment]) -> None:
        self._holders |= {part.source for part in parts}
        for some in _batches(parts, _AT_ONCE):
            where = (self._tx.tenant, *columns(some))
            dropped = await self._tx.all(SQL["drop_entries"], (*where, FoldStarted.KIND))
            await self._tx.run(SQL["drop_words"], where)
            self._chunks += await self._tx.run(SQL["drop_chunks"], where)
            self._folds |= {fold for fold, _ in dropped if fold is not None}
            self._uses.update(artifact_hashes(column for _, column in dropped))

    async def unmark(self, key: int) -> None:
        self._marks += await self._tx.run(SQL_MARKS["drop_all"], (self._tx.tenant, key))

    async def finish(self) -> None:
        """Drop unused artifacts and folds, and note where bytes of the erased text remain."""
        tx = self._tx
        unused = await self._release()
        if self._folds:
            await tx.run(SQL["forget_folds"], (tx.tenant, sorted(self._folds)))
        await tx.run(SQL["note_erasure"], (sorted(self._holders), unused))
        if self._marks:
            await tx.run(SQL_MARKS["note_erased"])
        if self._chunks:
            await tx.run(SQL["note_erased_chunks"])

    async def _keep_fields(self, parts: Sequence[Segment]) -> None:
        """Make tombstones of entries that keep fields or have artifacts to release."""
        tx = self._tx
        rows = await tx.all(SQL["keeping"], (tx.tenant, *columns(parts), _KINDS_WITH_KEPT_FIELDS))
        if not rows:
            return
        entries = [entry_of(row) for row in rows]
        self._folds |= {entry.id for entry in entries if entry.kind == FoldStarted.KIND}
        self._uses.update(hash_ for entry in entries for hash_ in entry.artifacts)
        readable = [
            entry if entry.kind in _KINDS_WITH_KEPT_FIELDS else entry._replace(holes=())
            for entry in entries
        ]
        left = [tombstone(entry).body for entry in await whole(tx, readable)]
        places = [[row[column] for row in rows] for column in range(3)]
        await tx.run(SQL["erase_keeping"], (tx.tenant, *places, left, packed(MAIN_SCOPE)))

    async def _release(self) -> list[bytes]:
        """Count the dropped uses; the hashes of artifacts that nothing uses any more."""
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


async def forget(tx: Writing, journal: ForgetJournal, session: str, span: Span | None) -> Erased:
    await lock_tenant(tx)
    await _hold(tx, session)
    row = await require_session(tx, session)
    own = Span(row.own_from, LAST_SEQ)
    parts = await segments(tx, row, [span or own])
    entries = await entries_of(tx, row, [span or own], is_whole=False) if journal.path else []
    removed_at = None
    named = SessionSpans.of(await tx.all(SQL["living"], (tx.tenant, *columns(parts))))
    family = _Family(tx)
    erased, derived = await _with_dependents(tx, family, named)
    eraser = Eraser(tx)
    if span is None:
        family.reading.pop(row.key, None)
        # Of the session that is removed, only what forks go on reading becomes tombstones.
        read = await _still_read(tx, [row.key])
        left = SessionSpans(dict(erased.by_key))
        left.by_key[row.key] = intersect(erased.get(row.key), read.get(row.key))
        await eraser.make_tombstones(left.segments())
        await _replay(tx, family, erased)
        removed_at = await _remove_session(tx, session, row, eraser)
    else:
        await eraser.make_tombstones(erased.segments())
        await _replay(tx, family, erased)
    await eraser.finish()
    await to_thread(journal.record, tx.tenant, session, entries, removed_at=removed_at)
    tx.reach("forget.erased")
    return Erased(session, sum(map(len, named.segments())), derived, TO_SCRUB)


async def maybe_unused(tx: Reading, before: int) -> list[str]:
    found = await tx.all(SQL["maybe_unused"], (tx.tenant, max(0, min(before // MINUTE, LAST_SEQ))))
    return [name for (name,) in found]


async def expire(tx: Writing, journal: ForgetJournal, session: str, before: int) -> bool:
    """Remove a session if it is unused; its living forks keep what they read."""
    await lock_tenant(tx)
    await _hold(tx, session)
    row = await find_session(tx, session)
    if row is None or row.state.updated_at >= before:
        return False
    eraser = Eraser(tx)
    removed_at = await _remove_session(tx, session, row, eraser)
    await eraser.finish()
    await to_thread(journal.record, tx.tenant, session, removed_at=removed_at)
    tx.reach("expire.erased")
    return True


class _Family:
    """The sessions that hold or read what is forgotten: locked, and each read once."""

    def __init__(self, tx: Writing) -> None:
        self._tx = tx
        self._locked: set[int] = set()
        self._looked_at = SessionSpans()
        self._derived: dict[int, list[Entry]] = {}
        self.reading: dict[int, list[Segment]] = {}
        """Where the entries of each session with a name lie."""

    async def lock(self, erased: SessionSpans) -> None:
        tx = self._tx
        readers = await tx.all(SQL["readers"], (tx.tenant, *columns(erased.segments())))
        new = ({key for (key,) in readers} | erased.by_key.keys()) - self._locked
        if not new:
            return
        self._locked |= new
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

    def dependents(self, erased: SessionSpans) -> list[tuple[int, Entry]]:
        """The entries, each with the session that holds it, that rest on an erased one."""
        found: list[tuple[int, Entry]] = []
        for parts in self.reading.values():
            lost = [
                span for part in parts for span in intersect([part.span], erased.get(part.source))
            ]
            if lost:
                derived = {
                    entry.seq: (part.source, entry)
                    for part in parts
                    for entry in self._derived.get(part.source, ())
                    if entry.seq in part.span
                }
                entries = [entry for _, entry in derived.values()]
                found += [derived[entry.seq] for entry in dependents(lost, entries)]
        return found

    async def _look(self, parts: Iterable[Segment]) -> None:
        """Read which of these entries are derived from others, unless that was read before."""
        new = SessionSpans()
        for part in parts:
            new.add(part.source, subtract([part.span], self._looked_at.get(part.source)))
        for part in new.segments():
            self._looked_at.add(part.source, [part.span])
        values = (self._tx.tenant, *columns(new.segments()))
        for row in await self._tx.all(SQL["derived"], values):
            self._derived.setdefault(row[0], []).append(entry_of(row))


async def _hold(tx: Writing, session: str) -> None:
    """Lock the session, those whose entries it reads, and its forks."""
    if session.isprintable():
        await tx.run(SQL["hold_family"], (tx.tenant, session))


async def _with_dependents(
    tx: Writing, family: _Family, named: SessionSpans
) -> tuple[SessionSpans, int]:
    """The named entries with all that rests on them, and how many rest on them."""
    erased = SessionSpans(dict(named.by_key))
    derived: set[UUID] = set()
    while True:
        await _add_copies(tx, erased)
        await family.lock(erased)
        found = family.dependents(erased)
        if not found:
            return erased, len(derived)
        derived |= {entry.id for _, entry in found}
        for key, entry in found:
            erased.add(key, [Span(entry.seq, entry.seq)])


async def _add_copies(tx: Writing, erased: SessionSpans) -> None:
    """Add the copies that forks have made of the entries, and what they were copied from."""
    todo = erased.segments()
    while todo:
        new = SessionSpans()
        for key, first, last in await tx.all(SQL["copies"], (tx.tenant, *columns(todo))):
            new.add(key, subtract([Span(first, last)], erased.get(key)))
        todo = new.segments()
        for part in todo:
            erased.add(part.source, [part.span])


async def _replay(tx: Writing, family: _Family, erased: SessionSpans) -> None:
    """Replay the outlines of all readers, and let no append rest on what they were."""
    where = SessionSpans()
    for part in chain.from_iterable(family.reading.values()):
        where.add(part.source, [part.span])
    rows = await tx.all(SQL_READ["controls"], (tx.tenant, *columns(where.segments())))
    controls: dict[int, list[Entry]] = {}
    for row, entry in zip(rows, await whole(tx, map(entry_of, rows)), strict=True):
        controls.setdefault(row[0], []).append(entry)
    outlines: list[bytes] = []
    for parts in family.reading.values():
        read = [e for part in parts for e in controls.get(part.source, ()) if e.seq in part.span]
        outlines.append(dump(replay(sorted(read, key=lambda entry: entry.seq))))
    await tx.run(SQL["set_outlines"], (tx.tenant, list(family.reading), outlines))
    others = erased.by_key.keys() - family.reading.keys()
    await tx.run(SQL["raise_revisions"], (tx.tenant, sorted(others)))
    await count_later(tx, family.reading)


async def _remove_session(tx: Writing, session: str, row: SessionRow, eraser: Eraser) -> int:
    """Remove a session's name and every entry that no living session reads; when it was removed."""
    sources = await tx.all(SQL["sources"], (tx.tenant, row.key))
    # Not before its newest entry, though the clock was set back since.
    forgotten_at = max(tx.now, row.state.updated_at)
    await tx.run(SQL["add_tombstone"], (tx.tenant, session, forgotten_at))
    await tx.run(SQL["unname"], (tx.tenant, row.key))
    await drop_totals(tx, row.key)
    await tx.run(SQL["orphan_forks"], (tx.tenant, session))
    await tx.run(SQL["drop_segments"], (tx.tenant, row.key))
    await eraser.unmark(row.key)
    await _sweep(tx, {row.key, *(source for (source,) in sources)}, eraser)
    return forgotten_at


async def _sweep(tx: Writing, keys: Collection[int], eraser: Eraser) -> None:
    """Remove what no fork reads of nameless sessions, and the sessions that no fork reads."""
    nameless = await tx.all(SQL["nameless"], (tx.tenant, sorted(keys)))
    read = await _still_read(tx, [key for key, _ in nameless])
    unread = SessionSpans()
    for key, head in nameless:
        unread.add(key, subtract([Span(1, head)], read.get(key)))
    await eraser.remove(unread.segments())
    for key, _ in nameless:
        if key in read.by_key:
            await tx.run(SQL["end_earlier"], (tx.tenant, key))
        else:
            await tx.run(SQL["drop_copies"], (tx.tenant, key))
            await tx.run(SQL["drop_session"], (tx.tenant, key))


async def _still_read(tx: Writing, keys: Sequence[int]) -> SessionSpans:
    """What forks read of these sessions."""
    return SessionSpans.of(await tx.all(SQL["still_read"], (tx.tenant, keys)))
