"""Pydantic AI's conversations, kept in a Refold store.

A conversation is the session of its id, and its messages are the session's messages: whatever
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
    EntryId,
    Kept,
    Reading,
    deleted,
    holding,
    saved,
    seq_of,
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
    """A conversation store over a Refold store: memory, an SQLite file, or one of your own.

    Nothing is erased: branching rewinds, and deleting hides a conversation and keeps its log. To
    erase one for good, forget its session.

    Args:
        store: An address (`sqlite:///chats.db`, `memory:`) or a path, opened at first use; or an
            open store, or the log of a tenant.
        tenant: Whose conversations these are; not for a log, which is a tenant's already.
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
        self._reading = Reading(self._log, self._own)
        self._profile = profile
        self._author = author or Author()

    async def __aenter__(self) -> Self:
        """Open the store, if it was given by its address."""
        await self._reading.opened()
        return self

    async def __aexit__(self, *error: object) -> None:
        """Close it."""
        await self.close()

    async def close(self) -> None:
        """Close the store that was given by its address; another is its owner's to close."""
        if self._own is not None:
            await self._own.close()

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """The record of a conversation; None when there is none, or it was deleted."""
        kept = await self._reading.kept(conversation_id)
        return kept.record if kept else None

    async def read_records(
        self, *, scope: str | None = None, limit: int | None = None
    ) -> Sequence[ConversationRecord]:
        """The records, newest first: of every session with Pydantic AI's messages."""
        found: list[ConversationRecord] = []
        async with aclosing(self._reading.sessions()) as sessions:
            async for info in sessions:
                if limit is not None and _enough(found, limit, info.updated_at):
                    break
                record = await self.read_record(info.session)
                if record is not None and scope in {None, record.scope}:
                    found.append(record)
                    found.sort(key=lambda one: one.updated_at, reverse=True)
        return found[:limit]

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Append the new messages and the record, all or none, if the revision is still that."""
        _check_chain(record, new_entries)
        while True:
            kept = await self._reading.kept(record.conversation_id)
            self._check_revision(record.conversation_id, kept, expected_revision)
            try:
                await self._write(record, new_entries, kept)
            except Conflict:  # somebody was faster; whether that matters, the revision tells
                continue
            return

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Hide the conversation and clear its session's view. The log keeps every word."""
        while True:
            kept = await self._reading.kept(conversation_id)
            self._check_revision(conversation_id, kept, expected_revision)
            assert kept is not None  # noqa: S101 - or it had no revision
            drafts = [self._author.draft(one) for one in (Cleared(), deleted())]
            try:
                await self._log.append(conversation_id, drafts, expected=kept.head)
            except Conflict:
                continue
            return

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """The entry of this id.

        Ids that this store gave say where they are. For one that comes from elsewhere every
        session is looked through.
        """
        found = await self.read_history(entry_id, limit=1)
        if not found or found[0].id != entry_id:
            raise KeyError(entry_id)
        return found[0]

    async def read_history(
        self, head_id: str | None, *, limit: int | None = None
    ) -> list[ConversationEntry]:
        """The messages up to this one, or the last of them."""
        if head_id is None or limit == 0:
            return []
        session = (
            head_id.session if isinstance(head_id, EntryId) else await self._reading.find(head_id)
        )
        try:
            line = await self._reading.line(session, head_id, limit)
        except GONE as error:
            raise KeyError(head_id) from error
        before = [None, *(EntryId(entry.id, session) for entry in line)]
        history = [
            ConversationEntry(id=own, parent_id=parent, message=message_of(entry.body))
            for entry, parent, own in zip(line, before, before[1:], strict=False)
            if own is not None
        ]
        return history if limit is None else history[-limit:]

    def _check_revision(self, name: str, kept: Kept | None, expected: str | None) -> None:
        if (kept.record.revision if kept and kept.record else None) != expected:
            raise ConversationConflict(name)

    async def _write(
        self, record: ConversationRecord, new: Sequence[ConversationEntry], kept: Kept | None
    ) -> None:
        name, draft = record.conversation_id, self._author.draft
        after = new[0].parent_id if new else record.head_id
        turns: list[Draft] = []
        if kept is None and after is None:
            head, turns = 0, [draft(Opened(PydanticAI.name, self._profile))]
        elif kept is None:
            head = await self._forked(record, after or "")
        else:
            head = kept.head
            turns = [] if after == kept.tip else [draft(await self._turn(name, after))]
        messages = [
            draft(Message(payload_of(one.message)))._replace(id=_uuid(one.id)) for one in new
        ]
        spans = await self._ground(record, messages, head + len(turns))
        save = draft(saved(record, spans))._replace(id=_uuid(record.revision))
        await self._log.append(name, [*turns, *messages, save], expected=head)

    async def _turn(self, name: str, after: str | None) -> Cleared | Rewound:
        """What makes the session go on after that message."""
        if after is None:
            return Cleared()
        entries = await self._log.read(name)
        seq = seq_of(entries, after)
        if seq is None:
            raise ConversationConflict(name)
        return Rewound(stretch_end(entries, seq))

    async def _forked(self, record: ConversationRecord, after: str) -> int:
        """Fork the session that holds the message; where the new one then is."""
        name, source = record.conversation_id, record.forked_from
        try:
            entries = await self._log.read(source) if source else []
            seq = seq_of(entries, after)
            if source is None or seq is None:
                raise ConversationConflict(name)
            at = stretch_end(entries, seq)
            await self._log.fork(source, name, at=at)
        except (*GONE, SessionExists) as error:
            raise ConversationConflict(name) from error
        return at  # not where it is by now: another may have made the same fork and gone on

    async def _ground(
        self, record: ConversationRecord, messages: Sequence[Draft], head: int
    ) -> tuple[Span, ...]:
        """The messages with the calls that are waited for, which are forgotten with them."""
        waiting = record.deferred_tool_requests
        if waiting is None:
            return ()
        calls = [call.tool_call_id for call in (*waiting.calls, *waiting.approvals)]
        placed = [Entry(head + nth, *one[:5]) for nth, one in enumerate(messages, start=1)]
        if spans := holding(placed, calls):
            return spans
        stored = await self._log.read(record.conversation_id) if head > 1 else []
        return holding(stored, calls)


def _enough(found: Sequence[ConversationRecord], limit: int, updated_at: int) -> bool:
    if len(found) < max(limit, 1):
        return limit == 0
    return updated_at < int(found[limit - 1].updated_at.timestamp() * 1000)


def _check_chain(record: ConversationRecord, new: Sequence[ConversationEntry]) -> None:
    ids = [one.id for one in new]
    if new and ([one.parent_id for one in new[1:]], record.head_id) != (ids[:-1], ids[-1]):
        raise InvalidInput("The new entries are no chain that ends at the record's head.")


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as error:
        raise InvalidInput(
            f"{text[:40]!r} is no UUID.", "Let Pydantic AI make the ids of entries and revisions."
        ) from error
