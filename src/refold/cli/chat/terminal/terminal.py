"""A chat in a terminal: one thread draws and takes keys, another runs the chat.

So a key is echoed whatever the chat is at. What the chat shows is handed over in the order it was
shown, and what was typed is handed back.
"""

import asyncio
import contextlib
import io
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from rich.console import RenderableType
from rich.text import Text

from refold.cli.chat.clean import cleaned
from refold.cli.chat.events import Heard
from refold.cli.chat.surface import Listening, Row
from refold.cli.chat.terminal.live import Printed
from refold.cli.chat.terminal.screen import Screen

# What a library prints while a chat has the terminal: shown in its place, line by line.


class Stray(io.TextIOBase):
    """Stands for standard output and errors; a process that inherits it writes nowhere."""

    def __init__(self, show: Callable[[Text], None]) -> None:
        self._show = show
        self._line = ""
        self._nowhere: int | None = None

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, text: str, /) -> int:
        """Show each line once it is whole."""
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            if line.strip():
                self._show(Text(line, "dim"))
        return len(text)

    def fileno(self) -> int:
        """For processes that want a file."""
        if self._nowhere is None:
            self._nowhere = os.open(os.devnull, os.O_WRONLY)
        return self._nowhere

    def close(self) -> None:
        """No more."""
        if self._nowhere is not None:
            os.close(self._nowhere)
            self._nowhere = None
        super().close()

    @contextlib.contextmanager
    def caught(self) -> Generator[None]:
        """Take what is printed."""
        with contextlib.redirect_stdout(self), contextlib.redirect_stderr(self):
            yield


_T = TypeVar("_T")

INTERRUPTED = 130
_PATIENCE = 5.0
"""Seconds that a chat is waited for after its terminal failed."""
_SWITCH = 0.0005
"""Seconds that a key waits for a chat that computes, each time they take turns."""
_SIGNALS = (signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))


class Terminal:
    """Where a chat is seen and typed.

    Args:
        history: The file that keeps what was typed; None keeps nothing.
        colour: Whether there are colours; bold and faint there are in any case.
    """

    def __init__(self, *, history: Path | None, colour: bool = True) -> None:
        self._screen = Screen(history, self._stop, colour=colour)
        self._actions: deque[Callable[[], None]] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._chat: tuple[asyncio.AbstractEventLoop, asyncio.Task[int]] | None = None
        self._outcome: Future[int] = Future()
        self._stopped = False

    @property
    def width(self) -> int:
        """Columns."""
        return self._screen.app.columns

    def host(self, main: Callable[[], Coroutine[Any, Any, int]]) -> int:
        """Run the chat in a thread of its own, and draw in this one until it ends."""
        thread = threading.Thread(target=self._run, args=(main,), name="chat", daemon=True)
        stray = Stray(partial(self.show, gap=False))
        before = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH)
        try:
            asyncio.run(self._draw(thread, stray))
        finally:
            if thread.ident is not None:
                thread.join(_PATIENCE)
            stray.close()
            sys.setswitchinterval(before)
        return self._outcome.result() if self._outcome.done() else INTERRUPTED

    def begin(self, listening: Listening) -> None:
        """Take the first thing that is typed."""
        self._post(partial(self._screen.begin, listening))

    async def read(self) -> str | None:
        """The next thing that was typed; None when the person leaves."""
        return await self._answer(self._screen.want)

    def show(self, what: RenderableType, *, gap: bool = True) -> None:
        """Print something that stays, after an empty line unless told."""
        self._post(partial(self._screen.show, Printed(what, "text", gap)))

    def hear(self, heard: Heard) -> None:
        """Show what a turn gives to hear, as it comes."""
        self._post(partial(self._screen.hear, heard))

    def settle(self) -> None:
        """The turn is over: what was shown as it came, stays."""
        self._post(self._screen.settle)

    def refresh(self) -> None:
        """The status has changed."""
        self._post(self._screen.refresh)

    def offer(self, text: str) -> None:
        """Put a text where one types, to be changed and sent."""
        self._post(partial(self._screen.offer, cleaned(text)))

    async def ask(self, question: str, answers: Sequence[str]) -> str | None:
        """Ask for one of these answers (the first is the default); None: Escape or Ctrl-C."""
        return await self._answer(partial(self._screen.ask, question, answers))

    async def pick(self, title: str, rows: Sequence[Row]) -> int | None:
        """Let one row be picked, with search and preview; None: none."""
        return await self._answer(partial(self._screen.open_list, title, rows))

    async def _answer(self, wanted: "Callable[[Future[_T]], None]") -> _T:
        future: Future[_T] = Future()
        self._post(partial(wanted, future))
        return await asyncio.wrap_future(future)

    async def _draw(self, thread: threading.Thread, stray: Stray) -> None:
        """In the main thread: until the chat has ended, or the drawing failed."""
        loop = self._loop = asyncio.get_running_loop()
        failed: list[BaseException] = []
        loop.set_exception_handler(lambda _, found: self._fail(failed, found))
        for one in _SIGNALS:
            with contextlib.suppress(NotImplementedError, ValueError):
                loop.add_signal_handler(one, self._told_to_leave, one)
        try:
            with stray.caught(), self._screen.app.steady():
                await self._screen.app.run_async(
                    pre_run=partial(self._start, thread), set_exception_handler=False
                )
        finally:
            self._loop = None
            self._stop()
        if failed:
            raise failed[0]

    def _start(self, thread: threading.Thread) -> None:
        if self._loop:
            self._screen.start(self._loop)
            self._loop.call_soon(self._act)
            thread.start()

    def _fail(self, failed: list[BaseException], found: dict[str, Any]) -> None:
        failed.append(found.get("exception") or RuntimeError(str(found.get("message"))))
        if self._screen.app.is_running and not self._screen.app.is_done:
            self._screen.app.exit()

    def _run(self, main: Callable[[], Coroutine[Any, Any, int]]) -> None:
        """In the chat's thread."""

        async def chat() -> int:
            self._chat = asyncio.get_running_loop(), asyncio.ensure_future(main())
            return await self._chat[1]

        try:
            self._outcome.set_result(asyncio.run(chat()))
        except asyncio.CancelledError:
            self._outcome.set_result(INTERRUPTED)
        except BaseException as error:  # noqa: BLE001 - raised again in the main thread
            self._outcome.set_exception(error)
        finally:
            self._post(self._screen.close)

    def _post(self, action: Callable[[], None]) -> None:
        """Have something done in the thread that draws, after all that was posted before."""
        self._actions.append(action)
        loop = self._loop
        if loop is not None and len(self._actions) == 1:
            with contextlib.suppress(RuntimeError):  # it is closed: nobody looks any more
                loop.call_soon_threadsafe(self._act)

    def _act(self) -> None:
        for _ in range(len(self._actions)):
            self._actions[0]()
            self._actions.popleft()
        if self._actions and self._loop:  # posted meanwhile; keys come first
            self._loop.call_soon(self._act)
        self._screen.changed()

    def _told_to_leave(self, by: signal.Signals) -> None:
        if self._loop:
            self._loop.remove_signal_handler(by)  # the next one ends the process
        self._screen.leave_now()

    def _stop(self) -> None:
        """The chat does not end by itself: cancel it, and the second time do not wait for it."""
        if self._stopped:
            self._screen.close()
        self._stopped = True
        if self._chat and not self._outcome.done():
            loop, task = self._chat
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(task.cancel)
