"""An agent that remembers its conversation from one run of the program to the next."""

import os
import sys

from pydantic_ai import Agent, ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from refold import Refold


def script(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Plays the model, so that the example needs no key: it names the first prompt it sees."""
    parts = [part for message in messages for part in message.parts]
    prompts = [part.content for part in parts if part.part_kind == "user-prompt"]
    return ModelResponse([TextPart(f"Prompt {len(prompts)}. You began with: {prompts[0]}")])


model = os.environ.get("MODEL") or FunctionModel(script)  # for example anthropic:claude-sonnet-4-5
agent = Agent(model, capabilities=[Refold("sqlite:///agent.db")])
result = agent.run_sync(sys.argv[1], conversation_id="support-42")
print(result.output)
