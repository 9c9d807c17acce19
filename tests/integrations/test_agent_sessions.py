"""The sessions of concurrent runs: opened once, never closed under a run, bounded when idle."""

# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# Tests know which of many kinds of parts they look at.

import asyncio

import pytest
from agents import Scripted as ScriptedModel
from agents import agent_with, call, echo, folds, last, small, used
from many_conversations import ReadingModel, converse, reading_agent
from pydantic_ai import Agent
from pydantic_ai.capabilities import PrepareTools

from refold import Refold
from refold.errors import InvalidInput, SessionNotFound
from refold.log import Opened
from refold.log.codec import Author
from refold.session import Session


async def test_seventy_concurrent_runs_are_all_compacted():
    # More than the pool keeps idle; all of them are inside a run at the same moment.
    names = [f"c{nth}" for nth in range(70)]
    async with Refold(profile=small()) as memory:
        model = ReadingModel(len(names))
        await converse(reading_agent(memory, model), names)
        assert [name for name in names if not await folds(memory, name)] == []
        for name in names:
            await (await memory.session(name, model.model)).compact()


async def test_a_fold_that_lands_in_mid_run_is_no_second_prompt():
    # The recall tools come with it, and Pydantic AI announces them after the tool's result.
    async with Refold(profile=small()) as memory:
        model = ReadingModel(1)
        offered = []

        async def read_page(page: int) -> str:
            await (await memory.session("c", model.model)).compact()
            return f"Page {page}: " + "word " * 50

        def watched(_, tools):
            offered.append({tool.name for tool in tools})
            return tools

        agent = Agent(model.model, tools=[read_page], capabilities=[memory, PrepareTools(watched)])
        quiet = reading_agent(memory, model)
        await converse(quiet, ["c"], turns=2)
        await converse(agent, ["c"], turns=1)
    first, second = offered
    assert first == {"read_page"}
    assert second > first, "the recall tools came in mid-run"
    assert model.prompts == 3


async def test_a_session_that_was_handed_out_still_compacts_after_seventy_others():
    model = ScriptedModel(echo)
    async with Refold(profile=small()) as memory:
        agent = agent_with(memory, model)
        for nth in range(4):
            await agent.run(f"prompt {nth}" + " word" * 50, conversation_id="mine")
        mine = await memory.session("mine", model.model)
        runs = (agent.run("hi", conversation_id=f"c{n}") for n in range(70))
        await asyncio.gather(*runs)
        await mine.compact()
        assert len(await folds(memory, "mine")) == 1
        assert await memory.session("mine", model.model) is mine


async def test_concurrent_calls_of_session_open_it_once(monkeypatch, tmp_path):
    opened = []
    opens = Session.open.__func__

    async def counted(cls, log, name, *args, **options):
        opened.append(name)
        await asyncio.sleep(0)
        return await opens(cls, log, name, *args, **options)

    model, memory = ScriptedModel(echo), Refold(f"sqlite:///{tmp_path}/s.db")
    await agent_with(memory, model).run("hi", conversation_id="c")
    await memory.close()
    monkeypatch.setattr(Session, "open", classmethod(counted))
    first, *others = await asyncio.gather(*(memory.session("c", model.model) for _ in range(3)))
    assert all(other is first for other in others)
    assert opened == ["c"]
    await memory.close()


async def test_two_conversations_with_different_tools_at_once():
    """Each is planned for its own tools, during its runs and between them."""
    model = ScriptedModel(echo)
    async with Refold() as memory:
        plain, tooled = agent_with(memory, model), agent_with(memory, model)

        @tooled.tool_plain
        def look_up(name: str) -> str:
            """Look a name up in a directory that has a long description."""
            return name

        await tooled.run("hi", conversation_id="tooled")
        await plain.run("hi", conversation_id="plain")
        with_tools = memory.setup_for(model.model, "tooled")
        without = memory.setup_for(model.model, "plain")
        assert with_tools.hashes["tools"] != without.hashes["tools"]
        assert with_tools.budget.tools > without.budget.tools
        # The session that a person steers is planned for the same tools.
        assert (await memory.session("tooled", model.model)).setup.budget == with_tools.budget
        both = [
            tooled.run("on", conversation_id="tooled"),
            plain.run("on", conversation_id="plain"),
        ]
        await asyncio.gather(*both)
        assert memory.setup_for(model.model, "tooled").hashes == with_tools.hashes
        assert memory.setup_for(model.model, "plain").hashes == without.hashes


async def test_a_delegate_leaves_its_callers_tools_alone():
    """A delegation has tools of its own; its caller is planned for the caller's."""

    def delegates(_, messages):
        return [call("delegate", "d1")] if last(messages) == "delegate it" else "done"

    model, helper = ScriptedModel(delegates), ScriptedModel(echo)
    async with Refold() as memory:
        caller, delegate = agent_with(memory, model), agent_with(memory, helper)

        @caller.tool_plain
        async def delegate_(question: str = "") -> str:
            return (await delegate.run(question or "why?")).output

        caller_tools = await _tools_after(memory, caller, model, "hi")
        assert await _tools_after(memory, caller, model, "delegate it") == caller_tools


async def _tools_after(memory, agent: Agent, model, prompt: str) -> str:
    await agent.run(prompt, conversation_id="c")
    return memory.setup_for(model.model, "c").hashes["tools"]


async def test_a_session_is_looked_at_and_undone_without_a_model(tmp_path):
    address = f"sqlite:///{tmp_path / 'a.db'}"
    model = ScriptedModel(echo)
    async with Refold(address, profile=small()) as memory:
        agent = agent_with(memory, model)
        for nth in range(4):
            await agent.run(f"prompt {nth}" + " word" * 50, conversation_id="mine")
        await (await memory.session("mine", model.model)).compact()
        before = await memory.usage("mine")
    requests = len(model.sent)
    async with Refold(address, profile=small()) as memory:
        mine = await memory.session("mine")
        assert mine.setup.model == model.model.model_id, "planned for the model that answered last"
        assert len(mine.messages) < 8
        assert len(mine.inputs.outline.folds) == 1
        await mine.take_back()
        assert len(mine.messages) == 8
        assert mine.inputs.outline.folds == ()
        assert await memory.usage("mine") == before
        assert len(model.sent) == requests
        # A run takes it over, with its own model's window.
        await agent_with(memory, model).run("on", conversation_id="mine")
        assert (await memory.session("mine")) is mine
        assert mine.setup.budget.window == 200_000
        assert len(model.sent) == requests + 1
        assert (await memory.usage("mine")).requests == before.requests + 1


async def test_usage_adds_up_requests_and_what_they_cost():
    model = ScriptedModel(echo)
    prices = {"input_price": 3.0, "output_price": 15.0}
    async with Refold(models={"scripted": prices}) as memory:
        with pytest.raises(SessionNotFound):
            await memory.usage("c")
        for prompt in ("one", "two"):
            await agent_with(memory, model).run(prompt, conversation_id="c")
        usage = await memory.usage("c")
        entries = await used(memory, "c")
    assert usage.requests == len(entries) == 2
    assert usage.tokens.input == sum(entry.usage["input"] for entry in entries) > 0
    assert usage.tokens.output == sum(entry.usage["output"] for entry in entries) > 0
    paid = (usage.tokens.input * 3 + usage.tokens.output * 15) / 1e6
    assert usage.cost == pytest.approx(paid)
    assert usage.saved == pytest.approx(usage.whole - usage.cost)


async def test_all_messages_of_a_conversation_are_there_after_compactions():
    model = ScriptedModel(echo)
    said = []
    async with Refold(profile=small()) as memory:
        agent = agent_with(memory, model)
        for nth in range(6):
            result = await agent.run(f"prompt {nth}" + " word" * 50, conversation_id="mine")
            said += result.new_messages()
            await (await memory.session("mine", model.model)).compact()
        assert len((await agent.run("last", conversation_id="mine")).all_messages()) < len(said)
        messages = await memory.messages("mine")
        assert [message.parts for message in messages[:-2]] == [each.parts for each in said]
        session = await memory.session("mine", model.model)
        await session.clear()
        assert await memory.messages("mine") == []
        with pytest.raises(SessionNotFound):
            await memory.messages("none")


async def test_the_messages_of_another_format_are_not_read_as_pydantic_ai_s():
    async with Refold() as memory:
        opened = Author().draft(Opened("openai-chat", "balanced"))
        await memory.log.append("other", [opened], expected=0)
        with pytest.raises(InvalidInput, match="refold export other"):
            await memory.messages("other")
