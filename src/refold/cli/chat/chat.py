"""The loop of a chat: each typed line becomes a command or a turn, until the person leaves."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from rich.text import Text

from refold.cli.chat import commands
from refold.cli.chat.conversation import Conversation, new_name
from refold.cli.chat.endpoint import EndpointNotes, endpoint_of
from refold.cli.chat.surface import ChatCallbacks, Surface
from refold.cli.chat.tail import SessionTail, last_messages
from refold.errors import RefoldError, SessionNotFound
from refold.log import SessionInfo

_MAX_SESSIONS = 200  # whose names are completed
_POLL = 0.5  # seconds between two looks at what others do in the session


class Chat:
    """One person, one surface, one conversation at a time."""

    def __init__(
        self, conversation: Conversation, surface: Surface, known_models: Sequence[str] = ()
    ) -> None:
        self.conversation = conversation
        self.surface = surface
        self.known_models = known_models
        self.known_sessions: Sequence[SessionInfo] = ()
        self._task: asyncio.Task[None] | None = None
        self._leaving = False
        self._loop = asyncio.get_running_loop()
        self._tail = SessionTail(conversation, surface)
        self._endpoints = EndpointNotes()

    async def run(self, first: Callable[[], Coroutine[Any, Any, None]] | None = None) -> int:
        """Talk until the person leaves; the exit code.

        Args:
            first: Runs before anything is read.
        """
        self.surface.begin(
            ChatCallbacks(
                status=lambda: self.conversation.status,
                interrupt=self._interrupt,
                cancel=self._cancel,
                complete=partial(commands.completions, self),
            )
        )
        await self.conversation.look()
        await self._list_sessions()
        with suppress(RefoldError):
            await self._tail.look()  # everything up to here was shown already
        watching = asyncio.create_task(self._watch())
        try:
            if first is not None:
                with self._tail.quiet():
                    await self._do(first())
            while not self._leaving and (line := await self.surface.read()) is not None:
                if text := line.strip():
                    is_command = text.startswith("/")
                    await self._do(commands.run(self, text) if is_command else self._turn(text))
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
        return 0

    async def note_endpoint(self) -> None:
        talk = self.conversation
        await self._endpoints.note(talk.log, talk.name, endpoint_of(talk.model))

    async def show_tail(self) -> None:
        try:
            messages = await last_messages(self.conversation.log, self.conversation.name)
        except SessionNotFound:  # it begins with the next turn
            return
        if messages is not None:
            self.surface.show(messages)

    async def leave(self) -> None:
        """End after the current turn or command."""
        self._leaving = True

    async def _do(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a turn or a command; an interrupt ends it, and nothing else."""
        self._task = asyncio.ensure_future(self._show_errors(work))
        try:
            await self._task
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            self.surface.show(Text("Interrupted.", style="dim"))
        finally:
            self._task = None
            await self.conversation.look()
            await self._list_sessions()

    async def _show_errors(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except RefoldError as error:
            self._show_problem(error.what, error.fix)

    async def _turn(self, prompt: str) -> None:
        conversation = self.conversation
        if not conversation.name:
            conversation.name = new_name()
        turn = self._tail.own_turn()
        with suppress(RefoldError):
            await self._tail.look()  # earlier messages of others are not part of this turn
        endpoint = endpoint_of(conversation.model)
        try:
            async with self._endpoints.during_turn(conversation.log, conversation.name, endpoint):
                end = await conversation.turn(prompt, turn.on_event, run_id=turn.run_id)
        finally:
            await turn.end()
        if end.how == "interrupted":
            self.surface.show(Text("Interrupted. What was said so far is kept.", style="dim"))
        elif end.how != "answered":
            self._show_problem(end.text, end.fix)

    def _show_problem(self, what: str, fix: str) -> None:
        self.surface.show(Text.assemble((what, "red"), "\n", (fix, "")))

    def _interrupt(self) -> bool:
        """Ctrl-C, in the surface's thread."""
        task = self._task
        if task is None:
            return False

        def stop() -> None:
            if not self.conversation.interrupt():
                task.cancel()

        self._loop.call_soon_threadsafe(stop)
        return True

    def _cancel(self) -> bool:
        """Escape, in the surface's thread."""
        if self.conversation.status.folding is None:
            return False
        asyncio.run_coroutine_threadsafe(self.conversation.cancel_fold(), self._loop)
        return True

    async def _list_sessions(self) -> None:
        with suppress(RefoldError):
            page = await self.conversation.log.sessions(limit=_MAX_SESSIONS)
            self.known_sessions = page.sessions

    async def _watch(self) -> None:
        """Show messages from other terminals, and the progress of folds."""
        while True:
            await asyncio.sleep(_POLL)
            with suppress(RefoldError):
                if await self._tail.look():
                    await self.conversation.look()
