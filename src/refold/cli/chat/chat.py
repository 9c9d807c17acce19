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
from refold.cli.chat.surface import ChatCallbacks, Surface, is_message
from refold.cli.chat.tail import SessionTail, StoreChanges, recent_past, show_past
from refold.errors import RefoldError, SessionNotFound
from refold.log import SessionInfo

_MAX_SESSIONS = 200  # whose names are completed
_REREAD = 0.5  # seconds until a store that could not be read is read again


class Chat:
    """One person, one surface, one conversation at a time."""

    def __init__(
        self,
        conversation: Conversation,
        surface: Surface,
        known_models: Sequence[str] = (),
        show_command: Callable[[str], str] = "refold show {}".format,
    ) -> None:
        """Make one.

        Args:
            conversation: What is talked in first.
            surface: Where.
            known_models: Names that are completed.
            show_command: For a session, the command that reads all of it.
        """
        self.conversation = conversation
        self.surface = surface
        self.known_models = known_models
        self.known_sessions: Sequence[SessionInfo] = ()
        self._show_command = show_command
        self._failed: str | None = None  # the prompt of a turn that failed just now
        self._task: asyncio.Task[None] | None = None
        self._leaving = False
        self._loop = asyncio.get_running_loop()
        self._tail = SessionTail(conversation, surface)
        self._changes: StoreChanges | None = None
        self._endpoints = EndpointNotes()
        conversation.late_prompts = surface.queued

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
                    work = self._turn(text) if is_message(text) else commands.run(self, text)
                    await self._do(work)
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
        return 0

    async def note_endpoint(self) -> None:
        talk = self.conversation
        await self._endpoints.note(talk.log, talk.name, endpoint_of(talk.model))

    async def show_tail(self) -> None:
        name = self.conversation.name
        with suppress(SessionNotFound):  # it begins with the next turn
            past = await recent_past(self.conversation.log, name)
            show_past(past, self.surface, self._show_command(name))

    async def leave(self) -> None:
        """End after the current turn or command."""
        self._leaving = True

    async def _do(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a turn or a command; an interrupt ends it, and nothing else."""
        with suppress(RefoldError):
            await self._tail.look()  # what others did before is theirs
        self._tail.acting = True
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
            with suppress(RefoldError):
                await self._tail.look()
            self._tail.acting = False
            await self.conversation.look()
            await self._list_sessions()
            if self._changes:  # what others wrote meanwhile was not shown
                self._changes.notify()

    async def _show_errors(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except RefoldError as error:
            self._show_problem(error.what, error.fix)

    async def retry(self) -> bool:
        """Send a prompt that got no answer again; whether there was one."""
        if await self.conversation.unanswered() is not None:
            await self._turn(None)
        elif self._failed:  # it failed before it was logged
            await self._turn(self._failed)
        else:
            return False
        return True

    async def _turn(self, prompt: str | None) -> None:
        conversation = self.conversation
        if prompt and prompt == self._failed and prompt == await conversation.unanswered():
            prompt = None  # it was typed again instead of /retry: the log has it already
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
        failed = end.how == "failed"
        self._failed = (prompt or await conversation.unanswered()) if failed else None
        if end.how == "interrupted":
            self.surface.show(Text("Interrupted. What was said so far is kept.", style="dim"))
        elif end.how != "answered":
            self._show_problem(end.text, end.fix)
        elif end.at_limit:
            self.surface.show(Text(end.fix, style="dim"))

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
        """Escape, in the surface's thread: cancels a fold that is waited for, else the turn."""
        talk = self.conversation
        if talk.folding and (self._task is None or talk.status.folding is not None):
            asyncio.run_coroutine_threadsafe(talk.cancel_fold(), self._loop)
            return True
        return self._interrupt()

    async def _list_sessions(self) -> None:
        with suppress(RefoldError):
            page = await self.conversation.log.sessions(limit=_MAX_SESSIONS)
            self.known_sessions = page.sessions

    async def _watch(self) -> None:
        """Show messages from other terminals, and the progress of folds."""
        changes = self._changes = StoreChanges(self.conversation.store_file)
        try:
            while True:
                await changes.wait()
                try:
                    if await self._tail.look():
                        await self.conversation.look()
                except RefoldError:
                    await asyncio.sleep(_REREAD)
                    changes.notify()
        finally:
            changes.close()
