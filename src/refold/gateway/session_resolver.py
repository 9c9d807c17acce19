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
    KnownAnswer,
    New,
    Place,
    Retry,
    Rewritten,
    Wanted,
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


class Newest:
    """Where each answer is that nobody has gone on from."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._places: OrderedDict[tuple[str, bytes], tuple[str, int] | None] = OrderedDict()

    def put(self, tenant: str, key: bytes, session: str, seq: int) -> None:
        """An answer was given there. Of two that are alike to the letter, neither is taken."""
        place = tenant, key
        self._places[place] = None if place in self._places else (session, seq)
        self._places.move_to_end(place)
        if len(self._places) > self._most:
            self._places.popitem(last=False)

    def take(self, tenant: str, chain: Chain) -> Continue | None:
        """Where a request goes on, if its newest answer is here; the next must look for it."""
        if not chain.answered:
            return None
        at = chain.answered[-1]
        place = tenant, key_of("answered", chain.links[at])
        if self._places.get(place) is None:
            return None
        session, seq = self._places.pop(place) or ("", 0)
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
    if session.said:
        await session.clear()
    if note is not None:
        await session.note(note)


def _new_name() -> str:
    return f"g-{uuid4().hex[:20]}"


class Placing:
    """Finds the sessions of requests."""

    def __init__(
        self,
        sessions: GatewaySessions,
        new_name: Callable[[], str] = _new_name,
        share: Share | None = None,
    ) -> None:
        self._sessions = sessions
        self._new_name = new_name
        self._newest = Newest()
        self.recent = RecentAnswers(share)

    async def place(self, wanted: Wanted) -> Place:
        """The place of a request. Where others go on at the same moment, they go on elsewhere."""
        chain = wanted.chain
        log = self._sessions.log(wanted.tenant)
        known = self._newest.take(wanted.tenant, chain) if wanted.session is None else None
        at: Found = New()
        for _ in range(_TRIES):
            rows = [] if known else await log.marked(chain.keys)
            holding = AsyncExitStack()
            try:
                if wanted.session is None:
                    at, known = known or await self._located(wanted, rows), None
                    return await self._found(wanted, at, holding)
                return await self._named(wanted, wanted.session, rows, holding)
            except Conflict:
                await holding.aclose()
            except (SessionForgotten, SessionNotFound):  # in this moment, or elsewhere
                await holding.aclose()
                name = wanted.session or ("" if isinstance(at, New) else at.session)
                await self._sessions.drop(wanted.tenant, name)
            except BaseException:
                await holding.aclose()
                raise
        raise SessionBusy("Others ask in the same conversation all the time.")

    def answered(self, place: Place, key: bytes, seq: int, payloads: Sequence[bytes]) -> None:
        """A request was answered; the entry with the answer's mark."""
        wanted, kept = place.wanted, place.kept
        if wanted.session is not None:  # names that people give are given again
            return
        self._newest.put(wanted.tenant, key, kept.session.name, seq)
        wire = wire_for(wanted.dialect.name)
        answer = RecentAnswer(
            kept.beside or kept.session.name,
            seq,
            kept.beside_asker or wanted.asker,
            (wanted.tenant, wanted.chain.seed),
            wanted.hint,
            quotable(wire, payloads),
        )
        self.recent.add(answer, wire, payloads)
        if kept.branched:  # the client goes on here: from now on this is its conversation
            kept.beside, kept.branched = None, False

    async def branched(self, place: Place) -> Place:
        """The same place in a session of its own: others went on first."""
        assert place.tip is not None  # noqa: S101 - something was said
        wanted, name, holding = place.wanted, self._new_name(), AsyncExitStack()
        at = place.tip or place.kept.session.head  # 0: it is a branch already
        await self._sessions.log(wanted.tenant).fork(place.kept.session.name, name, at=at)
        new = await self._opened(wanted, name, holding)
        await place.leave()
        return new

    async def apart(self, place: Place) -> Place:
        """The same place in a session that holds what the client sent, and nothing else."""
        async with AsyncExitStack() as holding:
            new = await self._begun(place.wanted, holding)
            new.holding = holding.pop_all()
        await place.leave()
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
        self, place: Place, note: Note, recovered: Callable[[], Awaitable[None]]
    ) -> None:
        """Note that a request was not answered, when the store is back.

        The session may be closed by then. `recovered` waits for the store, as far as it is known to
        be away.
        """
        drafts, mark = [Author().draft(note)], place.failed()
        log, name = self._sessions.log(place.wanted.tenant), place.kept.session.name
        for _ in range(_TRIES):
            await recovered()
            with suppress(StoreError):
                with suppress(LogError):  # others went on meanwhile, or it was forgotten
                    await log.append(name, drafts, expected=None, mark=mark)
                return

    async def _located(self, wanted: Wanted, rows: Sequence[Marked]) -> Found:
        """Where a request has its place, by the marks that were found, or by its words."""
        rows = await self._told_apart(wanted, rows)
        at = await self._resumed(wanted, found(wanted.chain, rows))
        if isinstance(at, New):
            session = self.recent.compacted(_history(wanted))
            return Rewritten(session) if session is not None else at
        return at

    async def _told_apart(self, wanted: Wanted, rows: Sequence[Marked]) -> Sequence[Marked]:
        """The marks without those of answers that only have the same ids as the client's."""
        for _ in range(_MAX_AMBIGUOUS):
            answer = newest_answer(wanted.chain, rows)
            if answer is None or len({row.session for row in answer.rows}) == 1:
                return rows
            same = await self._same_content(wanted, answer)
            rows = [row for row in rows if row in same or row not in answer.rows]
            if same:
                return rows
        sessions: dict[bytes, set[str]] = {}
        for row in rows:
            sessions.setdefault(row.key, set()).add(row.session)
        return [row for row in rows if len(sessions[row.key]) == 1]

    async def _same_content(self, wanted: Wanted, answer: KnownAnswer) -> list[Marked]:
        """Those of an answer's marks where the log has what the client has."""
        chain, dialect, rows = wanted.chain, wanted.dialect, answer.rows
        log = self._sessions.log(wanted.tenant)
        prompt = chain.prompt_before(answer.place)
        narrowed: list[Marked] = []
        if prompt is not None and chain.content:
            asked = await log.marked([key_of("asked", chain.content[prompt])])
            sessions = {row.session for row in asked}
            narrowed = [row for row in rows if row.session in sessions]
        rows = narrowed or rows
        message = wanted.asked.messages[answer.place]
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

    async def _resumed(self, wanted: Wanted, at: Found, name: str | None = None) -> Found:
        """The same, or where a session waits for an answer that the client brings along.

        Only a history with an answer that the log does not have needs this second look.
        """
        chain = wanted.chain
        if not isinstance(at, New | Branch):
            return at
        since = at.new if isinstance(at, Branch) else 0
        keys = chain.prompt_keys(since)
        rows = await self._sessions.log(wanted.tenant).marked(keys) if keys else []
        rows = [row for row in rows if name in (None, row.session)]
        return unanswered(chain, rows, since) or await self._renamed(wanted, rows, since) or at

    async def _renamed(self, wanted: Wanted, rows: Sequence[Marked], since: int) -> Continue | None:
        """Where the newest answer to a request has other words, and the name that it had."""
        chain, dialect, log = wanted.chain, wanted.dialect, self._sessions.log(wanted.tenant)
        asked = {key_of("asked", chain.content[at]): at for at in chain.prompts if at >= since}
        answers, messages = set(chain.answered), wanted.asked.messages
        # Where several sessions were asked the same, a name may be that of all their answers.
        sessions: dict[bytes, set[str]] = {}
        for row in rows:
            sessions.setdefault(row.key, set()).add(row.session)
        answered = [
            row
            for row in rows
            if row.key in asked and row.seq == row.before and len(sessions[row.key]) == 1
        ]
        for row in sorted(answered, key=lambda one: -asked[one.key])[:_MAX_RENAMED]:
            first = end = asked[row.key] + 1
            while end in answers:
                end += 1
            names = dialect.known_by(await _payload(log, row._replace(seq=row.tip))).names
            own = {name for name in names if is_unique(name.partition(" ")[2])}
            if any(own & set(dialect.known_by(one).names) for one in messages[first:end]):
                return Continue(row.session, row.tip, end)
        return None

    async def _found(self, wanted: Wanted, at: Found, holding: AsyncExitStack) -> Place:
        match at:
            case New():
                place = await self._begun(wanted, holding)
                await self._link(place)
            case Rewritten(name):
                place = await self._opened(wanted, name, holding)
                session = place.kept.session
                await session.catch_up()
                place.tip = None
                await place.say(0, lambda: _cleared(session, _COMPACTED))
            case Continue(name, seq, new):
                place = await self._opened(wanted, name, holding, seq)
                known = place.kept.asker
                if not await _confirmed(wanted, place.kept, new):
                    place = await self._begun(wanted, holding)
                elif known is not None and not known.is_like(wanted.asker):
                    place = await self._forked(wanted, name, seq, holding)
                    place.kept.beside, place.kept.beside_asker = name, known
                    await place.say(new)
                else:
                    await place.say(new)
            case Retry(name, seq, tip):
                place = await self._opened(wanted, name, holding, tip)
                await place.ask_again(seq)
            case Branch(session, seq, new):
                place = await self._forked(wanted, session, seq, holding)
                place.kept.beside, place.kept.branched = session, True
                await place.say(new)
        place.kept.asker = wanted.asker
        return place

    async def _link(self, place: Place) -> None:
        """Say in a new session which call of another it was begun by, if one did."""
        delegation = self.recent.delegated(_history(place.wanted))
        if delegation is None:
            return
        session, call, tool = delegation
        note = Note(
            f"Begun by a call of {tool or 'a tool'} in session {session}.",
            {"gateway": "delegated", "session": session, "call": call},
        )
        async with place.kept.turn:
            await place.kept.session.note(note)

    async def _forked(self, wanted: Wanted, of: str, seq: int, holding: AsyncExitStack) -> Place:
        """In a session of its own that goes on from there."""
        name = self._new_name()
        await self._sessions.log(wanted.tenant).fork(of, name, at=seq)
        return await self._opened(wanted, name, holding)

    async def _begun(self, wanted: Wanted, holding: AsyncExitStack) -> Place:
        name = self._new_name()
        place = await self._opened(wanted, name, holding, new=True)
        try:
            await place.begin()
        except BaseException:
            await self._sessions.drop(wanted.tenant, name)
            raise
        return place

    async def _named(
        self,
        wanted: Wanted,
        name: str,
        rows: Sequence[Marked],
        holding: AsyncExitStack,
    ) -> Place:
        """In the session that the client names: what it sees then is what the client sent."""
        own = [row for row in rows if row.session == name]
        await self._sessions.drop_restarted(wanted.tenant, name)
        place = await self._opened(wanted, name, holding)
        if place.kept.first_entry is None:
            await self._sessions.drop_restarted(wanted.tenant, name)
        await self._check_owner(place, name)
        session = place.kept.session
        await session.catch_up()
        match await self._resumed(wanted, found(wanted.chain, own), name):
            case Continue(_, seq, new):
                place.tip = seq
                await place.say(new)
            case Retry(_, seq, tip):
                place.tip = tip
                await place.ask_again(seq)
            case Branch(_, seq, new):
                place.tip = next(row.tip for row in own if row.seq == seq)
                await place.say(new, lambda: session.rewind(seq))
            case New() | Rewritten():
                place.tip = None
                await place.say(0, lambda: _cleared(session))
        return place

    async def _check_owner(self, place: Place, name: str) -> None:
        """Refuse who names a session that another key began."""
        wanted, kept = place.wanted, place.kept
        if wanted.may_use is None:
            return
        kept.origin = kept.origin or await self._sessions.origin(wanted.tenant, name)
        if kept.origin is None or not await wanted.may_use(kept.origin):
            raise SessionOwned("The session that the request names belongs to another key.")

    async def _opened(
        self,
        wanted: Wanted,
        name: str,
        holding: AsyncExitStack,
        tip: int = 0,
        *,
        new: bool = False,
    ) -> Place:
        # One that was found is there: it is not begun anew where it was forgotten.
        begins = wanted.dialect.name if new or wanted.session is not None else None
        kept = await holding.enter_async_context(
            self._sessions.lease(
                wanted.tenant,
                name,
                Opening(
                    begins, wanted.setup, lambda: wanted.sourced_title, new, wanted.key or None
                ),
            )
        )
        return Place(wanted, kept, holding, tip)


async def _confirmed(wanted: Wanted, kept: GatewaySession, new: int) -> bool:
    """Whether a session holds what the client goes on from, where its mark leaves a doubt.

    An id that many conversations may have is no proof, nor are prompts without the user's words.
    """
    dialect, messages = wanted.dialect, wanted.asked.messages[:new]
    known = [dialect.known_by(message) for message in messages]
    weak = messages and not all(map(is_unique, _calls(dialect, messages[-1])))
    if not weak and not any(one.sort == "prompt" and not one.spine for one in known):
        return True
    await kept.session.catch_up()  # another process may have changed what it shows
    sheet = kept.session.sheet
    theirs = aligned(dialect, messages, sheet)
    return all(row.seq in theirs or dialect.blank(row.payload) for row in sheet.rows)


def _history(wanted: Wanted) -> History:
    caller = wanted.tenant, wanted.chain.seed
    wire = wire_for(wanted.dialect.name)
    return History(caller, wanted.asker, wanted.hint, wire, wanted.asked.messages)


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
