"""Reading sessions and entries, through the segments of forks."""

from collections.abc import Iterable, Sequence
from operator import attrgetter
from uuid import UUID

from refold.errors import ArtifactNotFound, StoreCorrupt
from refold.log.admit import missing
from refold.log.artifact import Artifact, lower
from refold.log.entry import Entry
from refold.log.lineage import Segment, within
from refold.log.outline import Outline, chain_of, load
from refold.log.protocol import SessionInfo, Visible
from refold.log.replaying import replay
from refold.log.span import Span, spans_of, subtract
from refold.log.state import State
from refold.stores.postgres.rows import LAST_SEQ, SessionRow, entry_of, packed, unpacked
from refold.stores.postgres.transaction import Reading, Row
from refold.stores.sql import statements

SQL = statements("refold.stores.postgres", "sql/read.sql")
_seq = attrgetter("seq")


async def find_session(tx: Reading, session: str) -> SessionRow | None:
    """The session's row, if it is there."""
    if not session.isprintable():  # no session has such a name, and no text can hold each of them
        return None
    found = await tx.one(SQL["session"], (tx.tenant, session))
    return None if found is None else await session_of(tx, found)


async def session_of(tx: Reading, found: Row) -> SessionRow:
    """The session of a row that was selected as `session` does it."""
    key, head, messages, form, profile, created, updated, kept, not_before, *others = found
    state = State(
        head, messages, unpacked(form), unpacked(profile), created, updated, Outline(), not_before
    )
    row = SessionRow(key, state, *others)
    outline = load(kept) or replay(await controls(tx, row))
    return row._replace(state=state._replace(outline=outline))


async def the_session(tx: Reading, session: str) -> SessionRow:
    """The session's row, or an error that says whether it was ever there."""
    row = await find_session(tx, session)
    if row is None:
        raise missing(session, await forgotten_at(tx, session))
    return row


async def forgotten_at(tx: Reading, session: str) -> int:
    """When a session of that name was last forgotten; 0 if never."""
    if not session.isprintable():
        return 0
    found = await tx.one(SQL["forgotten_at"], (tx.tenant, session))
    return found[0] if found else 0


def info(row: SessionRow, session: str) -> SessionInfo:
    """The session as a list shows it."""
    return row.state.info(session, row.forked_from, row.forked_at)


async def segments(tx: Reading, row: SessionRow, span: Span | None = None) -> list[Segment]:
    """Where the session's entries lie, or those of the span, in the order of their seqs."""
    return await _segments(tx, row, [span or Span(1, LAST_SEQ)])


async def _segments(tx: Reading, row: SessionRow, spans: Sequence[Span]) -> list[Segment]:
    """Where the entries of the spans lie, which are in order."""
    found: list[Segment] = []
    if spans and spans[0].first < row.own_from:
        ends = spans[0].first, min(spans[-1].last, LAST_SEQ)
        inherited = await tx.all(SQL["segments"], (tx.tenant, row.key, *ends))
        found = [Segment(*segment) for segment in inherited]
    if row.state.head >= row.own_from:
        found.append(Segment(row.key, row.own_from, row.state.head))
    return [segment for span in spans for segment in within(found, span)]


async def read(
    tx: Reading, row: SessionRow, span: Span | None, *, is_whole: bool = True
) -> list[Entry]:
    """The entries of the span that exist."""
    return await _read_many(tx, row, [span or Span(1, LAST_SEQ)], is_whole=is_whole)


async def _read_many(
    tx: Reading, row: SessionRow, spans: Sequence[Span], *, is_whole: bool = True
) -> list[Entry]:
    """The entries of the spans that exist; the spans are in order and do not meet."""
    parts = await _segments(tx, row, spans)
    if len(parts) == 1:
        entries = await entries_in(tx, parts[0])
    else:
        entries = _complete(parts, await _of_many(tx, SQL["entries_of_many"], parts))
    return await whole(tx, entries) if is_whole else entries


async def entries_in(tx: Reading, segment: Segment) -> list[Entry]:
    """The entries of one segment, as they lie."""
    ends = segment.source, segment.first, segment.last
    found = await tx.all(SQL["entries"], (tx.tenant, *ends))
    return _complete([segment], sorted(map(entry_of, found), key=_seq))


async def controls(tx: Reading, row: SessionRow, upto: int = LAST_SEQ) -> list[Entry]:
    """The control entries up to a seq, request records without their bodies."""
    parts = await segments(tx, row, Span(1, upto))
    return await whole(tx, await _of_many(tx, SQL["controls"], parts))


async def seen(tx: Reading, row: SessionRow, ids: Sequence[UUID]) -> dict[UUID, Entry]:
    """The session's entries with these ids, its own and shared ones, whole."""
    parts = await segments(tx, row)
    found = await whole(tx, await _of_many(tx, SQL["seen"], parts, list(ids)))
    return {entry.id: entry for entry in found}


async def whole(tx: Reading, entries: Iterable[Entry]) -> list[Entry]:
    """The entries with what was lifted out of their bodies put back."""
    found = list(entries)
    hashes = {hole.hash for entry in found for hole in entry.holes}
    if not hashes:
        return found
    stored = await _artifacts(tx, hashes)

    def fetch(hash_: str) -> bytes:
        if hash_ not in stored:
            raise StoreCorrupt(f"An entry refers to artifact {hash_}, which is gone.")
        return stored[hash_].data

    return [
        entry._replace(body=lower(entry.body, entry.holes, fetch), holes=())
        if entry.holes
        else entry
        for entry in found
    ]


async def artifact(tx: Reading, hash_: str) -> Artifact:
    """The artifact under a hash."""
    stored = await _artifacts(tx, [hash_])
    if hash_ not in stored:
        raise ArtifactNotFound(f"There is no artifact {hash_}.")
    return stored[hash_]


async def visible(tx: Reading, session: str, last: int | None) -> Visible:
    """What a view is made of."""
    row = await the_session(tx, session)
    outline = row.state.outline
    needed = outline.needed(row.state.head, last)
    entries = {entry.seq: entry for entry in await _read_many(tx, row, needed)}
    if outline.record is not None:
        chain = subtract(spans_of(chain_of(entries[outline.record])), needed)
        if chain:
            entries |= {entry.seq: entry for entry in await _read_many(tx, row, chain)}
    return Visible(info(row, session), outline, tuple(entries[seq] for seq in sorted(entries)))


async def _of_many(tx: Reading, sql: str, parts: Sequence[Segment], *more: object) -> list[Entry]:
    """The entries that one statement finds in the segments, in the order of their seqs."""
    if not parts:
        return []
    sources = [part.source for part in parts]
    firsts = [part.first for part in parts]
    lasts = [part.last for part in parts]
    found = await tx.all(sql, (tx.tenant, sources, firsts, lasts, *more))
    return sorted(map(entry_of, found), key=_seq)


def _complete(parts: Sequence[Segment], entries: list[Entry]) -> list[Entry]:
    expected = sum(len(part) for part in parts)
    if len(entries) != expected:
        raise StoreCorrupt(f"Of {expected} entries of a session, {len(entries)} are there.")
    return entries


async def _artifacts(tx: Reading, hashes: Iterable[str]) -> dict[str, Artifact]:
    found = await tx.all(SQL["artifacts"], (tx.tenant, [packed(one) for one in sorted(hashes)]))
    stored: dict[str, Artifact] = {}
    for hash_, data, media_type in found:
        name = unpacked(hash_)
        stored[name] = Artifact.of(data, unpacked(media_type))
        if stored[name].hash != name:
            raise StoreCorrupt(f"Artifact {name} is damaged.")
    return stored
