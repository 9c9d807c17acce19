"""A chat in plain lines: for screen readers, for terminals that can do nothing, for pipes.

Nothing moves, nothing is drawn twice, nothing is colored.
"""

import asyncio
import codecs
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TextIO

from rich.console import Console, RenderableType
from rich.text import Text

from refold.cli.chat.clean import Cleaner, cleaned
from refold.cli.chat.status import COMPACTING, GETTING_READY, UNKNOWN, Status
from refold.cli.chat.surface import (
    ChatCallbacks,
    ContextEvent,
    Prompt,
    RemoteMessage,
    Row,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolResult,
    TurnEvent,
    is_message,
    matching_rows,
)
from refold.cli.chat.terminal.input import chosen, offered
from refold.cli.chat.text import duration, event_lines, line_count
from refold.cli.outcome import INTERRUPTED, unwritten
from refold.cli.output import terminal_width
from refold.terminal_text import counted, first_words

if TYPE_CHECKING:  # a line can be typed before they are imported
    from refold.fold.events import FoldEvent
    from refold.view import Event

_PROMPT = "You: "
_PICK = "Number, or words to search, or nothing to go back: "
_WIDTH = 200  # columns of a line about a call
_NUMBER_WIDTH = 20  # columns of a number that is not in the list
_MAX_ROWS = 20  # listed at once
_MAX_ROW_LINES = 4
_MAX_DIGITS = 9  # more than any list needs
_MAX_INTERRUPTS = 3  # without effect, after which the chat is stopped
_ANY_TIME = float("-inf")
_ASCII_BOXES: Final = {
    **dict.fromkeys(range(0x2500, 0x2580), "+"),
    **dict.fromkeys((0x2500, 0x2501, 0x2504, 0x254C, 0x2550), "-"),
    **dict.fromkeys((0x2502, 0x2503, 0x2506, 0x254E, 0x2551), "|"),
    **dict.fromkeys(range(0x2580, 0x2591), "#"),
    **dict.fromkeys((0x2591, 0x2592), "."),
}


class _Interrupted(Exception):
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
        self._error: OSError | None = None  # why the output takes no more
        self._callbacks: ChatCallbacks | None = None
        self._lines = InputLines(self._in)
        self._turn = SpokenTurn(self._write, lambda: self.width)
        self._next_line: asyncio.Future[str | None] | None = None
        self._main: asyncio.Task[int] | None = None
        self._status_due = self._warned = False
        self._presses = 0
        self._shown = False

    @property
    def width(self) -> int:
        return terminal_width() if self._out.isatty() else 80

    def host(self, main: Callable[[], Coroutine[Any, Any, int]]) -> int:
        try:
            code = asyncio.run(self._host(main))
        except asyncio.CancelledError:
            code = INTERRUPTED
        return code if self._error is None else unwritten(self._error)

    async def _host(self, main: Callable[[], Coroutine[Any, Any, int]]) -> int:
        loop = asyncio.get_running_loop()
        if self._in.isatty():
            self._lines.start()  # so that lines typed before a question are known to be older
            self._say(f"{GETTING_READY}.")
        self._main = asyncio.ensure_future(main())
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(signal.SIGINT, self._interrupt)
        try:
            return await self._main
        finally:
            self._turn.settle()
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                loop.remove_signal_handler(signal.SIGINT)

    def _interrupt(self) -> None:
        if self._next_line and not self._next_line.done():
            self._next_line.set_exception(_Interrupted())
        elif self._callbacks and self._callbacks.interrupt() and self._presses < _MAX_INTERRUPTS:
            self._presses += 1
        elif self._presses >= _MAX_INTERRUPTS and self._main:
            self._main.cancel()
        else:
            self._presses += 1

    def begin(self, callbacks: ChatCallbacks) -> None:
        self._callbacks = callbacks

    async def read(self) -> str | None:
        """The next line; None at the end of them, or after Ctrl-C twice."""
        self._turn.settle()
        if self._status_due and self._callbacks:
            self._say(status_line(self._callbacks.status()))
        self._status_due = False
        while True:
            try:
                line = await self._line(_PROMPT)
            except _Interrupted:
                if self._warned:
                    return None
                self._warned = True
                self._say("\nPress Ctrl-C again to leave.")
                continue
            self._warned = False
            if line is None or cleaned(line).strip():
                return line

    async def queued(self) -> Sequence[str]:
        return self._lines.take_messages() if self._in.isatty() else []

    def show(self, what: RenderableType, *, gap: bool = True) -> None:
        self._turn.settle()
        text = as_text(what, self.width)
        self._write(("\n" if gap and self._shown else "") + text)
        self._shown = True

    def on_event(self, event: TurnEvent) -> None:
        self._status_due = True
        self._turn.on_event(event)

    def settle(self) -> None:
        self._presses = 0
        self._turn.settle()

    def refresh(self) -> None:
        """Nothing to do: the status is printed after each turn."""

    async def ask(self, question: str, answers: Sequence[str]) -> str | None:
        """Ask for one of these answers (an empty line is the first); None: Ctrl-C, or no more.

        Only a line that is an answer answers. On a terminal it must come after the question, and
        any other line is the next message, while the question is asked again. From a pipe nobody
        sees a question come up: the next line that is not empty answers it or, if it is no answer,
        leaves it without one and is the next message.
        """
        self._turn.settle()
        prompt = f"{cleaned(question)} {offered(answers)} "
        with contextlib.suppress(_Interrupted):
            if not self._in.isatty():
                return await self._answer_from_pipe(prompt, answers)
            while (line := await self._line(prompt, since=time.monotonic())) is not None:
                if answer := chosen(line, answers):
                    return answer
                self._lines.put_back(line)
                self._say("That is no answer: it is your next message.")
        return None

    async def _answer_from_pipe(self, prompt: str, answers: Sequence[str]) -> str | None:
        while (line := await self._wait_for(self._lines.next())) is not None:
            if cleaned(line).strip():
                break
        answer = None if line is None else chosen(line, answers)
        if line is not None and answer is None:
            self._lines.put_back(line)
        self._say(f"{prompt}{cleaned(line) if answer and line else '(no answer)'}")
        return answer

    async def pick(self, title: str, rows: Sequence[Row]) -> int | None:
        """Let a row be picked by its number, with search; None: none.

        On a terminal only lines that come after the list count. From a pipe, a line that neither is
        a number nor finds anything picks nothing and is the next message.
        """
        self._turn.settle()
        is_tty = self._in.isatty()
        shown = list(range(len(rows)))
        with contextlib.suppress(_Interrupted):
            while True:
                self._write(_numbered(cleaned(title), rows, shown, self.width))
                line = await self._line(_PICK, since=time.monotonic() if is_tty else _ANY_TIME)
                if line is None or not line.strip():
                    return None
                if (digits := line.strip()).isdecimal():
                    if len(digits) <= _MAX_DIGITS and 1 <= int(digits) <= len(rows):
                        return int(digits) - 1
                    self._say(f"There is no number {first_words(line, _NUMBER_WIDTH)}.")
                elif (matching := matching_rows(line, rows)) or is_tty:
                    shown = matching
                else:
                    self._lines.put_back(line)
                    return None
        return None

    async def _line(self, prompt: str, since: float = _ANY_TIME) -> str | None:
        """Prompt for a line; one that does not come from a terminal is echoed."""
        if self._error is not None:  # nobody would see the prompt
            return None
        is_tty = self._in.isatty()
        self._write(prompt)
        line = await self._wait_for(self._lines.next(since))
        if line is None or not is_tty:
            self._say(cleaned(line or ""))
        return line

    async def _wait_for(self, line: "asyncio.Future[str | None]") -> str | None:
        if self._error is not None:
            return None
        self._next_line = line
        try:
            return await line
        finally:
            self._next_line = None

    def _say(self, line: str) -> None:
        self._write(f"{line}\n")

    def _write(self, text: str) -> None:
        """Write it; after an error, the chat goes on without output."""
        if self._error is not None:
            return
        encoding = self._out.encoding or "utf-8"
        try:
            self._out.write(text.encode(encoding, "replace").decode(encoding))
            self._out.flush()
        except OSError as error:
            self._error = error


def as_text(what: RenderableType, width: int) -> str:
    """Something that Rich prints, without colors and box characters."""
    console = Console(
        file=StringIO(),
        color_system=None,
        width=width,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    with console.capture() as captured:
        console.print(what)
    text = cleaned(captured.get()).translate(_ASCII_BOXES)
    return "\n".join(line.rstrip() for line in text.split("\n")).strip("\n") + "\n"


def _numbered(title: str, rows: Sequence[Row], shown: Sequence[int], width: int) -> str:
    title = title if title.endswith("?") else f"{title}:"
    lines = [f"{title} {len(shown):,} of {len(rows):,}." if shown else f"{title} none."]
    for index in shown[:_MAX_ROWS]:
        detail = f", {rows[index].detail}" if rows[index].detail else ""
        row = first_words(f"{index + 1}. {rows[index].label}{detail}", _MAX_ROW_LINES * width)
        lines.append(as_text(Text(row), width).rstrip("\n"))
    if len(shown) > _MAX_ROWS:
        lines.append(f"And {len(shown) - _MAX_ROWS:,} more.")
    return "\n".join(lines) + "\n"


def status_line(status: Status) -> str:
    filled, share = status.filled, status.share
    about = "" if status.exact else "about "
    if status.window and share is not None:
        context = f"{about}{share * 100:.0f} % of {status.window:,} tokens"
    elif filled is not None:
        context = f"{about}{counted(filled.total, 'token')}, window {UNKNOWN}"
    else:
        context = UNKNOWN
    cost = UNKNOWN if status.cost is None else f"${status.cost:.2f}"
    return f"Context: {context}. Cost so far: {cost}."


class SpokenTurn:
    """Prints a turn: the answer word by word as it streams in, all else in lines of its own."""

    def __init__(self, write: Callable[[str], None], width: Callable[[], int]) -> None:
        self._write = write
        self._width = width
        self._cleaner = Cleaner()
        self._word = ""  # it may not be complete yet
        self._midline = False
        self._thinking_since: float | None = None

    def on_event(self, event: TurnEvent) -> None:
        match event:
            case ThinkingDelta():
                if self._thinking_since is None:
                    self._thinking_since = time.monotonic()
            case Prompt(text):
                self._line(f"{_PROMPT}{cleaned(text)}")
            case TextDelta(text):
                self._end_thinking()
                text = self._word + self._cleaner.feed(text)
                end = max(text.rfind(" "), text.rfind("\n")) + 1
                self._emit(text[:end])
                self._word = text[end:]
            case ToolCall(tool=tool, arguments=arguments):
                self._line(f"Calls {first_words(tool, _WIDTH)}: {first_words(arguments, _WIDTH)}")
            case ToolResult():
                self._line(_result_line(event))
            case ContextEvent(change):
                self._context_event(change)
            case RemoteMessage(who, text):
                speaker = "You, in" if who == "you" else "Answer in"
                self._line(f"{speaker} another terminal: {cleaned(text)}")

    def _context_event(self, event: "Event | FoldEvent") -> None:
        from refold.fold.events import CompactionWait  # noqa: PLC0415 - slow

        if isinstance(event, CompactionWait):
            self._line(f"{COMPACTING}.")
        for line in event_lines(event):
            text = Text(cleaned(line.text).replace("→", "to"))
            self._line(as_text(text, self._width()).rstrip("\n"))

    def settle(self) -> None:
        self._end_thinking()
        self._emit(self._word)
        self._word = ""
        if self._midline:
            self._emit("\n")

    def _end_thinking(self) -> None:
        if self._thinking_since is not None:
            seconds = time.monotonic() - self._thinking_since
            self._thinking_since = None
            self._line(f"Thought for {duration(seconds)}.")

    def _line(self, line: str) -> None:
        self.settle()
        self._emit(f"{line}\n")

    def _emit(self, text: str) -> None:
        if text:
            self._write(text)
            self._midline = not text.endswith("\n")


def _result_line(result: ToolResult) -> str:
    tool = first_words(result.tool, _WIDTH)
    if result.failed:
        return f"{tool} failed: {first_words(result.text, _WIDTH)}"
    what = first_words(cleaned(result.text), _WIDTH) or "nothing"
    if (lines := line_count(result.text)) > 1:
        what = f"{lines:,} lines"
    time = "" if result.seconds is None else f" in {duration(result.seconds)}"
    return f"{tool} answered{time}: {what}"


class _Line(NamedTuple):
    text: str | None  # None: there are no more
    time: float


class InputLines:
    """Lines as they come in, read in a thread so that nothing else waits for them."""

    def __init__(self, source: TextIO) -> None:
        self._source = source
        self._lines: list[_Line] = []
        self._reader: asyncio.Future[str | None] | None = None
        self._since = _ANY_TIME
        self._started = False

    def start(self) -> None:
        """Begin to read: from now on it is known when each line came."""
        if not self._started:
            self._started = True
            loop = asyncio.get_running_loop()
            threading.Thread(target=self._read, args=(loop,), name="input", daemon=True).start()

    def next(self, since: float = _ANY_TIME) -> "asyncio.Future[str | None]":
        """The next line without its end; None when there are no more.

        Args:
            since: Earlier lines stay for calls without it.
        """
        reader: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self.start()
        self._reader, self._since = reader, since
        self._give()
        return reader

    def put_back(self, line: str) -> None:
        """Let a line be the next one; after those that came before it."""
        later = (index for index, one in enumerate(self._lines) if one.time > self._since)
        self._lines.insert(next(later, len(self._lines)), _Line(line, _ANY_TIME))

    def take_messages(self) -> list[str]:
        """The lines that nobody has read yet, up to a command or the end."""
        taken: list[str] = []
        while self._lines and (text := self._lines[0].text) is not None and is_message(text):
            taken.append(text)
            del self._lines[0]
        return [text for text in taken if text.strip()]

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            for line in _lines(self._source):
                loop.call_soon_threadsafe(self._add, _Line(line.rstrip("\r\n"), time.monotonic()))
            loop.call_soon_threadsafe(self._add, _Line(None, float("inf")))
        except RuntimeError:  # the loop is closed: nobody reads any more
            return

    def _add(self, line: _Line) -> None:
        self._lines.append(line)
        self._give()

    def _give(self) -> None:
        if self._reader is None or self._reader.done():
            return
        for index, line in enumerate(self._lines):
            if line.time >= self._since:
                if line.text is not None:  # after the end there is only the end
                    del self._lines[index]
                self._reader.set_result(line.text)
                return


def _lines(source: TextIO) -> Iterator[str]:
    """Whole lines. A file is read below Python's own buffer, whose lock the exit needs."""
    try:
        file = source.fileno()
    except (OSError, AttributeError):
        yield from iter(source.readline, "")
        return
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    line = ""
    while data := os.read(file, 65536):
        *complete, line = (line + decoder.decode(data)).split("\n")
        yield from complete
    if line:
        yield line
