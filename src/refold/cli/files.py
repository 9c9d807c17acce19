"""Files to read a session from and to write one to."""

import asyncio
import errno
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from refold.errors import TransferError
from refold.whole_file import appearing_whole

STANDARD = "-"
"""Stands for standard input or output where a file is named."""


@contextmanager
def reading(source: str) -> Generator[BinaryIO, None, None]:
    """The file, or a copy of what can be read only once: it is checked before it is imported."""
    with _opened(source) as file:
        if file.seekable():
            yield file
            return
        with tempfile.TemporaryFile() as copy:
            shutil.copyfileobj(file, copy)
            yield copy


async def lines_of(file: BinaryIO) -> AsyncIterator[str]:
    """The lines from the beginning; only a line feed ends one."""
    file.seek(0)
    for number, line in enumerate(file, 1):
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            raise TransferError(
                f"Line {number} of the file is not UTF-8 text.",
                "Check that it is a file that `refold export` wrote.",
            ) from error
        if number % 100 == 0:
            await asyncio.sleep(0)  # lets an interrupt in
        yield text


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
