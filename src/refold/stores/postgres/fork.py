"""Forking: the new session points at the entries it shares.

Who forks, forgets or lets sessions expire does so alone in its tenant, so who reads whose entries
does not change meanwhile. Appends go on: the entries a fork shares are there already.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence

from refold.errors import InvalidInput, SessionExists
from refold.log.lineage import Segment, plan_fork
from refold.log.names import check_name
from refold.log.outline import dump
from refold.log.protocol import SessionInfo
from refold.log.replaying import replay
from refold.log.span import Span
from refold.log.state import State, fork_state
from refold.stores.postgres.read import (
    controls,
    find_session,
    forgotten_at,
    info,
    segments,
    the_session,
)
from refold.stores.postgres.rows import SessionRow, packed
from refold.stores.postgres.transaction import Writing
from refold.stores.sql import statements

SQL = statements("refold.stores.postgres", "sql/fork.sql")


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
    await tx.run(SQL["lock_tenant"], (tx.tenant,))


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
    found = await tx.one(SQL["messages_at"], (tx.tenant, shared[-1].source, at))
    messages = found[0] if found else 0
    at_head = at == source.state.head
    outline = source.state.outline if at_head else replay(await controls(tx, source, at))
    state = fork_state(source.state, at, messages, outline, tx.now)
    state = state._replace(not_before=await forgotten_at(tx, new))
    made = await tx.one(SQL["add_fork"], (tx.tenant, new, session, *_columns_of(state)))
    if made is None:
        return None
    plan = plan_fork(shared, at, made[0])
    await tx.run(SQL["add_segments"], (tx.tenant, made[0], *columns(plan.segments)))
    if plan.copies:
        await _copy(tx, plan.copies, made[0])
    tx.reach("fork.written")
    return SessionRow(made[0], state, at + 1, session, 0, 0)


def _columns_of(state: State) -> tuple[object, ...]:
    texts = packed(state.format), packed(state.profile), dump(state.outline)
    return state.created_at, state.head, state.messages, state.not_before, *texts


async def _copy(tx: Writing, parts: Sequence[Segment], key: int) -> None:
    found = await tx.all(SQL["copied_artifacts"], (tx.tenant, *columns(parts)))
    uses = Counter(hash_ for (column,) in found for hash_ in hashes_in(column))
    if uses:
        hashes = [packed(hash_) for hash_ in uses]
        await tx.run(SQL["use_artifacts"], (tx.tenant, hashes, list(uses.values())))
    await tx.run(SQL["copy_entries"], (tx.tenant, key, *columns(parts)))
    await tx.run(SQL["add_copies"], (tx.tenant, key, *columns(parts)))
