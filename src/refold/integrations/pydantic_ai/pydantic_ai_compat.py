"""What is used of Pydantic AI beyond its public names. A test sees that it all works as expected.

Everything else of Refold uses its public API.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from pydantic_ai import RunContext
from pydantic_ai.messages import ModelMessage, ModelResponseStreamEvent, ToolCallPart
from pydantic_ai.models import StreamedResponse
from pydantic_ai.usage import RequestUsage

_UUID7: Final = 7


def enter_history(ctx: RunContext[Any], messages: Sequence[ModelMessage]) -> None:
    """Let a run that has begun continue from these messages.

    A hook can give a run no history. The context's list is the run's own, though, so it is extended
    in place: to assign another list would change nothing.
    """
    ctx.messages.extend(messages)


def is_generated_id(conversation: str) -> bool:
    """Whether a conversation's id may be Pydantic AI's own, because the caller gave none.

    No field says so. It documents that its own are UUIDs of version 7.
    """
    try:
        return UUID(conversation).version == _UUID7
    except ValueError:
        return False


@dataclass
class PartStream(StreamedResponse):
    """A streamed response of given parts: words of a text, and tool calls.

    `FunctionModel` streams such parts, too, but estimates what they used.
    """

    parts: AsyncIterator[str | ToolCallPart]
    used: RequestUsage
    name: str
    started: datetime = field(default_factory=lambda: datetime.now(UTC))

    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        self._usage = self.used
        async for part in self.parts:
            if isinstance(part, ToolCallPart):
                yield self._parts_manager.handle_tool_call_part(
                    vendor_part_id=part.tool_call_id,
                    tool_name=part.tool_name,
                    args=part.args,
                    tool_call_id=part.tool_call_id,
                )
                continue
            for event in self._parts_manager.handle_text_delta(vendor_part_id="text", content=part):
                yield event

    async def close_stream(self) -> None:
        """There is no connection to close."""

    @property
    def model_name(self) -> str:
        return self.name

    @property
    def provider_name(self) -> str | None:
        return None

    @property
    def provider_url(self) -> str | None:
        return None

    @property
    def timestamp(self) -> datetime:
        return self.started
