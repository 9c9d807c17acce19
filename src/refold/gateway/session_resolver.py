"""Finds the session that a request belongs to, and appends to it what is new.

`refold.gateway.incoming` says how a request is recognized.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from itertools import takewhile
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
from refold.gateway.dialects.dialect import Answer, Dialect
from refold.gateway.history import match_rows
from refold.gateway.incoming import (
    AnswerMarks,
    Branch,
    Continue,
    IncomingRequest,
    Location,
    New,
    Retry,
    Rewritten,
    SessionLease,
    extend_chain,
    key_of,
    last_answer,
    locate,
    locate_pending,
)
from refold.gateway.large_requests import LoggedAnswer, UnloggedAnswer
from refold.gateway.provider_state import ProviderAnswers, answer_notes
from refold.gateway.recent_answers import (
    AnswerCache,
    Delegation,
    History,
    RecentAnswer,
    RecentAnswers,
    Share,
    quotable,
)
from refold.gateway.sessions import GatewaySession, GatewaySessions, Opening
from refold.log import CODEC, Author, Log, Mark, Marked, Message, Note, Span
from refold.session import Session
from refold.view import ViewInput
from refold.wire.fingerprint import is_unique

_MAX_TRIES: Final = 8
_MAX_READ: Final = 64
"""Answers that are read to tell apart those with the same ids."""
_MAX_RENAMED: Final = 4
"""Answers whose names are read from the log for one request."""
_MAX_HINTS: Final = 10_000
_MAX_AMBIGUOUS: Final = 4
"""Answers of one history that are told apart this way."""
_COMPACTED: Final = Note(
    "The client has shortened its history itself, and goes on with that.", {"gateway": "compacted"}
)


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
        self._answers = AnswerCache()
        self._hints: OrderedDict[tuple[str, str], str] = OrderedDict()
        """By session, what its client calls the conversation."""
        self.recent = RecentAnswers(share)
        self.provider = ProviderAnswers(sessions.log)

    async def lease(self, incoming: IncomingRequest) -> SessionLease:
        """The session of a request, with the request's messages in it.

        If others continue the same session at the same moment, they continue in another one.
        """
        chain, log = incoming.chain, self._sessions.log(incoming.tenant)
        cached = self._answers.take(incoming.tenant, chain) if incoming.session is None else None
        location: Location = New()
        for _ in range(_MAX_TRIES):
            rows = [] if cached else await log.marked(chain.keys)
            resources = AsyncExitStack()
            try:
                if incoming.journal:
                    return await self._use_journal(incoming, rows, resources)
                if incoming.session is not None:
                    return await self._use_named(incoming, incoming.session, rows, resources)
                location, cached = cached or await self._locate(incoming, rows), None
                location = self._agreeing(incoming, location, rows)
                return await self._use(incoming, location, resources)
            except Conflict:
                await resources.aclose()
            except (SessionForgotten, SessionNotFound):  # in this moment, or elsewhere
                await resources.aclose()
                name = incoming.session or incoming.journal
                name = name or ("" if isinstance(location, New) else location.session)
                await self._sessions.drop(incoming.tenant, name)
            except BaseException:
                await resources.aclose()
                raise
        raise SessionBusy("There are too many concurrent requests in this conversation.")

    def remember_answer(
        self, lease: SessionLease, key: bytes, seq: int, payloads: Sequence[bytes]
    ) -> None:
        """Remember an answer that was logged; `seq` is the entry with its mark."""
        incoming, opened = lease.incoming, lease.opened
        if incoming.session is not None or incoming.journal:  # such names are given again
            return
        self._answers.put(incoming.tenant, key, lease.session.name, seq)
        answer = RecentAnswer(
            opened.parent or lease.session.name,
            seq,
            opened.parent_agent or incoming.agent,
            (incoming.tenant, incoming.chain.seed),
            incoming.hint,
            quotable(incoming.wire, payloads),
        )
        self.recent.add(answer, incoming.wire, payloads)
        if opened.is_branch:  # the client continues here: from now on this is its conversation
            opened.parent, opened.is_branch = None, False

    async def branch(self, lease: SessionLease) -> SessionLease:
        """The same place in a session of its own: others continued this one first."""
        assert lease.tip is not None  # noqa: S101 - something was appended
        seq = lease.tip or lease.session.head  # 0: it is a branch already
        new = await self._fork(lease.incoming, lease.session.name, seq, AsyncExitStack())
        await lease.release()
        return new

    async def isolate(self, lease: SessionLease) -> SessionLease:
        """The same place in a session that holds what the client sent, and nothing else."""
        async with AsyncExitStack() as resources:
            new = await self._begin(lease.incoming, resources)
            new.resources = resources.pop_all()
        await lease.release()
        return new

    async def log_answer(self, unlogged: UnloggedAnswer) -> LoggedAnswer:
        """Log the answer to a request that another process placed."""
        dialect = DIALECTS[unlogged.path]
        answer: Answer | None = Answer(
            *(unlogged.pieces, unlogged.usage, ""),
            complete=not unlogged.note,
            id=unlogged.id,
            edits=tuple(unlogged.edits),
        )
        if unlogged.is_response:
            answer = dialect.answer(b"".join(unlogged.pieces))
        if answer is None or not answer.payloads:
            return LoggedAnswer("", None, 0)
        payloads, usage = answer.payloads, answer.usage
        chain = extend_chain(dialect, unlogged.chain, payloads)
        mark = Mark(key_of("answered", chain.links[-1]), len(payloads) - 1, unlogged.tip)
        note = Note(unlogged.note, {"gateway": "interrupted"}) if unlogged.note else None
        notes = answer_notes(
            *(bytes.fromhex(unlogged.owner), dialect, answer),
            is_kept=unlogged.is_kept,
            root=unlogged.root,
            is_shortened=unlogged.is_shortened,
            signal=unlogged.signal,
        )
        notes += [Note(words, data) for words, data in unlogged.notes]

        async def append(name: str) -> LoggedAnswer:
            async with self._sessions.lease(unlogged.tenant, name) as leased, leased.turn:
                await leased.session.catch_up()
                await leased.session.answer(
                    *payloads,
                    usage=usage,
                    note=note,
                    notes=[] if note else notes,
                    mark=mark,
                    key=unlogged.key or None,
                )
            return LoggedAnswer(name, usage, sum(map(len, payloads)))

        try:
            return await append(unlogged.session)
        except Conflict:  # the same was asked twice, and the other answer came first
            name = self._new_name()
            log = self._sessions.log(unlogged.tenant)
            await log.fork(unlogged.session, name, at=unlogged.tip or 0)
            return await append(name)

    async def note_failure(
        self, lease: SessionLease, note: Note, recovered: Callable[[], Awaitable[None]]
    ) -> None:
        """Note that a request was not answered, when the store is back.

        The session may be closed by then. `recovered` waits for the store, as far as it is known to
        be away.
        """
        drafts, mark = [Author().draft(note)], lease.failure_mark()
        log, name = self._sessions.log(lease.incoming.tenant), lease.session.name
        for _ in range(_MAX_TRIES):
            await recovered()
            with suppress(StoreError):
                with suppress(LogError):  # others continued meanwhile, or it was forgotten
                    await log.append(name, drafts, expected=None, mark=mark)
                return

    # Where a request continues.

    async def session_of(self, incoming: IncomingRequest) -> str | None:
        """The session that has a history, if one does; nothing is appended."""
        rows = await self._sessions.log(incoming.tenant).marked(incoming.chain.keys)
        answer = last_answer(incoming.chain, await self._disambiguate(incoming, rows))
        return answer.rows[0].session if answer is not None else None

    async def _locate(self, incoming: IncomingRequest, rows: Sequence[Marked]) -> Location:
        """Where a request continues, by its marks, or by its words."""
        rows = await self._disambiguate(incoming, self._hinted(incoming, rows))
        location = await self._resume(incoming, locate(incoming.chain, rows))
        if isinstance(location, New):
            session = self.recent.compacted(_history(incoming))
            if session is None and incoming.parsed_request.edits:
                session = await self.provider.compacted(
                    incoming.tenant, incoming.owner, incoming.dialect, incoming.messages
                )
            return Rewritten(session) if session is not None else location
        return self._agreeing(incoming, location, rows)

    # What clients call their conversations. A name alone joins nothing: content decides what may be
    # continued. But where two conversations have the same content, each continues its own session,
    # and one with another name than the session's continues in a fork of it.

    def _hint(self, incoming: IncomingRequest, session: str) -> str:
        return self._hints.get((incoming.tenant, session), "")

    def _disagrees(self, incoming: IncomingRequest, session: str) -> bool:
        hint = self._hint(incoming, session)
        return bool(hint and incoming.conversation and hint != incoming.conversation)

    def _note_hint(self, lease: SessionLease) -> None:
        incoming = lease.incoming
        if not incoming.conversation:
            return
        key = incoming.tenant, lease.session.name
        self._hints[key] = incoming.conversation
        self._hints.move_to_end(key)
        if len(self._hints) > _MAX_HINTS:
            self._hints.popitem(last=False)

    def _hinted(self, incoming: IncomingRequest, rows: Sequence[Marked]) -> Sequence[Marked]:
        """The marks without those in sessions of other conversations, if some are in its own."""
        own = {
            row.session
            for row in rows
            if incoming.conversation and self._hint(incoming, row.session) == incoming.conversation
        }
        if not own:
            return rows
        return [row for row in rows if not self._disagrees(incoming, row.session)]

    def _agreeing(
        self, incoming: IncomingRequest, location: Location, rows: Sequence[Marked]
    ) -> Location:
        """The location, but a branch where it is in the session of another conversation."""
        if not isinstance(location, Continue | Retry):
            return location
        if not self._disagrees(incoming, location.session):
            return location
        if isinstance(location, Continue):
            return Branch(location.session, location.seq, location.new)
        answer = last_answer(incoming.chain, rows)
        own = [row for row in answer.rows if row.session == location.session] if answer else []
        return Branch(own[0].session, own[0].seq, answer.message + 1) if answer and own else New()

    async def _disambiguate(
        self, incoming: IncomingRequest, rows: Sequence[Marked]
    ) -> Sequence[Marked]:
        """The marks without those of answers that only have the same ids as the client's."""
        for _ in range(_MAX_AMBIGUOUS):
            answer = last_answer(incoming.chain, rows)
            if answer is None or len({row.session for row in answer.rows}) == 1:
                return rows
            same = await self._with_same_content(incoming, answer)
            rows = [row for row in rows if row in same or row not in answer.rows]
            if same:
                return rows
        return _in_one_session(rows)

    async def _with_same_content(
        self, incoming: IncomingRequest, answer: AnswerMarks
    ) -> list[Marked]:
        """Those of an answer's marks where the log has the client's content."""
        chain, dialect, rows = incoming.chain, incoming.dialect, answer.rows
        log = self._sessions.log(incoming.tenant)
        prompt = chain.prompt_before(answer.message)
        narrowed: list[Marked] = []
        if prompt is not None and chain.content:
            requests = await log.marked([key_of("asked", chain.content[prompt])])
            sessions = {row.session for row in requests}
            narrowed = [row for row in rows if row.session in sessions]
        rows = narrowed or rows
        message = incoming.messages[answer.message]
        if not _call_ids(dialect, message):  # then its words are in the chain
            return rows
        content = dialect.fingerprint(message).content
        same = [
            row
            for row in rows[:_MAX_READ]
            if (payload := await _payload(log, row.session, row.seq))
            and dialect.fingerprint(payload).content == content
        ]
        # What led to it is one session's alone: then the client has rewritten the answer.
        return same or (narrowed if len({row.session for row in narrowed}) == 1 else [])

    async def _resume(
        self, incoming: IncomingRequest, location: Location, name: str | None = None
    ) -> Location:
        """The given location, or the session that waits for an answer which the client sends along.

        Only a history with an answer that the log lacks needs this second look.
        """
        chain = incoming.chain
        if not isinstance(location, New | Branch):
            return location
        since = location.new if isinstance(location, Branch) else 0
        keys = chain.prompt_keys(since)
        rows = await self._sessions.log(incoming.tenant).marked(keys) if keys else []
        rows = [row for row in rows if name in (None, row.session)]
        pending = locate_pending(chain, rows, since)
        return pending or await self._locate_by_answer_id(incoming, rows, since) or location

    async def _locate_by_answer_id(
        self, incoming: IncomingRequest, rows: Sequence[Marked], since: int
    ) -> Continue | None:
        """The session whose answer to the same request differs, but shares a unique id."""
        chain, dialect, log = incoming.chain, incoming.dialect, self._sessions.log(incoming.tenant)
        prompts = {
            key_of("asked", chain.content[index]): index
            for index in chain.prompts
            if index >= since
        }
        answers = set(chain.answered)
        # Where several sessions were asked the same, a name may be that of all their answers.
        answered = [
            row for row in _in_one_session(rows) if row.key in prompts and row.seq == row.before
        ]
        for row in sorted(answered, key=lambda row: -prompts[row.key])[:_MAX_RENAMED]:
            first = end = prompts[row.key] + 1
            while end in answers:
                end += 1
            names = dialect.fingerprint(await _payload(log, row.session, row.tip)).names
            unique = {name for name in names if is_unique(name.partition(" ")[2])}
            candidates = map(dialect.fingerprint, incoming.messages[first:end])
            if any(unique.intersection(message.names) for message in candidates):
                return Continue(row.session, row.tip, end)
        return None

    # Opening the session, and appending what is new.

    async def _use(
        self, incoming: IncomingRequest, location: Location, resources: AsyncExitStack
    ) -> SessionLease:
        match location:
            case New():
                delegation = self.recent.delegated(_history(incoming))
                lease = await self._begin(incoming, resources, delegation)
                await self._note_delegation(lease, delegation)
            case Rewritten(name):
                lease = await self._open(incoming, name, resources)
                session = lease.session
                await session.catch_up()
                lease.tip = None
                await lease.append(0, lambda: _clear(session, _COMPACTED))
            case Continue(name, seq, new):
                lease = await self._open(incoming, name, resources, seq)
                agent = lease.opened.agent
                if not await _is_confirmed(incoming, lease.opened, new):
                    lease = await self._begin(incoming, resources)
                else:
                    if agent is not None and not agent.is_like(incoming.agent):
                        lease = await self._fork(incoming, name, seq, resources)
                        lease.opened.parent, lease.opened.parent_agent = name, agent
                    await lease.append(new)
            case Retry(name, seq, tip):
                lease = await self._open(incoming, name, resources, tip)
                await lease.retry(seq)
            case Branch(name, seq, new):
                if await self._shares_opening(incoming, name, resources):
                    lease = await self._fork(incoming, name, seq, resources)
                    lease.opened.parent, lease.opened.is_branch = name, True
                    await lease.append(new)
                else:
                    lease = await self._begin(incoming, resources)
        lease.opened.agent = incoming.agent
        self._note_hint(lease)
        return lease

    async def _shares_opening(
        self, incoming: IncomingRequest, name: str, resources: AsyncExitStack
    ) -> bool:
        """Whether a session begins like the client's history, if its marks leave that in doubt."""
        opening = _vague_opening(incoming)
        if not opening:
            return True
        lease = await self._open(incoming, name, resources)
        await lease.session.catch_up()
        return _holds(incoming.dialect, lease.session.inputs, opening)

    async def _use_named(
        self,
        incoming: IncomingRequest,
        name: str,
        rows: Sequence[Marked],
        resources: AsyncExitStack,
    ) -> SessionLease:
        """Use the session that the client names: its view becomes what the client sent."""
        own = [row for row in rows if row.session == name]
        await self._sessions.drop_restarted(incoming.tenant, name)
        lease = await self._open(incoming, name, resources)
        if lease.opened.first_entry is None:
            await self._sessions.drop_restarted(incoming.tenant, name)
        await self._check_owner(lease, name)
        session = lease.session
        await session.catch_up()
        match await self._resume(incoming, locate(incoming.chain, own), name):
            case Continue(_, seq, new):
                lease.tip = seq
                await lease.append(new)
            case Retry(_, seq, tip):
                lease.tip = tip
                await lease.retry(seq)
            case Branch(_, seq, new):
                lease.tip = next(row.tip for row in own if row.seq == seq)
                await lease.append(new, lambda: session.rewind(seq))
            case New() | Rewritten():
                lease.tip = None
                await lease.append(0, lambda: _clear(session))
        return lease

    async def _use_journal(
        self, incoming: IncomingRequest, rows: Sequence[Marked], resources: AsyncExitStack
    ) -> SessionLease:
        """Use the session that takes whatever passes of a conversation the provider keeps.

        What was asked last and not answered is not logged again: clients retry by themselves.
        """
        name = incoming.journal
        await self._sessions.drop_restarted(incoming.tenant, name)
        lease = await self._open(incoming, name, resources)
        if incoming.session is not None:
            await self._check_owner(lease, name)
        await lease.session.catch_up()
        failed = key_of("failed", incoming.chain.end)
        for row in rows:
            if (row.session, row.key, row.seq) == (name, failed, row.tip) and row.before:
                lease.tip = row.tip
                await lease.retry(row.before)
                return lease
        lease.tip = None
        await lease.append(incoming.parsed_request.held)
        return lease

    async def _check_owner(self, lease: SessionLease, name: str) -> None:
        incoming, opened = lease.incoming, lease.opened
        if incoming.may_use is None:
            return
        opened.origin = opened.origin or await self._sessions.origin(incoming.tenant, name)
        if opened.origin is None or not await incoming.may_use(opened.origin):
            raise SessionOwned("The session that the request names belongs to another key.")

    async def _note_delegation(self, lease: SessionLease, delegation: Delegation | None) -> None:
        """Note in a new session which call of another session began it, if one did."""
        if delegation is None:
            return
        session, call, tool = delegation
        note = Note(
            f"Begun by a call of {tool or 'a tool'} in session {session}.",
            {"gateway": "delegated", "session": session, "call": call},
        )
        async with lease.opened.turn:
            await lease.session.note(note)

    async def _fork(
        self, incoming: IncomingRequest, source: str, seq: int, resources: AsyncExitStack
    ) -> SessionLease:
        name = self._new_name()
        await self._sessions.log(incoming.tenant).fork(source, name, at=seq)
        return await self._open(incoming, name, resources)

    async def _begin(
        self,
        incoming: IncomingRequest,
        resources: AsyncExitStack,
        delegation: Delegation | None = None,
    ) -> SessionLease:
        name = self._new_name()
        parent = delegation.session if delegation else None
        lease = await self._open(incoming, name, resources, new=True, parent=parent)
        try:
            await lease.append_all()
        except BaseException:
            await self._sessions.drop(incoming.tenant, name)
            raise
        return lease

    async def _open(  # noqa: PLR0913 - the last two have a default
        self,
        incoming: IncomingRequest,
        name: str,
        resources: AsyncExitStack,
        tip: int = 0,
        *,
        new: bool = False,
        parent: str | None = None,
    ) -> SessionLease:
        # A session that was located is there: it is not begun again where it was forgotten.
        may_begin = new or incoming.session is not None or bool(incoming.journal)
        opening = Opening(
            incoming.dialect.name if may_begin else None,
            incoming.setup,
            lambda: incoming.sourced_title,
            new,
            incoming.key or None,
            parent,
        )
        opened = await resources.enter_async_context(
            self._sessions.lease(incoming.tenant, name, opening)
        )
        return SessionLease(incoming, opened, resources, tip)


async def _is_confirmed(incoming: IncomingRequest, opened: GatewaySession, new: int) -> bool:
    """Whether a session holds what the client continues from, where its mark leaves a doubt.

    An id that many conversations may have is no proof, nor are prompts without the user's words.
    """
    dialect, messages = incoming.dialect, incoming.messages[:new]
    weak = messages and not all(map(is_unique, _call_ids(dialect, messages[-1])))
    fingerprints = map(dialect.fingerprint, messages)
    if not weak and not any(item.kind == "prompt" and not item.spine for item in fingerprints):
        return True
    await opened.session.catch_up()  # another process may have changed what it shows
    inputs = opened.session.inputs
    if incoming.recall is not None:
        messages = incoming.recall.put_back(messages, [row.payload for row in inputs.rows])
    indexes = match_rows(dialect, messages, inputs)
    if not _holds(dialect, inputs, _vague_opening(incoming)):
        return False
    return all(row.seq in indexes or dialect.fingerprint(row.payload).blank for row in inputs.rows)


def _vague_opening(incoming: IncomingRequest) -> Sequence[bytes]:
    """The messages before the first answer, if they have no words of the user and no ids."""
    fingerprint = incoming.dialect.fingerprint
    opening = [*takewhile(lambda message: not fingerprint(message).answers, incoming.messages)]
    return [] if any(fingerprint(message).spine for message in opening) else opening


def _holds(dialect: Dialect, inputs: ViewInput, messages: Sequence[bytes]) -> bool:
    """Whether a session shows these messages, to the letter."""
    contents = {dialect.fingerprint(row.payload).content for row in inputs.rows}
    return all(dialect.fingerprint(message).content in {b"", *contents} for message in messages)


def _in_one_session(rows: Sequence[Marked]) -> list[Marked]:
    """The marks whose key is in one session only."""
    sessions: dict[bytes, set[str]] = {}
    for row in rows:
        sessions.setdefault(row.key, set()).add(row.session)
    return [row for row in rows if len(sessions[row.key]) == 1]


async def _clear(session: Session, note: Note | None = None) -> None:
    if session.messages:
        await session.clear()
    if note is not None:
        await session.note(note)


def _history(incoming: IncomingRequest) -> History:
    caller = incoming.tenant, incoming.chain.seed
    return History(caller, incoming.agent, incoming.hint, incoming.wire, incoming.messages)


def _call_ids(dialect: Dialect, message: bytes) -> list[str]:
    names = dialect.fingerprint(message).names
    return [name.removeprefix("call ") for name in names if name.startswith("call ")]


async def _payload(log: Log, session: str, seq: int) -> bytes:
    for entry in await log.read(session, Span(seq, seq)):
        match CODEC.decode(entry):
            case Message(payload):
                return payload
            case _:
                pass
    return b""
