"""co-cli's functions in real runs: as capabilities of an agent, and in one's own loop."""

import copy
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from shown import changed

from refold.view.profiles import CO_CLI

pytest.importorskip("pydantic_ai", reason="the library that runs")

from co_cli_world import (
    Messages,
    echo,
    fresh,  # noqa: F401 - for every test
    legal,
    parts,
)
from pydantic_ai import Agent, UsageLimits
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import (
    ModelResponse,
    PartStartEvent,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.usage import RunUsage

from refold.fold.write.transcript import CONVERSATION
from refold.integrations.co_cli import (
    CommandContext,
    TurnResult,
    run_command,
    run_turn,
    truncate_history_window,
    truncate_tool_returns,
)

# As capabilities of an agent.


class Worker:
    """A model that works for some steps of each turn, with calls at once, and then answers."""

    def __init__(self, *, silent=False):
        self.silent = silent
        self.steps = 0
        self.summaries = 0
        self.requests: list[Messages] = []
        self.model = FunctionModel(self._answer, stream_function=self._stream)

    def _decide(self, messages, info):
        self.requests.append(messages)
        prompts = [part.content for part in parts(messages, UserPromptPart)]
        if prompts[-1] == CONVERSATION:
            assert info.function_tools == []
            self.summaries += 1
            return "SUMMARY", []
        turn = int(prompts[-1].removeprefix("turn "))
        self.steps += 1
        done = sum(len(message.parts) > 0 for message in self._since(messages, f"turn {turn}"))
        if done < 2 * (turn % 4):
            words = "" if self.silent or turn % 3 else "I look. "
            return words, [f"s{self.steps}c{n}" for n in range(1 + turn % 3)]
        return f"answer {turn}", []

    def _since(self, messages, prompt):
        """The messages after the one that holds the prompt."""
        at = [
            nth
            for nth, message in enumerate(messages)
            if any(part.content == prompt for part in parts([message], UserPromptPart))
        ]
        return messages[at[-1] + 1 :]

    def _answer(self, messages, info):
        words, calls = self._decide(messages, info)
        said = [TextPart(words)] if words else []
        return ModelResponse(parts=[*said, *(ToolCallPart("read", {}, one) for one in calls)])

    async def _stream(self, messages, info):
        words, calls = self._decide(messages, info)
        if words:
            yield words
        for nth, call in enumerate(calls, 1):
            yield {nth: DeltaToolCall("read", "{}", tool_call_id=call)}


def watched(worker, profile=None):
    """An agent with both processors, in the order that the seeds give, and a check after them."""
    seen: list[Messages] = []

    def check(messages: Messages) -> Messages:
        assert legal(messages)
        seen.append(list(messages))
        return messages

    trim: Any = truncate_tool_returns
    window: Any = truncate_history_window
    if profile is not None:
        trim, window = partial(trim, profile=profile), partial(window, profile=profile)
    agent = Agent(
        worker.model,
        capabilities=[ProcessHistory(trim), ProcessHistory(window), ProcessHistory(check)],
    )

    @agent.tool_plain
    def read() -> str:
        return "x" * 2001

    return agent, seen


@pytest.mark.req("R002", "R004", "R012", "R022", "R142")
@pytest.mark.parametrize("silent", [False, True])
async def test_both_run_before_every_request_of_an_agent(silent):
    worker = Worker(silent=silent)
    agent, seen = watched(worker)
    message_history: Messages = []
    for turn in range(1, 40):
        result = await agent.run(f"turn {turn}", message_history=message_history)
        assert result.output == f"answer {turn}"
        message_history = result.all_messages()
        assert len(message_history) <= 41
        latest = [part.content for part in parts(seen[-1], UserPromptPart)]
        assert latest[-1] == f"turn {turn}"
    assert len(seen) == worker.steps
    assert worker.summaries >= 3
    assert all(len(messages) <= 40 for messages in seen)
    for messages in seen:
        old = [part.content for part in parts(messages[:-2], ToolReturnPart)]
        assert all(len(content) == 2031 for content in old)
    told = [part.content for part in parts(message_history, UserPromptPart)]
    assert told[0] == "turn 1"
    assert sum("earlier messages]\nSUMMARY" in one for one in told) == 1


@pytest.mark.req("R142")
async def test_a_profile_of_ones_own_goes_with_partial():
    worker = Worker()
    profile = changed(CO_CLI, window={"max_messages": 10}, trim={"max_chars": 50})
    agent, seen = watched(worker, profile)
    message_history: Messages = []
    for turn in range(1, 15):
        message_history = (
            await agent.run(f"turn {turn}", message_history=message_history)
        ).all_messages()
    # A first run of four, the marker, the latest prompt, and five that may begin a step earlier.
    assert 10 < max(map(len, seen)) <= 4 + 1 + 1 + 6
    assert worker.summaries >= 2


@pytest.mark.req("R003", "R004", "R142")
async def test_run_turn_with_both_over_many_turns():
    worker = Worker()
    agent, _ = watched(worker)
    message_history: Messages = []
    for turn in range(1, 20):
        before = copy.deepcopy(message_history)
        result = await run_turn(agent, f"turn {turn}", message_history)
        assert (result.output, result.ended) == (f"answer {turn}", "answered")
        assert message_history == before
        message_history = result.messages
        assert legal(message_history)
    assert worker.summaries >= 1
    assert len(message_history) <= 41


@pytest.mark.req("R052")
@pytest.mark.parametrize("words", ["", "I look. "])
@pytest.mark.parametrize("failing", [False, True])
async def test_in_one_long_turn_the_task_outlives_every_window(words, failing):
    """Each window's marker looks like a prompt, and must not pass for the user's latest."""

    def model(messages, info):
        if not info.function_tools:
            if failing:
                raise RuntimeError("The model is down.")
            return ModelResponse(parts=[TextPart("SUMMARY")])
        steps.append(messages)
        said = [TextPart(words)] if words else []
        if len(steps) == 120:
            return ModelResponse(parts=[TextPart("Done.")])
        return ModelResponse(parts=[*said, ToolCallPart("read", {}, f"c{len(steps)}")])

    steps: list[Messages] = []
    agent, seen = watched(SimpleNamespace(model=FunctionModel(model)))
    result = await agent.run("The task.", usage_limits=UsageLimits(request_limit=None))
    assert result.output == "Done."
    for messages in seen:
        prompts = [part.content for part in parts(messages, UserPromptPart)]
        assert prompts[0] == "The task."
        assert len(prompts) <= 2
    assert len(parts(result.all_messages(), UserPromptPart)) == 2


# One's own loop.


@pytest.mark.req("R002", "R003", "R004", "R005")
async def test_a_loop_owns_its_history():
    agent = Agent(FunctionModel(stream_function=echo))
    message_history: Messages = []
    shown: list[str] = []
    for line in ("one", "/history", "two", "/nothing", "/clear", "three"):
        if line.startswith("/"):
            context = CommandContext(message_history, agent, shown.append)
            rebound = await run_command(line, context)
            message_history = message_history if rebound is None else rebound
        else:
            message_history = (await run_turn(agent, line, message_history)).messages
    assert [part.content for part in parts(message_history, UserPromptPart)] == ["three"]
    assert shown[0].startswith("1 turns, 2 messages")


@pytest.mark.req("R003")
async def test_run_turn_streams_events_and_passes_options_on():
    heard: list[Any] = []

    async def hear(event):
        heard.append(event)

    agent = Agent(FunctionModel(stream_function=echo), deps_type=str)
    usage = RunUsage()
    result = await run_turn(agent, "hi", [], watch=hear, deps="d", usage=usage)
    assert isinstance(result, TurnResult)
    assert usage.requests == 1
    assert any(isinstance(event, PartStartEvent) for event in heard)
    kinds = [type(event).__name__ for event in heard]
    assert kinds[-1] == "AgentRunResultEvent"
    again = await run_turn(agent, "hi", result.messages, watch=heard.append)
    assert len(heard) == 2 * len(kinds)
    assert again.messages[:2] == result.messages
