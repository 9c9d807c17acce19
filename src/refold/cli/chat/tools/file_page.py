"""A page of a text file, for a model."""

import os
import time
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from refold.cli.chat.tools.line_search import HEAD, LONGEST, encoding_of, lines_of, opened
from refold.cli.chat.tools.shown_folder import shown, size_of, with_notes


class Page:
    """Lines that are taken one by one, until there are enough or the time is up."""

    def __init__(self, first: int, lines: int, *, characters: int, seconds: float) -> None:
        self._first = first
        self._lines = lines
        self._room = characters
        self._until = time.monotonic() + seconds
        self._taken: list[str] = []
        self._reached = 0
        self._cut = 0
        self._more = False

    def of(self, path: Path, name: str) -> str:
        """What the file at the path, known by this name, has on the page."""
        called = shown(name)
        file = opened(str(path))
        if file is None:
            return f"{called!r} is no regular file and cannot be read."
        with file:
            encoding = encoding_of(file.peek(HEAD)[:HEAD])
            size = os.fstat(file.fileno()).st_size
            if encoding is None:
                return f"{called!r} is a binary file of {size_of(size)}: it cannot be shown."
            if not size:
                return f"{called!r} is empty."
            with closing(lines_of(file, encoding)) as lines:
                self._take(lines)
        return self._text(called)

    def _take(self, lines: Iterable[tuple[str, bool]]) -> None:
        for line, cut in lines:
            if self._reached + 1 < self._first:
                self._more = time.monotonic() > self._until
            else:
                self._room -= len(line) + 1
                full = len(self._taken) >= self._lines or (self._room < 0 and bool(self._taken))
                self._more = full or time.monotonic() > self._until
                if not self._more:
                    self._taken.append(line)
                    self._cut += cut
            if self._more:
                return
            self._reached += 1

    def _text(self, name: str) -> str:
        first, last = self._first, self._first + len(self._taken) - 1
        if not self._taken and self._more:
            return (
                f"Line {first:,} of {name} is too far down: search_files finds lines by their text."
            )
        if not self._taken:
            return f"{name} has {self._reached:,} lines: there is no line {first:,}."
        goes_on = f"There is more: read_file({name!r}, first_line={last + 1}) goes on."
        cut = f"Long lines ({self._cut}) were cut to {LONGEST:,} characters."
        notes = [goes_on] * self._more + [cut] * bool(self._cut)
        of = "" if self._more else f" of {self._reached:,}"
        head = f"[{name}, lines {first:,} to {last:,}{of}]"
        return with_notes("\n".join([head, *self._taken]), notes)
