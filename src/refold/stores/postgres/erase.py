"""Taking text out of the tables: entries, their words, and the artifacts that nothing uses now."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from refold.errors import StoreCorrupt
from refold.log.entry import MAIN_SCOPE
from refold.log.forgetting import NOTHING, tombstone
from refold.log.kinds import KINDS, FoldStarted
from refold.log.lineage import Segment
from refold.log.span import Span, union
from refold.stores.postgres.fork import columns, hashes_in
from refold.stores.postgres.marking import SQL as MARKS
from refold.stores.postgres.read import whole
from refold.stores.postgres.rows import entry_of, packed, unpacked
from refold.stores.postgres.transaction import Writing
from refold.stores.sql import statements

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
