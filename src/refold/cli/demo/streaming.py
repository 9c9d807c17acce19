"""The demo's answers, streamed word by word."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from secrets import token_hex

from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.usage import RequestUsage

from refold.cli.demo.answering import Answer

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
    """The answer at once."""
    said = [TextPart(answer.say)] if answer.say else []
    return ModelResponse([*said, *calls_of(answer)], usage=used, model_name=name)


def calls_of(answer: Answer) -> list[ToolCallPart]:
    """The calls. Their ids say where in the script they are, and differ each time."""
    return [
        ToolCallPart(call.tool, json.dumps(call.arguments), f"{answer.id}{token_hex(4)}")
        for call in answer.calls
    ]
