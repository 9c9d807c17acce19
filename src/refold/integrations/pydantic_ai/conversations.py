"""Pydantic AI's conversation store over a Refold store.

A conversation is the session with its id, and its messages are the session's messages: whatever
reads sessions (views, folds, recall, search, export) reads conversations too. See
`refold.integrations.pydantic_ai.conversation_log` for what is an entry and what is derived.
"""

from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Self, cast
from uuid import UUID

from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
)

from refold.errors import Conflict, InvalidInput, SessionExists
from refold.integrations.pydantic_ai.conversation_log import (
    GONE,
    ConversationReader,
    EntryId,
    StoredConversation,
    deletion_entry,
    save_entry,
    seq_of,
    spans_with_calls,
    stretch_end,
)
from refold.integrations.pydantic_ai.history import message_of, payload_of
from refold.log import (
    DEFAULT_TENANT,
    Author,
    Cleared,
    Draft,
    Entry,
    Log,
    Message,
    Opened,
    Rewound,
    Span,
    Store,
)
from refold.stores import SqliteStore, open_store
from refold.wire.pydantic_ai import PydanticAI


class Conversations(ConversationStore):
    """A conversation store over a Refold store: memory, an SQLite file, or your own.

    Nothing is erased: branching rewinds, and deleting hides a conversation and keeps its log. To
    erase one for good, forget its session.

    Args:
        store: An address (`sqlite:///chats.db`, `memory:`) or a path, opened at first use; or an
            open store, or the log of a tenant.
        tenant: Whose conversations these are; ignored for a log, which already has a tenant.
        profile: The profile that new sessions are opened with.
        author: Makes the entries; tests give it a clock.
    """

    def __init__(
        self,
        store: Store | Log | Path | str = "memory:",
        *,
        tenant: str = DEFAULT_TENANT,
        profile: str = "balanced",
        author: Author | None = None,
    ) -> None:
        self._own: Store | None = None
        if isinstance(store, str):
            store = self._own = open_store(store)
        elif isinstance(store, Path):
            store = self._own = SqliteStore(store)
        is_store = hasattr(store, "log")
        self._log = cast("Store", store).log(tenant) if is_store else cast("Log", store)
        self._reader = ConversationReader(self._log, self._own)
        self._profile = profile
        self._author = author or Author()

    async def __aenter__(self) -> Self:
        await self._reader.open()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the store if it was given by its address; otherwise its owner closes it."""
        if self._own is not None:
            await self._own.close()

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """The record of a conversation; None when there is none, or it was deleted."""
        stored = await self._reader.conversation(conversation_id)
        return stored.record if stored else None

    async def read_records(
        self, *, scope: str | None = None, limit: int | None = None
    ) -> Sequence[ConversationRecord]:
        """The records, newest first: of every session with Pydantic AI's messages."""
        records: list[ConversationRecord] = []
        async with aclosing(self._reader.sessions()) as sessions:
            async for info in sessions:
                if limit is not None and _is_complete(records, limit, info.updated_at):
                    break
                record = await self.read_record(info.session)
                if record is not None and scope in {None, record.scope}:
                    records.append(record)
                    records.sort(key=lambda record: record.updated_at, reverse=True)
        return records[:limit]

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Append the new messages and the record, all or none, if the revision is as expected."""
        _check_chain(record, new_entries)
        while True:
            stored = await self._check_revision(record.conversation_id, expected_revision)
            try:
                await self._write(record, new_entries, stored)
            except Conflict:  # another writer was first; the revision tells whether that matters
                continue
            return

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Hide the conversation and clear its session's view. The log keeps every word."""
        while True:
            stored = await self._check_revision(conversation_id, expected_revision)
            assert stored is not None  # noqa: S101 - or it had no revision
            drafts = [self._author.draft(value) for value in (Cleared(), deletion_entry())]
            try:
                await self._log.append(conversation_id, drafts, expected=stored.head)
            except Conflict:
                continue
            return

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """The entry with this id.

        Ids that this store returned know their session. For other ids, every session is searched.
        """
        history = await self.read_history(entry_id, limit=1)
        if not history or history[0].id != entry_id:
            raise KeyError(entry_id)
        return history[0]

    async def read_history(
        self, head_id: str | None, *, limit: int | None = None
    ) -> list[ConversationEntry]:
        """The messages up to this one, or the last `limit` of them."""
        if head_id is None or limit == 0:
            return []
        session = (
            head_id.session if isinstance(head_id, EntryId) else await self._reader.find(head_id)
        )
        try:
            line = await self._reader.line(session, head_id, limit)
        except GONE as error:
            raise KeyError(head_id) from error
        before = [None, *(EntryId(entry.id, session) for entry in line)]
        history = [
            ConversationEntry(id=own, parent_id=parent, message=message_of(entry.body))
            for entry, parent, own in zip(line, before, before[1:], strict=False)
            if own is not None
        ]
        return history if limit is None else history[-limit:]

    async def _check_revision(self, name: str, expected: str | None) -> StoredConversation | None:
        stored = await self._reader.conversation(name)
        if (stored.record.revision if stored and stored.record else None) != expected:
            raise ConversationConflict(name)
        return stored

    async def _write(
        self,
        record: ConversationRecord,
        new: Sequence[ConversationEntry],
        stored: StoredConversation | None,
    ) -> None:
        name, draft = record.conversation_id, self._author.draft
        after = new[0].parent_id if new else record.head_id
        turns: list[Draft] = []
        if stored is None and after is None:
            head, turns = 0, [draft(Opened(PydanticAI.name, self._profile))]
        elif stored is None:
            head = await self._fork(record, after or "")
        else:
            head = stored.head
            turns = [] if after == stored.tip else [draft(await self._turn(name, after))]
        messages = [
            draft(Message(payload_of(entry.message)))._replace(id=_uuid(entry.id)) for entry in new
        ]
        spans = await self._pending_spans(record, messages, head + len(turns))
        save = draft(save_entry(record, spans))._replace(id=_uuid(record.revision))
        await self._log.append(name, [*turns, *messages, save], expected=head)

    async def _turn(self, name: str, after: str | None) -> Cleared | Rewound:
        if after is None:
            return Cleared()
        entries = await self._log.read(name)
        seq = seq_of(entries, after)
        if seq is None:
            raise ConversationConflict(name)
        return Rewound(stretch_end(entries, seq))

    async def _fork(self, record: ConversationRecord, after: str) -> int:
        """Fork the session that contains the message; returns the fork's head."""
        name, source = record.conversation_id, record.forked_from
        try:
            entries = await self._log.read(source) if source else []
            seq = seq_of(entries, after)
            if source is None or seq is None:
                raise ConversationConflict(name)
            head = stretch_end(entries, seq)
            await self._log.fork(source, name, at=head)
        except (*GONE, SessionExists) as error:
            raise ConversationConflict(name) from error
        return head  # not its current head: another may have made the same fork and continued it

    async def _pending_spans(
        self, record: ConversationRecord, messages: Sequence[Draft], head: int
    ) -> tuple[Span, ...]:
        """The messages with the calls that the record waits for: it is forgotten with them."""
        waiting = record.deferred_tool_requests
        if waiting is None:
            return ()
        calls = [call.tool_call_id for call in (*waiting.calls, *waiting.approvals)]
        new = [Entry(head + nth, *draft[:5]) for nth, draft in enumerate(messages, start=1)]
        if spans := spans_with_calls(new, calls):
            return spans
        entries = await self._log.read(record.conversation_id) if head > 1 else []
        return spans_with_calls(entries, calls)


def _is_complete(records: Sequence[ConversationRecord], limit: int, updated_at: int) -> bool:
    """Whether no session of that age, or older, can be among the first `limit`."""
    if len(records) < max(limit, 1):
        return limit == 0
    return updated_at < int(records[limit - 1].updated_at.timestamp() * 1000)


def _check_chain(record: ConversationRecord, new: Sequence[ConversationEntry]) -> None:
    ids = [entry.id for entry in new]
    if new and ([entry.parent_id for entry in new[1:]], record.head_id) != (ids[:-1], ids[-1]):
        raise InvalidInput("The new entries are not a chain that ends at the record's head.")


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as error:
        raise InvalidInput(
            f"{text[:40]!r} is not a UUID.",
            "Let Pydantic AI make the ids of entries and revisions.",
        ) from error
