"""Lines for people who read them one by one: lists, the status, whatever else there is to print."""

import asyncio
import codecs
import os
import threading
import time
from collections.abc import Iterator, Sequence
from io import StringIO
from typing import Final, NamedTuple, TextIO

from rich.console import Console, RenderableType

from refold.cli.chat.clean import cleaned
from refold.cli.chat.status import UNKNOWN, Status
from refold.cli.chat.surface import Row
from refold.view.columns import first_words

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
