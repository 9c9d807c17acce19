"""What a library prints while a chat has the terminal: shown in its place, line by line."""

import contextlib
import io
import os
from collections.abc import Callable, Generator

from rich.text import Text


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
