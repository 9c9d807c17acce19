"""Writing entries: let `admit` decide by what is known, and write if the session is still so.

Nothing is locked while we decide. A single call writes what was decided, if the session still has
the head and the revision that the decision rests on; if not, we read it afresh and decide again.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from refold.errors import InvalidEntry
from refold.log.admit import Facts, Repeat, Write, admit, admit_plain, needs_controls
from refold.log.entry import Draft
from refold.log.kinds import Message, Opened
from refold.log.outline import CONTROL_KINDS, dump
from refold.log.protocol import Appended
from refold.stores.postgres.packed import Statement, statement, truth, whole_number
from refold.stores.postgres.read import controls, find_session, forgotten_at, seen
from refold.stores.postgres.rows import (
    KnownSessions,
    Name,
    SessionRow,
    artifacts_of,
    packed,
    rests_on_of,
)
from refold.stores.postgres.transaction import Reading, Values
from refold.stores.sql import statements

SQL = statements("refold.stores.postgres", "sql/append.sql")
_PLAIN = statement("append_plain", SQL["append_plain"], 11)


class Server(Protocol):
    """Where to write."""

    known: KnownSessions

    def now(self) -> int:
        """Milliseconds since 1970."""
        ...

    async def call(self, sql: str, values: Values) -> object:
        """Call one function, which is a transaction of its own; None if a unique index objects."""
        ...

    async def call_packed(self, what: Statement, values: Sequence[bytes | None]) -> int | None:
        """The same, with values that are packed already."""
        ...


class Known(NamedTuple):
    """What a decision rests on: the session's row, if there is one, and what hangs on it."""

    row: SessionRow | None
    facts: Facts


async def append_plain(
    server: Server, name: Name, drafts: Sequence[Draft], expected: int | None
) -> Appended | None:
    """Append one plain draft at once; None when there is more to it."""
    row = server.known.get(name)
    if row is None or row.own_from > 1 or len(drafts) > 1:
        return None
    draft = drafts[0]
    after = admit_plain(row.state, draft, expected)
    if after is None:
        return None
    placed = await server.call_packed(
        _PLAIN,
        (
            name[0].encode(),
            whole_number(row.key),
            whole_number(row.revision),
            None if expected is None else whole_number(expected),
            draft.id.bytes,
            whole_number(draft.at),
            draft.kind.encode(),
            whole_number(draft.version),
            packed(draft.scope),
            truth[draft.kind == Message.KIND],
            draft.body,
        ),
    )
    if placed == after.head:
        server.known.put(name, row._replace(state=after))
    else:
        server.known.drop(name)
    if placed is None:
        return None
    return Appended(placed, placed, revision=row.revision)


async def look(tx: Reading, session: str, drafts: Sequence[Draft]) -> Known:
    """Read all that a decision may rest on."""
    row = await find_session(tx, session)
    if row is None:
        return Known(None, Facts(forgotten_at=await forgotten_at(tx, session)))
    found = await seen(tx, row, [draft.id for draft in drafts])
    before = await controls(tx, row) if needs_controls(drafts) else ()
    return Known(row, Facts(row.state, found, before))


def guess(row: SessionRow | None, drafts: Sequence[Draft]) -> Known | None:
    """What is known without reading, if that is enough.

    Drafts are nearly always new, and so is a session that is opened. If they are not, the unique
    index or the position tells, nothing has been written, and we look for them. But entries that a
    fork shares are in no index of its own.
    """
    if row is None and drafts[0].kind == Opened.KIND:
        return Known(None, Facts())
    if row is None or row.own_from > 1 or needs_controls(drafts):
        return None
    return Known(row, Facts(row.state))


async def write(  # noqa: PLR0913 - called in one place
    server: Server,
    name: Name,
    drafts: Sequence[Draft],
    expected: int | None,
    at: Known,
    *,
    revision: int | None = None,
) -> Appended | None:
    """Decide, and write what was decided; None when the session is no longer as it was."""
    outcome = admit(name[1], drafts, expected, at.facts._replace(now=server.now()))
    if isinstance(outcome, Repeat):
        return Appended(outcome.first, outcome.last, repeated=True)
    if revision is not None and (at.row is None or at.row.revision != revision):
        raise InvalidEntry(
            f"Entries of session {name[1]!r} were forgotten since it was read.",
            "Read it again, and append what it still holds.",
        )
    row = await _written(server, name, at, outcome)
    if row is None:
        server.known.drop(name)
        return None
    server.known.put(name, row)
    return Appended(outcome.entries[0].seq, outcome.entries[-1].seq, revision=row.revision)


async def _written(server: Server, name: Name, at: Known, outcome: Write) -> SessionRow | None:
    tenant, session = name
    row, after = at.row, outcome.state
    place = after.head, after.messages, after.updated_at
    columns = _columns(outcome, row.state.messages if row else 0)
    if row is None:
        begun = (
            *(tenant, session, after.not_before),
            *(packed(after.format), packed(after.profile), after.created_at),
            *(*place, dump(after.outline)),
        )
        key = await server.call(SQL["begin_session"], (*begun, *columns))
        return SessionRow(key, after, 1, None, 0, 0) if isinstance(key, int) else None
    outline = None if after.outline is row.state.outline else dump(after.outline)
    was = tenant, row.key, row.revision, row.state.head
    done = await server.call(SQL["append"], (*was, *place, outline, *columns))
    return row._replace(state=after) if done else None


def _columns(outcome: Write, messages: int) -> list[object]:
    """What is to be written, a list for each column."""
    told: list[int] = []
    for entry in outcome.entries:
        messages += entry.kind == Message.KIND
        told.append(messages)
    entries = outcome.entries
    uses = Counter(artifact.hash for artifact in outcome.artifacts)
    artifacts = {artifact.hash: artifact for artifact in outcome.artifacts}
    stored = [artifacts[hash_] for hash_ in sorted(artifacts)]
    return [
        [entry.seq for entry in entries],
        [entry.id for entry in entries],
        [entry.at for entry in entries],
        [entry.kind for entry in entries],
        [entry.version for entry in entries],
        told,
        [entry.kind in CONTROL_KINDS for entry in entries],
        [entry.forgotten for entry in entries],
        [packed(entry.scope) for entry in entries],
        [rests_on_of(entry) for entry in entries],
        [artifacts_of(entry) for entry in entries],
        [entry.body for entry in entries],
        [packed(artifact.hash) for artifact in stored],
        [uses[artifact.hash] for artifact in stored],
        [packed(artifact.media_type) for artifact in stored],
        [artifact.data for artifact in stored],
    ]
