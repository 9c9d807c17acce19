"""Writing entries: let `admit` decide by what is known, and write if the session is still so.

Nothing is locked while we decide. A single call writes what was decided, if the session still has
the head and the revision that the decision rests on; if not, we read it afresh and decide again.
"""

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import NamedTuple, Protocol, TypeVar

from refold.errors import InvalidEntry, InvalidInput, LogError, SessionExists, StoreBusy
from refold.log.admit import Facts, Repeat, Write, admit, admit_plain, needs_controls
from refold.log.entry import Draft, Mark, Marked, Span, check_name, check_newest
from refold.log.kinds import Message, Opened
from refold.log.outline import CONTROL_KINDS, Segment, dump, plan_fork, replay
from refold.log.protocol import Appended, SessionInfo, State, fork_state
from refold.stores.postgres.connection import Reading, Values, Writing
from refold.stores.postgres.metrics import Measuring
from refold.stores.postgres.read import (
    KnownSessions,
    Name,
    SessionRow,
    Statement,
    artifacts_of,
    controls,
    find_session,
    forgotten_at,
    info,
    packed,
    rests_on_of,
    seen,
    segments,
    statement,
    the_session,
    truth,
    whole_number,
)
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


# Forking: the new session points at the entries it shares.
#
# Who forks, forgets or lets sessions expire does so alone in its tenant, so who reads whose entries
# does not change meanwhile. Appends go on: the entries a fork shares are there already.

SQL_FORK = statements("refold.stores.postgres", "sql/fork.sql")


async def fork(tx: Writing, session: str, new: str, at: int | None) -> SessionInfo:
    """Make `new` out of the first `at` entries of the session."""
    await lock_tenant(tx)
    source = await the_session(tx, session)
    check_name(new)
    at = source.state.head if at is None else at
    there = await find_session(tx, new)
    if there is not None and (there.forked_from, there.forked_at) == (session, at):
        return info(there, new)
    if there is None:
        if not 1 <= at <= source.state.head:
            raise InvalidInput(f"Session {session!r} has no entry {at} to fork at.")
        there = await _forked(tx, session, source, new, at)
        if there is not None:
            return info(there, new)
    raise SessionExists(f"There is a session {new!r} already.")


async def lock_tenant(tx: Writing) -> None:
    """Wait until nobody else forks or forgets in this tenant, and keep it so."""
    await tx.run(SQL_FORK["lock_tenant"], (tx.tenant,))


def columns(parts: Iterable[Segment]) -> tuple[list[int], list[int], list[int]]:
    """Segments as statements take them: sources, firsts, lasts."""
    found = list(parts)
    return [one.source for one in found], [one.first for one in found], [one.last for one in found]


def hashes_in(artifacts: str | None) -> list[str]:
    """The hashes in the column of an entry's artifacts, once for each use."""
    if artifacts is None:
        return []
    holes, attached = json.loads(artifacts)
    return [*(hole[2] for hole in holes), *attached]


async def _forked(
    tx: Writing, session: str, source: SessionRow, new: str, at: int
) -> SessionRow | None:
    """The new session; None when one of the name was begun meanwhile."""
    shared = await segments(tx, source, Span(1, at))
    found = await tx.one(SQL_FORK["messages_at"], (tx.tenant, shared[-1].source, at))
    messages = found[0] if found else 0
    at_head = at == source.state.head
    outline = source.state.outline if at_head else replay(await controls(tx, source, at))
    state = fork_state(source.state, at, messages, outline, tx.now)
    state = state._replace(not_before=await forgotten_at(tx, new))
    made = await tx.one(SQL_FORK["add_fork"], (tx.tenant, new, session, *_columns_of(state)))
    if made is None:
        return None
    plan = plan_fork(shared, at, made[0])
    await tx.run(SQL_FORK["add_segments"], (tx.tenant, made[0], *columns(plan.segments)))
    if plan.copies:
        await _copy(tx, plan.copies, made[0])
    tx.reach("fork.written")
    return SessionRow(made[0], state, at + 1, session, 0, 0)


def _columns_of(state: State) -> tuple[object, ...]:
    texts = packed(state.format), packed(state.profile), dump(state.outline)
    return state.created_at, state.head, state.messages, state.not_before, *texts


async def _copy(tx: Writing, parts: Sequence[Segment], key: int) -> None:
    found = await tx.all(SQL_FORK["copied_artifacts"], (tx.tenant, *columns(parts)))
    uses = Counter(hash_ for (column,) in found for hash_ in hashes_in(column))
    if uses:
        hashes = [packed(hash_) for hash_ in uses]
        await tx.run(SQL_FORK["use_artifacts"], (tx.tenant, hashes, list(uses.values())))
    await tx.run(SQL_FORK["copy_entries"], (tx.tenant, key, *columns(parts)))
    await tx.run(SQL_FORK["add_copies"], (tx.tenant, key, *columns(parts)))


# Marks: keys by which entries are found again.
#
# A mark goes to the server with the entries it is put on, in the same call. If the session's newest
# mark is not where its writer knows it, the server appends nothing, as if a unique index objected;
# then we read the session and see what it is.

T = TypeVar("T")
SQL_MARKING = statements("refold.stores.postgres", "sql/marks.sql")
_PACKED = {
    SQL["append_plain"].encode(): statement("append_plain_marked", SQL_MARKING["append_plain"], 13)
}
_CALLS = {SQL[name]: SQL_MARKING[name] for name in ("append", "begin_session")}


class MarkServer(Protocol):
    """Where to write, and to read what a decision rests on."""

    wait: float
    known: KnownSessions
    measuring: Measuring

    def now(self) -> int:
        """Milliseconds since 1970."""
        ...

    async def call(self, sql: str, values: Values) -> object:
        """Call one function, which is a transaction of its own; None if a unique index objects."""
        ...

    async def call_packed(self, what: Statement, values: Sequence[bytes | None]) -> int | None:
        """The same, with values that are packed already."""
        ...

    async def read(self, tenant: str, work: Callable[[Reading], Awaitable[T]]) -> T:
        """Do work that only reads."""
        ...


class Marking:
    """Where to write one append with its mark."""

    def __init__(self, server: MarkServer, name: Name, mark: Mark) -> None:
        self.known = server.known
        self._server = server
        self._name = name
        self._mark = mark
        self._newest: int | None = None

    def now(self) -> int:
        """Milliseconds since 1970."""
        return self._server.now()

    async def call(self, sql: str, values: Values) -> object:
        """Append and put the mark by one call; None if a unique index or a newer mark objects.

        Raises MarkConflict when it is known that a newer mark does.
        """
        self._check()
        mark = self._mark
        return await self._server.call(_CALLS[sql], (*values, mark.key, mark.after, mark.nth))

    async def call_packed(self, what: Statement, values: Sequence[bytes | None]) -> int | None:
        """The same for one plain draft, which is always the first."""
        self._check()
        key, _, after = self._mark
        put = key, None if after is None else whole_number(after)
        return await self._server.call_packed(_PACKED[what.sql], (*values, *put))

    async def append(
        self, drafts: Sequence[Draft], expected: int | None, revision: int | None
    ) -> Appended:
        """Append the drafts, by what is known if that will do."""
        name, done = self._name, None
        if revision is None:
            done = await append_plain(self, name, drafts, expected)
        known = guess(self.known.get(name), drafts) if done is None else None
        if known is not None:
            with suppress(LogError, InvalidInput):  # it may be out of date: look, and see
                done = await write(self, name, drafts, expected, known, revision=revision)
        if done is not None:
            return done
        async with self.known.deciding(name):
            return await self._decide(drafts, expected, revision)

    async def _decide(
        self, drafts: Sequence[Draft], expected: int | None, revision: int | None
    ) -> Appended:
        server, name = self._server, self._name
        until = monotonic() + server.wait
        while monotonic() < until:
            known = await server.read(name[0], partial(self._look, drafts=drafts))
            done = None
            if known.row and not known.facts.seen and expected is revision is None:
                self.known.put(name, known.row)  # what needs no head needs not race for it
                done = await append_plain(self, name, drafts, expected)
            if done is None:
                done = await write(self, name, drafts, expected, known, revision=revision)
            if done is not None:
                return done
            server.measuring.decided_again()
        raise StoreBusy(f"Others append to session {name[1]!r} all the time.")

    def _check(self) -> None:
        if self._newest is not None:
            check_newest(self._name[1], self._mark, self._newest)

    async def _look(self, tx: Reading, drafts: Sequence[Draft]) -> Known:
        known = await look(tx, self._name[1], drafts)
        self._newest = 0
        if known.row is not None:
            [(newest,)] = await tx.all(SQL_MARKING["newest"], (tx.tenant, known.row.key))
            self._newest = newest or 0
        return known


async def marked(tx: Reading, keys: Sequence[bytes]) -> list[Marked]:
    """The entries with any of these keys, those marked last first."""
    if not keys:
        return []
    return [Marked(*row) for row in await tx.all(SQL_MARKING["marked"], (tx.tenant, keys))]
