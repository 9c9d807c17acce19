"""The capability: runs that are interrupted, that fail and are done over, or that meet another."""

# ruff: noqa: F811, F401 - fixtures are imported
# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportOptionalSubscript=false, reportIndexIssue=false, reportCallIssue=false
# pyright: reportArgumentType=false, reportTypedDictNotRequiredAccess=false
# Tests know which of many kinds of parts they look at.

import asyncio
from typing import Any

import pytest
from agent_memories import memory, path
from agents import (
    Scripted,
    agent_with,
    call,
    check_rebuilt,
    echo,
    logged,
    looks_up,
    with_look_up,
)
from pydantic_ai import DeferredToolRequests, DeferredToolResults
from pydantic_ai.messages import (
    ModelResponse,
    TextPart,
    ToolReturnPart,
)

from refold import Refold
from refold.errors import (
    HistoryDiffers,
    SessionBusy,
)

# After a crash, or an interrupt.


async def died(agent, prompt):
    """A run that is cancelled while its tool is at work."""
    task = asyncio.create_task(agent.run(prompt, conversation_id="c"))
    await agent.at_work.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def interrupted_agent(memory, model):
    agent: Any = agent_with(memory, model)
    agent.at_work, agent.works = asyncio.Event(), asyncio.Event()

    @agent.tool_plain
    async def look_up(name: str) -> str:
        agent.at_work.set()
        await agent.works.wait()
        return f"{name}: found"

    return agent


@pytest.mark.req("R048")
async def test_calls_that_were_interrupted_are_closed_when_the_user_goes_on(memory):
    model = Scripted(looks_up)
    agent = interrupted_agent(memory, model)
    await died(agent, "look up x")
    agent.works.set()
    await agent.run("never mind", conversation_id="c")
    *_, returned, prompt = model.sent[-1][-1].parts
    assert isinstance(returned, ToolReturnPart)
    assert (returned.content, prompt.content) == ("Interrupted by user.", "never mind")
    assert await logged(memory, "c") == ["look up x", "look_up()", "never mind", "answer 2"]


async def test_a_run_without_a_prompt_makes_the_calls_that_are_open(memory):
    model = Scripted(looks_up)
    agent = interrupted_agent(memory, model)
    await died(agent, "look up x")
    agent.works.set()
    result = await agent.run(conversation_id="c")
    assert model.texts[-1] == ["look up x", "look_up()", "x: found"]
    assert result.output == "answer 2"
    assert await logged(memory, "c") == [*model.texts[-1], "answer 2"]


async def test_a_prompt_that_was_never_answered_is_sent_again_once(memory):
    model = Scripted(lambda m, _: RuntimeError("down") if len(m.sent) == 1 else "up")
    agent = agent_with(memory, model)
    with pytest.raises(RuntimeError, match="down"):
        await agent.run("hello", conversation_id="c")
    await agent.run(conversation_id="c")
    assert model.texts == [["hello"], ["hello"]]
    assert await logged(memory, "c") == ["hello", "up"]


async def test_what_was_streamed_before_an_interrupt_is_kept(memory):
    model = Scripted(lambda *_: ModelResponse([TextPart("one "), TextPart("two ")]))
    agent = agent_with(memory, model)
    async with agent.run_stream("go", conversation_id="c") as stream:
        async for _ in stream.stream_text(debounce_by=None):
            break
    assert (await logged(memory, "c"))[0] == "go"
    await agent.run("go on", conversation_id="c")
    assert model.texts[-1][0] == "go"
    assert model.texts[-1][-1] == "go on"


async def test_deferred_calls_are_answered_by_the_id_alone(memory):
    model = Scripted(looks_up)
    agent = agent_with(memory, model, output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=True)
    def look_up(name: str) -> str:
        return f"{name}: approved"

    first = await agent.run("look up x", conversation_id="c")
    assert isinstance(first.output, DeferredToolRequests)
    approved = DeferredToolResults(approvals={"c1": True})
    result = await agent.run(deferred_tool_results=approved, conversation_id="c")
    assert result.output == "answer 2"
    assert await logged(memory, "c") == ["look up x", "look_up()", "x: approved", "answer 2"]


# Several runs at once.


@pytest.mark.parametrize("kept", ["memory", "file"])
async def test_runs_of_one_conversation_take_turns(kept, path):
    model = Scripted(looks_up)
    async with Refold(path if kept == "file" else "memory:") as memory:
        agent = with_look_up(agent_with(memory, model))
        runs = (agent.run(f"look up {nth}", conversation_id="c") for nth in range(8))
        await asyncio.gather(*runs)
        words = await logged(memory, "c")
        for nth in range(8):
            asked, called, returned, answered = words[4 * nth : 4 * nth + 4]
            assert (asked, called) == (f"look up {nth}", "look_up()")
            assert returned.startswith(f"{nth}: ")
            assert answered.startswith("answer")


async def test_two_processes_take_turns_too(path):
    model = Scripted(looks_up)
    async with Refold(path) as one, Refold(path) as two:
        agents = [with_look_up(agent_with(each, model)) for each in (one, two)]
        runs = (agents[nth % 2].run(f"look up {nth}", conversation_id="c") for nth in range(8))
        await asyncio.gather(*runs)
        words = await logged(one, "c")
        assert [word[:7] for word in words[::4]] == ["look up"] * 8
        assert await check_rebuilt(one, "c") == 16


async def test_who_waits_too_long_is_told(path):
    model = Scripted(looks_up)
    async with Refold(path, wait=0.05) as memory:
        agent = interrupted_agent(memory, model)
        task = asyncio.create_task(agent.run("look up x", conversation_id="c"))
        await agent.at_work.wait()
        with pytest.raises(SessionBusy, match="'c'"):
            await agent.run("me too", conversation_id="c")
        agent.works.set()
        await task
        await agent.run("me too", conversation_id="c")


async def test_other_conversations_do_not_wait(memory):
    model = Scripted(looks_up)
    agent = interrupted_agent(memory, model)
    task = asyncio.create_task(agent.run("look up x", conversation_id="c"))
    await agent.at_work.wait()
    await agent.run("me too", conversation_id="d")
    agent.works.set()
    await task


async def test_what_was_done_before_a_cancellation_is_kept(memory):
    model = Scripted(
        lambda m, _: [call("quick", "c1"), call("slow", "c2")] if len(m.sent) == 1 else "ok"
    )
    agent = agent_with(memory, model)
    at_work = asyncio.Event()

    @agent.tool_plain
    async def quick() -> str:
        return "quickly done"

    @agent.tool_plain
    async def slow() -> str:
        at_work.set()
        await asyncio.sleep(3600)
        return "never"

    task = asyncio.create_task(agent.run("both", conversation_id="c"))
    await at_work.wait()
    while not memory._runs["c", next(iter(memory._runs))[1]]._returned:  # noqa: ASYNC110
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await agent.run("go on", conversation_id="c")
    assert model.texts[-1] == [
        *("both", "quick()", "slow()", "quickly done", "Interrupted by user.", "go on")
    ]


async def test_a_run_that_failed_can_be_done_over_with_the_same_history(memory):
    model = Scripted(lambda m, _: RuntimeError("down") if len(m.sent) == 2 else "up")
    agent = agent_with(memory, model)
    history = (await agent.run("one", conversation_id="c")).all_messages()
    with pytest.raises(RuntimeError):
        await agent.run("two", message_history=history)
    result = await agent.run("two", message_history=history)
    assert result.conversation_id == "c"
    assert model.texts[-1] == ["one", "up", "two"]
    assert await logged(memory, "c") == ["one", "up", "two", "two", "up"]


async def test_it_can_be_done_over_however_far_it_got(memory):
    def script(scripted, messages):
        return RuntimeError("down") if len(scripted.sent) == 3 else looks_up(scripted, messages)

    model = Scripted(script)
    agent = with_look_up(agent_with(memory, model))
    history = (await agent.run("one", conversation_id="c")).all_messages()
    with pytest.raises(RuntimeError):
        await agent.run("look up x", message_history=history)
    await agent.run("look up x", message_history=history)
    assert model.texts[-1][:4] == ["one", "answer 1", "look up x", "look_up()"]
    assert len(model.texts[-1]) == 5
    with pytest.raises(HistoryDiffers):
        await agent.run("and now?", message_history=history)


async def test_run_ids_may_repeat(memory):
    model = Scripted(echo)
    agent = agent_with(memory, model)
    for prompt in ("one", "two"):
        await agent.run(prompt, conversation_id="c", run_id="r")
    await asyncio.gather(*(agent.run("x", conversation_id=name, run_id="r") for name in "de"))
    assert await logged(memory, "c") == ["one", "answer 1", "two", "answer 2"]
