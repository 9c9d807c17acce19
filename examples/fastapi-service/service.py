"""A web service that holds a conversation with each of its users."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from pydantic import BaseModel
from pydantic_ai import Agent, ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from refold import Refold


def script(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Plays the model: it repeats the first prompt of the conversation."""
    parts = [part for message in messages for part in message.parts]
    prompts = [part.content for part in parts if part.part_kind == "user-prompt"]
    return ModelResponse([TextPart(f"You began with: {prompts[0]}")])


memory = Refold(os.environ.get("STORE", "sqlite:///service.db"))  # or postgresql://…
agent = Agent(os.environ.get("MODEL") or FunctionModel(script), capabilities=[memory])


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with memory:  # finishes running compactions before the process ends
        yield


app = FastAPI(lifespan=lifespan)


class Prompt(BaseModel):
    text: str


@app.post("/conversations/{conversation}")
async def say(conversation: str, prompt: Prompt) -> str:
    """Check first that your user may use this conversation: an id is no password."""
    result = await agent.run(prompt.text, conversation_id=conversation)
    return result.output
