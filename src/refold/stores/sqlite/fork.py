"""Forking: the new session points at the entries it shares."""

from refold.errors import InvalidInput, SessionExists
from refold.log.lineage import Segment, plan_fork
from refold.log.names import check_name
from refold.log.protocol import SessionInfo
from refold.log.replaying import replay
from refold.log.span import Span
from refold.log.state import fork_state
from refold.stores.sql import statements
from refold.stores.sqlite.append import add_session
from refold.stores.sqlite.read import (
    controls,
    entries_in,
    find_session,
    forgotten_at,
    info,
    segments,
    the_session,
)
from refold.stores.sqlite.rows import SessionRow, ends, place
from refold.stores.sqlite.transaction import Writing

SQL = statements("refold.stores.sqlite", "sql/fork.sql")


def fork(tx: Writing, session: str, new: str, at: int | None) -> SessionInfo:
    """Make `new` out of the first `at` entries of the session."""
    source = the_session(tx, session)
    check_name(new)
    at = source.state.head if at is None else at
    there = find_session(tx, new)
    if there is not None:
        if (there.forked_from, there.forked_at) == (session, at):
            return info(there, new)
        raise SessionExists(f"There is a session {new!r} already.")
    if not 1 <= at <= source.state.head:
        raise InvalidInput(f"Session {session!r} has no entry {at} to fork at.")
    return info(_forked(tx, session, source, new, at), new)


def _forked(tx: Writing, session: str, source: SessionRow, new: str, at: int) -> SessionRow:
    shared = segments(tx, source, Span(1, at))
    last = place(shared[-1].source, at)
    messages = tx.db.execute(SQL["messages_at"], (last,)).fetchone()[0]
    at_head = at == source.state.head
    outline = source.state.outline if at_head else replay(controls(tx, source, at))
    state = fork_state(source.state, at, messages, outline, tx.now)
    state = state._replace(not_before=forgotten_at(tx, new))
    forked = add_session(tx, new, state, (session, at))
    plan = plan_fork(shared, at, forked.key)
    for segment in plan.segments:
        tx.db.execute(SQL["add_segment"], (forked.key, segment.first, segment.last, segment.source))
    for segment in plan.copies:
        _copy(tx, segment, forked.key)
    tx.reach("fork.written")
    return forked


def _copy(tx: Writing, segment: Segment, key: int) -> None:
    for entry in entries_in(tx, segment):
        for hash_ in entry.artifacts:
            tx.db.execute(SQL["use_artifact"], (tx.tenant, hash_))
    shift = place(key, 0) - place(segment.source, 0)
    tx.db.execute(SQL["copy_entries"], (shift, *ends(segment)))
    tx.db.execute(SQL["add_copy"], (key, segment.first, segment.last, segment.source))
