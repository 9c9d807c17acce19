"""What a message history costs to take in: entries read of a long session, counted."""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false
# pyright: reportOptionalMemberAccess=false

import pytest
from agents import Scripted, agent_with, echo, folds, logged, small
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart

from refold import Refold
from refold.errors import HistoryDiffers
from refold.integrations.pydantic_ai.history import message_of, payload_of
from refold.log import CODEC, Author, Message
from refold.models import ModelSettings
from refold.stores import MemoryStore

SIZES = (125, 1250)
"""Turns: about 250 and 2,500 entries."""


class Counting:
    """A log that counts the entries that are read of it."""

    def __init__(self, log):
        self._log = log
        self.read_entries = 0

    async def read(self, *given, **options):
        found = await self._log.read(*given, **options)
        self.read_entries += len(found)
        return found

    def __getattr__(self, name):
        return getattr(self._log, name)


class Store(MemoryStore):
    """A store whose one log counts."""

    def __init__(self):
        super().__init__()
        self.counting = None

    def log(self, tenant="default"):
        self.counting = self.counting or Counting(super().log(tenant))
        return self.counting


async def conversation(turns):
    """A session of so many turns, folded, and its whole history as it was said."""
    store = Store()
    models = {"function:scripted": ModelSettings(window=4_000)}
    memory = Refold(store, profile=small(), models=models)
    agent = agent_with(memory, Scripted(echo, window=4_000))
    await agent.run("hello", conversation_id="c")
    author = Author()
    log = store.counting._log
    for nth in range(turns):
        asked = ModelRequest([UserPromptPart(f"turn {nth} " + "word " * 30)])
        answered = ModelResponse([TextPart(f"so it is, {nth}")])
        drafts = [author.draft(Message(payload_of(one))) for one in (asked, answered)]
        await log.append("c", drafts, expected=None)
    for nth in range(3):
        await agent.run(f"and {nth}", conversation_id="c")
    found = await log.read("c")
    values = [CODEC.decode(one) for one in found if one.kind == Message.KIND]
    return store.counting, memory, agent, [one.payload for one in values], len(found)


def messages(payloads):
    return [message_of(one) for one in payloads]


def as_a_client_has_them(payloads):
    """Without times and runs: what is left is who said what."""
    made = []
    for message in messages(payloads):
        [part] = message.parts
        if isinstance(message, ModelRequest):
            made.append(ModelRequest([UserPromptPart(part.content)]))
        else:
            made.append(ModelResponse([TextPart(part.content)]))
    return made


@pytest.fixture(scope="module", params=SIZES)
def turns(request):
    return request.param


@pytest.mark.parametrize("form", [messages, as_a_client_has_them])
@pytest.mark.parametrize("newest", [None, 10])
async def test_a_history_reads_a_bounded_stretch_however_long_the_session(turns, form, newest):
    log, memory, agent, payloads, entries = await conversation(turns)
    assert entries > 2 * turns
    assert await folds(memory)
    history = form(payloads if newest is None else payloads[-newest:])
    log.read_entries = 0
    await agent.run("and now?", message_history=history, conversation_id="c")
    assert log.read_entries <= 100
    assert (await logged(memory, "c"))[-2] == "and now?"
    assert len(await logged(memory, "c")) == len(payloads) + 2


async def test_a_history_of_something_else_reads_a_bounded_stretch_too(turns):
    log, _, agent, _, _ = await conversation(turns)
    other = [ModelRequest([UserPromptPart("?")]), ModelResponse([TextPart("!")])]
    log.read_entries = 0
    with pytest.raises(HistoryDiffers):
        await agent.run("and now?", message_history=other, conversation_id="c")
    assert 0 < log.read_entries <= 700  # it is looked for, but not everywhere
