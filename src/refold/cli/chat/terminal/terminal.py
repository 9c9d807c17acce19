"""A chat in a terminal: one thread draws and takes keys, another runs the chat.

So keys are echoed even while the chat is busy. Output is handed over in order, input handed back.
"""

import asyncio
import contextlib
import io
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from refold.cli.chat.clean import cleaned
from refold.cli.chat.surface import ChatCallbacks, Row, TurnEvent
from refold.cli.chat.terminal.screen import Screen

if TYPE_CHECKING:  # the prompt is there before they are imported
    from rich.console import RenderableType
    from rich.text import Text

_T = TypeVar("_T")

INTERRUPTED = 130
_PATIENCE = 5.0  # seconds to wait for a chat after its terminal failed
_SWITCH = 0.0005  # seconds that a key waits for a busy chat, each time the threads switch
_SIGNALS = (signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))


class Terminal:
    """Where a chat is seen and typed.

    Args:
        history: The file of earlier input; None keeps nothing.
        color: Whether to use colors; bold and faint text is used in any case.
    """

    def __init__(self, *, history: Path | None, color: bool = True) -> None:
        self._screen = Screen(history, self._stop, color=color)
        self._actions: deque[Callable[[], None]] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._chat: tuple[asyncio.AbstractEventLoop, asyncio.Task[int]] | None = None
        self._outcome: Future[int] = Future()
        self._stopped = self._drawn = False

    @property
    def width(self) -> int:
        return self._screen.app.columns

    def host(self, main: Callable[[], Coroutine[Any, Any, int]]) -> int:
        """Run the chat in a thread of its own, and draw in this one until it ends."""
        thread = threading.Thread(target=self._run, args=(main,), name="chat", daemon=True)
        captured = CapturedOutput(partial(self.show, gap=False))
        before = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH)
        try:
            asyncio.run(self._draw(thread, captured))
        finally:
            if thread.ident is not None:
                thread.join(_PATIENCE)
                if thread.is_alive():
                    self._stop()
                    thread.join(_PATIENCE)
            captured.close()
            sys.setswitchinterval(before)
        return self._outcome.result() if self._outcome.done() else INTERRUPTED

    def begin(self, callbacks: ChatCallbacks) -> None:
        self._post(partial(self._screen.begin, callbacks))

    async def read(self) -> str | None:
        return await self._answer(self._screen.want)

    async def queued(self) -> Sequence[str]:
        return await self._answer(self._screen.take_messages)

    def show(self, what: "RenderableType", *, gap: bool = True) -> None:
        from refold.cli.chat.terminal.live import ScrollbackItem  # noqa: PLC0415 - slow

        self._post(partial(self._screen.show, ScrollbackItem(what, "text", gap)))

    def on_event(self, event: TurnEvent) -> None:
        self._post(partial(self._screen.on_event, event))

    def settle(self) -> None:
        self._post(self._screen.settle)

    def refresh(self) -> None:
        self._post(self._screen.refresh)

    def offer(self, text: str) -> None:
        """Put a text into the input line, to be edited and sent."""
        self._post(partial(self._screen.offer, cleaned(text)))

    async def ask(self, question: str, answers: Sequence[str]) -> str | None:
        return await self._answer(partial(self._screen.ask, question, answers))

    async def pick(self, title: str, rows: Sequence[Row]) -> int | None:
        return await self._answer(partial(self._screen.open_list, title, rows))

    async def _answer(self, request: "Callable[[Future[_T]], None]") -> _T:
        if self._drawn and self._loop is None:  # nobody is there any more
            raise asyncio.CancelledError
        future: Future[_T] = Future()
        self._post(partial(request, future))
        return await asyncio.wrap_future(future)

    async def _draw(self, thread: threading.Thread, captured: "CapturedOutput") -> None:
        """In the main thread: until the chat has ended, or the drawing failed."""
        loop = self._loop = asyncio.get_running_loop()
        failed: list[BaseException] = []
        loop.set_exception_handler(lambda _, context: self._fail(failed, context))
        for number in _SIGNALS:
            with contextlib.suppress(NotImplementedError, ValueError):
                loop.add_signal_handler(number, self._on_signal, number)
        try:
            with (
                contextlib.redirect_stdout(captured),
                contextlib.redirect_stderr(captured),
                self._screen.app.steady(),
            ):
                await self._screen.app.run_async(
                    pre_run=partial(self._start, thread), set_exception_handler=False
                )
        finally:
            if not self._outcome.done():  # the terminal is gone: what was said by now is kept
                self._screen.leave_now()
            self._loop = None
        if failed:
            raise failed[0]

    def _start(self, thread: threading.Thread) -> None:
        if self._loop:
            self._drawn = True
            self._screen.start(self._loop)
            self._loop.call_soon(self._act)
            thread.start()

    def _fail(self, failed: list[BaseException], context: dict[str, Any]) -> None:
        failed.append(context.get("exception") or RuntimeError(str(context.get("message"))))
        if self._screen.app.is_running and not self._screen.app.is_done:
            self._screen.app.exit()

    def _run(self, main: Callable[[], Coroutine[Any, Any, int]]) -> None:
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
        """Run something in the thread that draws, after everything posted before."""
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

    def _on_signal(self, number: signal.Signals) -> None:
        if self._loop:
            self._loop.remove_signal_handler(number)  # the next one ends the process
        self._screen.leave_now()

    def _stop(self) -> None:
        """Cancel the chat; the second time, do not wait for it."""
        if self._stopped:
            self._screen.close()
        self._stopped = True
        if self._chat and not self._outcome.done():
            loop, task = self._chat
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(task.cancel)


class CapturedOutput(io.TextIOBase):
    """Shows what libraries print meanwhile, line by line; child processes write nowhere."""

    def __init__(self, show: "Callable[[Text], None]") -> None:
        self._show = show
        self._line = ""
        self._devnull: int | None = None

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        from rich.text import Text  # noqa: PLC0415 - slow

        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            if line.strip():
                self._show(Text(line, "dim"))
        return len(text)

    def fileno(self) -> int:
        if self._devnull is None:
            self._devnull = os.open(os.devnull, os.O_WRONLY)
        return self._devnull

    def close(self) -> None:
        if self._devnull is not None:
            os.close(self._devnull)
            self._devnull = None
        super().close()
