"""A program in a pseudo-terminal: keys are written to it, and what it draws is read."""

import codecs
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from types import TracebackType
from typing import Self

PATIENCE = 60.0
"""Seconds after which something that is not drawn is an error."""
KEYS = cycle("абвгдежзиклмнопрстуфхцчшщэюя")
BACKSPACE = "\x7f"


class Drawn:
    """A program at work in a pseudo-terminal, and all that it has drawn."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], folder: Path) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.began = time.perf_counter()
        self._process = subprocess.Popen(  # noqa: S603 - our own command
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=dict(env),
            cwd=folder,
            start_new_session=True,
        )
        os.close(theirs)
        self.text = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        os.close(self._ours)

    @property
    def pid(self) -> int:
        """The program's process."""
        return self._process.pid

    def type(self, text: str) -> None:
        """Write keys."""
        os.write(self._ours, text.encode())

    def until(self, *wanted: str, since: int = 0) -> float:
        """Read until one of these texts was drawn; the seconds since the program began."""
        ends = time.perf_counter() + PATIENCE
        while not any(self.text.find(one, since) >= 0 for one in wanted):
            if time.perf_counter() > ends:
                raise TimeoutError(f"{wanted} was not drawn:\n{self.text[-2000:]}")
            self._read(0.5)
        return time.perf_counter() - self.began

    def echo(self) -> float:
        """Write a key that nothing else draws; the seconds until it was drawn."""
        key, since = next(KEYS), len(self.text)
        began = time.perf_counter()
        self.type(key)
        self.until(key, since=since)
        return time.perf_counter() - began

    def take_back(self) -> None:
        """Erase the last key, and let that be drawn, too."""
        self.type(BACKSPACE)
        self.rest(0.03)

    def rest(self, seconds: float) -> None:
        """Read whatever is drawn for so long."""
        ends = time.perf_counter() + seconds
        while (left := ends - time.perf_counter()) > 0:
            self._read(left)

    def _read(self, seconds: float) -> None:
        if not select.select([self._ours], [], [], seconds)[0]:
            return
        try:
            found = os.read(self._ours, 65536)
        except OSError as gone:  # what Linux says where others say that nothing is left
            raise TimeoutError(f"The program ended:\n{self.text[-2000:]}") from gone
        self.text += self._decoder.decode(found)
