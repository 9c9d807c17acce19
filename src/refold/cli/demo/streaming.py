"""The demo's answers, streamed word by word."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from secrets import token_hex

from pydantic_ai.messages import ModelResponse, ModelResponseStreamEvent, TextPart, ToolCallPart
from pydantic_ai.models import StreamedResponse
from pydantic_ai.usage import RequestUsage

from refold.cli.demo.answering import Answer

_WORDS = re.compile(r"\S+\s*|\s+")


@dataclass
class Streamed(StreamedResponse):
    """An answer that comes as a model's does."""

    answer: Answer
    used: RequestUsage
    name: str
    pace: float
    """Seconds for each word."""
    begun: datetime = field(default_factory=lambda: datetime.now(UTC))

    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        self._usage = self.used
        for word in _WORDS.findall(self.answer.say):
            await asyncio.sleep(self.pace)
            for event in self._parts_manager.handle_text_delta(vendor_part_id="say", content=word):
                yield event
        for call in calls_of(self.answer):
            await asyncio.sleep(self.pace)
            yield self._parts_manager.handle_tool_call_part(
                vendor_part_id=call.tool_call_id,
                tool_name=call.tool_name,
                args=call.args,
                tool_call_id=call.tool_call_id,
            )

    async def close_stream(self) -> None:
        """There is nothing to close."""

    @property
    def model_name(self) -> str:
        """The model."""
        return self.name

    @property
    def provider_name(self) -> str | None:
        """There is no provider."""
        return None

    @property
    def provider_url(self) -> str | None:
        """Nor any address."""
        return None

    @property
    def timestamp(self) -> datetime:
        """When the answer began."""
        return self.begun


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
