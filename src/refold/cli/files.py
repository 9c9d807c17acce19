"""Files to read a session from and to write one to."""

import asyncio
import errno
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

from refold.errors import TransferError
from refold.whole_file import appearing_whole

_EXPORTED = "Check that it is a file that `refold export` wrote."
STANDARD = "-"
"""Stands for standard input or output where a file is named."""


_LONGEST_HEADER = 64 << 10
_LONGEST_LINE = 256 << 20
"""Bytes. A line is held in memory, and may be of a file that somebody else made, or of a device."""


class LineSource(Protocol):
    """What lines are read from, more than once."""

    def seek(self, offset: int, /) -> int:
        """Begin again."""
        ...

    def readline(self, size: int, /) -> bytes:
        """The next line, or so many bytes of it."""
        ...


@contextmanager
def reading(source: str) -> Generator[LineSource, None, None]:
    """The file, or a copy of what can be read only once: it is checked before it is imported."""
    with _opened(source) as file:
        if file.seekable():
            yield file
            return
        with tempfile.TemporaryFile() as copy:
            yield _Copied(file, copy)


class _Copied:
    """A pipe that can be read again, as far as it was read.

    What is wrong with a pipe without an end is found before it fills the disk.
    """

    def __init__(self, pipe: BinaryIO, copy: BinaryIO) -> None:
        self._pipe = pipe
        self._copy = copy

    def seek(self, offset: int, /) -> int:
        return self._copy.seek(offset)

    def readline(self, size: int, /) -> bytes:
        line = self._copy.readline(size)
        if not line:
            line = self._pipe.readline(size)
            self._copy.write(line)
        return line


async def lines_of(file: LineSource) -> AsyncIterator[str]:
    """The lines from the beginning; only a line feed ends one."""
    file.seek(0)
    number, max_bytes = 1, _LONGEST_HEADER
    while line := file.readline(max_bytes + 1):
        if len(line) > max_bytes:
            raise TransferError(_too_long(number), _EXPORTED)
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            raise TransferError(
                f"Line {number} of the file is not UTF-8 text.", _EXPORTED
            ) from error
        if number % 100 == 0:
            await asyncio.sleep(0)  # lets an interrupt in
        yield text
        number, max_bytes = number + 1, _LONGEST_LINE


def _too_long(number: int) -> str:
    if number == 1:
        return "Line 1 of the file does not begin an exported session."
    return f"Line {number} of the file is longer than {_LONGEST_LINE >> 20} MB."


@contextmanager
def writing(target: str, *, force: bool) -> Generator[BinaryIO, None, None]:
    """The file to write, which appears under its name only when it is whole."""
    path = Path(os.path.realpath(target))  # a link stays, and what it leads to is written
    if target == STANDARD:
        yield _standard_output()
        _standard_output().flush()
    elif path.exists() and not path.is_file() and not path.is_dir():
        with path.open("wb") as device:  # or a pipe: it has a reader, not a content
            yield device
    else:
        _check_target(target, force=force)
        with appearing_whole(path) as file:
            yield file
            _check_target(target, force=force)  # while it was written, another may have come


@contextmanager
def _opened(source: str) -> Generator[BinaryIO, None, None]:
    if source == STANDARD:
        yield _standard_input()
    else:
        with Path(source).open("rb") as file:
            yield file


def _check_target(target: str, *, force: bool) -> None:
    path = Path(target)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), target)
    if not path.resolve().parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path.parent))
    if path.exists() and not force:
        raise TransferError(
            f"There is a file {target!r} already.", "Choose another name, or add --force."
        )


def _standard_input() -> BinaryIO:
    return _buffer(sys.stdin, "standard input")


def _standard_output() -> BinaryIO:
    return _buffer(sys.stdout, "standard output")


def _buffer(stream: object, name: str) -> BinaryIO:
    """The bytes of a stream that the process may have been started without."""
    buffer = getattr(stream, "buffer", None)
    if buffer is None:
        raise OSError(errno.EBADF, "It is closed", name)
    return buffer
