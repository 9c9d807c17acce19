"""Pydantic AI's conversations in Refold's stores: kept, resumed, contested, branched, forked."""

# ruff: noqa: F811, F401 - fixtures are imported

# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportOptionalSubscript=false, reportIndexIssue=false, reportCallIssue=false
# pyright: reportArgumentType=false, reportTypedDictNotRequiredAccess=false
# Tests know which of many kinds of parts they look at.

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from talks import setup

from refold.log import Author, Note, Requested
from refold.session import Session
from refold.stores import SqliteStore

pytest.importorskip("pydantic_ai", reason="the library whose store this is")

from conversing import Counting, agent, log, said, store, turn
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict

from refold.integrations.pydantic_ai.conversations import Conversations

# Keeping.


async def test_an_agent_goes_on_where_it_was(store):
    first = await turn(store, "Hello.")
    await turn(store, "Again.")
    assert await said(store) == ["Hello.", "1: Hello.", "Again.", "3: Again."]
    entries = await store.load_entries("c")
    assert [entry.id for entry in entries[:2]] == [entry.id for entry in first]
    assert [entry.parent_id for entry in entries] == [None, *(one.id for one in entries[:-1])]
    assert (await store.load("c")).usage.requests == 2


OTHER = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from conversing import turn
from refold.integrations.pydantic_ai.conversations import Conversations

async def main():
    async with Conversations(Path(sys.argv[2])) as store:
        await turn(store, "From another process.")

asyncio.run(main())
"""


async def test_another_process_goes_on(tmp_path):
    path = tmp_path / "c.db"
    async with Conversations(path) as store:
        await turn(store, "Hello.")
        run_other(OTHER, path)
        expected = ["Hello.", "1: Hello.", "From another process.", "3: From another process."]
        assert await said(store) == expected


def run_other(code, *arguments):
    command = [sys.executable, "-c", code, Path(__file__).parent, *arguments]
    return subprocess.run(command, check=True, timeout=300, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("given", ["address", "path", "store", "log"])
async def test_a_store_is_given_in_any_way(given, tmp_path):
    path = tmp_path / "c.db"
    async with SqliteStore(path) as opened:
        ways = {"address": f"sqlite:///{path}", "path": path, "store": opened, "log": opened.log()}
        store = Conversations(ways[given])
        await turn(store, "Hello.")
        assert await said(store) == ["Hello.", "1: Hello."]
        await store.close()
        assert (await opened.log().info("c")).messages == 2


async def test_tenants_do_not_see_each_other(tmp_path):
    async with SqliteStore(tmp_path / "c.db") as opened:
        one, two = (Conversations(opened, tenant=tenant) for tenant in ("one", "two"))
        await turn(one, "Hello.")
        assert await two.load("c") is None
        assert await two.list_conversations() == []


async def test_a_save_reads_little_however_long_the_conversation(log):
    store = Conversations(log)
    messages = [message for _ in range(200) for message in (await agent.run("x")).all_messages()]
    await store.save(Conversation(conversation_id="c", messages=messages))
    conversation = await store.load("c", limit=3)
    assert len(conversation.messages) == 3
    counted = Counting(log)
    few = Conversations(counted)
    await few.load("c", limit=3)
    result = await agent.run("More.", conversation=conversation)
    await few.save(result)
    assert counted.read_entries < 60
    assert len((await store.load("c")).messages) == 402


async def test_an_entry_is_found_by_its_id_alone(store):
    await turn(store, "Elsewhere.", "other")
    [asked, _] = await turn(store, "Hello.")
    assert (await store.read_entry(str(asked.id))).message == asked.message
    with pytest.raises(LookupError):
        await store.read_entry("0198c0de-0000-7000-8000-000000000000")


# Contested.


async def test_of_two_that_save_over_one_revision_one_is_told(store):
    await turn(store, "Hello.")
    one, two = await store.load("c"), await store.load("c")
    results = [await agent.run(text, conversation=it) for text, it in (("A", one), ("B", two))]
    outcome = await asyncio.gather(*map(store.save, results), return_exceptions=True)
    lost = [one for one in outcome if isinstance(one, BaseException)]
    assert [type(one) for one in lost] == [ConversationConflict]
    assert len(await said(store)) == 4


RACING = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from conversing import agent
from pydantic_ai.conversation_store import ConversationConflict
from refold.integrations.pydantic_ai.conversations import Conversations

async def main():
    async with Conversations(Path(sys.argv[2])) as store:
        conversation = await store.load("c")
        result = await agent.run("I was first.", conversation=conversation)
        print("ready", flush=True)
        sys.stdin.readline()
        try:
            await store.save(result)
        except ConversationConflict:
            print("conflict")
        else:
            print("saved")

asyncio.run(main())
"""


async def test_of_processes_that_save_at_once_one_wins(tmp_path):
    path = tmp_path / "c.db"
    async with Conversations(path) as store:
        await turn(store, "Hello.")
        assert sorted(race(path, 3)) == ["conflict", "conflict", "saved"]
        assert len(await said(store)) == 4


def race(path, many):
    command = [sys.executable, "-c", RACING, str(Path(__file__).parent), str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    racers = [subprocess.Popen(command, **pipes) for _ in range(many)]
    assert [racer.stdout.readline() for racer in racers] == ["ready\n"] * many
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    return [racer.communicate(timeout=300)[0].strip() for racer in racers]


async def test_what_changes_no_message_is_no_conflict(log, store):
    await turn(store, "Hello.")
    conversation = await store.load("c")
    session = await Session.open(log, "c", setup(window=100_000))
    await session.request()
    await session.pin()
    result = await agent.run("Again.", conversation=conversation)
    assert len(await store.save(result)) == 2
    kinds = [entry.kind for entry in await log.read("c")]
    assert kinds.count(Requested.KIND) == 1
    assert len(await said(store)) == 4


async def test_an_append_in_the_middle_of_a_save_is_taken_in_its_stride(log):
    await turn(Conversations(log), "Hello.")
    between = Between(log)
    await turn(Conversations(between), "Again.")
    assert between.came == 1
    assert len(await said(Conversations(log))) == 4


class Between(Counting):
    """A log to which somebody appends a note just before the first append."""

    came = 0

    async def append(self, session, drafts, *, expected):
        if not self.came:
            self.came = 1
            await self._log.append(session, [Author().draft(Note("Busy."))], expected=None)
        return await self._log.append(session, drafts, expected=expected)


async def test_a_fork_to_a_name_that_somebody_takes_meanwhile(store):
    await turn(store, "Hello.")
    forks = (store.fork("c", new_conversation_id="d") for _ in range(2))
    outcome = await asyncio.gather(*forks, return_exceptions=True)
    assert sorted(type(one).__name__ for one in outcome) == ["Conversation", "ConversationConflict"]
    assert await said(store, "d") == ["Hello.", "1: Hello."]


class Forestalled(Counting):
    """A log in which somebody else has made each fork a moment before, and saved it."""

    async def fork(self, session, new, *, at):
        await Conversations(self._log).fork(session, new_conversation_id=new)
        return await self._log.fork(session, new, at=at)


async def test_a_fork_that_somebody_else_has_just_made(log, store):
    await turn(store, "Hello.")
    with pytest.raises(ConversationConflict):
        await Conversations(Forestalled(log)).fork("c", new_conversation_id="d")
