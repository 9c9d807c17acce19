"""The demo, printed as plain text, or played in the chat's own screen, which then stays open."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

from pydantic_ai import Agent, AgentRunResultEvent, FunctionToolCallEvent
from pydantic_ai.messages import (
    AgentStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
)
from pydantic_ai.models import Model
from rich.text import Text

from refold.cli.chat.chat import Chat
from refold.cli.chat.conversation import Conversation, Parts, TurnTracker
from refold.cli.chat.surface import Surface
from refold.cli.demo.model import demo_model, demo_models, demo_profile, demo_tools
from refold.cli.demo.play import SESSION, Prompt, play
from refold.cli.demo.script import INSTRUCTIONS, PACE
from refold.cli.options import store_at
from refold.errors import InvalidInput, SessionExists, SessionNotFound
from refold.exports.moments import counted
from refold.integrations.pydantic_ai import SessionEvent
from refold.log import Store
from refold.models import counter_for
from refold.settings import Settings, load_settings
from refold.stores import MemoryStore

_GREETING = (
    "A conversation that is longer than its model's window: no key is needed, and nothing is faked."
    "\nWatch the line at the bottom. Ctrl-C stops the play, and then everything can be tried."
)
_NOW_YOU = "Now you: /context, /unfold, /explain, /history, /help. Ctrl-C twice leaves."
_PAUSE = 0.25
"""Seconds between two updates of how full the window is."""


class Printer:
    """Prints events as plain text, for pipes and simple terminals; `out` receives the pieces."""

    def __init__(self, out: Callable[[str], None]) -> None:
        self._out = out
        self._open = False
        """Whether a line is incomplete."""

    def __call__(self, event: Prompt | AgentStreamEvent | AgentRunResultEvent[Any]) -> None:
        match event:
            case Prompt(prompt=prompt):
                self._line(f"\n> {prompt}")
            case PartStartEvent(part=TextPart(content=text)):
                self._say(text)
            case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                self._say(text)
            case FunctionToolCallEvent():
                values = json.loads(event.part.args_as_json_str()).values()
                self._line("  " + " ".join([event.part.tool_name, *map(str, values)]))
            case SessionEvent(name="session.compaction_complete", details=details):
                before, after = details["preCompactionTokens"], details["postCompactionTokens"]
                removed = counted(details["messagesRemoved"], "message")
                self._line(f"  Conversation Compacted: {removed}, {before:,} → {after:,} tokens")
            case _:
                pass

    def end(self) -> None:
        if self._open:
            self._out("\n")
            self._open = False

    def _say(self, text: str) -> None:
        self._out(text)
        self._open = self._open or bool(text)

    def _line(self, text: str) -> None:
        self.end()
        self._out(f"{text}\n")


@asynccontextmanager
async def demo_store(address: str, session: str) -> AsyncGenerator[Store]:
    """The store at the address, which must not have the session; without an address, in memory."""
    async with store_at(address, create=True) if address else MemoryStore() as store:
        with suppress(SessionNotFound):
            await store.log().info(session)
            raise SessionExists(
                f"{address} has a session {session!r} already.",
                f"Read it (refold show {session} --store {address}), or name another store.",
            )
        yield store


async def on_screen(surface: Surface, address: str = "") -> int:
    """Play the demo, then chat; the exit code."""
    async with demo_store(address, SESSION) as store:
        agent: Agent[None, str] = Agent(instructions=INSTRUCTIONS, toolsets=[demo_tools()])
        parts = Parts(store, agent, demo_model(), _settings, _no_other_model)
        conversation = Conversation(parts, SESSION, surface.on_event, surface.refresh)
        try:
            surface.show(_GREETING, gap=False)
            return await Chat(conversation, surface).run(lambda: _play(conversation, surface))
        finally:
            await conversation.close()


def _settings() -> Settings:
    settings = load_settings("balanced")
    return replace(settings, profile=demo_profile(), models=demo_models())


def _no_other_model(name: str) -> Model:
    raise InvalidInput(
        f"The demo has no model {name!r}.", "Talk with another: refold chat -m NAME."
    )


async def _play(conversation: Conversation, surface: Surface) -> None:
    tracker = TurnTracker(counter_for(""))

    def hear(event: Prompt | AgentStreamEvent | AgentRunResultEvent[str]) -> None:
        if isinstance(event, Prompt):
            surface.settle()
            surface.show(Text(f"› {event.prompt}", style="bold"))  # noqa: RUF001 - the input's mark
        elif (translated := tracker.translate(event)) is not None:
            surface.on_event(translated)

    refreshing = asyncio.create_task(_refresh_status(conversation))
    try:
        played = await play(pace=PACE, hear=hear, memory=conversation.memory)
    finally:
        refreshing.cancel()
        with suppress(asyncio.CancelledError):
            await refreshing
        surface.settle()
        await conversation.look()
    surface.show(played.as_text())
    surface.show(Text(_NOW_YOU, style="bold"))


async def _refresh_status(conversation: Conversation) -> None:
    while True:
        await conversation.look()
        await asyncio.sleep(_PAUSE)
