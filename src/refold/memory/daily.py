"""Daily files: notes as Markdown, one file a day, which people read and write too.

Notes are only ever appended, under a lock that holds between threads and processes. A note ends
with a mark that names it; the mark is what says that all of it is there, and that it is there once.
What a process left half written when it died stays, closed off, and the note comes whole after it.
"""

import asyncio
import errno
import fcntl
import os
import re
import stat
from codecs import getincrementaldecoder
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from time import monotonic, sleep
from typing import Final

from refold.errors import NotRemembered
from refold.fold.secrets import redact
from refold.fold.summary import sound
from refold.memory.memory import Note, Reason

# Appending to files that others write too: under a lock, through no link, whole or not at all.

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


# The text of daily files: how a day and its notes begin, and what marks the end of one.
#
# A note's own words can neither begin a section nor pass for a mark, and leave nothing open that
# would swallow what stands below them.

TITLE: Final = "# Daily Memory: {date}\n"
HEADINGS: Final[dict[Reason, str]] = {
    "trimmed": "## Trimmed Context ({time})",
    "overflow": "## Context Overflow Recovery",
    "daily": "## Daily Summary",
}
MARK: Final = "<!-- refold note {digest} -->"

_MARK_BEGINS = MARK.partition(" {")[0]
_MARK_ENDS = MARK.partition("}")[2]
_CUT_MARK = re.compile(rf"{_MARK_BEGINS} [0-9a-f]{{32}}(?= ?-{{0,2}}$)")
_HEADING = re.compile(r"^(\s*)(#|(?:=+|-+)\s*$)")
_MARKUP = re.compile(r"^(\s*)<")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})(.*)")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x1f\x7f]")


def harmless(text: str) -> str:
    """The text with every line kept that is no heading, rule or markup; those as plain words."""
    lines = [_plain(line) for line in _CONTROL.sub("", sound(text)).splitlines()]
    return "\n".join([*lines, *_fence_left_open(lines)]).strip()


def closing(text: str) -> str:
    """What must follow a text that may have been cut off, so that a new line can begin."""
    line = text.rpartition("\n")[2]
    if cut := _CUT_MARK.match(line):
        return f"{_MARK_ENDS[len(line) - cut.end() :]}\n"
    ours = line.startswith(_MARK_BEGINS) or _MARK_BEGINS.startswith(line)
    if ours and line.startswith("<!--") and "-->" not in line:
        return f"{_MARK_ENDS}\n"
    return "\n" if line else ""


def _plain(line: str) -> str:
    return _MARKUP.sub(r"\1&lt;", _HEADING.sub(r"\1\\\2", line))


def _fence_left_open(lines: list[str]) -> Iterator[str]:
    fence = ""
    for line in lines:
        found = _FENCE.match(line)
        if found is None:
            continue
        if not fence:
            fence = found[1]
        elif found[1].startswith(fence) and not found[2].strip():
            fence = ""
    if fence:
        yield fence


FOLDER = "memory"
_A_DAY = re.compile(r"\d{4}-\d\d-\d\d\.md")
_LOOKED_THROUGH = 40
"""How many of the newest files are looked through for a note that may be there already."""
_FIXES = {
    errno.ENOSPC: "Free some disk space.",
    errno.EDQUOT: "Free some of this user's disk space.",
    errno.ELOOP: "Notes are not written through links: move it away.",
}


class DailyFiles:
    """Keeps notes in `memory/YYYY-MM-DD.md`, in a folder that is there already.

    Only their owner may read the files. Secrets are taken out of what is written, as far as they
    can be told. Days and times are those of `zone`, or of this machine's clock.
    """

    def __init__(
        self, folder: Path | str, *, zone: tzinfo | None = None, patience: float = PATIENCE
    ) -> None:
        self._folder = Path(folder)
        self._zone = zone
        self._patience = patience

    def path_of(self, note: Note) -> Path:
        """The file that a note is written to."""
        return self._folder / FOLDER / self._name(note)

    async def write(self, note: Note) -> None:
        """See `MemorySink.write`. Raises NotRemembered."""
        await asyncio.to_thread(self._write, note)

    def _write(self, note: Note) -> None:
        try:
            with locked_folder(self._folder, FOLDER, self._patience) as folder:
                name = self._name(note)
                if not _is_there(folder, note, name):
                    self._append(folder, note, name)
                os.fsync(folder)
        except OSError as error:
            said = error.strerror or str(error)
            raise NotRemembered(
                f"{self.path_of(note)} cannot be written: {said}.",
                _FIXES.get(error.errno or 0),
            ) from error

    def _append(self, folder: int, note: Note, name: str) -> None:
        with appendable(folder, name) as file:
            before = whole(file)
            begins = closing(before.decode(errors="replace"))
            if not before:
                begins = TITLE.format(date=self._when(note).date())
            there = _mark(note) in before + begins.encode()  # all but the end of its mark was
            append(file, f"{begins}{'' if there else self._section(note)}".encode())

    def _section(self, note: Note) -> str:
        heading = HEADINGS[note.reason].format(time=f"{self._when(note):%H:%M}")
        mark = MARK.format(digest=note.digest)
        return f"\n{heading}\n\n{harmless(redact(note.text))}\n\n{mark}\n"

    def _name(self, note: Note) -> str:
        return f"{self._when(note).date()}.md"

    def _when(self, note: Note) -> datetime:
        return datetime.fromtimestamp(note.at / 1000, UTC).astimezone(self._zone)


def _is_there(folder: int, note: Note, name: str) -> bool:
    """Whether an earlier attempt wrote it, perhaps on another day."""
    days = sorted(filter(_A_DAY.fullmatch, os.listdir(folder)), reverse=True)
    for day in {*days[:_LOOKED_THROUGH], name}:
        if _mark(note) in read(folder, day):
            with appendable(folder, day) as file:
                os.fsync(file)  # who wrote it may have died before
            return True
    return False


def _mark(note: Note) -> bytes:
    return f"\n{MARK.format(digest=note.digest)}".encode()
