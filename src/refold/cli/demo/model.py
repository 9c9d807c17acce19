"""The demo's model: it plays a script, and reports what a real model would have used for it."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from secrets import token_hex
from typing import Any, Final, NamedTuple

from pydantic_ai import RunContext
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

from refold.cli.demo.script import DETAIL, INSTRUCTIONS, PACE, PROMPTS, WINDOW, Call, Step, script
from refold.cli.demo.tools import demo_tools
from refold.integrations.pydantic_ai.pydantic_ai_compat import PartStream
from refold.models import ModelSettings, Overrides, counter_for, facts_of
from refold.view import PROFILES, Profile
from refold.view.budget import PER_MESSAGE

__all__ = [
    "DETAIL",
    "INSTRUCTIONS",
    "NAME",
    "PACE",
    "PRICED_AS",
    "PROMPTS",
    "WINDOW",
    "DemoModel",
    "demo_model",
    "demo_models",
    "demo_profile",
    "demo_tools",
]


# What the demo's model answers to what it is shown: it looks there, and nowhere else.

_ID = re.compile(r"demo-(\d+)-(\d+)-")
_NO_TOOL: Final = (
    "I would have to look that up, but I am not offered `{tool}` here, so I had better not guess."
)


class Answer(NamedTuple):
    """What the model says, and the tools that it calls."""

    say: str
    calls: tuple[Call, ...] = ()
    id: str = ""
    """How the ids of its calls begin: they tell the next request where the script is."""


def answer_to(messages: Sequence[ModelMessage], tools: Sequence[str]) -> Answer:
    """The answer, by what the last request has: a prompt of the script, or returns of its calls."""
    turn, step = _where(messages)
    if turn is None:
        return Answer(script().outside)
    steps = script().turns[turn].steps
    if step >= len(steps):
        return Answer(script().outside)
    return _answer(steps[step], f"demo-{turn}-{step}-", messages, tools)


def _where(messages: Sequence[ModelMessage]) -> tuple[int | None, int]:
    """The turn and the step; only the end is looked at, for all else may be folded."""
    last = messages[-1] if messages else None
    for part in reversed(last.parts if isinstance(last, ModelRequest) else ()):
        match part:
            case UserPromptPart(content=str(prompt)):
                return script().turn_of(prompt), 0
            case ToolReturnPart(tool_call_id=id_) if found := _ID.match(id_):
                return int(found[1]), int(found[2]) + 1
            case _:
                continue
    return None, 0


def _answer(step: Step, id_: str, messages: Sequence[ModelMessage], tools: Sequence[str]) -> Answer:
    missing = [call.tool for call in step.calls if call.tool not in tools]
    if missing:
        return Answer(_NO_TOOL.format(tool=missing[0]))
    say = step.say
    if step.find:
        found = re.search(step.find, "\n".join(_texts(messages)))
        say = say.replace("{found}", found[1]) if found else step.otherwise
    place = re.search(step.place, next(_texts(messages[-1:]), "")) if step.place else None
    known = {"{place}": place[1]} if place else {}
    calls = tuple(
        Call(
            tool=call.tool,
            arguments={
                name: known.get(str(given), given) for name, given in call.arguments.items()
            },
        )
        for call in step.calls
    )
    return Answer(say, calls, id_)


def _texts(messages: Sequence[ModelMessage]) -> Iterator[str]:
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


# What the demo's model uses: counted as the model counts whose prices are shown.

PRICED_AS: Final = "openai:gpt-5"
"""The model whose tokens are counted and whose published prices are shown."""
_BLOCK = 128  # tokens: a cache holds such blocks,
_LEAST_CACHED = 1_024  # and is not used for less


class Count:
    """Counts requests, and knows what each has in common with the one before it."""

    def __init__(self) -> None:
        self._counter = counter_for(PRICED_AS)
        self._before: list[str] = []

    def usage(
        self, messages: Sequence[ModelMessage], offered: ModelRequestParameters, answer: Answer
    ) -> RequestUsage:
        """What a request and its answer use. What no cache had is written to it."""
        texts = [*_texts_counting(messages, offered)]
        sizes = [self._counter.text(text) + PER_MESSAGE for text in texts]
        common = next(
            (at for at, pair in enumerate(zip(texts, self._before, strict=False)) if _differ(pair)),
            min(len(texts), len(self._before)),
        )
        self._before = texts
        cached = sum(sizes[:common]) // _BLOCK * _BLOCK
        cached = cached if cached >= _LEAST_CACHED else 0
        calls = "".join(f"{call.tool}{json.dumps(call.arguments)}" for call in answer.calls)
        return RequestUsage(
            input_tokens=sum(sizes),
            cache_read_tokens=cached,
            cache_write_tokens=sum(sizes) - cached,
            output_tokens=self._counter.text(answer.say + calls),
        )


def _differ(pair: tuple[str, str]) -> bool:
    return pair[0] != pair[1]


def _texts_counting(
    messages: Sequence[ModelMessage], offered: ModelRequestParameters
) -> Iterator[str]:
    """All that is sent, in the order in which a provider reads it: tools come first."""
    yield json.dumps(
        [[one.name, one.description, one.parameters_json_schema] for one in offered.function_tools]
    )
    yield "\n".join(part.content for part in offered.instruction_parts or ())
    for message in messages:
        for part in message.parts:
            match part:
                case ToolCallPart():
                    yield f"{part.tool_name}{part.args_as_json_str()}"
                case TextPart(content=text) if isinstance(message, ModelResponse):
                    yield text
                case _:
                    yield _said(part)


def _said(part: object) -> str:
    told = getattr(part, "model_response_str", None)
    return str(told()) if callable(told) else str(getattr(part, "content", ""))


# The demo's answers, streamed word by word.

_WORDS = re.compile(r"\S+\s*|\s+")


async def streamed(answer: Answer, pace: float) -> AsyncIterator[str | ToolCallPart]:
    """The answer as a model streams it, with so many seconds for each word."""
    for word in _WORDS.findall(answer.say):
        await asyncio.sleep(pace)
        yield word
    for call in calls_of(answer):
        await asyncio.sleep(pace)
        yield call


def whole(answer: Answer, used: RequestUsage, name: str) -> ModelResponse:
    said = [TextPart(answer.say)] if answer.say else []
    return ModelResponse([*said, *calls_of(answer)], usage=used, model_name=name)


def calls_of(answer: Answer) -> list[ToolCallPart]:
    """The calls. Their ids say where in the script they are, and differ each time."""
    return [
        ToolCallPart(call.tool, json.dumps(call.arguments), f"{answer.id}{token_hex(4)}")
        for call in answer.calls
    ]


NAME: Final = "refold:demo"
"""The model, as sessions name it."""
_LONGEST = 500  # tokens that an answer may have: none of the script's is longer


class DemoModel(Model[None]):
    """Answers as the script says, by what it is shown and nothing else.

    Args:
        pace: Seconds for each word; 0 answers at once.
    """

    def __init__(self, pace: float = PACE) -> None:
        super().__init__(profile={"context_window": WINDOW})
        self._pace = pace
        self._count = Count()

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
        answer, used = self._answer(messages, offered)
        return whole(answer, used, self.model_name)

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: RequestSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,  # noqa: ARG002 - part of the interface
    ) -> AsyncGenerator[StreamedResponse]:
        _, offered = self.prepare_request(model_settings, model_request_parameters)
        answer, used = self._answer(messages, offered)
        yield PartStream(offered, streamed(answer, self._pace), used, self.model_name)

    def _answer(
        self, messages: list[ModelMessage], offered: ModelRequestParameters
    ) -> tuple[Answer, RequestUsage]:
        answer = answer_to(messages, [tool.name for tool in offered.function_tools])
        return answer, self._count.usage(messages, offered, answer)


def demo_model(pace: float = PACE) -> Model[Any]:
    """The model of the demo; it needs no key and no network."""
    return DemoModel(pace)


def demo_profile() -> Profile:
    """The default profile, but each request waits for the fold that it starts.

    Then everybody who watches sees the same figures, however slow the machine is.
    """
    profile = PROFILES["balanced"]
    return profile.model_copy(update={"fold": profile.fold.model_copy(update={"apply": "inline"})})


def demo_models() -> Overrides:
    """What is known of it, for `Refold(models=…)`: its window, and the prices it is shown at."""
    prices = facts_of(PRICED_AS).prices
    return {
        NAME: ModelSettings(
            window=WINDOW,
            output=_LONGEST,
            input_price=prices.input,
            output_price=prices.output,
            cache_read_price=prices.cache_read,
            cache_write_price=prices.cache_write,
        )
    }
