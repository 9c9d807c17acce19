"""Appending entries and their marks; forking sessions.

Nothing is locked while `admit` decides. A single call writes what was decided, if the session still
has the head and the revision that the decision rests on; if not, we read it again and decide anew.

A mark goes to the server with the entries it is put on, in the same call. If the session's newest
mark is elsewhere than its writer expects, the server appends nothing, as if a unique index
objected; then we read the session to see which it is.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from time import monotonic
from typing import NamedTuple

from refold.errors import InvalidEntry, InvalidInput, LogError, SessionExists, StoreBusy
from refold.log.admit import Facts, Write, admit, admit_plain, needs_controls
from refold.log.entry import Draft, Mark, Marked, Span, check_name, check_newest
from refold.log.kinds import Message, Opened
from refold.log.outline import CONTROL_KINDS, Segment, dump, plan_fork, replay
from refold.log.protocol import Appended, SessionInfo
from refold.models.accounts import COUNTED
from refold.stores.postgres.connection import Reading, Values, Writing
from refold.stores.postgres.read import (
    Database,
    Name,
    SessionRow,
    columns,
    controls,
    entries_with_ids,
    find_session,
    forgotten_at,
    packed,
    require_session,
    segments,
    statement,
    truth,
    whole_number,
)
from refold.stores.postgres.totals import SQL as SQL_TOTALS
from refold.stores.postgres.totals import accounts_of, begin_uncounted, booked
from refold.stores.sql import dump_artifacts, dump_rests_on, load_artifacts, statements
from refold.stores.totals import NEW, counted

SQL_MARKS = statements("refold.stores.postgres", "sql/marks.sql")
_SQL = statements("refold.stores.postgres", "sql/append.sql")
_SQL_FORK = statements("refold.stores.postgres", "sql/fork.sql")
_PLAIN = statement("append_plain", _SQL["append_plain"], 11)
_PLAIN_MARKED = statement("append_plain_marked", SQL_MARKS["append_plain"], 13)


class _Basis(NamedTuple):
    row: SessionRow | None
    facts: Facts


class Append:
    def __init__(self, store: Database, name: Name, mark: Mark | None = None) -> None:
        self._store = store
        self._name = name
        self._mark = mark
        self._newest_mark: int | None = None

    async def run(
        self, drafts: Sequence[Draft], expected: int | None, revision: int | None
    ) -> Appended:
        """Append the drafts by what is cached, or else by what is read until nobody interferes."""
        if revision is None and (done := await self._append_plain(drafts, expected)) is not None:
            return done
        basis = self._guess(drafts)
        if basis is not None:
            with suppress(LogError, InvalidInput):  # it may be out of date: read, and see
                done = await self._decide(drafts, expected, basis, revision)
                if done is not None:
                    return done
        store, (tenant, session) = self._store, self._name
        until = monotonic() + store.wait

        async def look(tx: Reading) -> _Basis:
            return await self._look(tx, drafts)

        async with store.cache.deciding(self._name):  # or a process's own appends race each other
            while monotonic() < until:
                basis = await store.read(tenant, look)
                done = None
                if basis.row and not basis.facts.existing and expected is revision is None:
                    # What needs no head need not race for it.
                    store.cache.put(self._name, basis.row)
                    done = await self._append_plain(drafts, expected)
                if done is None:
                    done = await self._decide(drafts, expected, basis, revision)
                if done is not None:
                    return done
                store.measuring.decided_again()
        raise StoreBusy(f"Other writers keep appending to session {session!r} all the time.")

    async def _append_plain(self, drafts: Sequence[Draft], expected: int | None) -> Appended | None:
        cache, name = self._store.cache, self._name
        row = cache.get(name)
        if row is None or row.own_from > 1 or len(drafts) > 1:
            return None
        draft = drafts[0]
        after = None if draft.kind in COUNTED else admit_plain(row.state, draft, expected)
        if after is None:
            return None
        values = (
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
        )
        if self._mark is None:
            seq = await self._store.call_packed(_PLAIN, values)
        else:
            self._check_mark()
            key, _, after_mark = self._mark
            mark = key, None if after_mark is None else whole_number(after_mark)
            seq = await self._store.call_packed(_PLAIN_MARKED, (*values, *mark))
        if seq == after.head:
            cache.put(name, row._replace(state=after))
        else:
            cache.drop(name)
        return None if seq is None else Appended(seq, seq, revision=row.revision)

    def _guess(self, drafts: Sequence[Draft]) -> _Basis | None:
        """What can be assumed without reading, if that is enough.

        Drafts are nearly always new, and so is a session that is opened. If they are not, the
        unique index or the head tells, nothing has been written, and we look for them. But entries
        that a fork shares are in no index of its own.
        """
        row = self._store.cache.get(self._name)
        if row is None and drafts[0].kind == Opened.KIND:
            return _Basis(None, Facts())
        if row is None or row.own_from > 1 or needs_controls(drafts):
            return None
        return _Basis(row, Facts(row.state))

    async def _look(self, tx: Reading, drafts: Sequence[Draft]) -> _Basis:
        session = self._name[1]
        row = await find_session(tx, session)
        if row is None:
            self._newest_mark = 0
            return _Basis(None, Facts(forgotten_at=await forgotten_at(tx, session)))
        existing = await entries_with_ids(tx, row, [draft.id for draft in drafts])
        before = await controls(tx, row) if needs_controls(drafts) else ()
        if self._mark is not None:
            [(newest,)] = await tx.all(SQL_MARKS["newest"], (tx.tenant, row.key))
            self._newest_mark = newest or 0
        return _Basis(row, Facts(row.state, existing, before))

    async def _decide(
        self, drafts: Sequence[Draft], expected: int | None, basis: _Basis, revision: int | None
    ) -> Appended | None:
        """Decide, and write what was decided; None when the session is no longer as it was."""
        store, name = self._store, self._name
        facts = basis.facts._replace(now=store.now())
        outcome = admit(name[1], drafts, expected, facts)
        if isinstance(outcome, Appended):
            return outcome
        if revision is not None and (basis.row is None or basis.row.revision != revision):
            raise InvalidEntry(
                f"Entries of session {name[1]!r} were forgotten since it was read.",
                "Read it again, and append what it still holds.",
            )
        row = await self._write(basis.row, outcome, drafts)
        if row is None:
            store.cache.drop(name)
            return None
        store.cache.put(name, row)
        return Appended(outcome.entries[0].seq, outcome.entries[-1].seq, revision=row.revision)

    async def _write(
        self, row: SessionRow | None, outcome: Write, drafts: Sequence[Draft]
    ) -> SessionRow | None:
        tenant, session = self._name
        store, new = self._store, counted(outcome.entries, drafts)
        known = NEW if row is None else store.cache.accounts(self._name, row.key)
        if new and row is not None:
            known = await accounts_of(store, self._name, row, new)
        booking = known.booking(new) if new and known else None
        values_booked = booked(known, booking) if known and booking else None
        after = outcome.state
        counts = after.head, after.messages, after.updated_at
        written = _columns(outcome, row.state.messages if row else 0)
        if row is None:
            opening = (
                *(tenant, session, after.not_before),
                *(packed(after.format), packed(after.profile), after.created_at),
                *(*counts, dump(after.outline)),
            )
            key = await self._call("begin_session", (*opening, *written), values_booked)
            made = SessionRow(key, after, 1, None, 0, 0) if isinstance(key, int) else None
        else:
            outline = None if after.outline is row.state.outline else dump(after.outline)
            before = tenant, row.key, row.revision, row.state.head
            done = await self._call("append", (*before, *counts, outline, *written), values_booked)
            made = row._replace(state=after) if done else None
        later = known and made and known.after(made.key, booking, outcome.entries)
        store.cache.put_accounts(self._name, later)
        return made

    async def _call(self, function: str, values: Values, booked: Values | None) -> object:
        """Call a function of the server, with the mark and with what is booked, if there is any.

        Raises MarkConflict when it is known that a newer mark is in the way.
        """
        mark = self._mark
        if mark is not None:
            self._check_mark()
            values = (*values, mark.key, mark.after, mark.nth)
        if booked is None:
            return await self._store.call((SQL_MARKS if mark else _SQL)[function], values)
        name = f"{function}_marked" if mark else function
        return await self._store.call(SQL_TOTALS[name], (*values, *booked))

    def _check_mark(self) -> None:
        if self._mark is not None and self._newest_mark is not None:
            check_newest(self._name[1], self._mark, self._newest_mark)


def _columns(outcome: Write, messages: int) -> list[object]:
    """What is to be written, a list for each column."""
    entries = outcome.entries
    message_counts: list[int] = []
    for entry in entries:
        messages += entry.kind == Message.KIND
        message_counts.append(messages)
    uses = Counter(artifact.hash for artifact in outcome.artifacts)
    by_hash = {artifact.hash: artifact for artifact in outcome.artifacts}
    artifacts = [by_hash[hash_] for hash_ in sorted(by_hash)]
    return [
        [entry.seq for entry in entries],
        [entry.id for entry in entries],
        [entry.at for entry in entries],
        [entry.kind for entry in entries],
        [entry.version for entry in entries],
        message_counts,
        [entry.kind in CONTROL_KINDS for entry in entries],
        [entry.forgotten for entry in entries],
        [packed(entry.scope) for entry in entries],
        [dump_rests_on(entry) for entry in entries],
        [dump_artifacts(entry) for entry in entries],
        [entry.body for entry in entries],
        [packed(artifact.hash) for artifact in artifacts],
        [uses[artifact.hash] for artifact in artifacts],
        [packed(artifact.media_type) for artifact in artifacts],
        [artifact.data for artifact in artifacts],
    ]


async def marked(tx: Reading, keys: Sequence[bytes]) -> list[Marked]:
    if not keys:
        return []
    return [Marked(*row) for row in await tx.all(SQL_MARKS["marked"], (tx.tenant, keys))]


async def lock_tenant(tx: Writing) -> None:
    """Wait until nobody else forks or forgets in this tenant, and keep it so.

    So who reads whose entries does not change meanwhile. Appends go on: the entries that a fork
    shares are there already.
    """
    await tx.run(_SQL_FORK["lock_tenant"], (tx.tenant,))


async def fork(tx: Writing, session: str, new: str, at: int | None) -> SessionInfo:
    await lock_tenant(tx)
    source = await require_session(tx, session)
    check_name(new)
    at = source.state.head if at is None else at
    row = await find_session(tx, new)
    if row is not None and (row.forked_from, row.own_from) == (session, at + 1):
        return row.info(new)
    if row is None:
        if not 1 <= at <= source.state.head:
            raise InvalidInput(f"Session {session!r} has no entry {at} to fork at.")
        row = await _add_fork(tx, session, source, new, at)
        if row is not None:
            return row.info(new)
    raise SessionExists(f"There is a session {new!r} already.")


async def _add_fork(
    tx: Writing, session: str, source: SessionRow, new: str, at: int
) -> SessionRow | None:
    """The new session; None when one of the name was begun meanwhile."""
    shared = await segments(tx, source, [Span(1, at)])
    found = await tx.first(_SQL_FORK["messages_at"], (tx.tenant, shared[-1].source, at))
    messages = found[0] if found else 0
    at_head = at == source.state.head
    outline = source.state.outline if at_head else replay(await controls(tx, source, at))
    not_before = await forgotten_at(tx, new)
    state = source.state.fork(at, messages, outline, tx.now, not_before)
    counts = state.created_at, state.head, state.messages, state.not_before
    texts = packed(state.format), packed(state.profile), dump(state.outline)
    added = await tx.first(_SQL_FORK["add_fork"], (tx.tenant, new, session, *counts, *texts))
    if added is None:
        return None
    [key] = added
    plan = plan_fork(shared, at, key)
    await tx.run(_SQL_FORK["add_segments"], (tx.tenant, key, *columns(plan.segments)))
    if plan.copies:
        await _copy(tx, plan.copies, key)
    await begin_uncounted(tx, key)
    tx.reach("fork.written")
    return SessionRow(key, state, at + 1, session, 0, 0)


async def _copy(tx: Writing, parts: Sequence[Segment], key: int) -> None:
    rows = await tx.all(_SQL_FORK["copied_artifacts"], (tx.tenant, *columns(parts)))
    uses = Counter(artifact_hashes(column for (column,) in rows))
    if uses:
        hashes = [packed(hash_) for hash_ in uses]
        await tx.run(_SQL_FORK["use_artifacts"], (tx.tenant, hashes, list(uses.values())))
    await tx.run(_SQL_FORK["copy_entries"], (tx.tenant, key, *columns(parts)))
    await tx.run(_SQL_FORK["add_copies"], (tx.tenant, key, *columns(parts)))


def artifact_hashes(artifact_columns: Iterable[str | None]) -> Iterable[str]:
    """The hashes in the columns of entries' artifacts, once for each use."""
    for column in artifact_columns:
        holes, attached = load_artifacts(column)
        yield from (hole.hash for hole in holes)
        yield from attached
