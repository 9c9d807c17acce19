"""Appending to files that others write too: under a lock, through no link, whole or not at all."""

import fcntl
import os
import stat
from codecs import getincrementaldecoder
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep

from refold.errors import NotRemembered

LOCK = ".lock"
PATIENCE = 10.0
"""Seconds to wait for who holds the lock."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.002, 0.1
_CHARACTER = 4  # bytes that one may have
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_APPEND = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@contextmanager
def locked_folder(parent: Path, name: str, patience: float = PATIENCE) -> Generator[int]:
    """A folder, made where there is none, and locked against all others, as a descriptor."""
    with _closing(_parent(parent)) as above:
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=above)
        with _closing(_child(above, parent / name)) as folder:
            lock = os.open(LOCK, os.O_RDWR | os.O_CREAT | _READ, 0o600, dir_fd=folder)
            with _closing(lock):
                _lock(lock, parent / name / LOCK, patience)
                try:
                    yield folder
                finally:  # not by closing alone: a forked child may have the file open too
                    fcntl.flock(lock, fcntl.LOCK_UN)


def read(folder: int, name: str) -> bytes:
    """What a file holds; nothing where it is none of ours: gone, a link, no file."""
    try:
        with _closing(os.open(name, _READ, dir_fd=folder)) as file:
            return _all_of(file) if stat.S_ISREG(os.fstat(file).st_mode) else b""
    except OSError:
        return b""


@contextmanager
def appendable(folder: int, name: str) -> Generator[int]:
    """A file to append to, made where there is none; only its owner may read it."""
    with _closing(os.open(name, _APPEND, 0o600, dir_fd=folder)) as file:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise NotRemembered(f"{name} is no file.", "Move it away.")
        yield file


def whole(file: int) -> bytes:
    """What the file holds, rid of a last character of which a part was never written."""
    data = _all_of(file)
    decoder = getincrementaldecoder("utf-8")("replace")
    decoder.decode(data[-_CHARACTER:])
    torn = len(decoder.getstate()[0])
    if torn and os.fstat(file).st_size == len(data):
        os.ftruncate(file, len(data) - torn)
        return data[:-torn]
    return data


def append(file: int, data: bytes) -> None:
    """Append all of it, for good; where that fails, what was written is taken back."""
    before, written = os.fstat(file).st_size, 0
    try:
        while written < len(data):
            written += os.write(file, data[written:])
        os.fsync(file)
    except OSError:
        with suppress(OSError):
            if os.fstat(file).st_size == before + written:  # nobody wrote after us
                os.ftruncate(file, before)
        raise


def _all_of(file: int) -> bytes:
    pieces: list[bytes] = []
    at = 0
    while piece := os.pread(file, 1 << 20, at):
        pieces.append(piece)
        at += len(piece)
    return b"".join(pieces)


def _parent(folder: Path) -> int:
    try:
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotRemembered(
            f"There is no folder {folder}.", "Make it, or give memory another one."
        ) from error


def _child(above: int, path: Path) -> int:
    try:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(path.name, flags, dir_fd=above)
    except OSError as error:
        if stat.S_ISDIR(os.lstat(path).st_mode):
            raise
        raise NotRemembered(
            f"{path} is a link, or no folder.",
            "Notes are not written through links: move it away, or give memory another folder.",
        ) from error


def _lock(file: int, path: Path, patience: float) -> None:
    until, pause = monotonic() + patience, _FIRST_PAUSE
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if monotonic() > until:
                raise NotRemembered(
                    f"Another process has held {path} for {patience:g} seconds.",
                    "Look for a process that is stuck while it writes to memory, and end it.",
                ) from None
        else:
            return
        sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


@contextmanager
def _closing(file: int) -> Generator[int]:
    try:
        yield file
    finally:
        os.close(file)
