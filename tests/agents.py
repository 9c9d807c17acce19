"""Agents for tests: a model that follows a script, and what was sent to it."""

# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportOptionalSubscript=false, reportIndexIssue=false, reportCallIssue=false
# pyright: reportArgumentType=false, reportTypedDictNotRequiredAccess=false
# Tests know which of many kinds of parts they look at.

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from refold import Refold
from refold.log import (
    CODEC,
    FoldCompleted,
    FoldFailed,
    FoldStarted,
    Message,
    Requested,
    Used,
)
from refold.recall.text import rebuilt
from refold.view.profiles import PROFILES

Reply = str | Exception | ModelResponse | list[ToolCallPart]


class Scripted:
    """A model that answers by a function of what it was sent, and keeps what it was sent."""

    def __init__(self, reply: Callable[["Scripted", list[ModelMessage]], Reply], window=200_000):
        self.sent: list[list[ModelMessage]] = []
        self.infos = []
        self._reply = reply
        profile = {"context_window": window} if window else {}
        self.model = FunctionModel(
            self._answer, stream_function=self._stream, profile=profile, model_name="scripted"
        )

    def _answered(self, messages, info) -> ModelResponse:
        self.sent.append(list(messages))
        self.infos.append(info)
        reply = self._reply(self, messages)
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, str):
            return ModelResponse([TextPart(reply)])
        return reply if isinstance(reply, ModelResponse) else ModelResponse(reply)

    def _answer(self, messages, info):
        return self._answered(messages, info)

    async def _stream(self, messages, info):
        for nth, part in enumerate(self._answered(messages, info).parts):
            if isinstance(part, ToolCallPart):
                given = json.dumps(part.args)
                delta = DeltaToolCall(part.tool_name, given, tool_call_id=part.tool_call_id)
                yield {nth: delta}
            else:
                yield part.content

    @property
    def texts(self) -> list[list[str]]:
        """For each request, what was said in it."""
        return [said(messages) for messages in self.sent]


def said(messages: Sequence[ModelMessage]) -> list[str]:
    """The words of messages, and the names of what was called."""
    return [
        str(part.content) if hasattr(part, "content") else f"{part.tool_name}()"
        for message in messages
        for part in message.parts
        if hasattr(part, "content") or hasattr(part, "tool_name")  # not which tools there are now
    ]


def is_summarizer(messages) -> bool:
    """Whether a summary is asked for."""
    return "write summaries" in (messages[0].instructions or "")


def last(messages) -> str:
    """The last words."""
    return said(messages)[-1]


def call(tool, id, /, **args):  # noqa: A002 - as everywhere
    return ToolCallPart(tool, args, id)


def agent_with(memory: Refold, scripted: Scripted, *beside, **given) -> Agent:
    """An agent with this memory, and perhaps other capabilities beside it."""
    return Agent(scripted.model, capabilities=[memory, *beside], **given)


async def entries(memory, session, kind=None):
    """The values of a session's entries, with their scopes."""
    found = await memory.log.read(session)
    return [(one.scope, CODEC.decode(one)) for one in found if kind in (None, one.kind)]


async def logged(memory, session, scope="/") -> list[str]:
    """What a session's messages say, in order."""
    found = await entries(memory, session, Message.KIND)
    payloads = [value.payload for where, value in found if where == scope]
    return said(ModelMessagesTypeAdapter.validate_json(b"[" + b",".join(payloads) + b"]"))


async def used(memory, session) -> list[Any]:
    return [value for _, value in await entries(memory, session, Used.KIND)]


async def check_rebuilt(memory, session) -> int:
    """Make every past request again; how many there were."""
    found = [one for one in await memory.log.read(session) if one.kind == Requested.KIND]
    for entry in found:
        body = b"[" + b",".join(await rebuilt(memory.log, session, entry.seq)) + b"]"
        assert sha256(body).hexdigest() == CODEC.decode(entry).digest
    return len(found)


def echo(scripted, _):
    """Says which request it was."""
    return f"answer {len(scripted.sent)}"


def looks_up(scripted, messages):
    """Calls a tool when it is asked to, then answers."""
    if last(messages).startswith("look up"):
        return [call("look_up", f"c{len(scripted.sent)}", name=last(messages)[8:])]
    return f"answer {len(scripted.sent)}"


def with_look_up(agent: Agent, size=10) -> Agent:
    @agent.tool_plain
    def look_up(name: str) -> str:
        return f"{name}: " + "word " * size

    return agent


EXTRACTIVE = PROFILES["balanced"].model_copy(update={"summarizer": ""})
"""Without a model that writes summaries: a script is for what a model answers in a conversation."""


def small(name="balanced", **values) -> Any:
    """A profile that folds in windows of a few thousand tokens.

    In `balanced` the log writes the summaries, unless a test wants somebody else to: a scripted
    model is asked for nothing but what the script is for.
    """
    base = PROFILES[name]
    trigger = base.trigger.model_copy(update={"at_least": 0, "savings": 0})
    own = {
        "trigger": trigger,
        "reserve": 200,
        "summarizer": "" if name == "balanced" else base.summarizer,
    }
    return base.model_copy(update={**own, **values})


async def folds(memory, session="c"):
    """The folds that are complete, once none is under way."""
    async with asyncio.timeout(60):
        while await _is_folding(memory, session):  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0.01)
    return await entries(memory, session, FoldCompleted.KIND)


async def _is_folding(memory, session):
    kinds = Counter(one.kind for one in await memory.log.read(session))
    return kinds[FoldStarted.KIND] > kinds[FoldCompleted.KIND] + kinds[FoldFailed.KIND]
