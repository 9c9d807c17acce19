"""The capability: an agent's conversations are kept, go on in any process, and are governed."""

# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportOptionalSubscript=false, reportIndexIssue=false, reportCallIssue=false
# pyright: reportArgumentType=false, reportTypedDictNotRequiredAccess=false
# Tests know which of many kinds of parts they look at.

import asyncio
import dataclasses
from typing import Any

import pytest
from agents import Scripted, agent_with, call, check_rebuilt, entries, last, logged, said, used
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ModelRetry, UsageLimitExceeded
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import UsageLimits

from refold import Refold
from refold.errors import (
    HistoryDiffers,
    InvalidSetting,
    SessionBusy,
    SessionNotFound,
    ViewTooLarge,
)
from refold.log import Message, Opened
from refold.models import ModelSettings
from refold.session import Session
from refold.view.profiles import BALANCED, PROFILES


@pytest.fixture
async def memory():
    async with Refold() as made:
        yield made


@pytest.fixture
def path(tmp_path):
    return f"sqlite:///{tmp_path / 'refold.db'}"


def echo(scripted, _):
    """Says which request it was."""
    return f"answer {len(scripted.sent)}"


def looks_up(scripted, messages):
    """Calls a tool when it is asked to, then answers."""
    if last(messages).startswith("look up"):
        return [call("look_up", f"c{len(scripted.sent)}", name=last(messages)[8:])]
    return f"answer {len(scripted.sent)}"


def with_look_up(agent: Agent, size=10) -> Agent:
    @agent.tool_plain
    def look_up(name: str) -> str:
        return f"{name}: " + "word " * size

    return agent


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
    assert any("refold" not in text and "Summary" in text for text in model.texts[-1]) or (
        await folds(memory)
    )


def small(name="balanced", **values) -> Any:
    """A profile that folds in windows of a few thousand tokens."""
    base = PROFILES[name]
    trigger = base.trigger.model_copy(update={"at_least": 0})
    return base.model_copy(update={"trigger": trigger, "reserve": 200, **values})


async def folds(memory, session="c"):
    return await entries(memory, session, "fold.complete")


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


# What requests use and cost, and how they are cached.


async def test_usage_and_cost_of_each_request_are_kept():
    prices = ModelSettings(input_price=3, output_price=15)
    memory = Refold(models={"scripted": prices})
    agent = agent_with(memory, Scripted(echo))
    result = await agent.run("one two three", conversation_id="c")
    [kept] = await used(memory, "c")
    told = result.usage
    assert (kept.usage["input"], kept.usage["output"]) == (told.input_tokens, told.output_tokens)
    assert kept.cost == pytest.approx((told.input_tokens * 3 + told.output_tokens * 15) / 1e6)


class Settings(AbstractCapability[Any]):
    """Sees the settings of each request."""

    def __init__(self):
        self.seen = []

    async def prepare_model_request(self, ctx, request_context):  # noqa: ARG002 - a hook
        self.seen.append(dict(request_context.model_settings or {}))
        return request_context


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({}, {"cache": True}),
        ({"temperature": 0.5}, {"temperature": 0.5, "cache": True}),
        ({"cache": False}, {"cache": False}),
        ({"anthropic_cache": "1h"}, {"anthropic_cache": "1h"}),
    ],
)
async def test_caching_is_turned_on_unless_somebody_decided(memory, given, sent):
    watching = Settings()
    agent = Agent(TestModel(), capabilities=[memory, watching], model_settings=given)
    await agent.run("hello")
    assert watching.seen == [sent]


async def test_caching_can_be_left_alone():
    watching = Settings()
    agent = Agent(TestModel(), capabilities=[Refold(cache=False), watching])
    await agent.run("hello")
    assert watching.seen == [{}]


# What others do beside it.


class Rejecting(AbstractCapability[Any]):
    """Rejects the first answer."""

    async def after_model_request(self, ctx, *, request_context, response):  # noqa: ARG002
        if response.parts[0].content == "answer 1":
            raise ModelRetry("Better.")
        return dataclasses.replace(response, parts=[TextPart("edited")])


async def test_answers_are_logged_as_other_capabilities_leave_them(memory):
    model = Scripted(echo)
    agent = Agent(model.model, capabilities=[Rejecting(), memory])
    result = await agent.run("hello", conversation_id="c")
    assert result.output == "edited"
    words = await logged(memory, "c")
    assert (words[0], words[1], words[-1]) == ("hello", "answer 1", "edited")
    assert "Better." in words[2]
    assert len(words) == 4


class Copying(AbstractCapability[Any]):
    """Replaces the whole history by copies of it, as processors that redact do."""

    async def before_model_request(self, ctx, request_context):
        ctx.messages[:] = [dataclasses.replace(one) for one in ctx.messages]
        return request_context


async def test_a_history_that_others_replace_by_copies_is_not_logged_again(memory):
    model = Scripted(looks_up)
    agent = with_look_up(agent_with(memory, model, Copying()))
    for nth in range(3):
        await agent.run(f"look up {nth}", conversation_id="c")
    assert len(await logged(memory, "c")) == 12


class Keeping(AbstractCapability[Any]):
    """Keeps the newest messages only, as processors do that save room."""

    def __init__(self, most):
        self.most = most

    async def before_model_request(self, ctx, request_context):
        ctx.messages[:] = ctx.messages[-self.most :]
        return request_context


@pytest.mark.parametrize("most", [1, 2, 3])
async def test_a_history_that_others_shorten_loses_nothing(memory, most):
    model = Scripted(looks_up)
    agent = with_look_up(agent_with(memory, model, Keeping(most)))
    for nth in range(3):
        await agent.run(f"look up {nth}", conversation_id="c")
    words = await logged(memory, "c")
    assert len(words) == 12
    assert [word[:3] for word in words[2::4]] == ["0: ", "1: ", "2: "]


async def test_structured_output_ends_a_turn_legally(memory):
    agent = Agent(TestModel(), output_type=int, capabilities=[memory])
    for prompt in ("one", "two", "three"):
        await agent.run(prompt, conversation_id="c")
    kinds = [type(value) for _, value in await entries(memory, "c", Message.KIND)]
    assert len(kinds) == 9  # prompt, call, and what closes it


async def test_thoughts_and_images_go_out_as_they_came(memory):
    thought = ThinkingPart("hm", signature="c2ln", provider_name="x")
    model = Scripted(lambda *_: ModelResponse([thought, TextPart("done")]))
    agent = agent_with(memory, model)
    await agent.run("one", conversation_id="c")
    await agent.run("two", conversation_id="c")
    assert model.sent[-1][1].parts[0] == thought


async def test_values_that_are_no_json_do_not_break_a_run(memory):
    model = Scripted(looks_up)
    agent = agent_with(memory, model)

    @agent.tool_plain
    def look_up(name: str) -> Any:
        return {"name": name, "size": float("nan")}

    await agent.run("look up x", conversation_id="c")
    assert len(await logged(memory, "c")) == 4


async def test_half_a_character_does_not_break_a_run(memory):
    model = Scripted(echo)
    agent = agent_with(memory, model)
    for _ in range(2):
        await agent.run("half \ud800 of it", conversation_id="c")
    assert model.texts[-1][0] == "half \ufffd of it"


class Answering(AbstractCapability[Any]):
    """Answers in the model's place: from a cache, say."""

    async def wrap_model_request(self, ctx, *, request_context, handler):  # noqa: ARG002
        return ModelResponse([TextPart("from the cache")])


async def test_answers_that_no_model_gave_are_logged_after_what_they_answer(memory):
    agent = agent_with(memory, Scripted(echo), Answering())
    for prompt in ("one", "two"):
        await agent.run(prompt, conversation_id="c")
    assert await logged(memory, "c") == ["one", "from the cache", "two", "from the cache"]
    assert await used(memory, "c") == []


async def test_a_run_that_is_refused_before_its_first_request_keeps_its_prompt(memory):
    agent = agent_with(memory, Scripted(echo))
    with pytest.raises(UsageLimitExceeded):
        await agent.run("one", conversation_id="c", usage_limits=UsageLimits(request_limit=0))
    assert await logged(memory, "c") == ["one"]


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


async def test_a_prompt_that_can_never_fit_says_so_and_is_kept():
    memory = Refold(models={"scripted": ModelSettings(window=500)})
    model = Scripted(echo, window=None)
    agent = agent_with(memory, model)
    with pytest.raises(ViewTooLarge):
        await agent.run("word " * 2_000, conversation_id="c")
    assert len(await logged(memory, "c")) == 1
    assert model.sent == []


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
    assert await check_rebuilt(memory, "c") == len(model.sent)


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
