"""Runs a chat: opens what it needs, on a surface that is there before all that."""

import asyncio
import os
import signal
import sys
from functools import partial

from refold.cli.chat.surface import Surface
from refold.cli.chat.wanted import Wanted
from refold.user_folders import state_folder


def run_chat(wanted: Wanted, *, plain: bool) -> int:
    """Talk until the person leaves; the exit code."""
    _prepare_libraries()
    surface = surface_for(plain=plain)
    return surface.host(lambda: _chat(wanted, surface))


def run_prompt(wanted: Wanted, prompt: str, *, as_json: bool) -> int:
    """Say one thing and print the answer; the exit code."""
    _prepare_libraries()
    return asyncio.run(_prompt(wanted, prompt, as_json=as_json))


def _prepare_libraries() -> None:
    """Tell libraries, before they are imported, what they would do by themselves."""
    # Pydantic AI greets whoever has a terminal, in the middle of the first answer.
    os.environ.setdefault("PYDANTIC_AI_NO_BANNER", "1")
    # FastMCP takes settings from a file .env in the current folder, which may be a clone's.
    os.environ.setdefault("FASTMCP_ENV_FILE", os.devnull)


def surface_for(*, plain: bool) -> Surface:
    """A terminal, or plain lines."""
    if plain:
        from refold.cli.chat.plain.plain import Plain  # noqa: PLC0415 - one of two

        return Plain()
    from refold.cli.chat.terminal.terminal import Terminal  # noqa: PLC0415 - one of two

    return Terminal(history=state_folder() / "typed", colour=not os.environ.get("NO_COLOR"))


async def _chat(wanted: Wanted, surface: Surface) -> int:
    # Imported here: a terminal takes what is typed while this is read.
    from refold.cli.chat.assembling import assembled  # noqa: PLC0415 - see above
    from refold.cli.chat.chat import Chat  # noqa: PLC0415 - see above
    from refold.cli.chat.conversation import Conversation  # noqa: PLC0415 - see above
    from refold.cli.chat.greeting import farewell, greeting  # noqa: PLC0415 - see above
    from refold.cli.chat.leaving import consolidates_later  # noqa: PLC0415 - see above
    from refold.cli.chat.models.providers import known_models  # noqa: PLC0415 - see above
    from refold.cli.chat.resuming import come_back, session_to_resume  # noqa: PLC0415 - see above

    session = partial(session_to_resume, wanted=wanted, surface=surface)
    async with assembled(wanted, surface.show, session) as found:
        conversation = Conversation(found.parts, "", surface.hear, surface.refresh)
        try:
            await conversation.open()
            first = not (await conversation.log.sessions(limit=1)).sessions
            surface.show(greeting(found.choice, wanted.store, first=first), gap=False)
            chat = Chat(conversation, surface, known_models(os.environ))
            if found.session:
                await conversation.go_to(found.session)
                if found.change:
                    surface.show(found.change)
                await chat.show_tail()
            code = await chat.run()
            later = await consolidates_later(conversation, wanted)
            begun = conversation.name and await conversation.session() is not None
        finally:
            await conversation.close()
        if begun:
            surface.show(farewell(come_back(conversation.name, wanted)))
        if later:
            surface.show("What is worth it goes to the board of this branch meanwhile.", gap=False)
    return code


async def _prompt(wanted: Wanted, prompt: str, *, as_json: bool) -> int:
    from refold.cli.chat.assembling import assembled  # noqa: PLC0415 - an extra's
    from refold.cli.chat.conversation import Conversation  # noqa: PLC0415 - an extra's
    from refold.cli.chat.printing import printed  # noqa: PLC0415 - an extra's
    from refold.cli.chat.resuming import session_wanted  # noqa: PLC0415 - an extra's

    async with assembled(wanted, _aside, partial(session_wanted, wanted=wanted)) as found:
        conversation = Conversation(found.parts, "", lambda _: None, lambda: None)
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, conversation.interrupt)
        try:
            await conversation.open()
            conversation.name = found.session or ""
            if found.change:
                _aside(found.change)
            return await printed(conversation, prompt, as_json=as_json)
        finally:
            await conversation.close()


def _aside(text: str) -> None:
    from refold.cli.chat.clean import cleaned  # noqa: PLC0415 - slow

    sys.stderr.write(f"{cleaned(text)}\n")
