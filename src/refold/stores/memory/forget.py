"""Erasing what is held: entries become tombstones, sessions go."""

from collections.abc import Sequence

from refold.log.forgetting import fallen, tombstone
from refold.log.replaying import replay
from refold.log.span import spans_of
from refold.stores.memory.held import HeldSession, Row, Tenant


def erase(held: Tenant, rows: Sequence[Row]) -> int:
    """Make tombstones of the rows and of all that rests on them; how many those are."""
    gone = set(rows)
    while derived := {row for there in held.oldest_first() for row in _fallen(there, gone)}:
        gone |= derived
    for row in gone:
        left = tombstone(held.whole(row.entry))
        held.release(row.entry)
        row.entry, row.searched = left, None
    marks = held.marks
    for there in held.sessions.values():
        if not gone.isdisjoint(there.rows):
            seqs = marks.of(there.name)
            marks.drop(there.name, [seq for seq in seqs if there.rows[seq - 1] in gone])
            there.state = there.state._replace(outline=replay(held.controls(there)))
    return len(gone) - len(rows)


def bury(held: Tenant, there: HeldSession, now: int) -> None:
    """Let go of a session, and of the rows that no other session reads."""
    del held.sessions[there.name]
    held.marks.drop(there.name, held.marks.of(there.name))
    held.forgotten[there.name] = max(now, there.state.updated_at)
    for other in held.sessions.values():
        if other.forked_from == there.name:
            other.forked_from = other.forked_at = None
    read = {row for other in held.sessions.values() for row in other.rows}
    for row in there.rows:
        if row not in read:
            held.release(row.entry)


def _fallen(there: HeldSession, gone: set[Row]) -> list[Row]:
    seqs_gone = spans_of(row.entry.seq for row in there.rows if row in gone)
    if not seqs_gone:
        return []
    derived = [row.entry for row in there.rows if row.entry.rests_on and not row.entry.forgotten]
    return [there.rows[entry.seq - 1] for entry in fallen(seqs_gone, derived)]
