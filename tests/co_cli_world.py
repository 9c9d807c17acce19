"""What the tests of co-cli's functions say, ask and look at."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from shown import changed

from refold.view.profiles import CO_CLI
from refold.wire import PydanticAI

pytest.importorskip("pydantic_ai", reason="the library whose messages these are")

from pydantic_ai import Agent
from pydantic_ai.messages import (
    BinaryImage,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from refold.integrations.co_cli import (
    CommandContext,
    configured,
    truncate_history_window,
)
from refold.integrations.co_cli.history import payload_of

WIRE = PydanticAI()
Messages = list[ModelMessage]
IMAGE = BinaryImage(data=b"png", media_type="image/png")
EARLIER: Messages = [
    ModelRequest(parts=[UserPromptPart("Hi.")]),
    ModelResponse(parts=[TextPart("Hi.")]),
]


def asked(text):
    return ModelRequest(parts=[UserPromptPart(text)])


def said(text):
    return ModelResponse(parts=[TextPart(text)])


def called(*ids, text=None):
    words = [TextPart(text)] if text else []
    return ModelResponse(parts=[*words, *(ToolCallPart("read", {"path": one}, one) for one in ids)])


def returned(*calls, content: Any = "ok"):
    return ModelRequest(parts=[ToolReturnPart("read", content, call) for call in calls])


def chat(count, first=1) -> Messages:
    numbers = range(first, first + count)
    return [asked(f"prompt {n}") if n % 2 else said(f"reply {n}") for n in numbers]


def work(count, name="c") -> Messages:
    return [returned(f"{name}{n - 1}") if n % 2 else called(f"{name}{n}") for n in range(count)]


class Summarizer:
    """A model that answers with given words, and keeps what it was asked."""

    def __init__(self, words: Any = "SUMMARY"):
        self.words = words
        self.asked: list[tuple[Messages, Any]] = []
        self.model = FunctionModel(self._answer)

    def _answer(self, messages, info):
        self.asked.append((messages, info))
        if isinstance(self.words, Exception):
            raise self.words
        return said(self.words)


FAILING = RuntimeError("The model is down.")


async def windowed(messages, words: Any = "SUMMARY", **values):
    summarizer = Summarizer(words)
    ctx = cast("Any", SimpleNamespace(model=summarizer.model))
    profile = changed(CO_CLI, **values)
    return await truncate_history_window(ctx, messages, profile=profile), summarizer


def legal(messages):
    return WIRE.problems([payload_of(message) for message in messages]) == []


def contents(messages) -> list[Any]:
    return [getattr(part, "content", None) for message in messages for part in message.parts]


@pytest.fixture(autouse=True)
def fresh(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    configured.cache_clear()
    yield
    configured.cache_clear()


def parts(messages, kind: Any) -> list[Any]:
    found = (part for message in messages for part in message.parts)
    return [part for part in found if isinstance(part, kind)]


def answers(messages):
    return {part.tool_call_id: part.content for part in parts(messages, ToolReturnPart)}


def context(messages, summarizer=None, shown=None):
    agent = Agent((summarizer or Summarizer()).model)
    return CommandContext(messages, agent, (shown if shown is not None else []).append)


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


async def echo(messages, _info):
    yield f"You said {parts(messages, UserPromptPart)[-1].content}."
