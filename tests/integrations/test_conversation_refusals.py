"""What a conversation store cannot read costs nothing else, and what it cannot keep it refuses."""

# ruff: noqa: F811, F401 - fixtures are imported

import json

import pytest

from refold.errors import InvalidInput, WrittenByNewer
from refold.log import Author, Message, Opened, Saved

pytest.importorskip("pydantic_ai", reason="the library whose store this is")

from conversing import agent, log, store, texts, turn
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
)

from refold.integrations.pydantic_ai.history import UNREAD, payload_of


async def test_an_unknown_part_costs_nothing_else(log, store):
    await turn(store, "Hello.")
    message = json.loads(payload_of((await agent.run("Known.")).all_messages()[0]))
    message["parts"].append({"part_kind": "hologram", "beam": 7})
    newer = json.dumps({"kind": "telepathy", "thought": "?"}).encode()
    unknown = [json.dumps(message).encode(), newer]
    drafts = [Author().draft(Message(payload)) for payload in unknown]
    await log.append("c", drafts, expected=None)
    loaded = (await store.load("c")).messages
    assert texts(loaded[:3]) == ["Hello.", "1: Hello.", "Known."]
    assert loaded[2].metadata == {UNREAD: [{"part_kind": "hologram", "beam": 7}]}
    assert loaded[3].metadata == {UNREAD: {"kind": "telepathy", "thought": "?"}}
    await store.save(Conversation(conversation_id="e", messages=loaded))
    assert (await store.load("e")).messages == loaded
    await turn(store, "Still here.")
    assert [e.body for e in await log.read("c") if e.kind == Message.KIND][2:4] == unknown
    assert len((await store.load("c")).messages) == 6


async def test_records_are_found_by_no_search(log, store):
    await store.save(await agent.run("Hello."), scope="alice")
    assert await log.search("alice") == []


async def test_other_formats_are_refused_and_not_listed(log, store):
    await log.append("x", [Author().draft(Opened("openai-chat", "balanced"))], expected=0)
    with pytest.raises(InvalidInput, match="holds openai-chat messages"):
        await store.load("x")
    assert await store.list_conversations() == []


@pytest.mark.parametrize("newer", ["entry", "record"])
async def test_what_a_newer_one_saved_is_not_guessed_at(log, store, newer):
    await turn(store, "Hello.")
    draft = Author().draft(Saved("pydantic-ai", {"head_id": 7}))
    draft = draft._replace(version=2) if newer == "entry" else draft
    await log.append("c", [draft], expected=None)
    with pytest.raises(WrittenByNewer, match="newer Refold or Pydantic AI"):
        await store.load("c")


async def test_what_another_host_saved_is_left_alone(log, store):
    await turn(store, "Hello.")
    before = await store.load("c")
    await log.append("c", [Author().draft(Saved("another", {"x": 1}))], expected=None)
    assert await store.load("c") == before


async def test_entries_that_are_no_chain_are_refused(store):
    message = (await agent.run("Hello.")).all_messages()[0]
    entry = ConversationEntry(parent_id=None, message=message)
    record = ConversationRecord(conversation_id="c", head_id=None)
    with pytest.raises(InvalidInput, match="not a chain"):
        await store.write_record(record, new_entries=[entry], expected_revision=None)
    record = ConversationRecord(conversation_id="c", head_id="1")
    entry = ConversationEntry(parent_id=None, message=message, id="1")
    with pytest.raises(InvalidInput, match="not a UUID"):
        await store.write_record(record, new_entries=[entry], expected_revision=None)
    record = ConversationRecord(conversation_id="c", head_id=str(record.revision))
    with pytest.raises(ConversationConflict):
        await store.write_record(record, expected_revision=None)
