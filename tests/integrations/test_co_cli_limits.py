"""Turns of co-cli that end by a limit, or by an error."""

import asyncio

import pytest

pytest.importorskip("pydantic_ai", reason="the library that runs")

from co_cli_world import (
    EARLIER,
    Slow,
    answers,
    fresh,  # noqa: F401 - for every test
    legal,
    parts,
)
from pydantic_ai import Agent, CancellationToken, UsageLimits
from pydantic_ai.messages import UserPromptPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.usage import RunUsage

from refold.integrations.co_cli import configured, run_turn
from refold.integrations.co_cli.loop import LIMITED

# Limits.


class Endless:
    """An agent that calls two tools in every step and never answers."""

    def __init__(self):
        self.steps = 0
        self.agent = Agent(FunctionModel(stream_function=self._stream))
        self.agent.tool_plain(self.look)

    def look(self) -> str:
        return "seen"

    async def _stream(self, messages, _info):
        if parts(messages, UserPromptPart)[-1].content == "Enough.":
            yield "Fine."
            return
        self.steps += 1
        yield f"step {self.steps}"
        for nth in (1, 2):
            yield {nth: DeltaToolCall("look", "{}", tool_call_id=f"s{self.steps}c{nth}")}


@pytest.mark.req("R121")
async def test_a_turn_ends_after_its_steps_with_the_work_it_did():
    endless = Endless()
    result = await run_turn(endless.agent, "Go.", EARLIER, max_steps=4)
    assert (result.ended, result.output, endless.steps) == ("limit", None, 4)
    assert len(answers(result.messages)) == 8
    assert set(answers(result.messages).values()) == {"seen"}
    assert legal(result.messages)
    after = await run_turn(endless.agent, "Enough.", result.messages, max_steps=4)
    assert (after.output, after.ended) == ("Fine.", "answered")
    assert legal(after.messages)


@pytest.mark.req("R121")
async def test_fifteen_steps_by_the_name_of_the_seed(tmp_path):
    assert configured("cowagent").max_steps == 15
    assert configured("co-cli").max_steps == 0
    endless = Endless()
    result = await run_turn(endless.agent, "Go.", [], max_steps=configured("cowagent").max_steps)
    assert (result.ended, endless.steps) == ("limit", 15)
    (tmp_path / "config.json").write_text('{"agent_max_steps": 3}')
    configured.cache_clear()
    endless = Endless()
    assert (await run_turn(endless.agent, "Go.", [])).ended == "limit"
    assert endless.steps == 3


@pytest.mark.req("R121")
@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({"max_steps": 5, "usage_limits": UsageLimits(request_limit=2)}, 2),
        ({"max_steps": 2, "usage_limits": UsageLimits(request_limit=5)}, 2),
        ({"max_steps": 2, "usage_limits": UsageLimits(request_limit=None)}, 2),
        ({"max_steps": 2, "usage": RunUsage(requests=7)}, 2),
        ({"max_steps": 60}, 60),
        ({"max_steps": 0, "usage_limits": UsageLimits(request_limit=3)}, 3),
    ],
)
async def test_the_smaller_limit_holds(options, steps):
    endless = Endless()
    result = await run_turn(endless.agent, "Go.", [], **options)
    assert (result.ended, endless.steps) == ("limit", steps)


@pytest.mark.req("R121")
async def test_calls_that_a_limit_left_unanswered_say_so():
    endless = Endless()
    limits = UsageLimits(tool_calls_limit=3)
    result = await run_turn(endless.agent, "Go.", [], usage_limits=limits)
    assert result.ended == "limit"
    assert legal(result.messages)
    assert answers(result.messages)["s2c2"] == LIMITED


async def test_a_turn_that_takes_too_long_keeps_what_was_said():
    for seconds in (0.05, 0.5, 5.0, 50.0):  # a busy machine may not have begun when it is over
        slow = Slow()
        result = await run_turn(slow.agent, "Go.", EARLIER, timeout=seconds)
        if slow.started.is_set():
            break
    assert result.ended == "limit"
    assert answers(result.messages)["b"] == LIMITED
    assert legal(result.messages)


@pytest.mark.req("R048")
async def test_a_cancellation_token_is_an_interrupt():
    slow, token = Slow(), CancellationToken()
    task = asyncio.create_task(run_turn(slow.agent, "Go.", EARLIER, cancellation_token=token))
    await slow.started.wait()
    token.cancel()
    result = await task
    assert result.ended == "interrupted"
    assert answers(result.messages)["b"] == "Interrupted by user."


async def test_what_the_model_raises_is_raised():
    async def broken(_messages, _info):
        raise RuntimeError("The model is down.")
        yield ""

    with pytest.raises(RuntimeError, match="is down"):
        await run_turn(Agent(FunctionModel(stream_function=broken)), "Go.", EARLIER)
