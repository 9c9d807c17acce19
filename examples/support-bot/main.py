"""A support bot whose long conversations are summarized by a model.

`python main.py URL` uses an OpenAI-compatible server, for example llama.cpp or Ollama on your
machine. Without an address, a script plays both the bot and the summarizer.
"""

import asyncio
import sys

from pydantic_ai import Agent, ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from refold import Refold
from refold.models import ModelSettings

PROMPTS = [
    "My lamp arrived broken. Please look at my orders.",
    "Never call me; write to ines@example.com.",
    "How long does a refund take?",
    "Thank you. How will you reach me?",
]
SUMMARY = """
## Goal
- A refund for a broken lamp — "My lamp arrived broken. Please look at my orders."
## Next
- Tell the customer when the refund arrives
"""


def script(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    asked = str(messages[-1].parts[-1])
    if "about to be compacted" in asked:
        return ModelResponse([TextPart(SUMMARY)])
    if PROMPTS[0] in asked:
        return ModelResponse([ToolCallPart("orders", {"customer": "ines"}, tool_call_id="call-1")])
    return ModelResponse([TextPart("Thank you. I have noted that.")])


def chosen() -> Model:
    if len(sys.argv) == 1:
        return FunctionModel(script)
    provider = OpenAIProvider(base_url=sys.argv[1], api_key="none")
    return OpenAIChatModel("local", provider=provider, settings={"max_tokens": 120})


def orders(customer: str) -> str:
    """All orders of a customer."""
    return "\n".join(f"SP-{20_400 + n}: lamp L-{n % 12}, delivered" for n in range(150))


async def main() -> None:
    model = chosen()
    window = {f"{model.system}:{model.model_name}": ModelSettings(window=8_000)}
    async with Refold("memory:", models=window) as memory:
        agent = Agent(model, tools=[orders], capabilities=[memory])
        for prompt in PROMPTS:
            result = await agent.run(prompt, conversation_id="ines")
            print(f"> {prompt}\n{result.output}\n")
        session = await memory.session("ines", model)
        fold = await session.compact()
        print(fold.summary.text)


asyncio.run(main())
