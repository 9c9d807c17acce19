"""The log protocol over what is held."""

from collections.abc import Callable, Collection, Sequence
from uuid import UUID

from refold.engine.locks import ProcessLocks
from refold.errors import ArtifactNotFound, InvalidEntry, InvalidInput, SessionExists, StoreClosed
from refold.log.admit import Facts, Repeat, admit, check_drafts, needs_controls
from refold.log.artifact import Artifact
from refold.log.codec import Clock, wall_clock
from refold.log.entry import (
    Draft,
    Entry,
    Mark,
    Marked,
    Span,
    askable,
    check_mark,
    check_name,
    check_newest,
    seqs,
    spans_of,
    union,
)
from refold.log.excerpt import excerpt
from refold.log.kinds import Message
from refold.log.outline import chain_of, replay
from refold.log.protocol import (
    DEFAULT_TENANT,
    Appended,
    Erased,
    Hit,
    Locks,
    Match,
    Matches,
    Outlined,
    SessionInfo,
    SessionPage,
    Store,
    Visible,
    fork_state,
    last_shown,
    page_after,
)
from refold.log.text import Searched, Term, terms, text_of
from refold.stores.memory.held import HeldSession, Row, Tenant, bury, erase
from refold.stores.sql import matching

# Looking for words in what is held.


def search(held: Tenant, query: str, session: str | None, limit: int) -> list[Hit]:
    """See `refold.log.Log.search`."""
    looked_for: list[Term] = [(tuple(run),) for run in terms(query)]
    hits: dict[tuple[UUID, int], tuple[str, Row]] = {}
    for there in _among(held, session) if looked_for else ():
        for row in there.rows:
            place = row.entry.id, row.entry.seq
            if place not in hits and all(map(held.searched(row).holds, looked_for)):
                hits[place] = there.name, row
    order = _by_seq if session else _by_time
    newest = sorted(hits.values(), key=lambda hit: order(hit[1].entry), reverse=True)[:limit]
    return [_hit(name, held.whole(row.entry), query) for name, row in newest]


def _hit(name: str, entry: Entry, query: str) -> Hit:
    return Hit(name, entry, excerpt(text_of(entry), query))


def matches(held: Tenant, looked_for: Sequence[Term], session: str | None, most: int) -> Matches:
    """See `refold.log.Log.matches`."""
    among = _among(held, session)
    entries: dict[tuple[UUID, int], tuple[Match, Searched]] = {}
    for there in among:
        messages = 0
        for row in there.rows:
            entry = row.entry
            messages += entry.kind == Message.KIND
            if (place := (entry.id, entry.seq)) not in entries:
                words = held.searched(row)
                place_of = there.name, entry.seq, entry.at, entry.kind, entry.scope
                entries[place] = Match(*place_of, messages, words.length, ()), words
    return matching(list(entries.values()), looked_for, len(among), most)


def holds(held: Tenant, there: HeldSession, query: str) -> bool:
    """Whether the session's name begins with the query, or an entry holds all its words."""
    looked_for: list[Term] = [(tuple(run),) for run in terms(query)]
    return there.name.startswith(query) or (
        bool(looked_for)
        and any(all(map(held.searched(row).holds, looked_for)) for row in there.rows)
    )


def _among(held: Tenant, session: str | None) -> list[HeldSession]:
    return [held.session(session)] if session else held.oldest_first()


def _by_seq(entry: Entry) -> tuple[int]:
    return (entry.seq,)


def _by_time(entry: Entry) -> tuple[int, int, UUID]:
    return entry.at, entry.seq, entry.id


class MemoryLog:
    """The sessions of one tenant. Its methods never wait, so each is one step to the event loop."""

    def __init__(self, tenant: str, held: Callable[[str], Tenant], clock: Clock) -> None:
        self.tenant = tenant
        self._of = held
        self._clock = clock

    def locks(self, purpose: str = "fold") -> Locks:
        """See `refold.log.Log.locks`."""
        return ProcessLocks(self, self._held.locks, purpose)

    @property
    def _held(self) -> Tenant:
        return self._of(self.tenant)

    async def append(
        self,
        session: str,
        drafts: Sequence[Draft],
        *,
        expected: int | None,
        revision: int | None = None,
        mark: Mark | None = None,
    ) -> Appended:
        """See `refold.log.Log.append`."""
        if revision is not None:
            raise InvalidEntry("This store counts no revisions.", "Append without one.")
        check_drafts(drafts)
        if mark is not None:
            check_mark(mark, drafts)
        held = self._held
        there = held.sessions.get(session)
        places = there.places if there else {}
        known = (places.get(draft.id) for draft in drafts)
        seen = {row.entry.id: held.whole(row.entry) for row in known if row}
        controls = held.controls(there) if there and needs_controls(drafts) else []
        gone = held.forgotten.get(session, 0)
        facts = Facts(there and there.state, seen, controls, gone, now=self._now())
        outcome = admit(session, drafts, expected, facts)
        if isinstance(outcome, Repeat):
            return Appended(outcome.first, outcome.last, repeated=True)
        marks = held.marks
        if mark is not None:
            check_newest(session, mark, marks.newest(session))
            marks.put(session, outcome.entries[mark.nth].seq, mark.key)
        if there is None:
            there = HeldSession(next(held.keys), session, outcome.state, [])
            held.sessions[session] = there
        held.take(outcome.artifacts)
        there.add(map(Row, outcome.entries))
        there.state = outcome.state
        return Appended(outcome.entries[0].seq, outcome.entries[-1].seq)

    async def marked(self, keys: Sequence[bytes]) -> list[Marked]:
        """See `refold.log.Log.marked`."""
        return self._held.marks.found(askable(keys))

    async def head(self, session: str) -> int:
        """See `refold.log.Log.head`."""
        return self._held.session(session).state.head

    async def info(self, session: str) -> SessionInfo:
        """See `refold.log.Log.info`."""
        return self._held.session(session).info()

    async def read(
        self, session: str, span: Span | None = None, *, whole: bool = True
    ) -> list[Entry]:
        """See `refold.log.Log.read`."""
        held = self._held
        rows = held.session(session).rows
        picked = rows[span.first - 1 : span.last] if span else rows
        return [held.whole(row.entry) if whole else row.entry for row in picked]

    async def visible(self, session: str, *, last: int | None = None) -> Visible:
        """See `refold.log.Log.visible`."""
        held = self._held
        there = held.session(session)
        outline = there.state.outline
        needed = outline.needed(there.state.head, last)
        if outline.record is not None:
            record = held.whole(there.rows[outline.record - 1].entry)
            needed = union((*needed, *spans_of(chain_of(record))))
        entries = tuple(held.whole(there.rows[seq - 1].entry) for seq in seqs(needed))
        return Visible(there.info(), outline, entries)

    async def outlined(self, session: str) -> Outlined:
        """See `refold.log.Log.outlined`."""
        there = self._held.session(session)
        return Outlined(there.info(), there.state.outline)

    async def sessions(
        self, *, search: str | None = None, limit: int = 50, page: str | None = None
    ) -> SessionPage:
        """See `refold.log.Log.sessions`."""
        held = self._held
        listed = sorted(held.sessions.values(), key=_use, reverse=True)
        if search is not None:
            listed = [one for one in listed if holds(held, one, search)]
        begin = last_shown(page)
        listed = [one for one in listed if _use(one) < begin]
        shown = listed[:limit]
        more = page_after(*_use(shown[-1])) if len(listed) > len(shown) > 0 else None
        return SessionPage(tuple(one.info() for one in shown), more)

    async def fork(self, session: str, new: str, *, at: int | None = None) -> SessionInfo:
        """See `refold.log.Log.fork`."""
        held = self._held
        source = held.session(session)
        check_name(new)
        at = source.state.head if at is None else at
        there = held.sessions.get(new)
        if there is not None:
            if (there.forked_from, there.forked_at) == (session, at):
                return there.info()
            raise SessionExists(f"There is a session {new!r} already.")
        if not 1 <= at <= source.state.head:
            raise InvalidInput(f"Session {session!r} has no entry {at} to fork at.")
        rows = source.rows[:at]
        forked = HeldSession(next(held.keys), new, source.state, rows, at + 1, session, at)
        messages = sum(row.entry.kind == Message.KIND for row in rows)
        outline = replay(held.controls(forked))
        state = fork_state(source.state, at, messages, outline, self._now())
        forked.state = state._replace(not_before=held.forgotten.get(new, 0))
        held.sessions[new] = forked
        return forked.info()

    async def forget(self, session: str, span: Span | None = None) -> Erased:
        """See `refold.log.Log.forget`."""
        held = self._held
        there = held.session(session)
        if span is not None:
            rows = [
                row for row in there.rows[span.first - 1 : span.last] if not row.entry.forgotten
            ]
            return Erased(session, len(rows), erase(held, rows))
        rows = [row for row in there.rows[there.own_from - 1 :] if not row.entry.forgotten]
        derived = erase(held, rows)
        bury(held, there, self._now())
        return Erased(session, len(rows), derived)

    async def expire(self, before: int, *, only: Collection[str] | None = None) -> list[str]:
        """See `refold.log.Log.expire`."""
        held = self._held
        old = [one for one in held.sessions.values() if one.state.updated_at < before]
        old = [one for one in old if only is None or one.name in only]
        for there in old:
            bury(held, there, self._now())
        return sorted(there.name for there in old)

    async def artifact(self, hash: str) -> Artifact:  # noqa: A002 - the glossary's word
        """See `refold.log.Log.artifact`."""
        there = self._held.artifacts.get(hash)
        if there is None:
            raise ArtifactNotFound(f"There is no artifact {hash}.")
        return there[0]

    async def search(self, query: str, *, session: str | None = None, limit: int = 20) -> list[Hit]:
        """See `refold.log.Log.search`."""
        return search(self._held, query, session, limit)

    async def matches(
        self, terms: Sequence[Term], *, session: str | None = None, most: int = 2_000
    ) -> Matches:
        """See `refold.log.Log.matches`."""
        return matches(self._held, terms, session, most)

    def _now(self) -> int:
        return int(self._clock().timestamp() * 1000)


def _use(there: HeldSession) -> tuple[int, int]:
    return there.state.updated_at, there.key


# The store: what is held for each tenant, until it is closed.


class MemoryStore(Store):
    """Keeps logs in memory, for tests and for conversations that need not be kept."""

    def __init__(self, *, clock: Clock = wall_clock) -> None:
        self._clock = clock
        self._tenants: dict[str, Tenant] = {}
        self._closed = False

    def log(self, tenant: str = DEFAULT_TENANT) -> MemoryLog:
        """The log of one tenant."""
        check_name(tenant, "tenant")
        return MemoryLog(tenant, self.held, self._clock)

    def held(self, tenant: str) -> Tenant:
        """What is kept for a tenant."""
        if self._closed:
            raise StoreClosed("The store in memory is closed, and what it held is gone.")
        if tenant not in self._tenants:
            self._tenants[tenant] = Tenant()
        return self._tenants[tenant]

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Let go of everything."""
        self._tenants.clear()
        self._closed = True
