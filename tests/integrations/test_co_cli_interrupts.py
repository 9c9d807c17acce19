"""Turns of co-cli that the user interrupts."""

import asyncio
import os
import signal
import threading
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="the library that runs")

from co_cli_world import (
    EARLIER,
    Messages,
    Slow,
    answers,
    echo,
    fresh,  # noqa: F401 - for every test
    legal,
    parts,
)
from pydantic_ai import Agent
from pydantic_ai.messages import PartDeltaEvent, TextPart, UserPromptPart
from pydantic_ai.models.function import FunctionModel

from refold.integrations.co_cli import TurnResult, run_turn


async def cancelled(slow, history):
    task = asyncio.create_task(run_turn(slow.agent, "Go.", history))
    await slow.started.wait()
    await asyncio.sleep(0)
    task.cancel()
    return await task, task


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
        agent = Agent(FunctionModel(stream_function=echo))
        found.append(asyncio.run(run_turn(agent, "hi", [])))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found[0].output == "You said hi."
