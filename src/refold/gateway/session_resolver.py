"""Puts a request into its session: what is new is said there, and marked."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Final
from uuid import uuid4

from refold.errors import (
    Conflict,
    LogError,
    SessionBusy,
    SessionForgotten,
    SessionNotFound,
    SessionOwned,
    StoreError,
)
from refold.gateway.dialects import DIALECTS
from refold.gateway.dialects.dialect import Dialect
from refold.gateway.history import aligned
from refold.gateway.incoming import (
    Branch,
    Chain,
    Continue,
    Found,
    IncomingRequest,
    KnownAnswer,
    New,
    Retry,
    Rewritten,
    SessionLease,
    chained,
    found,
    key_of,
    newest_answer,
    unanswered,
)
from refold.gateway.large_requests import LoggedAnswer, UnloggedAnswer
from refold.gateway.recent_answers import History, RecentAnswer, RecentAnswers, Share, quotable
from refold.gateway.sessions import GatewaySession, GatewaySessions, Opening
from refold.log import CODEC, Author, Log, Mark, Marked, Message, Note, Span
from refold.models.catalog import Usage
from refold.session import Session
from refold.wire import wire_for
from refold.wire.fingerprint import is_unique

# The newest answers that were given here, so that who goes on from one need not be looked for.
#
# It is a guess: others may have gone on meanwhile, or the session may be gone. Who goes by it says
# so to the log, by the mark that is the newest then, and looks when the log disagrees.

_MOST: Final = 10_000


class AnswerCache:
    """Where each answer is that nobody has gone on from."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._answers: OrderedDict[tuple[str, bytes], tuple[str, int] | None] = OrderedDict()

    def put(self, tenant: str, key: bytes, session: str, seq: int) -> None:
        """An answer was given there. Of two that are alike to the letter, neither is taken."""
        place = tenant, key
        self._answers[place] = None if place in self._answers else (session, seq)
        self._answers.move_to_end(place)
        if len(self._answers) > self._most:
            self._answers.popitem(last=False)

    def take(self, tenant: str, chain: Chain) -> Continue | None:
        """Where a request goes on, if its newest answer is here; the next must look for it."""
        if not chain.answered:
            return None
        at = chain.answered[-1]
        key = tenant, key_of("answered", chain.links[at])
        if self._answers.get(key) is None:
            return None
        session, seq = self._answers.pop(key) or ("", 0)
        return Continue(session, seq, at + 1)


_TRIES: Final = 8
_MAX_READ: Final = 64
"""Answers that are read to tell those apart which have the same ids."""
_MAX_RENAMED: Final = 4
"""Answers whose names are read from the log for one request."""
_MAX_AMBIGUOUS: Final = 4
"""Answers of one history that are looked at so."""
_COMPACTED: Final = Note(
    "The client has shortened its history itself, and goes on with that.", {"gateway": "compacted"}
)


async def _cleared(session: Session, note: Note | None = None) -> None:
    if session.messages:
        await session.clear()
    if note is not None:
        await session.note(note)


def _new_name() -> str:
    return f"g-{uuid4().hex[:20]}"


class SessionResolver:
    """Finds the sessions of requests."""

    def __init__(
        self,
        sessions: GatewaySessions,
        new_name: Callable[[], str] = _new_name,
        share: Share | None = None,
    ) -> None:
        self._sessions = sessions
        self._new_name = new_name
        self._newest = AnswerCache()
        self.recent = RecentAnswers(share)

    async def lease(self, incoming: IncomingRequest) -> SessionLease:
        """The place of a request. Where others go on at the same moment, they go on elsewhere."""
        chain = incoming.chain
        log = self._sessions.log(incoming.tenant)
        known = self._newest.take(incoming.tenant, chain) if incoming.session is None else None
        at: Found = New()
        for _ in range(_TRIES):
            rows = [] if known else await log.marked(chain.keys)
            holding = AsyncExitStack()
            try:
                if incoming.session is None:
                    at, known = known or await self._located(incoming, rows), None
                    return await self._found(incoming, at, holding)
                return await self._named(incoming, incoming.session, rows, holding)
            except Conflict:
                await holding.aclose()
            except (SessionForgotten, SessionNotFound):  # in this moment, or elsewhere
                await holding.aclose()
                name = incoming.session or ("" if isinstance(at, New) else at.session)
                await self._sessions.drop(incoming.tenant, name)
            except BaseException:
                await holding.aclose()
                raise
        raise SessionBusy("Others ask in the same conversation all the time.")

    def answered(
        self, lease: SessionLease, key: bytes, seq: int, payloads: Sequence[bytes]
    ) -> None:
        """A request was answered; the entry with the answer's mark."""
        incoming, kept = lease.incoming, lease.kept
        if incoming.session is not None:  # names that people give are given again
            return
        self._newest.put(incoming.tenant, key, kept.session.name, seq)
        wire = wire_for(incoming.dialect.name)
        answer = RecentAnswer(
            kept.beside or kept.session.name,
            seq,
            kept.beside_asker or incoming.agent,
            (incoming.tenant, incoming.chain.seed),
            incoming.hint,
            quotable(wire, payloads),
        )
        self.recent.add(answer, wire, payloads)
        if kept.branched:  # the client goes on here: from now on this is its conversation
            kept.beside, kept.branched = None, False

    async def branched(self, lease: SessionLease) -> SessionLease:
        """The same place in a session of its own: others went on first."""
        assert lease.tip is not None  # noqa: S101 - something was said
        incoming, name, holding = lease.incoming, self._new_name(), AsyncExitStack()
        at = lease.tip or lease.kept.session.head  # 0: it is a branch already
        await self._sessions.log(incoming.tenant).fork(lease.kept.session.name, name, at=at)
        new = await self._opened(incoming, name, holding)
        await lease.leave()
        return new

    async def apart(self, lease: SessionLease) -> SessionLease:
        """The same place in a session that holds what the client sent, and nothing else."""
        async with AsyncExitStack() as holding:
            new = await self._begun(lease.incoming, holding)
            new.holding = holding.pop_all()
        await lease.leave()
        return new

    async def log_answer(self, given: UnloggedAnswer) -> LoggedAnswer:
        """Log the answer to a request that another process placed."""
        dialect = DIALECTS[given.path]
        payloads, usage = given.pieces, given.usage
        if given.is_response:
            answer = dialect.answer(b"".join(given.pieces))
            if answer is None or not answer.payloads:
                return LoggedAnswer("", None, 0)
            payloads, usage = answer.payloads, answer.usage
        end = chained(dialect, given.link, payloads).end
        mark = Mark(key_of("answered", end), len(payloads) - 1, given.tip)
        note = Note(given.note, {"gateway": "interrupted"}) if given.note else None
        name = given.session
        try:
            await self._append_answer(given.tenant, name, payloads, usage, note, mark)
        except Conflict:  # the same was asked twice, and the other answer came first
            name = self._new_name()
            await self._sessions.log(given.tenant).fork(given.session, name, at=given.tip or 0)
            await self._append_answer(given.tenant, name, payloads, usage, note, mark)
        return LoggedAnswer(name, usage, sum(map(len, payloads)))

    async def _append_answer(  # noqa: PLR0913, PLR0917 - of one answer
        self,
        tenant: str,
        name: str,
        payloads: Sequence[bytes],
        usage: Usage | None,
        note: Note | None,
        mark: Mark,
    ) -> None:
        async with self._sessions.lease(tenant, name) as leased, leased.turn:
            await leased.session.catch_up()
            await leased.session.answer(*payloads, usage=usage, note=note, mark=mark)

    async def note_failure(
        self, lease: SessionLease, note: Note, recovered: Callable[[], Awaitable[None]]
    ) -> None:
        """Note that a request was not answered, when the store is back.

        The session may be closed by then. `recovered` waits for the store, as far as it is known to
        be away.
        """
        drafts, mark = [Author().draft(note)], lease.failed()
        log, name = self._sessions.log(lease.incoming.tenant), lease.kept.session.name
        for _ in range(_TRIES):
            await recovered()
            with suppress(StoreError):
                with suppress(LogError):  # others went on meanwhile, or it was forgotten
                    await log.append(name, drafts, expected=None, mark=mark)
                return

    async def _located(self, incoming: IncomingRequest, rows: Sequence[Marked]) -> Found:
        """Where a request has its place, by the marks that were found, or by its words."""
        rows = await self._told_apart(incoming, rows)
        at = await self._resumed(incoming, found(incoming.chain, rows))
        if isinstance(at, New):
            session = self.recent.compacted(_history(incoming))
            return Rewritten(session) if session is not None else at
        return at

    async def _told_apart(
        self, incoming: IncomingRequest, rows: Sequence[Marked]
    ) -> Sequence[Marked]:
        """The marks without those of answers that only have the same ids as the client's."""
        for _ in range(_MAX_AMBIGUOUS):
            answer = newest_answer(incoming.chain, rows)
            if answer is None or len({row.session for row in answer.rows}) == 1:
                return rows
            same = await self._same_content(incoming, answer)
            rows = [row for row in rows if row in same or row not in answer.rows]
            if same:
                return rows
        sessions: dict[bytes, set[str]] = {}
        for row in rows:
            sessions.setdefault(row.key, set()).add(row.session)
        return [row for row in rows if len(sessions[row.key]) == 1]

    async def _same_content(self, incoming: IncomingRequest, answer: KnownAnswer) -> list[Marked]:
        """Those of an answer's marks where the log has what the client has."""
        chain, dialect, rows = incoming.chain, incoming.dialect, answer.rows
        log = self._sessions.log(incoming.tenant)
        prompt = chain.prompt_before(answer.message)
        narrowed: list[Marked] = []
        if prompt is not None and chain.content:
            asked = await log.marked([key_of("asked", chain.content[prompt])])
            sessions = {row.session for row in asked}
            narrowed = [row for row in rows if row.session in sessions]
        rows = narrowed or rows
        message = incoming.parsed_request.messages[answer.message]
        if not _calls(dialect, message):  # then its words are in the chain
            return rows
        likeness = dialect.likeness(message)
        same = [
            row
            for row in rows[:_MAX_READ]
            if (payload := await _payload(log, row)) and dialect.likeness(payload) == likeness
        ]
        # What led to it is one session's alone: then the client has rewritten the answer.
        return same or (narrowed if len({row.session for row in narrowed}) == 1 else [])

    async def _resumed(
        self, incoming: IncomingRequest, at: Found, name: str | None = None
    ) -> Found:
        """The same, or where a session waits for an answer that the client brings along.

        Only a history with an answer that the log does not have needs this second look.
        """
        chain = incoming.chain
        if not isinstance(at, New | Branch):
            return at
        since = at.new if isinstance(at, Branch) else 0
        keys = chain.prompt_keys(since)
        rows = await self._sessions.log(incoming.tenant).marked(keys) if keys else []
        rows = [row for row in rows if name in (None, row.session)]
        return unanswered(chain, rows, since) or await self._renamed(incoming, rows, since) or at

    async def _renamed(
        self, incoming: IncomingRequest, rows: Sequence[Marked], since: int
    ) -> Continue | None:
        """Where the newest answer to a request has other words, and the name that it had."""
        chain, dialect, log = incoming.chain, incoming.dialect, self._sessions.log(incoming.tenant)
        parsed_request = {
            key_of("asked", chain.content[at]): at for at in chain.prompts if at >= since
        }
        answers, messages = set(chain.answered), incoming.parsed_request.messages
        # Where several sessions were asked the same, a name may be that of all their answers.
        sessions: dict[bytes, set[str]] = {}
        for row in rows:
            sessions.setdefault(row.key, set()).add(row.session)
        answered = [
            row
            for row in rows
            if row.key in parsed_request and row.seq == row.before and len(sessions[row.key]) == 1
        ]
        for row in sorted(answered, key=lambda one: -parsed_request[one.key])[:_MAX_RENAMED]:
            first = end = parsed_request[row.key] + 1
            while end in answers:
                end += 1
            names = dialect.known_by(await _payload(log, row._replace(seq=row.tip))).names
            own = {name for name in names if is_unique(name.partition(" ")[2])}
            if any(own & set(dialect.known_by(one).names) for one in messages[first:end]):
                return Continue(row.session, row.tip, end)
        return None

    async def _found(
        self, incoming: IncomingRequest, at: Found, holding: AsyncExitStack
    ) -> SessionLease:
        match at:
            case New():
                lease = await self._begun(incoming, holding)
                await self._link(lease)
            case Rewritten(name):
                lease = await self._opened(incoming, name, holding)
                session = lease.kept.session
                await session.catch_up()
                lease.tip = None
                await lease.say(0, lambda: _cleared(session, _COMPACTED))
            case Continue(name, seq, new):
                lease = await self._opened(incoming, name, holding, seq)
                known = lease.kept.agent
                if not await _confirmed(incoming, lease.kept, new):
                    lease = await self._begun(incoming, holding)
                elif known is not None and not known.is_like(incoming.agent):
                    lease = await self._forked(incoming, name, seq, holding)
                    lease.kept.beside, lease.kept.beside_asker = name, known
                    await lease.say(new)
                else:
                    await lease.say(new)
            case Retry(name, seq, tip):
                lease = await self._opened(incoming, name, holding, tip)
                await lease.ask_again(seq)
            case Branch(session, seq, new):
                lease = await self._forked(incoming, session, seq, holding)
                lease.kept.beside, lease.kept.branched = session, True
                await lease.say(new)
        lease.kept.agent = incoming.agent
        return lease

    async def _link(self, lease: SessionLease) -> None:
        """Say in a new session which call of another it was begun by, if one did."""
        delegation = self.recent.delegated(_history(lease.incoming))
        if delegation is None:
            return
        session, call, tool = delegation
        note = Note(
            f"Begun by a call of {tool or 'a tool'} in session {session}.",
            {"gateway": "delegated", "session": session, "call": call},
        )
        async with lease.kept.turn:
            await lease.kept.session.note(note)

    async def _forked(
        self, incoming: IncomingRequest, of: str, seq: int, holding: AsyncExitStack
    ) -> SessionLease:
        """In a session of its own that goes on from there."""
        name = self._new_name()
        await self._sessions.log(incoming.tenant).fork(of, name, at=seq)
        return await self._opened(incoming, name, holding)

    async def _begun(self, incoming: IncomingRequest, holding: AsyncExitStack) -> SessionLease:
        name = self._new_name()
        lease = await self._opened(incoming, name, holding, new=True)
        try:
            await lease.begin()
        except BaseException:
            await self._sessions.drop(incoming.tenant, name)
            raise
        return lease

    async def _named(
        self,
        incoming: IncomingRequest,
        name: str,
        rows: Sequence[Marked],
        holding: AsyncExitStack,
    ) -> SessionLease:
        """In the session that the client names: what it sees then is what the client sent."""
        own = [row for row in rows if row.session == name]
        await self._sessions.drop_restarted(incoming.tenant, name)
        lease = await self._opened(incoming, name, holding)
        if lease.kept.first_entry is None:
            await self._sessions.drop_restarted(incoming.tenant, name)
        await self._check_owner(lease, name)
        session = lease.kept.session
        await session.catch_up()
        match await self._resumed(incoming, found(incoming.chain, own), name):
            case Continue(_, seq, new):
                lease.tip = seq
                await lease.say(new)
            case Retry(_, seq, tip):
                lease.tip = tip
                await lease.ask_again(seq)
            case Branch(_, seq, new):
                lease.tip = next(row.tip for row in own if row.seq == seq)
                await lease.say(new, lambda: session.rewind(seq))
            case New() | Rewritten():
                lease.tip = None
                await lease.say(0, lambda: _cleared(session))
        return lease

    async def _check_owner(self, lease: SessionLease, name: str) -> None:
        """Refuse who names a session that another key began."""
        incoming, kept = lease.incoming, lease.kept
        if incoming.may_use is None:
            return
        kept.origin = kept.origin or await self._sessions.origin(incoming.tenant, name)
        if kept.origin is None or not await incoming.may_use(kept.origin):
            raise SessionOwned("The session that the request names belongs to another key.")

    async def _opened(
        self,
        incoming: IncomingRequest,
        name: str,
        holding: AsyncExitStack,
        tip: int = 0,
        *,
        new: bool = False,
    ) -> SessionLease:
        # One that was found is there: it is not begun anew where it was forgotten.
        begins = incoming.dialect.name if new or incoming.session is not None else None
        kept = await holding.enter_async_context(
            self._sessions.lease(
                incoming.tenant,
                name,
                Opening(
                    begins,
                    incoming.setup,
                    lambda: incoming.sourced_title,
                    new,
                    incoming.key or None,
                ),
            )
        )
        return SessionLease(incoming, kept, holding, tip)


async def _confirmed(incoming: IncomingRequest, kept: GatewaySession, new: int) -> bool:
    """Whether a session holds what the client goes on from, where its mark leaves a doubt.

    An id that many conversations may have is no proof, nor are prompts without the user's words.
    """
    dialect, messages = incoming.dialect, incoming.parsed_request.messages[:new]
    known = [dialect.known_by(message) for message in messages]
    weak = messages and not all(map(is_unique, _calls(dialect, messages[-1])))
    if not weak and not any(one.sort == "prompt" and not one.spine for one in known):
        return True
    await kept.session.catch_up()  # another process may have changed what it shows
    inputs = kept.session.inputs
    theirs = aligned(dialect, messages, inputs)
    return all(row.seq in theirs or dialect.blank(row.payload) for row in inputs.rows)


def _history(incoming: IncomingRequest) -> History:
    caller = incoming.tenant, incoming.chain.seed
    wire = wire_for(incoming.dialect.name)
    return History(caller, incoming.agent, incoming.hint, wire, incoming.parsed_request.messages)


def _calls(dialect: Dialect, message: bytes) -> list[str]:
    """The ids of a message's calls."""
    names = dialect.known_by(message).names
    return [name.removeprefix("call ") for name in names if name.startswith("call ")]


async def _payload(log: Log, row: Marked) -> bytes:
    for entry in await log.read(row.session, Span(row.seq, row.seq)):
        match CODEC.decode(entry):
            case Message(payload):
                return payload
            case _:
                pass
    return b""
