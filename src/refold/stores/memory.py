"""A store in memory: nothing outlives the process, everything else is as in the others."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from uuid import UUID

from refold.engine.locks import ProcessLocks
from refold.errors import ArtifactNotFound, InvalidEntry, InvalidInput, SessionExists, StoreClosed
from refold.log.admit import (
    Facts,
    Repeat,
    State,
    admit,
    check_drafts,
    check_name,
    fork_state,
    missing,
    needs_controls,
)
from refold.log.artifact import Artifact, lower
from refold.log.author import Clock, wall_clock
from refold.log.entry import Draft, Entry
from refold.log.forgetting import fallen, tombstone
from refold.log.kinds import Message, Requested
from refold.log.marking import Mark, Marked, askable, check_mark, check_newest
from refold.log.outline import CONTROL_KINDS, chain_of, replay
from refold.log.pages import last_shown, page_after
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
)
from refold.log.span import Span, seqs, spans_of, union
from refold.log.text import Searched, Term, excerpt, found, terms, text_of
from refold.stores.matching import matching
from refold.stores.memory_marks import MemoryMarks


class MemoryStore(Store):
    """Keeps logs in memory, for tests and for conversations that need not be kept."""

    def __init__(self, *, clock: Clock = wall_clock) -> None:
        self._clock = clock
        self._tenants: dict[str, _Tenant] = {}
        self._closed = False

    def log(self, tenant: str = DEFAULT_TENANT) -> "MemoryLog":
        """The log of one tenant."""
        check_name(tenant, "tenant")
        return MemoryLog(tenant, self, self._clock)

    def held(self, tenant: str) -> "_Tenant":
        """What is kept for a tenant."""
        if self._closed:
            raise StoreClosed("The store in memory is closed, and what it held is gone.")
        return self._tenants.setdefault(tenant, _Tenant())

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Let go of everything."""
        self._tenants.clear()
        self._closed = True


@dataclass(slots=True, eq=False)
class _Row:
    """An entry as it lies here; forks hold the same row."""

    entry: Entry
    searched: Searched | None = None
    """Its words, once someone has looked for them."""


@dataclass(slots=True, eq=False)
class _Session:
    key: int
    name: str
    state: State
    rows: list[_Row]
    own_from: int = 1
    forked_from: str | None = None
    forked_at: int | None = None
    places: dict[UUID, _Row] = field(init=False)
    """The rows by the ids of their entries."""
    steering: list[_Row] = field(init=False)
    """The rows of control entries."""

    def __post_init__(self) -> None:
        rows, self.rows = self.rows, []
        self.places, self.steering = {}, []
        self.add(rows)

    def add(self, rows: Iterable[_Row]) -> None:
        for row in rows:
            self.rows.append(row)
            self.places[row.entry.id] = row
            if row.entry.kind in CONTROL_KINDS:
                self.steering.append(row)

    def info(self) -> SessionInfo:
        return self.state.info(self.name, self.forked_from, self.forked_at)


@dataclass(slots=True)
class _Tenant:
    sessions: dict[str, _Session] = field(default_factory=dict[str, _Session])
    forgotten: dict[str, int] = field(default_factory=dict[str, int])
    artifacts: dict[str, tuple[Artifact, int]] = field(
        default_factory=dict[str, tuple[Artifact, int]]
    )
    keys: Iterator[int] = field(default_factory=lambda: count(1))
    marks: MemoryMarks = field(default_factory=MemoryMarks)


class MemoryLog:
    """The sessions of one tenant. Its methods never wait, so each is one step to the event loop."""

    def __init__(self, tenant: str, store: MemoryStore, clock: Clock) -> None:
        self.tenant = tenant
        self._store = store
        self._clock = clock

    def locks(self, purpose: str = "fold") -> Locks:
        """See `refold.log.Log.locks`."""
        return ProcessLocks(self, purpose)

    @property
    def _held(self) -> _Tenant:
        return self._store.held(self.tenant)

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
        there = self._held.sessions.get(session)
        places = there.places if there else {}
        known = (places.get(draft.id) for draft in drafts)
        seen = {row.entry.id: self._whole(row.entry) for row in known if row}
        controls = self._controls(there) if there and needs_controls(drafts) else []
        gone = self._held.forgotten.get(session, 0)
        facts = Facts(there and there.state, seen, controls, gone)
        outcome = admit(session, drafts, expected, facts)
        if isinstance(outcome, Repeat):
            return Appended(outcome.first, outcome.last, repeated=True)
        marks = self._held.marks
        if mark is not None:
            check_newest(session, mark, marks.newest(session))
            marks.put(session, outcome.entries[mark.nth].seq, mark.key)
        if there is None:
            there = _Session(next(self._held.keys), session, outcome.state, [])
            self._held.sessions[session] = there
        for artifact in outcome.artifacts:
            there_already, uses = self._held.artifacts.get(artifact.hash, (artifact, 0))
            self._held.artifacts[artifact.hash] = (there_already, uses + 1)
        there.add(map(_Row, outcome.entries))
        there.state = outcome.state
        return Appended(outcome.entries[0].seq, outcome.entries[-1].seq)

    async def marked(self, keys: Sequence[bytes]) -> list[Marked]:
        """See `refold.log.Log.marked`."""
        return self._held.marks.found(askable(keys))

    async def head(self, session: str) -> int:
        """See `refold.log.Log.head`."""
        return self._session(session).state.head

    async def info(self, session: str) -> SessionInfo:
        """See `refold.log.Log.info`."""
        return self._session(session).info()

    async def read(
        self, session: str, span: Span | None = None, *, whole: bool = True
    ) -> list[Entry]:
        """See `refold.log.Log.read`."""
        rows = self._session(session).rows
        picked = rows[span.first - 1 : span.last] if span else rows
        return [self._whole(row.entry) if whole else row.entry for row in picked]

    async def visible(self, session: str, *, last: int | None = None) -> Visible:
        """See `refold.log.Log.visible`."""
        there = self._session(session)
        outline = there.state.outline
        needed = outline.needed(there.state.head, last)
        if outline.record is not None:
            record = self._whole(there.rows[outline.record - 1].entry)
            needed = union((*needed, *spans_of(chain_of(record))))
        entries = tuple(self._whole(there.rows[seq - 1].entry) for seq in seqs(needed))
        return Visible(there.info(), outline, entries)

    async def outlined(self, session: str) -> Outlined:
        """See `refold.log.Log.outlined`."""
        there = self._session(session)
        return Outlined(there.info(), there.state.outline)

    async def sessions(
        self, *, search: str | None = None, limit: int = 50, page: str | None = None
    ) -> SessionPage:
        """See `refold.log.Log.sessions`."""
        listed = sorted(self._held.sessions.values(), key=_use, reverse=True)
        if search is not None:
            listed = [one for one in listed if self._matches(one, search)]
        begin = last_shown(page)
        listed = [one for one in listed if _use(one) < begin]
        shown = listed[:limit]
        more = page_after(*_use(shown[-1])) if len(listed) > len(shown) > 0 else None
        return SessionPage(tuple(one.info() for one in shown), more)

    async def fork(self, session: str, new: str, *, at: int | None = None) -> SessionInfo:
        """See `refold.log.Log.fork`."""
        source = self._session(session)
        check_name(new)
        at = source.state.head if at is None else at
        there = self._held.sessions.get(new)
        if there is not None:
            if (there.forked_from, there.forked_at) == (session, at):
                return there.info()
            raise SessionExists(f"There is a session {new!r} already.")
        if not 1 <= at <= source.state.head:
            raise InvalidInput(f"Session {session!r} has no entry {at} to fork at.")
        rows = source.rows[:at]
        forked = _Session(next(self._held.keys), new, source.state, rows, at + 1, session, at)
        messages = sum(row.entry.kind == Message.KIND for row in rows)
        outline = replay(self._controls(forked))
        state = fork_state(source.state, at, messages, outline, self._now())
        forked.state = state._replace(not_before=self._held.forgotten.get(new, 0))
        self._held.sessions[new] = forked
        return forked.info()

    async def forget(self, session: str, span: Span | None = None) -> Erased:
        """See `refold.log.Log.forget`."""
        there = self._session(session)
        if span is not None:
            rows = [
                row for row in there.rows[span.first - 1 : span.last] if not row.entry.forgotten
            ]
            return Erased(session, len(rows), self._erase(rows))
        rows = [row for row in there.rows[there.own_from - 1 :] if not row.entry.forgotten]
        derived = self._erase(rows)
        self._bury(there)
        return Erased(session, len(rows), derived)

    async def expire(self, before: int, *, only: Collection[str] | None = None) -> list[str]:
        """See `refold.log.Log.expire`."""
        old = [one for one in self._held.sessions.values() if one.state.updated_at < before]
        old = [one for one in old if only is None or one.name in only]
        for there in old:
            self._bury(there)
        return sorted(there.name for there in old)

    async def artifact(self, hash: str) -> Artifact:  # noqa: A002 - the glossary's word
        """See `refold.log.Log.artifact`."""
        held = self._held.artifacts.get(hash)
        if held is None:
            raise ArtifactNotFound(f"There is no artifact {hash}.")
        return held[0]

    async def search(self, query: str, *, session: str | None = None, limit: int = 20) -> list[Hit]:
        """See `refold.log.Log.search`."""
        looked_for = terms(query)
        hits: dict[tuple[UUID, int], Hit] = {}
        for there in [self._session(session)] if session else self._oldest_first():
            for row in there.rows:
                text = text_of(self._whole(row.entry))
                place = row.entry.id, row.entry.seq
                if place not in hits and found(looked_for, text):
                    hits[place] = Hit(there.name, self._whole(row.entry), excerpt(text, query))
        order = _by_seq if session else _by_time
        return sorted(hits.values(), key=order, reverse=True)[:limit]

    async def matches(
        self, terms: Sequence[Term], *, session: str | None = None, most: int = 2_000
    ) -> Matches:
        """See `refold.log.Log.matches`."""
        among = [self._session(session)] if session else self._oldest_first()
        entries: dict[tuple[UUID, int], tuple[Match, Searched]] = {}
        for there in among:
            messages = 0
            for row in there.rows:
                entry = row.entry
                messages += entry.kind == Message.KIND
                if (place := (entry.id, entry.seq)) not in entries:
                    words = self._searched(row)
                    place_of = there.name, entry.seq, entry.at, entry.kind, entry.scope
                    entries[place] = Match(*place_of, messages, words.length, ()), words
        return matching(list(entries.values()), terms, len(among), most)

    def _session(self, session: str) -> _Session:
        there = self._held.sessions.get(session)
        if there is None:
            raise missing(session, self._held.forgotten.get(session, 0))
        return there

    def _oldest_first(self) -> list[_Session]:
        return sorted(self._held.sessions.values(), key=lambda there: there.key)

    def _controls(self, there: _Session) -> list[Entry]:
        """The control entries, request records without what was lifted out of them."""
        return [
            row.entry if row.entry.kind == Requested.KIND else self._whole(row.entry)
            for row in there.steering
        ]

    def _whole(self, entry: Entry) -> Entry:
        if not entry.holes:
            return entry
        body = lower(entry.body, entry.holes, lambda hash_: self._held.artifacts[hash_][0].data)
        return entry._replace(body=body, holes=())

    def _searched(self, row: _Row) -> Searched:
        if row.searched is None:
            row.searched = Searched.of(text_of(self._whole(row.entry)))
        return row.searched

    def _matches(self, there: _Session, search: str) -> bool:
        looked_for = terms(search)
        return there.name.startswith(search) or any(
            found(looked_for, text_of(self._whole(row.entry))) for row in there.rows
        )

    def _erase(self, rows: Sequence[_Row]) -> int:
        """Make tombstones of the rows and of all that rests on them; how many those are."""
        gone = set(rows)
        while derived := {row for there in self._oldest_first() for row in _fallen(there, gone)}:
            gone |= derived
        for row in gone:
            left = tombstone(self._whole(row.entry))
            self._release(row.entry)
            row.entry, row.searched = left, None
        marks = self._held.marks
        for there in self._held.sessions.values():
            if not gone.isdisjoint(there.rows):
                seqs = marks.of(there.name)
                marks.drop(there.name, [seq for seq in seqs if there.rows[seq - 1] in gone])
                there.state = there.state._replace(outline=replay(self._controls(there)))
        return len(gone) - len(rows)

    def _bury(self, there: _Session) -> None:
        """Let go of a session, and of the rows that no other session reads."""
        del self._held.sessions[there.name]
        self._held.marks.drop(there.name, self._held.marks.of(there.name))
        self._held.forgotten[there.name] = self._now()
        for other in self._held.sessions.values():
            if other.forked_from == there.name:
                other.forked_from = other.forked_at = None
        read = {row for other in self._held.sessions.values() for row in other.rows}
        for row in there.rows:
            if row not in read:
                self._release(row.entry)

    def _release(self, entry: Entry) -> None:
        for hash_ in entry.artifacts:
            artifact, uses = self._held.artifacts.pop(hash_)
            if uses > 1:
                self._held.artifacts[hash_] = (artifact, uses - 1)

    def _now(self) -> int:
        return int(self._clock().timestamp() * 1000)


def _fallen(there: _Session, gone: set[_Row]) -> list[_Row]:
    seqs_gone = spans_of(row.entry.seq for row in there.rows if row in gone)
    if not seqs_gone:
        return []
    derived = [row.entry for row in there.rows if row.entry.rests_on and not row.entry.forgotten]
    return [there.rows[entry.seq - 1] for entry in fallen(seqs_gone, derived)]


def _use(there: _Session) -> tuple[int, int]:
    return there.state.updated_at, there.key


def _by_seq(hit: Hit) -> int:
    return hit.entry.seq


def _by_time(hit: Hit) -> tuple[int, int, UUID]:
    return hit.entry.at, hit.entry.seq, hit.entry.id
