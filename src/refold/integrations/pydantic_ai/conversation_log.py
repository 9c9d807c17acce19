"""What a session's log says of the conversation that it keeps, as pure functions of its entries.

The messages on the session's line are the conversation's history, so entry ids, parents and the
head are the log's own. A branch is a rewind. What the log has no word for (usage, calls that wait
for an answer, whose conversation it is) is an entry beside the messages, one for each save. Its id
is the conversation's revision, until somebody else moves the session on: then that entry's is.
"""

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

from pydantic import JsonValue, TypeAdapter, ValidationError
from pydantic_ai.conversation_store import ConversationRecord
from pydantic_ai.messages import ModelResponse

from refold.errors import InvalidInput, SessionForgotten, SessionNotFound, WrittenByNewer
from refold.integrations.pydantic_ai.history import message_of
from refold.log import (
    CODEC,
    MAIN_SCOPE,
    Cleared,
    Entry,
    Forgot,
    Forgotten,
    Log,
    Message,
    Rewound,
    Saved,
    SessionInfo,
    Span,
    Store,
    Unknown,
)
from refold.log.entry import seqs, spans_of
from refold.log.outline import replay
from refold.wire.pydantic_ai import PydanticAI

HOST: Final = "pydantic-ai"
TURNS: Final = frozenset({Rewound.KIND, Cleared.KIND})
"""What makes the line go on from elsewhere."""
_MOVES: Final = TURNS | {Message.KIND, Forgot.KIND}
_RECORD: Final = TypeAdapter(ConversationRecord)
_WAITING: Final = "deferred_tool_requests"
_DELETED: Final = "deleted"


class EntryId(str):
    """An entry's id that knows the session it was read in, so that nobody has to look for it."""

    __slots__ = ("session",)
    session: str

    def __new__(cls, entry: object, session: str) -> Self:
        made = super().__new__(cls, entry)
        made.session = session
        return made


@dataclass(frozen=True, slots=True)
class Kept:
    head: int
    """The session's newest entry."""
    tip: str | None
    """The newest message on its line."""
    record: ConversationRecord | None
    """None once the conversation was deleted."""


class _Save(NamedTuple):
    seq: int
    record: ConversationRecord | None
    """None when it was the last: the conversation was deleted then."""


def saved(record: ConversationRecord, spans: Iterable[Span] = ()) -> Saved:
    """The entry that goes with a save; `spans` hold the calls that the record waits for."""
    state = _RECORD.dump_python(record, mode="json", exclude={"conversation_id", "revision"})
    pending = state.pop(_WAITING)
    return Saved(HOST, state, pending, tuple(spans))


def deleted() -> Saved:
    """The entry that ends a conversation. The log keeps what was said."""
    return Saved(HOST, {_DELETED: True})


def is_message(entry: Entry) -> bool:
    """Whether it is one of the conversation's own messages, and not forgotten."""
    return entry.kind == Message.KIND and entry.scope == MAIN_SCOPE and not entry.forgotten


def seq_of(entries: Iterable[Entry], entry_id: str) -> int | None:
    """Where the entry with this id is among these."""
    return next((entry.seq for entry in entries if str(entry.id) == entry_id), None)


def line_at(entries: Sequence[Entry], seq: int) -> list[Entry]:
    """The messages on the line when `seq` was the newest of all these entries."""
    turns = [entry for entry in entries[:seq] if entry.kind in TURNS]
    on_line = (entries[at - 1] for at in seqs(replay(turns).on_line(seq)))
    return [entry for entry in on_line if is_message(entry)]


def stretch_end(entries: Sequence[Entry], seq: int) -> int:
    """The last entry after `seq` before the next message or turn: folds made there still stand."""
    for entry in entries[seq:]:
        if entry.kind in TURNS or is_message(entry):
            return entry.seq - 1
    return entries[-1].seq


def holding(entries: Iterable[Entry], calls: Iterable[str]) -> tuple[Span, ...]:
    """The messages that hold any of these calls."""
    wanted = [call.encode() for call in calls]
    found = (entry for entry in entries if any(call in entry.body for call in wanted))
    return spans_of(entry.seq for entry in found if is_message(entry))


def kept_of(info: SessionInfo, entries: Sequence[Entry]) -> Kept | None:
    """The conversation that a session keeps, from its newest entries; None when these are too few.

    All of them are needed when others moved it on since it was saved, or it never was.
    """
    save = _newest_save(entries, info.session)
    own = save is not None and save.seq > (info.forked_at or 0)
    since = [entry for entry in entries if save is None or entry.seq > save.seq]
    moves = [entry for entry in since if entry.kind in _MOVES]
    if save is not None and own and not moves:
        tip = save.record.head_id if save.record else None
        return Kept(info.entries, tip, save.record)
    if entries[0].seq > 1:
        return None
    record = save.record if save and save.record else _blank(info, entries[0])
    if not own and info.forked_at:
        record.forked_from, record.branches = info.forked_from, []
        record.forked_at = _tip(line_at(entries, info.forked_at))
    if moves:
        _move_on(record, moves, entries, info.forked_at or 0)
    return Kept(info.entries, record.head_id, record)


def _newest_save(entries: Sequence[Entry], session: str) -> _Save | None:
    for entry in reversed(entries):
        if entry.kind != Saved.KIND:
            continue
        match CODEC.decode(entry):
            case Saved(host, dict(state), pending) if host == HOST:
                return _Save(entry.seq, _record(entry, session, state, pending))
            case Forgotten(kept={"host": str(host), "state": dict(state)}) if host == HOST:
                return _Save(entry.seq, _record(entry, session, state, None))
            case Unknown():
                raise _too_new(session)
            case _:
                pass
    return None


def _record(
    entry: Entry, session: str, state: dict[str, JsonValue], pending: JsonValue
) -> ConversationRecord | None:
    if state.get(_DELETED):
        return None
    derived = {"conversation_id": session, "revision": str(entry.id)}
    try:
        record = _RECORD.validate_python({**state, **derived, _WAITING: pending})
    except ValidationError as error:
        raise _too_new(session) from error
    record.head_id = EntryId(record.head_id, session) if record.head_id else None
    record.branches = [EntryId(tip, session) for tip in record.branches]
    return record


def _too_new(session: str) -> WrittenByNewer:
    return WrittenByNewer(
        f"Conversation {session!r} was saved by a newer Refold or Pydantic AI.",
        "Upgrade both in this process.",
    )


def _blank(info: SessionInfo, opening: Entry) -> ConversationRecord:
    return ConversationRecord(
        conversation_id=info.session,
        head_id=None,
        revision=str(opening.id),
        updated_at=opening.time,
    )


def _move_on(
    record: ConversationRecord, moves: Sequence[Entry], entries: Sequence[Entry], forked_at: int
) -> None:
    session = record.conversation_id
    line = line_at(entries, entries[-1].seq)
    turns = [move.seq for move in moves if move.kind in TURNS and move.seq > forked_at]
    left = [line_at(entries, turn - 1) for turn in turns]
    tips = [str(before[-1].id) for before in left if before]
    on_line = {str(entry.id) for entry in line}
    tips = [*(tip for tip in record.branches if tip not in tips), *dict.fromkeys(tips)]
    record.branches = [EntryId(tip, session) for tip in tips if tip not in on_line]
    record.head_id = EntryId(line[-1].id, session) if line else None
    record.deferred_tool_requests = None
    record.revision, record.updated_at = str(moves[-1].id), moves[-1].time
    for move in filter(is_message, moves):
        message = message_of(move.body)
        if isinstance(message, ModelResponse):
            record.usage.incr(message.usage)
            record.usage.requests += 1


def _tip(line: Sequence[Entry]) -> str | None:
    return str(line[-1].id) if line else None


# Reading conversations from a log: as little of a session as will do.

GONE: Final = (SessionNotFound, SessionForgotten)
_FEW: Final = 8
"""The newest entries that are read first; after a save they tell all of its record."""
_MORE: Final = 4
"""How many times as many are read next, when they do not."""


class Reading:
    """Reads a log, and opens its store at first use when that is ours to open."""

    def __init__(self, log: Log, own: Store | None) -> None:
        self._log = log
        self._own = own

    async def opened(self) -> Log:
        if self._own is not None:
            await self._own.open()
        return self._log

    async def kept(self, name: str) -> Kept | None:
        """The conversation that a session keeps; None where there is no session."""
        log = await self.opened()
        try:
            info = await log.info(name)
            _check_format(info)
            count = _FEW
            while True:
                span = Span(max(1, info.entries - count + 1), info.entries)
                if kept := kept_of(info, await log.read(name, span)):
                    return kept
                count *= _MORE
        except GONE:
            return None

    async def line(self, session: str, head_id: str, limit: int | None) -> list[Entry]:
        """The messages on the line up to this one; with a limit, at most one more than that."""
        log = await self.opened()
        head = await log.head(session)
        count = head if limit is None else _FEW + 2 * limit
        while True:
            span = Span(max(1, head - count + 1), head)
            entries = await log.read(session, span)
            seq = seq_of(entries, head_id)
            if span.first == 1:
                if seq is None:
                    raise KeyError(head_id)
                return _last(line_at(entries, seq), limit)
            if seq is not None and TURNS.isdisjoint(entry.kind for entry in entries):
                line = [entry for entry in entries if entry.seq <= seq and is_message(entry)]
                if limit is not None and len(line) > limit:
                    return _last(line, limit)
            count *= _MORE

    async def find(self, entry_id: str) -> str:
        """The session that holds the entry: all are looked through, the last used first."""
        log = await self.opened()
        async with aclosing(self.sessions()) as sessions:
            async for info in sessions:
                if seq_of(await log.read(info.session, whole=False), entry_id) is not None:
                    return info.session
        raise KeyError(entry_id)

    async def sessions(self) -> AsyncGenerator[SessionInfo]:
        """The sessions with Pydantic AI's messages, the last used first."""
        log, page = await self.opened(), None
        while True:
            found = await log.sessions(page=page)
            for info in found.sessions:
                if info.format == PydanticAI.name:
                    yield info
            if (page := found.next) is None:
                return


def _last(line: list[Entry], limit: int | None) -> list[Entry]:
    return line if limit is None else line[-limit - 1 :]


def _check_format(info: SessionInfo) -> None:
    if info.format != PydanticAI.name:
        raise InvalidInput(
            f"Session {info.session!r} holds {info.format} messages, not {PydanticAI.name}.",
            "Give the conversation another id.",
        )
