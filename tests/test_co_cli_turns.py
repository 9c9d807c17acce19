"""co-cli's functions in real runs: as capabilities of an agent, and in one's own loop."""

import asyncio
import copy
import os
import signal
import threading
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from shown import changed

from refold.view.profiles import CO_CLI
from refold.wire import PydanticAI

pytest.importorskip("pydantic_ai", reason="the library that runs")

from pydantic_ai import Agent, CancellationToken, UsageLimits
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.usage import RunUsage

from refold.integrations.co_cli import (
    CommandContext,
    TurnResult,
    configured,
    run_command,
    run_turn,
    truncate_history_window,
    truncate_tool_returns,
)
from refold.integrations.co_cli.decisions import payload_of
from refold.integrations.co_cli.summariser import PROMPT
from refold.integrations.co_cli.turns import LIMITED

WIRE = PydanticAI()
Messages = list[ModelMessage]


@pytest.fixture(autouse=True)
def _fresh(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    configured.cache_clear()
    yield
    configured.cache_clear()


def legal(messages):
    return WIRE.problems([payload_of(message) for message in messages]) == []


def parts(messages, kind: Any) -> list[Any]:
    found = (part for message in messages for part in message.parts)
    return [part for part in found if isinstance(part, kind)]


def answers(messages):
    return {part.tool_call_id: part.content for part in parts(messages, ToolReturnPart)}


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
        if prompts[-1] == PROMPT:
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
    agent = Agent(FunctionModel(stream_function=_echo))
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


async def _echo(messages, _info):
    yield f"You said {parts(messages, UserPromptPart)[-1].content}."


@pytest.mark.req("R003")
async def test_run_turn_streams_events_and_passes_options_on():
    heard: list[Any] = []

    async def hear(event):
        heard.append(event)

    agent = Agent(FunctionModel(stream_function=_echo), deps_type=str)
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


class Slow:
    """An agent whose second tool, or whose words, do not come to an end by themselves."""

    def __init__(self, *, words=False):
        self.started = asyncio.Event()
        self.go = asyncio.Event()
        self.words = words
        self.agent = Agent(FunctionModel(stream_function=self._stream))
        self.agent.tool_plain(self.fast)
        self.agent.tool_plain(self.slow)

    async def fast(self) -> str:
        return "fast"

    async def slow(self) -> str:
        self.started.set()
        await self.go.wait()
        return "slow"

    async def _stream(self, messages, _info):
        prompt = parts(messages, UserPromptPart)[-1].content
        if prompt != "Go.":
            yield "Fine."
        elif self.words:
            yield "Once upon "
            yield "a time"
            yield {1: DeltaToolCall("fast", '{"x": ', tool_call_id="a")}
            self.started.set()
            await self.go.wait()
        elif isinstance(messages[-1].parts[-1], ToolReturnPart):
            yield "Done."
        else:
            yield "I look. "
            yield {
                1: DeltaToolCall("fast", "{}", tool_call_id="a"),
                2: DeltaToolCall("slow", "{}", tool_call_id="b"),
            }


async def cancelled(slow, history):
    task = asyncio.create_task(run_turn(slow.agent, "Go.", history))
    await slow.started.wait()
    await asyncio.sleep(0)
    task.cancel()
    return await task, task


EARLIER: Messages = [
    ModelRequest(parts=[UserPromptPart("Hi.")]),
    ModelResponse(parts=[TextPart("Hi.")]),
]


@pytest.mark.req("R048")
async def test_an_interrupt_in_a_call_keeps_the_history_and_answers_the_call():
    slow = Slow()
    result, task = await cancelled(slow, EARLIER)
    assert (result.ended, result.output) == ("interrupted", None)
    assert task.cancelling() == 0
    assert result.messages[:2] == EARLIER
    assert answers(result.messages) == {"a": "fast", "b": "Interrupted by user."}
    assert [part.content for part in parts(result.messages, TextPart)] == ["Hi.", "I look. "]
    assert legal(result.messages)
    after = await run_turn(slow.agent, "Never mind.", result.messages)
    assert (after.output, after.ended) == ("Fine.", "answered")
    assert legal(after.messages)


@pytest.mark.req("R048")
async def test_an_interrupt_in_mid_stream_keeps_what_was_said():
    slow = Slow(words=True)
    result, _ = await cancelled(slow, EARLIER)
    assert result.ended == "interrupted"
    assert [part.content for part in parts(result.messages, TextPart)] == [
        "Hi.",
        "Once upon a time",
    ]
    assert answers(result.messages) == {"a": "Interrupted by user."}
    assert legal(result.messages)
    after = await run_turn(slow.agent, "Never mind.", result.messages)
    assert after.output == "Fine."


@pytest.mark.req("R048")
async def test_a_keyboard_interrupt_ends_the_turn_too():
    def interrupt(event):
        if isinstance(event, PartDeltaEvent):
            raise KeyboardInterrupt

    slow = Slow(words=True)
    result = await run_turn(slow.agent, "Go.", EARLIER, watch=interrupt)
    assert result.ended == "interrupted"
    assert result.messages[:2] == EARLIER
    assert [part.content for part in parts(result.messages, UserPromptPart)] == ["Hi.", "Go."]
    assert legal(result.messages)


@pytest.mark.req("R048")
async def test_an_interrupt_before_anything_was_sent_leaves_the_history():
    slow = Slow()
    task = asyncio.create_task(_interrupted_at_once(slow, EARLIER))
    result = await task
    assert (result.messages, result.ended) == (EARLIER, "interrupted")
    assert task.cancelling() == 0


async def _interrupted_at_once(slow, history):
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    return await run_turn(slow.agent, "Go.", history)


@pytest.fixture
def interruptible():
    """As in a terminal: a shell's background jobs, and so some CI, begin with Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.req("R048")
@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_turn_after_turn_and_never_the_loop():
    async def main():
        message_history: Messages = []
        for _ in range(3):
            slow = Slow()
            task = asyncio.create_task(_press(slow.started))
            result = await run_turn(slow.agent, "Go.", message_history)
            await task
            assert result.ended == "interrupted"
            message_history = result.messages
        assert signal.getsignal(signal.SIGINT) == before[0]
        async with asyncio.timeout(10):  # the cancellation was taken back
            await asyncio.sleep(0)
        return message_history

    async def outer():
        before.append(signal.getsignal(signal.SIGINT))
        return await main()

    before: list[Any] = []
    with asyncio.Runner() as runner:
        message_history = runner.run(outer())
    assert len(parts(message_history, UserPromptPart)) == 3
    assert list(answers(message_history).values()).count("Interrupted by user.") == 1
    assert legal(message_history)


async def _press(started):
    await started.wait()
    os.kill(os.getpid(), signal.SIGINT)


async def test_a_handler_that_the_program_has_set_is_left_alone():
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        slow = Slow()
        task = asyncio.create_task(run_turn(slow.agent, "Go.", []))
        await _press(slow.started)
        slow.go.set()
        assert (await task).output == "Done."
        assert pressed == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_turn_runs_in_any_thread():
    found: list[TurnResult] = []

    def work():
        agent = Agent(FunctionModel(stream_function=_echo))
        found.append(asyncio.run(run_turn(agent, "hi", [])))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found[0].output == "You said hi."


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
    slow = Slow()
    result = await run_turn(slow.agent, "Go.", EARLIER, timeout=0.05)
    assert result.ended == "limit"
    assert answers(result.messages).get("b") == LIMITED or not slow.started.is_set()
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
