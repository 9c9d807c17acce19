"""Writing entries: read what the decision rests on, let `admit` decide, write what it says."""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from uuid import UUID

from refold.errors import RefoldError
from refold.log.admit import Facts, Repeat, Write, admit, admit_plain, needs_controls
from refold.log.artifact import Artifact, Lifted
from refold.log.entry import Draft, Entry
from refold.log.kinds import Message
from refold.log.marking import Mark
from refold.log.outline import dump
from refold.log.protocol import Appended
from refold.log.span import Span
from refold.log.state import State
from refold.stores.sql import statements
from refold.stores.sqlite.marking import check_marks, put_mark
from refold.stores.sqlite.read import controls, find_session, forgotten_at, read, segments
from refold.stores.sqlite.rows import MINUTE, SessionRow, key_of, place, row_of, seq_of
from refold.stores.sqlite.transaction import Reading, Writing
from refold.stores.sqlite.uploads import claim

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
