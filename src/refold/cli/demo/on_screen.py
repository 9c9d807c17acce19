"""The demo in the chat's own screen: first it plays, then whoever watches may play with it."""

import asyncio
from contextlib import suppress
from dataclasses import replace

from pydantic_ai import Agent, AgentRunResultEvent
from pydantic_ai.messages import AgentStreamEvent
from pydantic_ai.models import Model
from rich.text import Text

from refold.cli.chat.chat import Chat
from refold.cli.chat.conversation import Conversation, Parts
from refold.cli.chat.hearing import Hearing
from refold.cli.chat.surface import Surface
from refold.cli.demo.keeping import kept
from refold.cli.demo.model import (
    INSTRUCTIONS,
    PACE,
    demo_model,
    demo_models,
    demo_profile,
    demo_tools,
)
from refold.cli.demo.play import SESSION, Asked, play
from refold.errors import InvalidInput
from refold.log import Store
from refold.settings import Settings, load_settings

_GREETING = (
    "A conversation that is longer than its model's window: no key is needed, and nothing is faked."
    "\nWatch the line at the bottom. Ctrl-C stops the play, and then everything can be tried."
)
_NOW_YOU = "Now you: /context, /unfold, /explain, /history, /help. Ctrl-C twice leaves."
_PAUSE = 0.25
"""Seconds between two looks at how full the window is."""


async def on_screen(surface: Surface, address: str = "") -> int:
    """Play it, and stay for whatever is typed then; the exit code."""
    async with kept(address, SESSION) as store:
        conversation = Conversation(_parts(store), SESSION, surface.hear, surface.refresh)
        try:
            surface.show(_GREETING, gap=False)
            return await Chat(conversation, surface).run(lambda: _play(conversation, surface))
        finally:
            await conversation.close()


def _parts(store: Store) -> Parts:
    agent: Agent[None, str] = Agent(instructions=INSTRUCTIONS, toolsets=[demo_tools()])
    return Parts(store, agent, demo_model(), _settings, _no_other_model)


def _settings() -> Settings:
    settings = load_settings("balanced")
    return replace(settings, profile=demo_profile(), models=demo_models())


def _no_other_model(name: str) -> Model:
    raise InvalidInput(
        f"The demo has no model {name!r}.", "Talk with another: refold chat -m NAME."
    )


async def _play(conversation: Conversation, surface: Surface) -> None:
    hearing = Hearing()

    def hear(event: Asked | AgentStreamEvent | AgentRunResultEvent[str]) -> None:
        if isinstance(event, Asked):
            surface.settle()
            surface.show(Text(f"› {event.prompt}", style="bold"))  # noqa: RUF001 - the input's mark
        elif (heard := hearing.heard(event)) is not None:
            surface.hear(heard)

    looking = asyncio.create_task(_look(conversation))
    try:
        played = await play(pace=PACE, hear=hear, memory=conversation.memory)
    finally:
        looking.cancel()
        with suppress(asyncio.CancelledError):
            await looking
        surface.settle()
        await conversation.look()
    surface.show(played.as_text())
    surface.show(Text(_NOW_YOU, style="bold"))


async def _look(conversation: Conversation) -> None:
    """Keep the status line up to date."""
    while True:
        await conversation.look()
        await asyncio.sleep(_PAUSE)
