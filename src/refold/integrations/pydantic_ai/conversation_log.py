"""How a session's log represents a conversation, and how it is read.

The messages on the session's line are the conversation's history, so entry ids, parents and the
head are the log's own. A branch is a rewind. What the log has no entry for (usage, calls that wait
for an answer, the owner) is saved in an entry next to the messages, one for each save. Its id is
the conversation's revision, until somebody else adds to the session: then that entry's id is.
"""

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, Self

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
GONE: Final = (SessionNotFound, SessionForgotten)
TURNS: Final = frozenset({Rewound.KIND, Cleared.KIND})
"""The entries that make the line continue from elsewhere."""
_MOVES: Final = TURNS | {Message.KIND, Forgot.KIND}
_RECORD: Final = TypeAdapter(ConversationRecord)
_WAITING: Final = "deferred_tool_requests"
_DELETED: Final = "deleted"
_FIRST_READ: Final = 8
"""The newest entries that are read first; after a save, they are enough for its record."""
_GROWTH: Final = 4
"""By how much the number of entries grows when they are not enough."""


class EntryId(str):
    """An entry's id that knows its session, so that no search is needed to find the entry."""

    __slots__ = ("session",)
    session: str

    def __new__(cls, entry: object, session: str) -> Self:
        entry_id = super().__new__(cls, entry)
        entry_id.session = session
        return entry_id


@dataclass(frozen=True, slots=True)
class StoredConversation:
    head: int
    """The session's newest entry."""
    tip: str | None
    """The newest message on its line."""
    record: ConversationRecord | None
    """None once the conversation was deleted."""


def save_entry(record: ConversationRecord, spans: Iterable[Span] = ()) -> Saved:
    """The entry of a save; `spans` contain the calls that the record waits for."""
    state = _RECORD.dump_python(record, mode="json", exclude={"conversation_id", "revision"})
    pending = state.pop(_WAITING)
    return Saved(HOST, state, pending, tuple(spans))


def deletion_entry() -> Saved:
    return Saved(HOST, {_DELETED: True})


def is_message(entry: Entry) -> bool:
    """Whether it is one of the conversation's own messages, and not forgotten."""
    return entry.kind == Message.KIND and entry.scope == MAIN_SCOPE and not entry.forgotten


def seq_of(entries: Iterable[Entry], entry_id: str) -> int | None:
    return next((entry.seq for entry in entries if str(entry.id) == entry_id), None)


def line_at(entries: Sequence[Entry], seq: int) -> list[Entry]:
    """The messages on the line when `seq` was the newest of all these entries."""
    turns = [entry for entry in entries[:seq] if entry.kind in TURNS]
    on_line = (entries[number - 1] for number in seqs(replay(turns).on_line(seq)))
    return [entry for entry in on_line if is_message(entry)]


def stretch_end(entries: Sequence[Entry], seq: int) -> int:
    """The last entry after `seq` before the next message or turn: folds made there stay valid."""
    for entry in entries[seq:]:
        if entry.kind in TURNS or is_message(entry):
            return entry.seq - 1
    return entries[-1].seq


def spans_with_calls(entries: Iterable[Entry], calls: Iterable[str]) -> tuple[Span, ...]:
    """The messages that contain any of these calls."""
    ids = [call.encode() for call in calls]
    matches = (entry for entry in entries if any(call in entry.body for call in ids))
    return spans_of(entry.seq for entry in matches if is_message(entry))


def derive_conversation(info: SessionInfo, entries: Sequence[Entry]) -> StoredConversation | None:
    """The conversation in a session, from its newest entries; None when these are too few.

    All of them are needed when others added to it since it was saved, or it never was.
    """
    save, record = _newest_save(entries, info.session)
    is_own = save > (info.forked_at or 0)
    moves = [entry for entry in entries if entry.seq > save and entry.kind in _MOVES]
    if is_own and not moves:
        return StoredConversation(info.entries, record.head_id if record else None, record)
    if entries[0].seq > 1:
        return None
    record = record or ConversationRecord(
        conversation_id=info.session,
        head_id=None,
        revision=str(entries[0].id),
        updated_at=entries[0].time,
    )
    if not is_own and info.forked_at:
        line = line_at(entries, info.forked_at)
        record.forked_from, record.branches = info.forked_from, []
        record.forked_at = str(line[-1].id) if line else None
    if moves:
        _apply_moves(record, moves, entries, info.forked_at or 0)
    return StoredConversation(info.entries, record.head_id, record)


def _newest_save(entries: Sequence[Entry], session: str) -> tuple[int, ConversationRecord | None]:
    """The newest save's seq, or 0, and its record, which a deleted conversation has not."""
    for entry in reversed(entries):
        if entry.kind != Saved.KIND:
            continue
        match CODEC.decode(entry):
            case Saved(host, dict(state), pending) if host == HOST:
                return entry.seq, _decode_record(entry, session, state, pending)
            case Forgotten(kept={"host": str(host), "state": dict(state)}) if host == HOST:
                return entry.seq, _decode_record(entry, session, state, None)
            case Unknown():
                raise _too_new(session)
            case _:
                pass
    return 0, None


def _decode_record(
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


def _apply_moves(
    record: ConversationRecord, moves: Sequence[Entry], entries: Sequence[Entry], forked_at: int
) -> None:
    """Update the record by what others did to the session since it was saved."""
    session = record.conversation_id
    line = line_at(entries, entries[-1].seq)
    turns = [move.seq for move in moves if move.kind in TURNS and move.seq > forked_at]
    left = [line_at(entries, turn - 1) for turn in turns]
    tips = [str(branch[-1].id) for branch in left if branch]
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


class ConversationReader:
    """Reads no more of a session than needed. Opens its own store, if any, at first use."""

    def __init__(self, log: Log, own_store: Store | None) -> None:
        self._log = log
        self._own_store = own_store

    async def open(self) -> Log:
        if self._own_store is not None:
            await self._own_store.open()
        return self._log

    async def conversation(self, name: str) -> StoredConversation | None:
        log = await self.open()
        try:
            info = await log.info(name)
            if info.format != PydanticAI.name:
                raise InvalidInput(
                    f"Session {name!r} holds {info.format} messages, not {PydanticAI.name}.",
                    "Give the conversation another id.",
                )
            count = _FIRST_READ
            while True:
                span = Span(max(1, info.entries - count + 1), info.entries)
                if conversation := derive_conversation(info, await log.read(name, span)):
                    return conversation
                count *= _GROWTH
        except GONE:
            return None

    async def line(self, session: str, head_id: str, limit: int | None) -> list[Entry]:
        """The messages on the line up to this one; with a limit, at most one more than that."""
        log = await self.open()
        head = await log.head(session)
        count = head if limit is None else _FIRST_READ + 2 * limit
        while True:
            span = Span(max(1, head - count + 1), head)
            entries = await log.read(session, span)
            seq = seq_of(entries, head_id)
            if span.first == 1:
                if seq is None:
                    raise KeyError(head_id)
                line = line_at(entries, seq)
                return line if limit is None else line[-limit - 1 :]
            if seq is not None and TURNS.isdisjoint(entry.kind for entry in entries):
                line = [entry for entry in entries if entry.seq <= seq and is_message(entry)]
                if limit is not None and len(line) > limit:
                    return line[-limit - 1 :]
            count *= _GROWTH

    async def find(self, entry_id: str) -> str:
        """The session that contains the entry: all are searched, the last used first."""
        log = await self.open()
        async with aclosing(self.sessions()) as sessions:
            async for info in sessions:
                if seq_of(await log.read(info.session, whole=False), entry_id) is not None:
                    return info.session
        raise KeyError(entry_id)

    async def sessions(self) -> AsyncGenerator[SessionInfo]:
        """The sessions with Pydantic AI's messages, the last used first."""
        log, token = await self.open(), None
        while True:
            page = await log.sessions(page=token)
            for info in page.sessions:
                if info.format == PydanticAI.name:
                    yield info
            if (token := page.next) is None:
                return
