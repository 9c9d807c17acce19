"""An agent that calls a tool and streams its answers, and outgrows its window on the way."""

import asyncio
import os
from collections.abc import AsyncIterator

from pydantic_ai import Agent, ModelMessage
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from refold import Refold
from refold.models import ModelSettings
from refold.session import AnyEvent, CompactionComplete


async def script(
    messages: list[ModelMessage], info: AgentInfo
) -> AsyncIterator[str | DeltaToolCalls]:
    """Plays the model: it reads the log of the day, then answers in two pieces."""
    last = messages[-1].parts[-1]
    if last.part_kind == "user-prompt":
        day = str(last.content).rpartition(" ")[2].strip("?")
        yield {
            0: DeltaToolCall(
                "read_log", f'{{"day": "{day}"}}', tool_call_id=f"call-{len(messages)}"
            )
        }
    else:
        yield "No errors "
        yield "on that day."


def read_log(day: str) -> str:
    """The log of a day."""
    return "\n".join(f"{day} 09:{minute:02} request {minute} served" for minute in range(60))


async def main() -> None:
    model = os.environ.get("MODEL") or FunctionModel(stream_function=script, model_name="script")
    small = {"function:script": ModelSettings(window=8_000)}  # so that something happens soon
    compacted: list[CompactionComplete] = []

    def watch(conversation: str, event: AnyEvent) -> None:
        if isinstance(event, CompactionComplete):
            compacted.append(event)

    async with Refold("memory:", models=small, watch=watch) as memory:
        agent = Agent(model, tools=[read_log], capabilities=[memory])
        for day in range(1, 13):
            prompt = f"Were there errors on day-{day}?"
            async with agent.run_stream(prompt, conversation_id="logs") as answer:
                async for text in answer.stream_text(delta=True):
                    print(text, end="", flush=True)
                print()
    print("compactions on the way:", len(compacted))


asyncio.run(main())
