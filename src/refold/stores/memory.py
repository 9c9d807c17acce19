"""A store in memory: nothing outlives the process, everything else is as in the others."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import count
from uuid import UUID

from refold.engine.locks import LockTable, ProcessLocks
from refold.errors import ArtifactNotFound, InvalidEntry, InvalidInput, SessionExists, StoreClosed
from refold.log.admit import (
    Facts,
    admit,
    check_drafts,
    dependents,
    missing,
    needs_controls,
    tombstone,
)
from refold.log.artifact import Artifact
from refold.log.codec import Clock, wall_clock
from refold.log.entry import (
    Draft,
    Entry,
    Mark,
    Marked,
    Span,
    check_mark,
    check_name,
    check_newest,
    restore,
    seqs,
    spans_of,
    union,
    valid_keys,
)
from refold.log.excerpt import excerpt
from refold.log.kinds import Message, Requested
from refold.log.outline import CONTROL_KINDS, chain_of, replay
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
    State,
    Store,
    Total,
    Totals,
    Visible,
    page_after,
    parse_page,
)
from refold.log.text import Searched, Term, gather, terms, text_of
from refold.models.receipt import Receipt
from refold.stores.totals import Basis, Booking, answered, book, count_again, counted


class MemoryStore(Store):
    """Keeps logs in memory, for tests and for conversations that need not be kept."""

    def __init__(self, *, clock: Clock = wall_clock) -> None:
        self._clock = clock
        self._tenants: dict[str, _Tenant] = {}
        self._closed = False

    def log(self, tenant: str = DEFAULT_TENANT) -> "MemoryLog":
        check_name(tenant, "tenant")
        return MemoryLog(tenant, self._tenant, self._clock)

    def _tenant(self, name: str) -> "_Tenant":
        if self._closed:
            raise StoreClosed("The store in memory is closed, and its content is gone.")
        if name not in self._tenants:
            self._tenants[name] = _Tenant()
        return self._tenants[name]

    async def open(self) -> None: ...

    async def close(self) -> None:
        self._tenants.clear()
        self._closed = True


class MemoryLog:
    """The sessions of one tenant. Its methods never wait, so each is one step to the event loop."""

    def __init__(self, tenant: str, data: "Callable[[str], _Tenant]", clock: Clock) -> None:
        self.tenant = tenant
        self._tenant = data
        self._clock = clock

    @property
    def _data(self) -> "_Tenant":
        return self._tenant(self.tenant)

    def locks(self, purpose: str = "fold") -> Locks:
        return ProcessLocks(self, self._data.locks, purpose)

    async def append(
        self,
        session: str,
        drafts: Sequence[Draft],
        *,
        expected: int | None,
        revision: int | None = None,
        mark: Mark | None = None,
    ) -> Appended:
        if revision is not None:
            raise InvalidEntry("This store counts no revisions.", "Append without one.")
        check_drafts(drafts)
        if mark is not None:
            check_mark(mark, drafts)
        data = self._data
        stored = data.sessions.get(session)
        rows = [stored.by_id.get(draft.id) for draft in drafts] if stored else []
        existing = {row.entry.id: data.whole(row.entry) for row in rows if row}
        controls = data.controls(stored) if stored and needs_controls(drafts) else []
        forgotten_at = data.forgotten.get(session, 0)
        facts = Facts(stored and stored.state, existing, controls, forgotten_at, now=self._now())
        outcome = admit(session, drafts, expected, facts)
        if isinstance(outcome, Appended):
            return outcome
        if mark is not None:
            check_newest(session, mark, data.marks.last(session))
            data.marks.put(session, outcome.entries[mark.nth].seq, mark.key)
        if stored is None:
            stored = data.sessions[session] = _Session(next(data.keys), session, outcome.state, [])
        data.use(outcome.artifacts)
        stored.add(map(_Row, outcome.entries))
        stored.state = outcome.state
        stored.count(counted(outcome.entries, drafts))
        return Appended(outcome.entries[0].seq, outcome.entries[-1].seq)

    async def marked(self, keys: Sequence[bytes]) -> list[Marked]:
        return self._data.marks.find(valid_keys(keys))

    async def head(self, session: str) -> int:
        return self._data.session(session).state.head

    async def info(self, session: str) -> SessionInfo:
        return self._data.session(session).info()

    async def read(
        self, session: str, span: Span | None = None, *, whole: bool = True
    ) -> list[Entry]:
        data = self._data
        rows = data.session(session).rows
        rows = rows[span.first - 1 : span.last] if span else rows
        return [data.whole(row.entry) if whole else row.entry for row in rows]

    async def visible(self, session: str, *, last: int | None = None) -> Visible:
        data = self._data
        stored = data.session(session)
        outline = stored.state.outline
        needed = outline.needed(stored.state.head, last)
        if outline.record is not None:
            record = data.whole(stored.rows[outline.record - 1].entry)
            needed = union((*needed, *spans_of(chain_of(record))))
        entries = tuple(data.whole(stored.rows[seq - 1].entry) for seq in seqs(needed))
        return Visible(stored.info(), outline, entries)

    async def outlined(self, session: str) -> Outlined:
        stored = self._data.session(session)
        return Outlined(stored.info(), stored.state.outline)

    async def sessions(
        self, *, search: str | None = None, limit: int = 50, page: str | None = None
    ) -> SessionPage:
        data, after = self._data, parse_page(page)
        listed = sorted(data.sessions.values(), key=_Session.last_use, reverse=True)
        listed = [
            stored
            for stored in listed
            if (search is None or data.session_matches(stored, search))
            and stored.last_use() < after
        ]
        shown = listed[:limit]
        following = page_after(*shown[-1].last_use()) if len(listed) > len(shown) > 0 else None
        return SessionPage(tuple(stored.info() for stored in shown), following)

    async def fork(self, session: str, new: str, *, at: int | None = None) -> SessionInfo:
        data = self._data
        source = data.session(session)
        check_name(new)
        at = source.state.head if at is None else at
        existing = data.sessions.get(new)
        if existing is not None:
            if (existing.forked_from, existing.own_from) == (session, at + 1):
                return existing.info()
            raise SessionExists(f"There is a session {new!r} already.")
        if not 1 <= at <= source.state.head:
            raise InvalidInput(f"Session {session!r} has no entry {at} to fork at.")
        rows = source.rows[:at]
        fork = _Session(next(data.keys), new, source.state, rows, at + 1, session)
        fork.accounts = None
        messages = sum(row.entry.kind == Message.KIND for row in rows)
        outline = replay(data.controls(fork))
        not_before = data.forgotten.get(new, 0)
        fork.state = source.state.fork(at, messages, outline, self._now(), not_before)
        data.sessions[new] = fork
        return fork.info()

    async def forget(self, session: str, span: Span | None = None) -> Erased:
        data = self._data
        stored = data.session(session)
        first, last = (span.first, span.last) if span else (stored.own_from, None)
        rows = [row for row in stored.rows[first - 1 : last] if not row.entry.forgotten]
        derived = data.erase(rows)
        if span is None:
            data.remove(stored, self._now())
        return Erased(session, len(rows), derived)

    async def expire(self, before: int, *, only: Collection[str] | None = None) -> list[str]:
        data = self._data
        expired = [
            stored
            for stored in data.sessions.values()
            if stored.state.updated_at < before and (only is None or stored.name in only)
        ]
        for stored in expired:
            data.remove(stored, self._now())
        return sorted(stored.name for stored in expired)

    async def artifact(self, hash: str) -> Artifact:  # noqa: A002 - the glossary's word
        stored = self._data.artifacts.get(hash)
        if stored is None:
            raise ArtifactNotFound(f"There is no artifact {hash}.")
        return stored[0]

    async def search(self, query: str, *, session: str | None = None, limit: int = 20) -> list[Hit]:
        data, query_terms = self._data, _query_terms(query)
        hits: dict[tuple[UUID, int], tuple[str, _Row]] = {}
        for stored in data.sessions_to_search(session) if query_terms else ():
            for row in stored.rows:
                identity = row.entry.id, row.entry.seq
                if identity not in hits and data.holds_all(row, query_terms):
                    hits[identity] = stored.name, row

        def newest_first(hit: tuple[str, _Row]) -> tuple[object, ...]:
            entry = hit[1].entry
            return (entry.seq,) if session else (entry.at, entry.seq, entry.id)

        newest = sorted(hits.values(), key=newest_first, reverse=True)[:limit]
        entries = [(name, data.whole(row.entry)) for name, row in newest]
        return [Hit(name, entry, excerpt(text_of(entry), query)) for name, entry in entries]

    async def matches(
        self, terms: Sequence[Term], *, session: str | None = None, max_matches: int = 2_000
    ) -> Matches:
        data = self._data
        searched_sessions = data.sessions_to_search(session)
        found: dict[tuple[UUID, int], tuple[Match, Searched]] = {}
        for stored in searched_sessions:
            messages = 0
            for row in stored.rows:
                entry = row.entry
                messages += entry.kind == Message.KIND
                if (identity := (entry.id, entry.seq)) not in found:
                    words = data.searched(row)
                    where = stored.name, entry.seq, entry.at, entry.kind, entry.scope
                    found[identity] = Match(*where, messages, words.length, ()), words
        entries = list(found.values())  # oldest first
        newest_first = range(len(entries) - 1, -1, -1)
        holders = [[i for i in newest_first if entries[i][1].holds(term)] for term in terms]
        gathered = gather(holders, max_matches)
        return Matches(
            tuple(entries[i][0]._replace(terms=nths) for i, nths in gathered.items()),
            tuple(map(len, holders)),
            sum(match.kind == Message.KIND for match, _ in entries),
            len(searched_sessions),
        )

    async def totals(self, first: int, last: int) -> Totals:
        data = self._data
        found: dict[tuple[int, str, str], Receipt] = {}
        sessions = 0
        for stored in data.sessions.values():
            lines = {name: sums for name, sums in stored.lines.items() if first <= name[0] <= last}
            sessions += bool(lines)
            for name, receipt in lines.items():
                found[name] = found.get(name, Receipt()).plus(receipt)
        rows = tuple(Total(*name, "", found[name].sums) for name in sorted(found))
        return Totals(rows, sessions, await self.recount(0))

    async def dearest(
        self, first: int, last: int, *, limit: int = 20, every: bool = False
    ) -> list[Total]:
        found: list[tuple[str, Receipt]] = []
        for stored in self._data.sessions.values():
            lines = [sums for (day, *_), sums in stored.lines.items() if first <= day <= last]
            receipt = reduce(Receipt.plus, lines, Receipt())
            if lines and (every or receipt.debt > 0):
                found.append((stored.name, receipt))
        found.sort(key=lambda each: -(each[1].billed if every else each[1].debt))
        return [Total(0, "", "", name, receipt.sums) for name, receipt in found[:limit]]

    async def recount(self, limit: int = 20, *, anew: bool = False) -> int:
        sessions = self._data.sessions.values()
        if anew:
            for stored in sessions:
                stored.accounts = None
        await count_again(self, limit)
        return sum(stored.accounts is None for stored in sessions)

    async def uncounted(self, limit: int) -> list[str]:
        sessions = self._data.sessions.values()
        return [stored.name for stored in sessions if stored.accounts is None][:limit]

    async def count_basis(self, session: str) -> Basis | None:
        stored = self._data.sessions.get(session)
        return stored and (stored.key, 0, stored.state.head)

    async def put_count(self, session: str, basis: Basis, booking: Booking) -> bool:
        if await self.count_basis(session) != basis:
            return False
        stored = self._data.sessions[session]
        stored.lines.clear()
        stored.put(booking)
        return True

    def _now(self) -> int:
        return int(self._clock().timestamp() * 1000)


def _query_terms(query: str) -> list[Term]:
    return [(tuple(run),) for run in terms(query)]


@dataclass(slots=True, eq=False)
class _Row:
    entry: Entry
    searched: Searched | None = None
    """Its words, once someone has searched for them."""


@dataclass(slots=True, eq=False)
class _Session:
    """A session with its rows, including those that it shares."""

    key: int
    name: str
    state: State
    rows: list[_Row]
    own_from: int = 1
    forked_from: str | None = None
    accounts: bytes | None = b""
    """How its accounts stand; None: it must be counted again."""
    lines: dict[tuple[int, str, str], Receipt] = field(
        default_factory=dict[tuple[int, str, str], Receipt]
    )
    """Its daily totals, by day, model and key."""
    by_id: dict[UUID, _Row] = field(init=False)
    controls: list[_Row] = field(init=False)

    def __post_init__(self) -> None:
        rows, self.rows = self.rows, []
        self.by_id, self.controls = {}, []
        self.add(rows)

    def add(self, rows: Iterable[_Row]) -> None:
        for row in rows:
            self.rows.append(row)
            self.by_id[row.entry.id] = row
            if row.entry.kind in CONTROL_KINDS:
                self.controls.append(row)

    def count(self, entries: Sequence[Entry]) -> None:
        """Add to the totals what entries change that were appended."""
        if entries and self.accounts is not None:
            sent = [self.rows[seq - 1].entry for seq in answered(entries) if seq <= len(self.rows)]
            ats = {entry.seq: entry.at for entry in sent if entry.kind == Requested.KIND}
            self.put(book(self.accounts, entries, ats))

    def put(self, booking: Booking) -> None:
        self.accounts = booking.state
        for line in booking.lines:
            name = line.day, line.model, line.key
            self.lines[name] = self.lines.get(name, Receipt()).plus(line.receipt)

    def info(self) -> SessionInfo:
        return self.state.info(self.name, self.own_from, self.forked_from)

    def last_use(self) -> tuple[int, int]:
        return self.state.updated_at, self.key

    def rows_resting_on(self, erased: set[_Row]) -> list[_Row]:
        spans = spans_of(row.entry.seq for row in self.rows if row in erased)
        if not spans:
            return []
        derived = [row.entry for row in self.rows if row.entry.rests_on and not row.entry.forgotten]
        return [self.rows[entry.seq - 1] for entry in dependents(spans, derived)]


class _Marks:
    def __init__(self) -> None:
        self._keys: dict[str, dict[int, bytes]] = {}
        self._entries: dict[bytes, dict[tuple[str, int], int]] = {}
        self._counter = count(1)

    def last(self, session: str) -> int:
        """The session's newest marked entry; 0 if there is none."""
        return next(reversed(self._keys.get(session, {})), 0)

    def put(self, session: str, seq: int, key: bytes) -> None:
        """Mark an entry, which is newer than those marked before."""
        self._keys.setdefault(session, {})[seq] = key
        self._entries.setdefault(key, {})[session, seq] = next(self._counter)

    def seqs(self, session: str) -> list[int]:
        return list(self._keys.get(session, ()))

    def drop(self, session: str, seqs: Iterable[int]) -> None:
        keys = self._keys.get(session, {})
        for seq in seqs:
            key = keys.pop(seq, None)
            if key is not None:
                del self._entries[key][session, seq]
                if not self._entries[key]:
                    del self._entries[key]
        if not keys:
            self._keys.pop(session, None)

    def find(self, keys: Iterable[bytes]) -> list[Marked]:
        """The entries with any of these keys, those marked last first."""
        rows: list[tuple[int, Marked]] = []
        for key in keys:
            for (session, seq), order in self._entries.get(key, {}).items():
                newest = reversed(self._keys[session])
                rows.append((order, Marked(key, session, seq, next(newest), next(newest, 0))))
        return [row for _, row in sorted(rows, reverse=True)]


@dataclass(slots=True)
class _Tenant:
    sessions: dict[str, _Session] = field(default_factory=dict[str, _Session])
    forgotten: dict[str, int] = field(default_factory=dict[str, int])
    """When sessions of these names were forgotten."""
    artifacts: dict[str, tuple[Artifact, int]] = field(
        default_factory=dict[str, tuple[Artifact, int]]
    )
    """By their hashes, each with the number of entries that refer to it."""
    keys: Iterator[int] = field(default_factory=lambda: count(1))
    marks: _Marks = field(default_factory=_Marks)
    locks: LockTable = field(default_factory=LockTable)

    def session(self, name: str) -> _Session:
        stored = self.sessions.get(name)
        if stored is None:
            raise missing(name, self.forgotten.get(name, 0))
        return stored

    def sessions_to_search(self, name: str | None) -> list[_Session]:
        """The session of that name, or all sessions, the oldest first."""
        if name:
            return [self.session(name)]
        return sorted(self.sessions.values(), key=lambda stored: stored.key)

    def whole(self, entry: Entry) -> Entry:
        return restore(entry, lambda hash_: self.artifacts[hash_][0].data)

    def controls(self, stored: _Session) -> list[Entry]:
        """The control entries, request records without what was lifted out of them."""
        return [
            row.entry if row.entry.kind == Requested.KIND else self.whole(row.entry)
            for row in stored.controls
        ]

    def searched(self, row: _Row) -> Searched:
        if row.searched is None:
            row.searched = Searched.of(text_of(self.whole(row.entry)))
        return row.searched

    def holds_all(self, row: _Row, query_terms: Sequence[Term]) -> bool:
        return all(map(self.searched(row).holds, query_terms))

    def session_matches(self, stored: _Session, query: str) -> bool:
        """Whether the session's name begins with the query, or an entry holds all its words."""
        query_terms = _query_terms(query)
        return stored.name.startswith(query) or (
            bool(query_terms) and any(self.holds_all(row, query_terms) for row in stored.rows)
        )

    def use(self, artifacts: Iterable[Artifact]) -> None:
        for artifact in artifacts:
            stored, uses = self.artifacts.get(artifact.hash, (artifact, 0))
            self.artifacts[artifact.hash] = (stored, uses + 1)

    def release(self, entry: Entry) -> None:
        for hash_ in entry.artifacts:
            artifact, uses = self.artifacts.pop(hash_)
            if uses > 1:
                self.artifacts[hash_] = (artifact, uses - 1)

    def erase(self, rows: Sequence[_Row]) -> int:
        """Make tombstones of the rows and of all that rests on them; how many the latter are."""
        erased = set(rows)
        sessions = self.sessions_to_search(None)
        while derived := {row for stored in sessions for row in stored.rows_resting_on(erased)}:
            erased |= derived
        for row in erased:
            left = tombstone(self.whole(row.entry))
            self.release(row.entry)
            row.entry, row.searched = left, None
        for stored in sessions:
            if not erased.isdisjoint(stored.rows):
                marked = self.marks.seqs(stored.name)
                self.marks.drop(stored.name, [s for s in marked if stored.rows[s - 1] in erased])
                stored.state = stored.state._replace(outline=replay(self.controls(stored)))
                stored.accounts = None
        return len(erased) - len(rows)

    def remove(self, stored: _Session, now: int) -> None:
        """Remove a session, and the rows that no other session reads."""
        del self.sessions[stored.name]
        self.marks.drop(stored.name, self.marks.seqs(stored.name))
        self.forgotten[stored.name] = max(now, stored.state.updated_at)
        for other in self.sessions.values():
            if other.forked_from == stored.name:
                other.forked_from = None
        shared = {row for other in self.sessions.values() for row in other.rows}
        for row in stored.rows:
            if row not in shared:
                self.release(row.entry)
