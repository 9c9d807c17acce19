"""Reading sessions and entries, through the segments of forks."""

from collections.abc import Iterable

from refold.errors import ArtifactNotFound, StoreCorrupt
from refold.log.admit import missing
from refold.log.artifact import Artifact, lower
from refold.log.entry import Entry
from refold.log.lineage import Segment, within
from refold.log.outline import Outline, chain_of, load
from refold.log.protocol import Outlined, SessionInfo, Visible
from refold.log.replaying import replay
from refold.log.span import Span, spans_of, subtract
from refold.log.state import State
from refold.stores.sql import statements
from refold.stores.sqlite.rows import LAST_SEQ, SessionRow, ends, entry_of
from refold.stores.sqlite.transaction import Reading
from refold.stores.sqlite.uploads import data_of

SQL = statements("refold.stores.sqlite", "sql/read.sql")


def find_session(tx: Reading, session: str) -> SessionRow | None:
    """The session's row, if it is there."""
    found = tx.db.execute(SQL["session"], (tx.tenant, session)).fetchone()
    if found is None:
        return None
    key, form, profile, created, used, kept, not_before, own_from, before, forked = found[:10]
    new, revision, *newest = found[10:]
    head, at, messages = newest if newest[0] is not None else (own_from - 1, created, before)
    state = State(head, messages, form, profile, created, at, Outline(), not_before)
    row = SessionRow(key, state, used, own_from, forked, revision, unindexed=bool(new))
    outline = load(kept) or replay(controls(tx, row))
    return row._replace(state=state._replace(outline=outline))


def the_session(tx: Reading, session: str) -> SessionRow:
    """The session's row, or an error that says whether it was ever there."""
    row = find_session(tx, session)
    if row is None:
        raise missing(session, forgotten_at(tx, session))
    return row


def forgotten_at(tx: Reading, session: str) -> int:
    """When a session of that name was last forgotten; 0 if never."""
    found = tx.db.execute(SQL["forgotten_at"], (tx.tenant, session)).fetchone()
    return found[0] if found else 0


def info(row: SessionRow, session: str) -> SessionInfo:
    """The session as a list shows it."""
    return row.state.info(session, row.forked_from, row.forked_at)


def segments(tx: Reading, row: SessionRow, span: Span | None = None) -> list[Segment]:
    """Where the session's entries lie, or those of the span, in the order of their seqs."""
    span = span or Span(1, LAST_SEQ)
    found: list[Segment] = []
    if span.first < row.own_from:
        inherited = tx.db.execute(SQL["segments"], (row.key, span.first, span.last))
        found = [Segment(*segment) for segment in inherited]
    if row.state.head >= row.own_from:
        found.append(Segment(row.key, row.own_from, row.state.head))
    return list(within(found, span))


def read(tx: Reading, row: SessionRow, span: Span | None, *, is_whole: bool = True) -> list[Entry]:
    """The entries of the span that exist."""
    entries = [entry for segment in segments(tx, row, span) for entry in entries_in(tx, segment)]
    return whole(tx, entries) if is_whole else entries


def entries_in(tx: Reading, segment: Segment) -> list[Entry]:
    """The entries of one segment, as they lie."""
    entries = [entry_of(found) for found in tx.db.execute(SQL["entries"], ends(segment))]
    if len(entries) != len(segment):
        raise StoreCorrupt(f"Of {len(segment)} entries of a session, {len(entries)} are there.")
    return entries


def controls(tx: Reading, row: SessionRow, upto: int = LAST_SEQ) -> list[Entry]:
    """The control entries up to a seq, request records without their bodies."""
    entries: list[Entry] = []
    for segment in segments(tx, row, Span(1, upto)):
        entries += map(entry_of, tx.db.execute(SQL["controls"], ends(segment)))
    return whole(tx, entries)


def whole(tx: Reading, entries: Iterable[Entry]) -> list[Entry]:
    """The entries with what was lifted out of their bodies put back."""

    def fetch(hash_: str) -> bytes:
        try:
            return artifact(tx, hash_).data
        except ArtifactNotFound as error:
            raise StoreCorrupt(f"An entry refers to artifact {hash_}, which is gone.") from error

    return [
        entry._replace(body=lower(entry.body, entry.holes, fetch), holes=())
        if entry.holes
        else entry
        for entry in entries
    ]


def artifact(tx: Reading, hash_: str) -> Artifact:
    """The artifact under a hash."""
    found = tx.db.execute(SQL["artifact"], (tx.tenant, hash_)).fetchone()
    if found is None:
        raise ArtifactNotFound(f"There is no artifact {hash_}.")
    key, data, media_type = found
    stored = Artifact.of(data_of(tx, key) if data is None else data, media_type)
    if stored.hash != hash_:
        raise StoreCorrupt(f"Artifact {hash_} is damaged.")
    return stored


def outlined(tx: Reading, session: str) -> Outlined:
    """How the session stands."""
    row = the_session(tx, session)
    return Outlined(info(row, session), row.state.outline)


def visible(tx: Reading, session: str, last: int | None) -> Visible:
    """What a view is made of."""
    row = the_session(tx, session)
    outline = row.state.outline
    needed = outline.needed(row.state.head, last)
    entries = {entry.seq: entry for span in needed for entry in read(tx, row, span)}
    if outline.record is not None:
        chain = spans_of(chain_of(entries[outline.record]))
        for span in subtract(chain, needed):
            entries |= {entry.seq: entry for entry in read(tx, row, span)}
    return Visible(info(row, session), outline, tuple(entries[seq] for seq in sorted(entries)))
