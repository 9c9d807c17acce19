"""Writing entries: read what the decision rests on, let `admit` decide, write what it says."""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from uuid import UUID

from refold.errors import InvalidInput, RefoldError, SessionExists
from refold.log.admit import Facts, Repeat, Write, admit, admit_plain, needs_controls
from refold.log.artifact import Artifact, Lifted
from refold.log.entry import Draft, Entry, Mark, Marked, Span, check_name, check_newest
from refold.log.kinds import Message
from refold.log.outline import Segment, dump, plan_fork, replay
from refold.log.protocol import Appended, SessionInfo, State, fork_state
from refold.stores.sql import statements
from refold.stores.sqlite.read import (
    LAST_SEQ,
    MINUTE,
    Reading,
    SessionRow,
    Writing,
    claim,
    controls,
    ends,
    entries_in,
    find_session,
    forgotten_at,
    info,
    key_of,
    place,
    read,
    row_of,
    segments,
    seq_of,
    the_session,
)

# Marks: keys by which entries are found again.

SQL_MARKING = statements("refold.stores.sqlite", "sql/marks.sql")


def check_marks(tx: Writing, session: str, row: SessionRow | None, mark: Mark) -> None:
    """Refuse a mark if the session's newest is elsewhere; nobody can put one until we commit."""
    newest = None
    if row is not None:
        ends = place(row.key, 1), place(row.key, LAST_SEQ)
        newest = tx.db.execute(SQL_MARKING["newest"], ends).fetchone()[0]
    check_newest(session, mark, newest or 0)


def put_mark(tx: Writing, key: int, seq: int, mark: bytes) -> None:
    """Put a mark on an entry of the session with this key."""
    tx.db.execute(SQL_MARKING["put"], (place(key, seq), mark))


def drop_marks(tx: Writing, first: int, last: int) -> None:
    """Take the marks off the entries at these places."""
    tx.db.execute(SQL_MARKING["drop"], (first, last))


def marked(tx: Reading, keys: Sequence[bytes]) -> list[Marked]:
    """The entries with any of these keys, those marked last first."""
    # One value for all keys, each as long as the others: there is no limit to how many.
    values = {"tenant": tx.tenant, "count": len(keys), "keys": b"".join(keys)}
    return [Marked(*found) for found in tx.db.execute(SQL_MARKING["marked"], values)]


SQL = statements("refold.stores.sqlite", "sql/append.sql")


def append(  # noqa: PLR0913, PLR0917 - two have defaults
    tx: Writing,
    session: str,
    drafts: Sequence[Draft],
    expected: int | None,
    mark: Mark | None = None,
    lifted: Mapping[UUID, Lifted] | None = None,
) -> Appended:
    """Append the drafts, of which the large ones were `lifted` before."""
    lifted = lifted or {}
    row = tx.known.get((tx.tenant, session)) or find_session(tx, session)
    if row is None:
        facts = Facts(forgotten_at=forgotten_at(tx, session), lifted=lifted, now=tx.now)
        return _append(tx, session, None, admit(session, drafts, expected, facts), mark)
    before = controls(tx, row) if needs_controls(drafts) else ()
    if len(drafts) == 1 and row.own_from == 1 and not drafts[0].attached:
        # One draft at the head is nearly always a new one. If it is not, the unique index or the
        # position tells, nothing has been written, and we look for it as usual.
        with suppress(sqlite3.IntegrityError, RefoldError):
            facts = Facts(row.state, {}, before, lifted=lifted, now=tx.now)
            return _append(tx, session, row, admit(session, drafts, expected, facts), mark)
    facts = Facts(row.state, _seen(tx, row, drafts), before, lifted=lifted, now=tx.now)
    return _append(tx, session, row, admit(session, drafts, expected, facts), mark)


def append_alone(
    tx: Writing, session: str, drafts: Sequence[Draft], expected: int | None
) -> Appended | None:
    """Append one plain draft by a single statement, which is a transaction of its own.

    The statement writes only if the session is as we know it: its row has not changed, and the
    place after the head we know is free. None when it is not, or when there is more to write.
    """
    name = (tx.tenant, session)
    row = tx.known.get(name)
    if row is None or row.own_from > 1 or len(drafts) > 1:
        return None
    draft = drafts[0]
    after = admit_plain(row.state, draft, expected)
    if after is None or _moves_row(row, after):
        return None
    tx.reach("append.begun")
    try:
        added = tx.db.execute(
            SQL["add_plain_entry"],
            (
                place(row.key, after.head),
                draft.id.bytes,
                draft.at,
                draft.kind,
                draft.version,
                draft.scope,
                after.messages,
                draft.body,
                row.key,
                row.revision,
            ),
        ).rowcount
    except sqlite3.IntegrityError:  # its place is taken, or its id
        return None
    if not added:
        return None
    tx.known.keep(
        name,
        SessionRow(
            row.key, after, row.used, row.own_from, row.forked_from, row.revision, row.unindexed
        ),
    )
    return Appended(after.head, after.head)


def add_session(
    tx: Writing, session: str, state: State, fork: tuple[str, int] | None = None
) -> SessionRow:
    """A new session; a fork begins after the entry it was forked at."""
    source, at = fork or (None, 0)
    used = state.updated_at // MINUTE
    made = tx.db.execute(
        SQL["add_session"],
        (
            tx.tenant,
            session,
            state.format,
            state.profile,
            state.created_at,
            used,
            dump(state.outline),
            state.not_before,
            at + 1,
            state.messages if fork else 0,
            source,
        ),
    )
    return SessionRow(made.lastrowid or 0, state, used, at + 1, source, 0, unindexed=True)


def _append(
    tx: Writing,
    session: str,
    row: SessionRow | None,
    outcome: Repeat | Write,
    mark: Mark | None,
) -> Appended:
    if isinstance(outcome, Repeat):
        return Appended(outcome.first, outcome.last, repeated=True)
    if mark is not None:
        check_marks(tx, session, row, mark)
    tx.reach("append.begun")
    after = outcome.state
    messages = row.state.messages if row else 0
    row = row or add_session(tx, session, after)
    _write(tx, row.key, messages, outcome)
    if mark is not None:
        put_mark(tx, row.key, outcome.entries[mark.nth].seq, mark.key)
    if _moves_row(row, after):
        row = _move(tx, row, after)
    tx.known.put((tx.tenant, session), row._replace(state=after))
    return Appended(outcome.entries[0].seq, outcome.entries[-1].seq)


def _moves_row(row: SessionRow, after: State) -> bool:
    """Whether an append changes more of the session than its entries."""
    return (
        after.outline is not row.state.outline
        or after.updated_at // MINUTE != row.used
        or not row.unindexed
    )


def _move(tx: Writing, row: SessionRow, after: State) -> SessionRow:
    used = after.updated_at // MINUTE
    tx.db.execute(SQL["move_session"], (used, dump(after.outline), row.key))
    return row._replace(used=used, unindexed=True, revision=row.revision + 1)


def _seen(tx: Reading, row: SessionRow, drafts: Sequence[Draft]) -> dict[UUID, Entry]:
    """Which of the drafts the session holds already, as its own entries or as shared ones."""
    seen: dict[UUID, Entry] = {}
    for draft in drafts:
        for (found,) in tx.db.execute(SQL["places_of_id"], (draft.id.bytes,)).fetchall():
            at = Span(seq_of(found), seq_of(found))
            if any(segment.source == key_of(found) for segment in segments(tx, row, at)):
                [seen[draft.id]] = read(tx, row, at)
    return seen


def _write(tx: Writing, key: int, messages: int, outcome: Write) -> None:
    for entry in outcome.entries:
        messages += entry.kind == Message.KIND
        tx.db.execute(SQL["add_entry"], row_of(entry, key, messages))
    for artifact in outcome.artifacts:
        _use(tx, artifact)


def _use(tx: Writing, artifact: Artifact) -> None:
    """Store the artifact, or count one more use of it."""
    if tx.db.execute(SQL["use_artifact"], (tx.tenant, artifact.hash)).rowcount:
        return
    made = tx.db.execute(SQL["add_artifact"], (tx.tenant, artifact.hash, artifact.media_type))
    upload = tx.uploads.get(artifact.hash)
    if upload is not None and made.lastrowid and claim(tx, upload, made.lastrowid):
        return
    tx.db.execute(SQL["add_artifact_data"], (made.lastrowid, artifact.data))


# Forking: the new session points at the entries it shares.

SQL_FORK = statements("refold.stores.sqlite", "sql/fork.sql")


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
    messages = tx.db.execute(SQL_FORK["messages_at"], (last,)).fetchone()[0]
    at_head = at == source.state.head
    outline = source.state.outline if at_head else replay(controls(tx, source, at))
    state = fork_state(source.state, at, messages, outline, tx.now)
    state = state._replace(not_before=forgotten_at(tx, new))
    forked = add_session(tx, new, state, (session, at))
    plan = plan_fork(shared, at, forked.key)
    for segment in plan.segments:
        tx.db.execute(
            SQL_FORK["add_segment"], (forked.key, segment.first, segment.last, segment.source)
        )
    for segment in plan.copies:
        _copy(tx, segment, forked.key)
    tx.reach("fork.written")
    return forked


def _copy(tx: Writing, segment: Segment, key: int) -> None:
    for entry in entries_in(tx, segment):
        for hash_ in entry.artifacts:
            tx.db.execute(SQL_FORK["use_artifact"], (tx.tenant, hash_))
    shift = place(key, 0) - place(segment.source, 0)
    tx.db.execute(SQL_FORK["copy_entries"], (shift, *ends(segment)))
    tx.db.execute(SQL_FORK["add_copy"], (key, segment.first, segment.last, segment.source))
