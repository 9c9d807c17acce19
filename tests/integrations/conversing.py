"""Conversations held with an agent that repeats what it is told, kept in a store."""

import pytest
from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel

from refold.integrations.pydantic_ai.conversations import Conversations
from refold.integrations.pydantic_ai.history import message_of
from refold.stores import open_store


@pytest.fixture(params=["memory:", "sqlite"])
async def log(request, tmp_path):
    address = request.param if request.param == "memory:" else f"sqlite:///{tmp_path / 'a.db'}"
    async with open_store(address) as store:
        yield store.log()


@pytest.fixture
def store(log):
    return Conversations(log)


def echo(messages, _):
    return ModelResponse(parts=[TextPart(f"{len(messages)}: {messages[-1].parts[-1].content}")])


agent = Agent(FunctionModel(echo))


async def turn(store, prompt, name="c"):
    conversation = await store.load(name) or Conversation(conversation_id=name)
    result = await agent.run(prompt, conversation=conversation)
    return await store.save(result)


def texts(messages):
    return [message.parts[-1].content for message in messages]


async def said(store, name="c"):
    return texts((await store.load(name)).messages)


def shown(request):
    return texts(map(message_of, request.messages))


class Counting:
    """A log that notes what is read from it."""

    def __init__(self, log):
        self._log = log
        self.read_entries = 0
        self.read_sessions = []

    def __getattr__(self, name):
        return getattr(self._log, name) if name != "log" else super().__getattribute__(name)

    async def read(self, session, *args, **kwargs):
        entries = await self._log.read(session, *args, **kwargs)
        self.read_entries += len(entries)
        self.read_sessions.append(session)
        return entries
