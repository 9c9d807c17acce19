"""A chat in plain lines: for screen readers, for terminals that can do nothing, for pipes.

Nothing moves, nothing is drawn twice, nothing is coloured.
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
from typing import Any, Final, NamedTuple, TextIO

from rich.console import Console, RenderableType

from refold.cli.chat.clean import Cleaner, cleaned
from refold.cli.chat.events import Called, Elsewhere, Happened, Heard, Returned, Said, Thought
from refold.cli.chat.status import COMPACTING, UNKNOWN, Status
from refold.cli.chat.surface import Listening, Row
from refold.cli.chat.terminal.input import chosen, offered
from refold.cli.chat.text import event_lines, lasted
from refold.cli.outcome import INTERRUPTED, unwritten
from refold.cli.output import terminal_width
from refold.fold.events import CompactionStart
from refold.view.explanation import first_words

# Lines for people who read them one by one: lists, the status, whatever else there is to print.

_MOST = 20
"""Rows listed at once."""
_DIGITS = 9
"""More than any list needs."""
_LINES: Final = {
    **dict.fromkeys(range(0x2500, 0x2580), "+"),
    **dict.fromkeys((0x2500, 0x2501, 0x2504, 0x254C, 0x2550), "-"),
    **dict.fromkeys((0x2502, 0x2503, 0x2506, 0x254E, 0x2551), "|"),
    **dict.fromkeys(range(0x2580, 0x2591), "#"),
    **dict.fromkeys((0x2591, 0x2592), "."),
}
"""What boxes and bars are made of."""


class _Line(NamedTuple):
    text: str | None
    """None: there are no more."""
    at: float


class InputLines:
    """Lines as they come in, read in a thread so that nothing else waits for them."""

    def __init__(self, source: TextIO) -> None:
        self._source = source
        self._lines: list[_Line] = []
        self._waits: asyncio.Future[str | None] | None = None
        self._since = float("-inf")
        self._started = False

    def start(self) -> None:
        """Begin to read: from now on it is known when each line came."""
        if not self._started:
            self._started = True
            loop = asyncio.get_running_loop()
            threading.Thread(target=self._read, args=(loop,), name="input", daemon=True).start()

    def next(self, since: float = float("-inf")) -> "asyncio.Future[str | None]":
        """The next line without its end; None when there are no more.

        Args:
            since: Lines that came before this moment stay for those who ask without one.
        """
        waits: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self.start()
        self._waits, self._since = waits, since
        self._give()
        return waits

    def put_back(self, line: str) -> None:
        """Let a line be the next one; after those that came before it."""
        came = (at for at, one in enumerate(self._lines) if one.at > self._since)
        self._lines.insert(next(came, len(self._lines)), _Line(line, float("-inf")))

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
        if self._waits is None or self._waits.done():
            return
        for at, line in enumerate(self._lines):
            if line.at >= self._since:
                if line.text is not None:  # after the end there is only the end
                    del self._lines[at]
                self._waits.set_result(line.text)
                return


def as_text(what: RenderableType, width: int) -> str:
    """Something that Rich prints, without colours and without lines that are only drawn."""
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
    lines = (line.rstrip() for line in cleaned(captured.get()).translate(_LINES).split("\n"))
    return "\n".join(lines).strip("\n") + "\n"


def listed(title: str, rows: Sequence[Row], shown: Sequence[int], width: int) -> str:
    """Rows with their numbers."""
    lines = [f"{title}: {len(shown):,} of {len(rows):,}." if shown else f"{title}: none."]
    for at in shown[:_MOST]:
        detail = f", {rows[at].detail}" if rows[at].detail else ""
        lines.append(first_words(f"{at + 1}. {rows[at].label}{detail}", width))
    if len(shown) > _MOST:
        lines.append(f"And {len(shown) - _MOST:,} more.")
    return "\n".join(lines) + "\n"


def found(words: str, rows: Sequence[Row]) -> list[int]:
    """The rows with all of these words."""
    wanted = words.casefold().split()
    texts = (" ".join(row).casefold() for row in rows)
    return [at for at, text in enumerate(texts) if all(word in text for word in wanted)]


def row_numbered(digits: str, rows: Sequence[Row]) -> int | None:
    """Where the row with this number is; None where there is none."""
    if len(digits) > _DIGITS:
        return None
    return int(digits) - 1 if 1 <= int(digits) <= len(rows) else None


def status_line(status: Status) -> str:
    """The status in a sentence or two."""
    filled, share = status.filled, status.share
    about = "" if status.exact else "about "
    if status.window and share is not None:
        context = f"{about}{share * 100:.0f} % of {status.window:,} tokens"
    elif filled is not None:
        context = f"{about}{filled.total:,} tokens, window {UNKNOWN}"
    else:
        context = UNKNOWN
    cost = UNKNOWN if status.cost is None else f"${status.cost:.2f}"
    return f"Context: {context}. Cost so far: {cost}."


def _lines(source: TextIO) -> Iterator[str]:
    """Whole lines; a file is read beneath Python's own buffer, whose lock an exit needs."""
    try:
        file = source.fileno()
    except (OSError, AttributeError):
        yield from iter(source.readline, "")
        return
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    line = ""
    while data := os.read(file, 65536):
        *whole, line = (line + decoder.decode(data)).split("\n")
        yield from whole
    if line:
        yield line


# A turn in words, as it goes on.

_WIDTH = 200
"""Columns of what is said about a call."""


class Spoken:
    """Says what is heard: the answer word by word as it comes, all else in lines of its own."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._cleaner = Cleaner()
        self._word = ""
        """What may not be whole yet."""
        self._midline = False
        self._thinks: float | None = None

    def hear(self, heard: Heard) -> None:
        """Say it."""
        match heard:
            case Thought():
                self._thinks = time.monotonic() if self._thinks is None else self._thinks
            case Said(text):
                self._thought()
                self._said(self._cleaner.feed(text))
            case Called(tool=tool, arguments=arguments):
                self._line(f"Calls {first_words(tool, _WIDTH)}: {first_words(arguments, _WIDTH)}")
            case Returned():
                self._line(_returned(heard))
            case Happened(CompactionStart()):
                self._line(f"{COMPACTING}.")
            case Happened(event):
                for line in event_lines(event):
                    self._line(cleaned(line.text).replace("→", "to"))
            case Elsewhere(who, text):
                speaker = (
                    "You, in another terminal" if who == "you" else "Answer in another terminal"
                )
                self._line(f"{speaker}: {cleaned(text)}")

    def settle(self) -> None:
        """What was begun is said to its end."""
        self._thought()
        self._emit(self._word)
        self._word = ""
        if self._midline:
            self._emit("\n")

    def _said(self, text: str) -> None:
        text = self._word + text
        end = max(text.rfind(" "), text.rfind("\n")) + 1
        self._emit(text[:end])
        self._word = text[end:]

    def _line(self, line: str) -> None:
        self.settle()
        self._emit(f"{line}\n")

    def _thought(self) -> None:
        if self._thinks is not None:
            took = time.monotonic() - self._thinks
            self._thinks = None
            self._line(f"Thought for {lasted(took)}.")

    def _emit(self, text: str) -> None:
        if text:
            self._write(text)
            self._midline = not text.endswith("\n")


def _returned(returned: Returned) -> str:
    tool = first_words(returned.tool, _WIDTH)
    if returned.failed:
        return f"{tool} failed: {first_words(returned.text, _WIDTH)}"
    lines = returned.text.count("\n") + (not returned.text.endswith("\n"))
    if lines > 1:
        return f"{tool} answered in {lasted(returned.seconds)}: {lines:,} lines"
    words = first_words(cleaned(returned.text), _WIDTH) or "nothing"
    return f"{tool} answered in {lasted(returned.seconds)}: {words}"


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
