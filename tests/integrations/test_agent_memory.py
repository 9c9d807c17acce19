"""The capability: an agent's conversations are kept, go on in any process, and are managed."""

# ruff: noqa: F811, F401 - fixtures are imported
# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportOptionalSubscript=false, reportIndexIssue=false, reportCallIssue=false
# pyright: reportArgumentType=false, reportTypedDictNotRequiredAccess=false
# Tests know which of many kinds of parts they look at.

import asyncio

import pytest
from agent_memories import memory, path
from agents import (
    Scripted,
    agent_with,
    check_rebuilt,
    echo,
    entries,
    folds,
    last,
    logged,
    looks_up,
    said,
    small,
    with_look_up,
)
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    TextPart,
    UserPromptPart,
)
from pydantic_ai.models.test import TestModel

from refold import Refold
from refold.errors import (
    HistoryDiffers,
    InvalidSetting,
    SessionNotFound,
)
from refold.log import Opened
from refold.models import ModelSettings
from refold.session import Session
from refold.view.profiles import BALANCED

# A conversation goes on by its id.


@pytest.mark.req("R098", "R004")
async def test_a_run_goes_on_where_the_conversation_ended(memory):
    model = Scripted(echo)
    agent = agent_with(memory, model)
    await agent.run("one", conversation_id="c")
    result = await agent.run("two", conversation_id="c")
    assert model.texts == [["one"], ["one", "answer 1", "two"]]
    assert said(result.all_messages()) == ["one", "answer 1", "two", "answer 2"]
    assert said(result.new_messages()) == ["two", "answer 2"]
    assert await check_rebuilt(memory, "c") == 2


@pytest.mark.req("R097", "R098", "R101")
async def test_a_conversation_goes_on_in_another_process(path):
    model = Scripted(looks_up)
    async with Refold(path) as memory:
        await with_look_up(agent_with(memory, model)).run("look up x", conversation_id="c")
    async with Refold(path) as memory:
        result = await with_look_up(agent_with(memory, model)).run("more", conversation_id="c")
        assert said(result.all_messages())[0] == "look up x"
        assert len(result.new_messages()) == 2
        assert await logged(memory, "c") == said(result.all_messages())
        assert await check_rebuilt(memory, "c") == 3


async def test_runs_without_an_id_are_conversations_of_their_own(memory):
    model = Scripted(echo)
    agent = agent_with(memory, model)
    first, second = await agent.run("one"), await agent.run("two")
    assert model.texts == [["one"], ["two"]]
    names = {one.session for one in (await memory.log.sessions()).sessions}
    assert names == {first.conversation_id, second.conversation_id}


async def test_the_system_prompt_is_said_once_and_instructions_every_time(memory):
    model = Scripted(echo)
    agent = agent_with(memory, model, system_prompt="You are kind.", instructions="Be brief.")
    for prompt in ("one", "two"):
        await agent.run(prompt, conversation_id="c")
    assert model.texts[1] == ["You are kind.", "one", "answer 1", "two"]
    assert [info.instructions for info in model.infos] == ["Be brief.", "Be brief."]


@pytest.mark.parametrize("how", ["run", "stream", "events", "iter"])
async def test_however_it_is_run(memory, how):
    model = Scripted(looks_up)
    agent = with_look_up(agent_with(memory, model))
    for prompt in ("look up x", "look up y"):
        await ran(agent, how, prompt)
    assert model.texts[-1] == [
        *("look up x", "look_up()", "x: " + "word " * 10, "answer 2"),
        *("look up y", "look_up()", "y: " + "word " * 10),
    ]
    assert await logged(memory, "c") == [*model.texts[-1], "answer 4"]
    assert await check_rebuilt(memory, "c") == 4


async def ran(agent, how, prompt):
    match how:
        case "run":
            await agent.run(prompt, conversation_id="c")
        case "stream":
            async with agent.run_stream(prompt, conversation_id="c") as stream:
                await stream.get_output()
        case "events":
            async with agent.run_stream_events(prompt, conversation_id="c") as stream:
                [event async for event in stream]
        case "iter":
            async with agent.iter(prompt, conversation_id="c") as run:
                [node async for node in run]


def test_sync_runs_on_loops_of_their_own(path):
    model = Scripted(looks_up)
    memory = Refold(path)
    agent = with_look_up(agent_with(memory, model))
    for prompt in ("look up x", "two", "three"):
        asyncio.run(agent.run(prompt, conversation_id="c"))
    assert last(model.sent[-1]) == "three"
    assert len(model.sent[-1]) == 7
    asyncio.run(memory.close())


# What is given as history.


async def test_a_history_begins_a_conversation(memory):
    model = Scripted(echo)
    history = [ModelRequest([UserPromptPart("old")]), ModelResponse([TextPart("older")])]
    result = await agent_with(memory, model).run("new", message_history=history)
    assert model.texts == [["old", "older", "new"]]
    assert await logged(memory, result.conversation_id) == ["old", "older", "new", "answer 1"]


async def test_a_history_that_continues_the_conversation_is_taken(memory):
    model = Scripted(looks_up)
    agent = with_look_up(agent_with(memory, model))
    result = await agent.run("look up x", conversation_id="c")
    for turn in range(3):
        result = await agent.run(f"turn {turn}", message_history=result.all_messages())
        assert result.conversation_id == "c"
    assert await logged(memory, "c") == said(result.all_messages())


async def test_what_a_history_adds_by_hand_is_logged(memory):
    model = Scripted(echo)
    agent = agent_with(memory, model)
    result = await agent.run("one", conversation_id="c")
    more = [ModelRequest([UserPromptPart("by hand")]), ModelResponse([TextPart("so it is")])]
    await agent.run("two", message_history=[*result.all_messages(), *more])
    assert await logged(memory, "c") == [
        *("one", "answer 1", "by hand", "so it is", "two", "answer 2")
    ]


@pytest.mark.parametrize("wrong", ["older", "edited", "foreign"])
async def test_a_history_that_does_not_continue_it_is_refused(memory, wrong):
    model = Scripted(echo)
    agent = agent_with(memory, model)
    first = (await agent.run("one", conversation_id="c")).all_messages()
    whole = (await agent.run("two", conversation_id="c")).all_messages()
    history = {
        "older": first,
        "edited": [ModelRequest([UserPromptPart("another one")]), *whole[1:]],
        "foreign": [ModelRequest([UserPromptPart("?")]), ModelResponse([TextPart("!")])],
    }[wrong]
    before = await memory.log.head("c")
    with pytest.raises(HistoryDiffers, match="'c'") as raised:
        await agent.run("three", message_history=history, conversation_id="c")
    assert "message_history" in raised.value.fix
    assert await memory.log.head("c") == before
    assert len(model.sent) == 2


async def test_the_same_words_said_before_do_not_make_a_history_newer(memory):
    agent = agent_with(memory, Scripted(lambda *_: "yes"))
    first = await agent.run("really?", conversation_id="c")
    await agent.run("really?", conversation_id="c")
    with pytest.raises(HistoryDiffers):
        await agent.run("and now?", message_history=first.all_messages())


async def test_a_history_from_a_folded_view_continues_it_too(memory):
    memory = Refold(models={"scripted": ModelSettings(window=3_000)}, profile=small())
    model = Scripted(looks_up, window=3_000)
    agent = with_look_up(agent_with(memory, model), size=300)
    result = await agent.run("look up x", conversation_id="c")
    for turn in range(8):
        result = await agent.run(f"look up {turn}", message_history=result.all_messages())
    assert len(await folds(memory)) > 0
    assert model.texts[-1][0] == "look up x"
    assert "earlier messages are folded here" in model.texts[-1][1]
    assert [one.session for one in (await memory.log.sessions()).sessions] == ["c"]


# Steering, and what a session is opened with.


async def test_a_conversation_can_be_steered(memory):
    model = Scripted(looks_up)
    agent = with_look_up(agent_with(memory, model), size=400)
    for nth in range(4):
        await agent.run(f"look up {nth}", conversation_id="c")
    session = await memory.session("c", model.model)
    assert isinstance(session, Session)
    done = await session.compact()
    assert done.messages_removed > 0
    await agent.run("go on", conversation_id="c")
    assert len(model.sent[-1]) < len(model.sent[-2])
    await session.take_back()
    await agent.run("and now", conversation_id="c")
    assert "look up 1" in model.texts[-1]
    asked = [texts for texts in model.texts if "about to be compacted" in texts[-1]]
    assert len(asked) == 1  # for the summary: no request of the conversation
    assert await check_rebuilt(memory, "c") == len(model.sent) - 1


def test_what_is_wrong_of_a_model_is_named():
    with pytest.raises(InvalidSetting, match="windw") as raised:
        Refold(models={"x": {"windw": 3}})
    assert "window" in raised.value.fix


async def test_only_a_conversation_that_is_there_can_be_steered(memory):
    with pytest.raises(SessionNotFound):
        await memory.session("typo", TestModel())


async def test_the_profile_is_kept_with_the_session():
    memory = Refold(profile="co-cli")
    await agent_with(memory, Scripted(echo)).run("hello", conversation_id="c")
    [(_, opened)] = await entries(memory, "c", Opened.KIND)
    assert (opened.format, opened.profile) == ("pydantic-ai", "co-cli")


@pytest.mark.req("R008", "R141")
async def test_a_long_conversation_folds_and_the_agent_goes_on():
    memory = Refold(profile=small())
    model = Scripted(looks_up, window=4_000)
    agent = with_look_up(agent_with(memory, model), size=150)
    for nth in range(30):
        await agent.run(f"look up {nth}", conversation_id="c")
    assert await folds(memory)
    assert await logged(memory, "c", "/") == [
        word
        for nth in range(30)
        for word in (
            *(f"look up {nth}", "look_up()"),
            *(f"{nth}: " + "word " * 150, f"answer {2 * nth + 2}"),
        )
    ]
    assert await check_rebuilt(memory, "c") == len(model.sent)
    assert BALANCED.trigger.at_least > 0
