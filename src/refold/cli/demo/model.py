"""The demo's model and its tools: a script is played, and counted as a real model would count."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import takewhile
from secrets import token_hex
from typing import Any, Final, NamedTuple

from pydantic_ai import FunctionToolset, RunContext
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings as RequestSettings
from pydantic_ai.usage import RequestUsage

from refold.cli.demo.script import PACE, WINDOW, Call, Step, script
from refold.integrations.pydantic_ai.pydantic_ai_compat import PartStream
from refold.models import ModelSettings, Overrides, counter_for, facts_of
from refold.view import PROFILES, Profile
from refold.view.budget import PER_MESSAGE

NAME: Final = "refold:demo"
"""The model, as sessions name it."""
PRICED_AS: Final = "openai:gpt-5"
"""The model whose tokens are counted and whose published prices are shown."""

_MAX_ANSWER = 500  # tokens: no answer of the script is longer
_CACHE_BLOCK = 128  # tokens: a cache holds such blocks,
_MIN_CACHED = 1_024  # and is not used for less
_WORDS = re.compile(r"\S+\s*|\s+")
_ID = re.compile(r"demo-(\d+)-(\d+)-")
_NO_TOOL: Final = (
    "I would have to look that up, but I am not offered `{tool}` here, so I had better not guess."
)


class Answer(NamedTuple):
    """What the model says, and the tools that it calls."""

    say: str
    calls: tuple[Call, ...] = ()
    id: str = ""
    """How the ids of its calls begin: from them, the next request knows its place in the script."""


def answer_to(messages: Sequence[ModelMessage], tools: Sequence[str]) -> Answer:
    """The answer to a prompt of the script, or to the results of its calls.

    It depends on nothing but the messages.
    """
    turn, step = _place(messages)
    if turn is None or step >= len(script().turns[turn].steps):
        return Answer(script().outside)
    return _answer(script().turns[turn].steps[step], f"demo-{turn}-{step}-", messages, tools)


def _place(messages: Sequence[ModelMessage]) -> tuple[int | None, int]:
    """The turn and the step, from the last message, because all else may be folded."""
    last = messages[-1] if messages else None
    for part in reversed(last.parts if isinstance(last, ModelRequest) else ()):
        match part:
            case UserPromptPart(content=str(prompt)):
                return script().turn_of(prompt), 0
            case ToolReturnPart(tool_call_id=id_) if match := _ID.match(id_):
                return int(match[1]), int(match[2]) + 1
            case _:
                continue
    return None, 0


def _answer(step: Step, id_: str, messages: Sequence[ModelMessage], tools: Sequence[str]) -> Answer:
    missing = [call.tool for call in step.calls if call.tool not in tools]
    if missing:
        return Answer(_NO_TOOL.format(tool=missing[0]))
    say = step.say
    if step.find:
        match = re.search(step.find, "\n".join(_visible_texts(messages)))
        say = say.replace("{found}", match[1]) if match else step.otherwise
    newest = next(_visible_texts(messages[-1:]), "")
    place = re.search(step.place, newest) if step.place else None
    calls: list[Call] = []
    for call in step.calls:
        arguments = {
            name: place[1] if place and value == "{place}" else value
            for name, value in call.arguments.items()
        }
        calls.append(Call(tool=call.tool, arguments=arguments))
    return Answer(say, tuple(calls), id_)


def _visible_texts(messages: Sequence[ModelMessage]) -> Iterator[str]:
    for message in reversed(messages):
        for part in reversed(message.parts):
            match part:
                case ToolReturnPart():
                    yield part.model_response_str()
                case UserPromptPart(content=str(text)):
                    yield text
                case TextPart(content=text) if isinstance(message, ModelResponse):
                    yield text
                case _:
                    continue


class UsageCounter:
    """Counts the tokens of requests, and which of them a prompt cache would have."""

    def __init__(self) -> None:
        self._counter = counter_for(PRICED_AS)
        self._before: list[str] = []

    def usage(
        self, messages: Sequence[ModelMessage], offered: ModelRequestParameters, answer: Answer
    ) -> RequestUsage:
        """What a request and its answer use. What the cache does not have is written to it."""
        texts = [*_sent_texts(messages, offered)]
        sizes = [self._counter.text(text) + PER_MESSAGE for text in texts]
        pairs = zip(texts, self._before, strict=False)
        cached = sum(size for size, _ in zip(sizes, takewhile(_equal, pairs), strict=False))
        self._before = texts
        cached = cached // _CACHE_BLOCK * _CACHE_BLOCK if cached >= _MIN_CACHED else 0
        calls = "".join(f"{call.tool}{json.dumps(call.arguments)}" for call in answer.calls)
        return RequestUsage(
            input_tokens=sum(sizes),
            cache_read_tokens=cached,
            cache_write_tokens=sum(sizes) - cached,
            output_tokens=self._counter.text(answer.say + calls),
        )


def _equal(pair: tuple[str, str]) -> bool:
    return pair[0] == pair[1]


def _sent_texts(messages: Sequence[ModelMessage], offered: ModelRequestParameters) -> Iterator[str]:
    """Everything that is sent, in the order in which a provider reads it: tools come first."""
    tools = offered.function_tools
    yield json.dumps([[t.name, t.description, t.parameters_json_schema] for t in tools])
    yield "\n".join(part.content for part in offered.instruction_parts or ())
    for message in messages:
        for part in message.parts:
            match part:
                case ToolCallPart():
                    yield f"{part.tool_name}{part.args_as_json_str()}"
                case TextPart(content=text) if isinstance(message, ModelResponse):
                    yield text
                case _:
                    render = getattr(part, "model_response_str", None)
                    yield str(render() if callable(render) else getattr(part, "content", ""))


async def _stream(answer: Answer, pace: float) -> AsyncIterator[str | ToolCallPart]:
    """The answer as a model streams it, with `pace` seconds for each word."""
    for piece in (*_WORDS.findall(answer.say), *_calls(answer)):
        await asyncio.sleep(pace)
        yield piece


def _calls(answer: Answer) -> list[ToolCallPart]:
    # The ids encode the place in the script, and differ each time.
    return [
        ToolCallPart(call.tool, json.dumps(call.arguments), f"{answer.id}{token_hex(4)}")
        for call in answer.calls
    ]


class DemoModel(Model[None]):
    """Answers as the script says, by what it is shown and nothing else.

    Args:
        pace: Seconds for each word; 0 answers at once.
    """

    def __init__(self, pace: float = PACE) -> None:
        super().__init__(profile={"context_window": WINDOW})
        self._pace = pace
        self._counter = UsageCounter()

    @property
    def model_name(self) -> str:
        return NAME.partition(":")[2]

    @property
    def system(self) -> str:
        return NAME.partition(":")[0]

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: RequestSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        _, offered = self.prepare_request(model_settings, model_request_parameters)
        answer, usage = self._answer(messages, offered)
        text = [TextPart(answer.say)] if answer.say else []
        return ModelResponse([*text, *_calls(answer)], usage=usage, model_name=self.model_name)

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: RequestSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,  # noqa: ARG002 - part of the interface
    ) -> AsyncGenerator[StreamedResponse]:
        _, offered = self.prepare_request(model_settings, model_request_parameters)
        answer, usage = self._answer(messages, offered)
        yield PartStream(offered, _stream(answer, self._pace), usage, self.model_name)

    def _answer(
        self, messages: list[ModelMessage], offered: ModelRequestParameters
    ) -> tuple[Answer, RequestUsage]:
        answer = answer_to(messages, [tool.name for tool in offered.function_tools])
        return answer, self._counter.usage(messages, offered, answer)


def demo_model(pace: float = PACE) -> Model[Any]:
    """The model of the demo; it needs no key and no network."""
    return DemoModel(pace)


def demo_profile() -> Profile:
    """The default profile, except that each request waits for the fold that it starts.

    So the figures are the same on every machine, however slow it is.
    """
    profile = PROFILES["balanced"]
    return profile.model_copy(update={"fold": profile.fold.model_copy(update={"apply": "inline"})})


def demo_models() -> Overrides:
    """The window of the demo's model, and the prices of the model that it is priced as."""
    prices = facts_of(PRICED_AS).prices
    return {
        NAME: ModelSettings(
            window=WINDOW,
            output=_MAX_ANSWER,
            input_price=prices.input,
            output_price=prices.output,
            cache_read_price=prices.cache_read,
            cache_write_price=prices.cache_write,
        )
    }


def demo_tools() -> FunctionToolset[Any]:
    """Tools that list, read and search the demo's project, and change nothing."""
    return FunctionToolset([list_files, read_file, search_files], id="refold-demo")


def list_files() -> str:
    """List the files of the project."""
    return "\n".join(f"{path}  {len(text):,} chars" for path, text in _project())


def read_file(path: str) -> str:
    """Read a file of the project."""
    texts = dict(_project())
    name = path.strip().removeprefix("./")
    if name not in texts:
        return f"There is no file {path!r}. There are: {', '.join(texts)}."
    return texts[name]


def search_files(text: str) -> str:
    """Find the lines of the project that hold a text."""
    lines = [
        f"{path}:{number}: {line.strip()}"
        for path, content in _project()
        for number, line in enumerate(content.splitlines(), 1)
        if text in line
    ]
    return "\n".join(lines) or f"No line holds {text!r}."


def _project() -> list[tuple[str, str]]:
    return sorted(_files_in(files("refold.cli.demo") / "project", ""))


def _files_in(folder: Traversable, path: str) -> Iterator[tuple[str, str]]:
    for item in folder.iterdir():
        if item.is_dir():
            yield from _files_in(item, f"{path}{item.name}/")
        else:
            yield f"{path}{item.name}", item.read_text("utf-8")
