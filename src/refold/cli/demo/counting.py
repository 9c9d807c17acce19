"""What the demo's model uses: counted as the model counts whose prices are shown."""

import json
from collections.abc import Iterator, Sequence
from typing import Final

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.usage import RequestUsage

from refold.cli.demo.answering import Answer
from refold.models import counter_for
from refold.view.budget import PER_MESSAGE

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
        texts = [*_texts(messages, offered)]
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


def _texts(messages: Sequence[ModelMessage], offered: ModelRequestParameters) -> Iterator[str]:
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
    """What a part of a request says."""
    told = getattr(part, "model_response_str", None)
    return str(told()) if callable(told) else str(getattr(part, "content", ""))
