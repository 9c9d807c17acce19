"""The loop of a chat: what is typed becomes a command or a turn, until the person leaves."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from rich.text import Text

from refold.cli.chat import commands
from refold.cli.chat.conversation import Conversation, TurnEnd, new_name
from refold.cli.chat.endpoint import EndpointNotes, endpoint_of
from refold.cli.chat.surface import Listening, Surface
from refold.cli.chat.tail import Newsboy, tail
from refold.errors import RefoldError, SessionNotFound
from refold.log import SessionInfo

_KNOWN = 200
"""Sessions whose names are completed."""
_PAUSE = 0.5
"""Seconds between two looks at what others do in the session."""


class Chat:
    """One person, one surface, one conversation at a time."""

    def __init__(
        self, conversation: Conversation, surface: Surface, known_models: Sequence[str] = ()
    ) -> None:
        self.conversation = conversation
        self.surface = surface
        self.known_models = known_models
        self.known_sessions: Sequence[SessionInfo] = ()
        self._doing: asyncio.Task[None] | None = None
        self._leaving = False
        self._loop = asyncio.get_running_loop()
        self._news = Newsboy(conversation, surface)
        self._endpoints = EndpointNotes()

    async def run(self, first: Callable[[], Coroutine[Any, Any, None]] | None = None) -> int:
        """Talk until the person leaves; how the program ends.

        Args:
            first: What is done before anything is read.
        """
        self.surface.begin(
            Listening(
                status=lambda: self.conversation.status,
                interrupt=self._interrupt,
                cancel=self._cancel,
                complete=partial(commands.completions, self),
            )
        )
        await self.conversation.look()
        await self._know()
        with suppress(RefoldError):
            await self._news.look()  # from here on: what was said before was shown already
        watching = asyncio.create_task(self._watch())
        try:
            if first is not None:
                with self._news.quiet():
                    await self._do(first())
            while not self._leaving and (line := await self.surface.read()) is not None:
                if line.strip():
                    await self._do(self._typed(line.strip()))
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
        return 0

    async def note_endpoint(self) -> None:
        """Have the session say which model answers in it now."""
        talk = self.conversation
        await self._endpoints.note(talk.log, talk.name, endpoint_of(talk.model))

    async def show_tail(self) -> None:
        """Show the last words of the session that was gone to."""
        try:
            found = await tail(self.conversation.log, self.conversation.name)
        except SessionNotFound:  # it begins with the next turn
            return
        if found is not None:
            self.surface.show(found)

    async def leave(self) -> None:
        """End after what is under way."""
        self._leaving = True

    def _typed(self, line: str) -> Coroutine[Any, Any, None]:
        return commands.run(self, line) if line.startswith("/") else self._turn(line)

    async def _do(self, work: Coroutine[Any, Any, None]) -> None:
        """Do it; an interrupt ends it, and nothing else."""
        self._doing = asyncio.ensure_future(self._told(work))
        try:
            await self._doing
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            self.surface.show(Text("Interrupted.", style="dim"))
        finally:
            self._doing = None
            await self.conversation.look()
            await self._know()

    async def _told(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except RefoldError as error:
            self.surface.show(_problem(error.what, error.fix))

    async def _turn(self, prompt: str) -> None:
        conversation, surface = self.conversation, self.surface
        if not conversation.name:
            conversation.name = new_name()
        turn = self._news.own_turn()
        with suppress(RefoldError):
            await self._news.look()  # what others said before this turn is not part of it
        endpoint = endpoint_of(conversation.model)
        try:
            async with self._endpoints.during_turn(conversation.log, conversation.name, endpoint):
                end = await conversation.turn(prompt, turn.hear, run_id=turn.run_id)
        finally:
            await turn.end()
        _show_end(surface, end)

    def _interrupt(self) -> bool:
        """Ctrl-C, in the surface's thread."""
        doing = self._doing
        if doing is None:
            return False
        self._loop.call_soon_threadsafe(self._broken_off, doing)
        return True

    def _broken_off(self, doing: "asyncio.Task[None]") -> None:
        if not self.conversation.interrupt():
            doing.cancel()

    def _cancel(self) -> bool:
        """Escape, in the surface's thread."""
        if self.conversation.status.folding is None:
            return False
        asyncio.run_coroutine_threadsafe(self.conversation.cancel_fold(), self._loop)
        return True

    async def _know(self) -> None:
        """Which sessions there are, for completion."""
        with suppress(RefoldError):
            page = await self.conversation.log.sessions(limit=_KNOWN)
            self.known_sessions = page.sessions

    async def _watch(self) -> None:
        """Show what is said in this session from elsewhere, and how folds go on."""
        while True:
            await asyncio.sleep(_PAUSE)
            with suppress(RefoldError):
                if await self._news.look():
                    await self.conversation.look()


def _show_end(surface: Surface, end: TurnEnd) -> None:
    match end.how:
        case "answered":
            return
        case "interrupted":
            surface.show(Text("Interrupted. What was said so far is kept.", style="dim"))
        case _:
            surface.show(_problem(end.text, end.fix))


def _problem(what: str, fix: str) -> Text:
    return Text.assemble((what, "red"), "\n", (fix, ""))
