"""A conversation is a session: what one does to it the other sees, and nothing is lost."""

# ruff: noqa: F811, F401 - fixtures are imported

# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportOptionalSubscript=false, reportIndexIssue=false, reportCallIssue=false
# pyright: reportArgumentType=false, reportTypedDictNotRequiredAccess=false
# Tests know which of many kinds of parts they look at.

import pytest
from talks import setup

from refold.log import PartRef, Span
from refold.session import Session
from refold.stores import SqliteStore

pytest.importorskip("pydantic_ai", reason="the library whose store this is")

from conversing import Counting, agent, log, said, shown, store, texts, turn
from pydantic_ai import Agent, Tool
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.tools import DeferredToolRequests

from refold.integrations.pydantic_ai.conversations import Conversations
from refold.integrations.pydantic_ai.history import message_of, payload_of


async def test_a_session_shows_what_the_store_loads(log, store):
    await turn(store, "Hello.")
    await turn(store, "Again.")
    conversation = await store.load("c")
    session = await Session.open(log, "c", setup(window=100_000))
    assert shown(await session.request()) == await said(store)
    await store.branch("c", at=2, expected_revision=conversation.revision)
    assert shown(await session.request()) == await said(store) == ["Hello.", "1: Hello."]
    await turn(store, "Instead.")
    assert shown(await session.request()) == await said(store)
    assert (await said(store))[2:] == ["Instead.", "3: Instead."]
    await store.delete("c")
    assert shown(await session.request()) == []


async def test_the_store_loads_what_a_session_was_told(log, store):
    await turn(store, "Hello.")
    before = await store.load("c")
    session = await Session.open(log, "c", setup(window=100_000))
    payloads = map(payload_of, (await agent.run("Told to Refold.")).all_messages())
    await session.say(*payloads)
    assert await said(store) == ["Hello.", "1: Hello.", "Told to Refold.", "1: Told to Refold."]
    after = await store.load("c")
    assert after.usage.requests == before.usage.requests + 1
    with pytest.raises(ConversationConflict):
        await store.save(await agent.run("Too late.", conversation=before))
    await store.save(await agent.run("On time.", conversation=after))
    assert shown(await session.request()) == await said(store)
    assert len(await said(store)) == 6


async def test_a_session_that_the_store_never_saved_is_a_conversation(log, store):
    session = await Session.open(log, "c", setup(window=100_000))
    empty = await store.load("c")
    assert (empty.messages, empty.revision is None) == ([], False)
    await session.say(*map(payload_of, (await agent.run("Hello.")).all_messages()))
    await session.fork("d")
    [forked, record] = sorted(
        await store.list_conversations(), key=lambda one: one.forked_from is None
    )
    assert (record.conversation_id, forked.conversation_id) == ("c", "d")
    assert (forked.forked_from, forked.forked_at) == ("c", record.head_id)
    await turn(store, "In the fork.", "d")
    assert len(await said(store, "d")) == 4
    assert len(await said(store, "c")) == 2


async def test_a_session_forks_what_the_store_saved(log, store):
    head = (await turn(store, "Hello."))[-1].id
    session = await Session.open(log, "c", setup(window=100_000))
    await session.rewind(2)
    await session.rewind(3)
    [record] = await store.list_conversations()
    assert (record.head_id, record.branches) == (head, [])
    await session.fork("d")
    forked = await store.read_record("d")
    assert (forked.forked_from, forked.forked_at, forked.head_id) == ("c", head, head)
    await turn(store, "In the fork.", "d")
    assert (await store.read_record("d")).forked_at == head


async def test_the_last_saved_are_listed_first_whatever_else_was_used_since(log, store):
    for name in "cde":
        await turn(store, "Hello.", name)
    session = await Session.open(log, "c", setup(window=100_000))
    await session.pin(PartRef(2, 0))
    counted = Counting(log)
    listed = await Conversations(counted).list_conversations(limit=1)
    assert [one.conversation_id for one in listed] == ["e"]
    assert "d" not in counted.read_sessions


async def test_the_last_messages_of_a_branch(store):
    for text in "abcdef":
        last = await turn(store, text)
    revision = (await store.load("c")).revision
    await store.branch("c", at=4, expected_revision=revision)
    await turn(store, "g")
    entries = await store.load_entries("c")
    assert texts(one.message for one in entries[-3:]) == ["3: b", "g", "5: g"]
    assert await store.load_entries("c", limit=3) == entries[-3:]
    assert await store.read_history(str(last[-1].id), limit=1) == [last[-1]]


async def test_branching_and_forking_keep_the_folds_and_pins_made_by_then(log, store):
    await turn(store, "Hello.")
    session = await Session.open(log, "c", setup(window=100_000))
    await session.pin(PartRef(2, 0))
    await turn(store, "Again.")
    assert (await store.load("c", limit=1)).messages[0].parts[0].content == "3: Again."
    await store.fork("c", at=2, new_conversation_id="d")
    await store.branch("c", at=2, expected_revision=(await store.load("c")).revision)
    for name in ("c", "d"):
        assert (await log.visible(name)).outline.pins == (PartRef(2, 0),)


@pytest.mark.parametrize("how", ["rewind", "clear"])
async def test_what_a_session_left_is_a_branch(log, store, how):
    await turn(store, "Hello.")
    left = (await turn(store, "Again."))[-1].id
    session = await Session.open(log, "c", setup(window=100_000))
    await (session.rewind(2) if how == "rewind" else session.clear())
    assert await said(store) == (["Hello."] if how == "rewind" else [])
    [record] = await store.list_conversations()
    assert record.branches == [left]
    back = await store.branch("c", from_entry=left, expected_revision=record.revision)
    assert len(back.messages) == 4
    assert shown(await session.request()) == texts(back.messages)
    assert (await store.list_conversations())[0].branches == []


# Forgetting, deleting.


def rm(path: str) -> str:
    return f"{path} is gone"


def call_once(messages, _):
    if len(messages) == 1:
        return ModelResponse(parts=[ToolCallPart("rm", {"path": "xylophone"}, "call-1")])
    return ModelResponse(parts=[TextPart("Done.")])


careful = Agent(
    FunctionModel(call_once),
    output_type=[str, DeferredToolRequests],
    tools=[Tool(rm, requires_approval=True)],
)


async def test_a_paused_run_goes_on_from_the_store(log, store):
    result = await careful.run("Tidy up.", conversation=Conversation(conversation_id="c"))
    await store.save(result)
    paused = await store.load("c")
    waiting = paused.deferred_tool_requests
    assert waiting == result.output
    forked = await store.fork("c")
    assert forked.deferred_tool_requests == waiting
    answers = waiting.build_results(approve_all=True)
    result = await careful.run(conversation=paused, deferred_tool_results=answers)
    await store.save(result)
    after = await store.load("c")
    assert after.deferred_tool_requests is None
    assert texts(after.messages[-2:]) == ["xylophone is gone", "Done."]
    assert (await store.load(forked.conversation_id)).deferred_tool_requests == waiting
    session = await Session.open(log, forked.conversation_id, setup(window=100_000))
    await session.say(payload_of(after.messages[-2]))  # somebody else has answered
    assert (await store.load(forked.conversation_id)).deferred_tool_requests is None


async def test_what_waits_is_forgotten_with_its_call(tmp_path):
    path = tmp_path / "c.db"
    async with SqliteStore(path) as opened:
        log = opened.log()
        store = Conversations(log)
        result = await careful.run("Tidy up.", conversation=Conversation(conversation_id="c"))
        await store.save(result, scope="alice")
        again = await store.load("c")
        await store.save(again)  # repeats what waits, without a new message
        await log.forget("c", Span(3, 3))
        left = await store.load("c", scope="alice")
        assert (len(left.messages), left.deferred_tool_requests) == (1, None)
        assert left.usage == again.usage
    assert b"xylophone" not in b"".join(one.read_bytes() for one in tmp_path.glob("c.db*"))


async def test_forgetting_is_a_change(log, store):
    await turn(store, "Hello.")
    await turn(store, "Secret.")
    before = await store.load("c")
    session = await Session.open(log, "c", setup(window=100_000))
    await session.forget(Span(5, 6))
    with pytest.raises(ConversationConflict):
        await store.save(before)
    await turn(store, "Again.")
    assert await said(store) == ["Hello.", "1: Hello.", "Again.", "3: Again."]
    assert "Secret." not in str(await log.read("c"))


async def test_deleting_hides_and_keeps(log, store):
    await turn(store, "Hello.")
    fork = await store.fork("c", new_conversation_id="d")
    before = await store.load("c")
    await store.delete("c")
    assert await store.load("c") is None
    assert [one.conversation_id for one in await store.list_conversations()] == ["d"]
    with pytest.raises(ConversationConflict):
        await store.save(before)
    assert await said(store, "d") == texts(fork.messages)
    assert len(await log.search("Hello", session="c")) == 2
    await turn(store, "Anew.")
    assert await said(store) == ["Anew.", "1: Anew."]
    await log.forget("c")
    assert await store.load("c") is None
    assert await log.search("Anew") == []


async def test_the_name_of_a_deleted_conversation(store):
    await turn(store, "Hello.")
    await turn(store, "Other.", "d")
    await store.delete("d")
    with pytest.raises(ConversationConflict):  # its log is there; nothing is copied over it
        await store.fork("c", new_conversation_id="d")
    assert await store.load("d") is None


async def test_a_message_is_the_same_after_the_log():
    for message in (ModelResponse(parts=[]), *(await careful.run("x")).all_messages()):
        assert message_of(payload_of(message)) == message
