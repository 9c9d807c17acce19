"""A chat in plain lines: for screen readers, for terminals that can do nothing, for pipes.

Nothing moves, nothing is drawn twice, nothing is coloured.
"""

import asyncio
import contextlib
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from io import StringIO
from typing import Any, TextIO

from rich.console import RenderableType

from refold.cli.chat.clean import cleaned
from refold.cli.chat.heard import Heard
from refold.cli.chat.plain.lines import (
    InputLines,
    as_text,
    found,
    listed,
    row_numbered,
    status_line,
)
from refold.cli.chat.plain.words import Spoken
from refold.cli.chat.surface import Listening, Row
from refold.cli.chat.terminal.asking import chosen, offered
from refold.cli.outcome import INTERRUPTED, unwritten
from refold.cli.tables import terminal_width
from refold.view.columns import first_words

_PROMPT = "You: "
_PICK = "Number, or words to search, or nothing to go back: "
_NUMBER = 20
"""Columns of a number that is none of the list."""
_STUBBORN = 3
"""Interrupts that nothing came of, after which the chat is stopped."""


class _Pressed(Exception):
    """Ctrl-C, while a line is waited for."""


class Plain:
    """Where a chat is read and typed line by line.

    Args:
        stdin: Where lines come from; standard input unless given.
        stdout: Where they go; standard output unless given.
    """

    def __init__(self, *, stdin: TextIO | None = None, stdout: TextIO | None = None) -> None:
        # A program may be started without either.
        self._in = stdin or sys.stdin or StringIO()
        self._out = stdout or sys.stdout or StringIO()
        self._lost: OSError | None = None
        self._listening: Listening | None = None
        self._lines = InputLines(self._in)
        self._spoken = Spoken(self._write)
        self._waits: asyncio.Future[str | None] | None = None
        self._main: asyncio.Task[int] | None = None
        self._turned = self._warned = False
        self._presses = 0
        self._shown = False

    @property
    def width(self) -> int:
        """Columns."""
        return terminal_width() if self._out.isatty() else 80

    def host(self, main: Callable[[], Coroutine[Any, Any, int]]) -> int:
        """Run the chat to its end, in this thread."""
        try:
            code = asyncio.run(self._host(main))
        except asyncio.CancelledError:
            code = INTERRUPTED
        return code if self._lost is None else unwritten(self._lost)

    def begin(self, listening: Listening) -> None:
        """There is a chat to ask."""
        self._listening = listening

    async def read(self) -> str | None:
        """The next line; None at the end of them, or after Ctrl-C twice."""
        self._spoken.settle()
        if self._turned and self._listening:
            self._say(status_line(self._listening.status()))
        self._turned = False
        while True:
            try:
                line = await self._line(_PROMPT)
            except _Pressed:
                if self._warned:
                    return None
                self._warned = True
                self._say("\nPress Ctrl-C again to leave.")
                continue
            self._warned = False
            if line is None or cleaned(line).strip():
                return line

    def show(self, what: RenderableType, *, gap: bool = True) -> None:
        """Print something, after an empty line unless told."""
        self._spoken.settle()
        text = as_text(what, self.width)
        self._write(("\n" if gap and self._shown else "") + text)
        self._shown = True

    def hear(self, heard: Heard) -> None:
        """Say what a turn gives to hear, as it comes."""
        self._turned = True
        self._spoken.hear(heard)

    def settle(self) -> None:
        """The turn is over."""
        self._presses = 0
        self._spoken.settle()

    def refresh(self) -> None:
        """The status is told after each turn."""

    async def ask(self, question: str, answers: Sequence[str]) -> str | None:
        """Ask for one of these answers (an empty line is the first); None: Ctrl-C, or no more.

        Only a line that is an answer answers. On a terminal it must come after the question, and
        any other line is the next message, while the question is asked again. From a pipe nobody
        sees a question come up: the next line that is not empty answers it or, if it is no answer,
        leaves it without one and is the next message.
        """
        self._spoken.settle()
        asked = f"{cleaned(question)} {offered(answers)} "
        with contextlib.suppress(_Pressed):
            if not self._in.isatty():
                return await self._answer_from_pipe(asked, answers)
            while (line := await self._line(asked, since=time.monotonic())) is not None:
                if answer := chosen(line, answers):
                    return answer
                self._lines.put_back(line)
                self._say("That is no answer: it is your next message.")
        return None

    async def _answer_from_pipe(self, asked: str, answers: Sequence[str]) -> str | None:
        line = await self._piped_line()
        answer = None if line is None else chosen(line, answers)
        if line is not None and answer is None:
            self._lines.put_back(line)
        self._say(f"{asked}{cleaned(line) if answer and line else '(no answer)'}")
        return answer

    async def _piped_line(self) -> str | None:
        """The next line that is not empty."""
        while (line := await self._awaited(self._lines.next())) is not None:
            if cleaned(line).strip():
                break
        return line

    async def pick(self, title: str, rows: Sequence[Row]) -> int | None:
        """Let a row be picked by its number, with search; None: none.

        On a terminal only lines that come after the list count. From a pipe, a line that neither is
        a number nor finds anything picks nothing and is the next message.
        """
        self._spoken.settle()
        typed = self._in.isatty()
        shown = list(range(len(rows)))
        with contextlib.suppress(_Pressed):
            while True:
                self._write(listed(cleaned(title), rows, shown, self.width))
                since = time.monotonic() if typed else float("-inf")
                line = await self._line(_PICK, since=since)
                if line is None or not line.strip():
                    return None
                if line.strip().isdecimal():
                    if (at := row_numbered(line.strip(), rows)) is not None:
                        return at
                    self._say(f"There is no number {first_words(line, _NUMBER)}.")
                elif (matching := found(line, rows)) or typed:
                    shown = matching
                else:
                    self._lines.put_back(line)
                    return None
        return None

    async def _host(self, main: Callable[[], Coroutine[Any, Any, int]]) -> int:
        loop = asyncio.get_running_loop()
        if self._in.isatty():
            self._lines.start()  # what is typed before a question comes up is known to be older
        self._main = asyncio.ensure_future(main())
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(signal.SIGINT, self._interrupt)
        try:
            return await self._main
        finally:
            self._spoken.settle()
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                loop.remove_signal_handler(signal.SIGINT)

    def _interrupt(self) -> None:
        if self._waits and not self._waits.done():
            self._waits.set_exception(_Pressed())
        elif self._listening and self._listening.interrupt() and self._presses < _STUBBORN:
            self._presses += 1
        elif self._presses >= _STUBBORN and self._main:
            self._main.cancel()
        else:
            self._presses += 1

    async def _line(self, prompt: str, since: float = float("-inf")) -> str | None:
        """A line, asked for; where nobody types it now, it is shown as if somebody had."""
        if self._lost is not None:  # nobody would see what is asked
            return None
        typed = self._in.isatty()
        self._write(prompt)
        line = await self._awaited(self._lines.next(since))
        if line is None or not typed:
            self._say(cleaned(line or ""))
        return line

    async def _awaited(self, line: "asyncio.Future[str | None]") -> str | None:
        if self._lost is not None:
            return None
        self._waits = line
        try:
            return await line
        finally:
            self._waits = None

    def _say(self, line: str) -> None:
        self._write(f"{line}\n")

    def _write(self, text: str) -> None:
        """Write it; once nobody can read it, what is under way goes on all the same."""
        if self._lost is not None:
            return
        encoding = self._out.encoding or "utf-8"
        try:
            self._out.write(text.encode(encoding, "replace").decode(encoding))
            self._out.flush()
        except OSError as error:
            self._lost = error
