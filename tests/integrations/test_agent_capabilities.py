"""The capability: what requests use and cost, and what others do beside it."""

# ruff: noqa: F811, F401 - fixtures are imported
# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportOptionalSubscript=false, reportIndexIssue=false, reportCallIssue=false
# pyright: reportArgumentType=false, reportTypedDictNotRequiredAccess=false
# Tests know which of many kinds of parts they look at.

import dataclasses
from typing import Any

import pytest
from agent_memories import memory
from agents import Scripted, agent_with, echo, entries, logged, looks_up, used, with_look_up
from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ModelRetry, UsageLimitExceeded
from pydantic_ai.messages import (
    ModelResponse,
    TextPart,
    ThinkingPart,
)
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import UsageLimits

from refold import Refold
from refold.errors import (
    ViewTooLarge,
)
from refold.log import Message
from refold.models import ModelSettings

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


async def test_a_prompt_that_can_never_fit_says_so_and_is_kept():
    memory = Refold(models={"scripted": ModelSettings(window=500)})
    model = Scripted(echo, window=None)
    agent = agent_with(memory, model)
    with pytest.raises(ViewTooLarge):
        await agent.run("word " * 2_000, conversation_id="c")
    assert len(await logged(memory, "c")) == 1
    assert model.sent == []
