"""Appending entries with their marks, as `admit` decides by what was read; forking sessions."""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from uuid import UUID

from refold.errors import InvalidInput, RefoldError, SessionExists
from refold.log.admit import Facts, Write, admit, admit_plain, needs_controls
from refold.log.artifact import Artifact, Lifted
from refold.log.entry import Draft, Entry, Mark, Marked, Span, check_name, check_newest
from refold.log.kinds import Message
from refold.log.outline import Segment, dump, plan_fork, replay
from refold.log.protocol import Appended, SessionInfo, State
from refold.models.accounts import COUNTED
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
    key_of,
    place,
    read,
    require_session,
    row_of,
    segments,
    seq_of,
)
from refold.stores.sqlite.totals import add_to_totals, begin_uncounted

SQL = statements("refold.stores.sqlite", "sql/append.sql")
SQL_MARKS = statements("refold.stores.sqlite", "sql/marks.sql")
_SQL_FORK = statements("refold.stores.sqlite", "sql/fork.sql")


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
    row = tx.cache.get((tx.tenant, session)) or find_session(tx, session)
    if row is None:
        facts = Facts(forgotten_at=forgotten_at(tx, session), lifted=lifted, now=tx.now)
        return _append(tx, session, None, admit(session, drafts, expected, facts), mark, drafts)
    before = controls(tx, row) if needs_controls(drafts) else ()
    if len(drafts) == 1 and row.own_from == 1 and not drafts[0].attached:
        # One draft at the head is nearly always a new one. If it is not, the unique index or the
        # position tells, nothing has been written, and we look for it as usual.
        with suppress(sqlite3.IntegrityError, RefoldError):
            facts = Facts(row.state, {}, before, lifted=lifted, now=tx.now)
            return _append(tx, session, row, admit(session, drafts, expected, facts), mark, drafts)
    facts = Facts(row.state, _existing(tx, row, drafts), before, lifted=lifted, now=tx.now)
    return _append(tx, session, row, admit(session, drafts, expected, facts), mark, drafts)


def append_alone(
    tx: Writing, session: str, drafts: Sequence[Draft], expected: int | None
) -> Appended | None:
    """Append one plain draft by a single statement, which is a transaction of its own.

    The statement writes only if the session is as we know it: its row has not changed, and the
    place after the head we know is free. None when it is not, or when there is more to write.
    """
    name = (tx.tenant, session)
    row = tx.cache.get(name)
    if row is None or row.own_from > 1 or len(drafts) > 1:
        return None
    draft = drafts[0]
    if draft.kind in COUNTED:  # its totals are written in the same transaction
        return None
    after = admit_plain(row.state, draft, expected)
    if after is None or _changes_row(row, after):
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
    tx.cache.put(name, row._replace(state=after))
    return Appended(after.head, after.head)


def add_session(
    tx: Writing, session: str, state: State, fork: tuple[str, int] | None = None
) -> SessionRow:
    source, at = fork or (None, 0)
    used = state.updated_at // MINUTE
    key = tx.db.execute(
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
    ).lastrowid
    return SessionRow(key or 0, state, used, at + 1, source, 0, unindexed=True)


def _append(  # noqa: PLR0913, PLR0917 - what one transaction writes
    tx: Writing,
    session: str,
    row: SessionRow | None,
    outcome: Appended | Write,
    mark: Mark | None,
    drafts: Sequence[Draft],
) -> Appended:
    if isinstance(outcome, Appended):
        return outcome
    if mark is not None:  # nobody else can put one until we commit
        newest = None
        if row is not None:
            first_and_last = place(row.key, 1), place(row.key, LAST_SEQ)
            newest = tx.db.execute(SQL_MARKS["newest"], first_and_last).fetchone()[0]
        check_newest(session, mark, newest or 0)
    tx.reach("append.begun")
    after = outcome.state
    messages = row.state.messages if row else 0
    row = row or add_session(tx, session, after)
    for entry in outcome.entries:
        messages += entry.kind == Message.KIND
        tx.db.execute(SQL["add_entry"], row_of(entry, row.key, messages))
    for artifact in outcome.artifacts:
        _use(tx, artifact)
    if mark is not None:
        seq = outcome.entries[mark.nth].seq
        tx.db.execute(SQL_MARKS["put"], (place(row.key, seq), mark.key))
    if _changes_row(row, after):
        used = after.updated_at // MINUTE
        tx.db.execute(SQL["move_session"], (used, dump(after.outline), row.key))
        row = row._replace(used=used, unindexed=True, revision=row.revision + 1)
    row = row._replace(state=after)
    add_to_totals(tx, row, outcome.entries, drafts)
    tx.cache.stage((tx.tenant, session), row)
    return Appended(outcome.entries[0].seq, outcome.entries[-1].seq)


def _changes_row(row: SessionRow, after: State) -> bool:
    return (
        after.outline is not row.state.outline
        or after.updated_at // MINUTE != row.used
        or not row.unindexed
    )


def _existing(tx: Reading, row: SessionRow, drafts: Sequence[Draft]) -> dict[UUID, Entry]:
    existing: dict[UUID, Entry] = {}
    for draft in drafts:
        for (found,) in tx.db.execute(SQL["places_of_id"], (draft.id.bytes,)).fetchall():
            span = Span(seq_of(found), seq_of(found))
            if any(segment.source == key_of(found) for segment in segments(tx, row, span)):
                [existing[draft.id]] = read(tx, row, span)
    return existing


def _use(tx: Writing, artifact: Artifact) -> None:
    """Store the artifact, or count one more use of it."""
    if tx.db.execute(SQL["use_artifact"], (tx.tenant, artifact.hash)).rowcount:
        return
    key = tx.db.execute(
        SQL["add_artifact"], (tx.tenant, artifact.hash, artifact.media_type)
    ).lastrowid
    upload = tx.uploads.get(artifact.hash)
    if upload is None or not key or not claim(tx, upload, key):
        tx.db.execute(SQL["add_artifact_data"], (key, artifact.data))


def fork(tx: Writing, session: str, new: str, at: int | None) -> SessionInfo:
    source = require_session(tx, session)
    check_name(new)
    at = source.state.head if at is None else at
    existing = find_session(tx, new)
    if existing is not None:
        if (existing.forked_from, existing.own_from) == (session, at + 1):
            return existing.info(new)
        raise SessionExists(f"There is a session {new!r} already.")
    if not 1 <= at <= source.state.head:
        raise InvalidInput(f"Session {session!r} has no entry {at} to fork at.")
    shared = segments(tx, source, Span(1, at))
    last = place(shared[-1].source, at)
    messages = tx.db.execute(_SQL_FORK["messages_at"], (last,)).fetchone()[0]
    at_head = at == source.state.head
    outline = source.state.outline if at_head else replay(controls(tx, source, at))
    state = source.state.fork(at, messages, outline, tx.now, forgotten_at(tx, new))
    forked = add_session(tx, new, state, (session, at))
    plan = plan_fork(shared, at, forked.key)
    for segment in plan.segments:
        tx.db.execute(
            _SQL_FORK["add_segment"], (forked.key, segment.first, segment.last, segment.source)
        )
    for segment in plan.copies:
        _copy(tx, segment, forked.key)
    begin_uncounted(tx, forked.key)
    tx.reach("fork.written")
    return forked.info(new)


def _copy(tx: Writing, segment: Segment, key: int) -> None:
    for entry in entries_in(tx, segment):
        for hash_ in entry.artifacts:
            tx.db.execute(_SQL_FORK["use_artifact"], (tx.tenant, hash_))
    shift = place(key, 0) - place(segment.source, 0)
    tx.db.execute(_SQL_FORK["copy_entries"], (shift, *ends(segment)))
    tx.db.execute(_SQL_FORK["add_copy"], (key, segment.first, segment.last, segment.source))


def drop_marks(tx: Writing, first: int, last: int) -> None:
    tx.db.execute(SQL_MARKS["drop"], (first, last))


def marked(tx: Reading, keys: Sequence[bytes]) -> list[Marked]:
    # One value for all keys, each as long as the others: there is no limit to how many.
    values = {"tenant": tx.tenant, "count": len(keys), "keys": b"".join(keys)}
    return [Marked(*row) for row in tx.db.execute(SQL_MARKS["marked"], values)]
