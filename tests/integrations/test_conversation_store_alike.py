"""Conversations behave as Pydantic AI's own store in memory does, whatever is done to both."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from refold.errors import RefoldError
from refold.stores import MemoryStore, SqliteStore

pytest.importorskip("pydantic_ai", reason="the library whose store this is")

from pydantic_ai.conversation import Conversation, ConversationTypeAdapter
from pydantic_ai.conversation_store import ConversationConflict, InMemoryConversationStore
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.tools import DeferredToolRequests
from pydantic_ai.usage import RunUsage

from refold.integrations.pydantic_ai.conversations import Conversations

AT = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = ["a", "b", "c", "d"]
SCOPES = [None, None, None, None, None, "alice"]
TENANTS = count(1)
NTH = st.integers(0, 7)
"""The nth of whatever there is, modulo how many there are."""


def asked(text):
    return ModelRequest(parts=[UserPromptPart(text, timestamp=AT)], timestamp=AT)


def answered(text):
    return ModelResponse(parts=[TextPart(text)], timestamp=AT)


MESSAGES = [asked("Hello."), answered("Hi."), asked("More?"), answered("Yes.")]
PAUSED = DeferredToolRequests(approvals=[ToolCallPart("rm", {"path": "x"}, "call-1")])

some_messages = st.lists(st.sampled_from(MESSAGES), max_size=3)
scopes = st.sampled_from(SCOPES)
names = st.sampled_from(NAMES)
known_names = st.sampled_from(NAMES[:2])
acts = st.one_of(
    st.tuples(st.just("begin"), known_names, some_messages, scopes),
    st.tuples(st.just("go_on"), NTH, some_messages, scopes, st.booleans()),
    st.tuples(st.just("go_on"), NTH, some_messages, st.none(), st.just(value=False)),
    st.tuples(st.just("rewrite"), NTH, NTH, some_messages, st.sampled_from(["index", "json", ""])),
    st.tuples(st.just("load"), known_names, st.sampled_from([None, None, 0, 1, 2, 5, -1]), scopes),
    st.tuples(st.just("branch"), NTH, st.integers(-1, 4), st.sampled_from([True, True, False])),
    st.tuples(st.just("branch_to"), NTH, NTH),
    st.tuples(st.just("fork"), NTH, st.sampled_from([None, 0, 1, 2, 9]), names, scopes, scopes),
    st.tuples(st.just("fork_from"), NTH, NTH, names),
    st.tuples(st.just("delete"), known_names, st.sampled_from([None, "alice", "nobody", "nobody"])),
)


class One:
    """A store, the copies of conversations that callers hold, and every entry id it told of."""

    def __init__(self, store):
        self.store = store
        self.held: list[Conversation] = []
        self.ids: dict[str | None, int] = {None: 0}

    def told(self, entry_id):
        """An opaque id, as the how-manieth it was."""
        return self.ids.setdefault(entry_id, len(self.ids))

    def keep(self, conversation):
        if conversation is not None:
            self.held.append(conversation)
        return conversation and replace(conversation, revision=None)

    def entries(self, entries):
        return entries and [(self.told(e.id), self.told(e.parent_id), e.message) for e in entries]

    def records(self, records):
        return [
            (
                *(one.conversation_id, one.scope, one.usage, one.deferred_tool_requests),
                *(one.forked_from, self.told(one.forked_at), self.told(one.head_id)),
                [self.told(tip) for tip in one.branches],
            )
            for one in records
        ]

    async def act(self, act: str, nth: Any, *how: Any):
        try:
            if isinstance(nth, int):
                if not self.held:
                    return None
                nth = self.held[nth % len(self.held)]
            done = await getattr(self, act)(nth, *how)
        except (UserError, LookupError) as error:
            event(f"{act}: {type(error).__name__}")
            return type(error)
        event(f"{act}: {'done' if done else 'nothing'}")
        return done

    async def begin(self, name, messages, scope):
        conversation = Conversation(conversation_id=name, messages=list(messages))
        new = await self.store.save(conversation, scope=scope)
        return self.entries(new), self.keep(conversation)

    async def go_on(self, copy, messages, scope, paused):
        copy.messages.extend(messages)
        copy.usage = copy.usage + RunUsage(requests=1, input_tokens=5)
        copy.deferred_tool_requests = PAUSED if paused else None
        return self.entries(await self.store.save(copy, scope=scope)), copy.new_message_index

    async def rewrite(self, copy, at, messages, known):
        copy.messages[at % (len(copy.messages) + 1) :] = messages
        if known == "json":
            data = ConversationTypeAdapter.dump_json(copy)
            copy.__dict__.pop("_stored_messages", None)
            assert ConversationTypeAdapter.validate_json(data) == copy
        elif known == "":
            copy.new_message_index = None
        return self.entries(await self.store.save(copy)), copy.new_message_index

    async def load(self, name, limit, scope):
        return self.keep(await self.store.load(name, limit=limit, scope=scope))

    async def branch(self, copy, at, known):
        revision = copy.revision if known else "another"
        branched = self.store.branch(copy.conversation_id, at=at, expected_revision=revision)
        return self.keep(await branched)

    async def branch_to(self, copy, entry):
        name, entry_id = copy.conversation_id, str(list(self.ids)[entry % len(self.ids)])
        told = self.store.branch(name, from_entry=entry_id, expected_revision=copy.revision)
        return self.keep(await told)

    async def fork(self, copy, at, new, scope, source_scope):
        how = {"at": at, "scope": scope, "source_scope": source_scope}
        forked = self.store.fork(copy.conversation_id, new_conversation_id=new, **how)
        return self.keep(await forked)

    async def fork_from(self, copy, entry, new):
        name, entry_id = copy.conversation_id, str(list(self.ids)[entry % len(self.ids)])
        forked = self.store.fork(name, from_entry=entry_id, new_conversation_id=new)
        return self.keep(await forked)

    async def delete(self, name, scope):
        return await self.store.delete(name, scope=scope)

    async def state(self):
        listed = await self.store.list_conversations()
        first = await self.store.list_conversations(limit=2)
        entries = [self.entries(await self.store.load_entries(name)) for name in NAMES]
        last = self.entries(await self.store.load_entries("a", limit=2))
        return entries, last, self.records(listed), self.records(first)


async def run(doings, *stores):
    theirs, *ours = map(One, stores)
    deleted = set()
    for doing in doings:
        if doing[0].startswith("fork") and doing[-1 if doing[0] == "fork_from" else 3] in deleted:
            continue  # the one difference: see test_the_name_of_a_deleted_conversation
        expected = await theirs.act(*doing)
        if doing[0] == "delete":
            deleted.add(doing[1])
        for one in ours:
            assert await one.act(*doing) == expected, doing
        if doing[0] != "load" and not isinstance(expected, type):
            await compare(theirs, *ours)
    await compare(theirs, *ours)


async def compare(theirs, *ours):
    state = await theirs.state()
    for one in ours:
        assert await one.state() == state


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return tmp_path_factory.mktemp("alike") / "a.db"


@given(doings=st.lists(acts, min_size=5, max_size=18))
def test_the_same_acts_have_the_same_outcome(doings, file):
    doings = [("begin", "a", MESSAGES[:3], None), ("load", "a", None, None), *doings]

    async def main():
        async with SqliteStore(file) as store:
            tenant = f"t{next(TENANTS)}"
            ours = Conversations(MemoryStore()), Conversations(store, tenant=tenant)
            await run(doings, InMemoryConversationStore(), *ours)

    asyncio.run(main())


def test_the_errors_are_theirs():
    assert issubclass(ConversationConflict, UserError)
    assert not issubclass(UserError, RefoldError)
