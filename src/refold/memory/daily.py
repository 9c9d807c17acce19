"""Daily files: notes as Markdown, one file a day, which people read and write too.

Notes are only appended, under a lock between threads and processes. A note ends with a mark that
identifies it: with the mark, the note is complete, and is not written again. A note that a crash
cut off stays, closed off, and the complete note follows it.
"""

import asyncio
import errno
import fcntl
import os
import re
import stat
from codecs import getincrementaldecoder
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, tzinfo
from math import log, sqrt
from pathlib import Path
from time import monotonic, sleep
from typing import Final, NamedTuple
from urllib.parse import quote

from refold.errors import NotRemembered
from refold.fold.compactor import Remember
from refold.fold.secrets import redact
from refold.fold.summary import sound
from refold.log import DEFAULT_TENANT
from refold.log.text import index_words
from refold.memory.board import Board
from refold.memory.memory import Note, Reason, remembering
from refold.user_files import data_folder
from refold.view.profiles import Memory, Profile

FOLDER = "memory"
LOCK = ".lock"
PATIENCE = 10.0
"""Seconds to wait for the lock."""
TITLE: Final = "# Daily Memory: {date}\n"
HEADINGS: Final[dict[Reason, str]] = {
    "trimmed": "## Trimmed Context ({time})",
    "overflow": "## Context Overflow Recovery",
    "daily": "## Daily Summary",
}
MARK: Final = "<!-- refold note {digest} -->"

_MARK_START = MARK.partition(" {")[0]
_MARK_END = MARK.partition("}")[2]
_CUT_MARK = re.compile(rf"{_MARK_START} [0-9a-f]{{32}}(?= ?-{{0,2}}$)")
_HEADING = re.compile(r"^(\s*)(#|(?:=+|-+)\s*$)")
_MARKUP = re.compile(r"^(\s*)<")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})(.*)")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x1f\x7f]")
_DAY_FILE = re.compile(r"\d{4}-\d\d-\d\d\.md")
_SECTION = re.compile(r"^(?=## )", re.MULTILINE)
_COMPLETE_MARK = re.compile(rf"^{_MARK_START} [0-9a-f]{{32}}{_MARK_END}$", re.MULTILINE)
_MAX_SEARCHED = 1_000
"""How many of the newest files are searched by words."""
_MAX_FOUND = 20
_USUAL_WORDS = 40
"""Matches in a longer note say less."""
_MAX_DAYS = 40
"""How many of the newest files are searched for a note that may be there already."""
_FIXES = {
    errno.ENOSPC: "Free some disk space.",
    errno.EDQUOT: "Free some of this user's disk space.",
    errno.ELOOP: "Notes are not written through links: move it away.",
}
_FIRST_PAUSE, _LONGEST_PAUSE = 0.002, 0.1
_MAX_CHARACTER = 4  # bytes
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_APPEND = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Remembered(NamedTuple):
    """Something that memory holds: a section of a daily file, or a fact of a board."""

    where: str
    text: str


def daily_notes(profile: Profile, tenant: str) -> Remember | None:
    """Writes a note of each summary to the daily files of a tenant, where they are switched on."""
    files = daily_files(profile.memory, tenant)
    return remembering(files) if files is not None else None


def daily_files(values: Memory, tenant: str = DEFAULT_TENANT) -> "DailyFiles | None":
    """The daily files of a tenant, where the settings switch them on."""
    if not values.daily:
        return None
    folder = Path(values.folder).expanduser() if values.folder else data_folder()
    if tenant != DEFAULT_TENANT:
        folder /= f"tenant-{quote(tenant, safe='')}"
    return DailyFiles(folder, create=True)


class DailyFiles:
    """Writes notes to `memory/YYYY-MM-DD.md`, in an existing folder.

    Only their owner may read the files. Known kinds of secrets are redacted. Days and times are
    those of `zone`, or of this machine's clock.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        zone: tzinfo | None = None,
        patience: float = PATIENCE,
        create: bool = False,
    ) -> None:
        """`create` makes the folder when the first note is written, if it is missing."""
        self._folder = Path(folder)
        self._create = create
        self._zone = zone
        self._patience = patience

    def path_of(self, note: Note) -> Path:
        """The file that a note is written to."""
        return self._folder / FOLDER / self._name(note)

    async def write(self, note: Note) -> None:
        await asyncio.to_thread(self._write, note)

    def _write(self, note: Note) -> None:
        try:
            if self._create:
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with locked_folder(self._folder, FOLDER, self._patience) as folder:
                name = self._name(note)
                if not _is_there(folder, note, name):
                    self._append(folder, note, name)
                os.fsync(folder)
        except OSError as error:
            reason = error.strerror or str(error)
            raise NotRemembered(
                f"{self.path_of(note)} cannot be written: {reason}.", _FIXES.get(error.errno or 0)
            ) from error

    def _append(self, folder: int, note: Note, name: str) -> None:
        with appendable(folder, name) as file:
            before = whole(file)
            start = closing(before.decode(errors="replace"))
            if not before:
                start = TITLE.format(date=self._when(note).date())
            section = ""
            if _mark(note) not in before + start.encode():  # else just its mark was cut off
                heading = HEADINGS[note.reason].format(time=f"{self._when(note):%H:%M}")
                text = harmless(redact(note.text))
                section = f"\n{heading}\n\n{text}\n\n{MARK.format(digest=note.digest)}\n"
            append(file, f"{start}{section}".encode())

    async def notes(self) -> list[Remembered]:
        """The sections of the newest files, whoever wrote them, the newest file first."""
        return await asyncio.to_thread(self._notes)

    def _notes(self) -> list[Remembered]:
        try:
            with (
                _closing(_parent(self._folder)) as above,
                _closing(_child(above, self._folder / FOLDER)) as folder,
            ):
                days = sorted(filter(_DAY_FILE.fullmatch, os.listdir(folder)), reverse=True)  # noqa: PTH208 - a descriptor
                texts = ((day, read(folder, day)) for day in days[:_MAX_SEARCHED])
                return [note for day, text in texts for note in _sections(day, text)]
        except (NotRemembered, OSError):  # nothing was noted yet
            return []

    def _name(self, note: Note) -> str:
        return f"{self._when(note).date()}.md"

    def _when(self, note: Note) -> datetime:
        return datetime.fromtimestamp(note.at / 1000, UTC).astimezone(self._zone)


def _sections(day: str, content: bytes) -> Iterator[Remembered]:
    text = _COMPLETE_MARK.sub("", content.decode(errors="replace"))
    for section in _SECTION.split(text):
        heading, _, body = section.partition("\n")
        if body.strip():
            yield Remembered(f"{day.removesuffix('.md')} {heading.lstrip('# ')}", body.strip())


def _is_there(folder: int, note: Note, name: str) -> bool:
    """Whether an earlier attempt wrote it, perhaps on another day."""
    days = sorted(filter(_DAY_FILE.fullmatch, os.listdir(folder)), reverse=True)
    for day in {*days[:_MAX_DAYS], name}:
        if _mark(note) in read(folder, day):
            with appendable(folder, day) as file:
                os.fsync(file)  # its writer may have died before
            return True
    return False


def _mark(note: Note) -> bytes:
    return f"\n{MARK.format(digest=note.digest)}".encode()


# Appending to files that others write too: under a lock, through no link, completely or not at all.


@contextmanager
def locked_folder(parent: Path, name: str, patience: float = PATIENCE) -> Generator[int]:
    """Create the folder if needed, and lock it; yields its descriptor."""
    with _closing(_parent(parent)) as above:
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=above)
        with _closing(_child(above, parent / name)) as folder:
            lock = os.open(LOCK, os.O_RDWR | os.O_CREAT | _READ, 0o600, dir_fd=folder)
            with _closing(lock):
                _lock(lock, parent / name / LOCK, patience)
                try:
                    yield folder
                finally:  # closing is not enough: a forked child may have the file open too
                    fcntl.flock(lock, fcntl.LOCK_UN)


def read(folder: int, name: str) -> bytes:
    """The content of a file; empty if it is missing, a link or no regular file."""
    try:
        with _closing(os.open(name, _READ, dir_fd=folder)) as file:
            return _all_of(file) if stat.S_ISREG(os.fstat(file).st_mode) else b""
    except OSError:
        return b""


@contextmanager
def appendable(folder: int, name: str) -> Generator[int]:
    """Open a file to append to, created if needed; only its owner may read it."""
    with _closing(os.open(name, _APPEND, 0o600, dir_fd=folder)) as file:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise NotRemembered(f"{name} is not a file.", "Move it away.")
        yield file


def whole(file: int) -> bytes:
    """The content of the file, truncated before an incomplete last character."""
    data = _all_of(file)
    decoder = getincrementaldecoder("utf-8")("replace")
    decoder.decode(data[-_MAX_CHARACTER:])
    torn = len(decoder.getstate()[0])
    if torn and os.fstat(file).st_size == len(data):
        os.ftruncate(file, len(data) - torn)
        return data[:-torn]
    return data


def append(file: int, data: bytes) -> None:
    """Append durably; if that fails, undo what was written."""
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
    data = bytearray()
    while piece := os.pread(file, 1 << 20, len(data)):
        data += piece
    return bytes(data)


def _parent(folder: Path) -> int:
    try:
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotRemembered(
            f"There is no folder {folder}.", "Create it, or give memory another folder."
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
                    "Find the process that is stuck while writing to memory, and end it.",
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


def harmless(text: str) -> str:
    """Escape headings, rules and markup, and close a code fence that is left open.

    So a note can neither start a section nor pass for a mark, nor swallow what follows it.
    """
    lines: list[str] = []
    fence = ""
    for raw in _CONTROL.sub("", sound(text)).splitlines():
        line = _MARKUP.sub(r"\1&lt;", _HEADING.sub(r"\1\\\2", raw))
        lines.append(line)
        if found := _FENCE.match(line):
            if not fence:
                fence = found[1]
            elif found[1].startswith(fence) and not found[2].strip():
                fence = ""
    return "\n".join([*lines, *([fence] if fence else [])]).strip()


def closing(text: str) -> str:
    """What must follow a text that may have been cut off, so that a new line can start."""
    line = text.rpartition("\n")[2]
    if cut := _CUT_MARK.match(line):
        return f"{_MARK_END[len(line) - cut.end() :]}\n"
    ours = line.startswith(_MARK_START) or _MARK_START.startswith(line)
    if ours and line.startswith("<!--") and "-->" not in line:
        return f"{_MARK_END}\n"
    return "\n" if line else ""


# Search over what memory holds: the sections of daily files, and the facts of a board.


async def search_memory(
    query: str, limit: int, *, daily: DailyFiles | None = None, board: Board | None = None
) -> list[Remembered]:
    """The matches with most of these words, rare words first; among equals, the newest."""
    notes = [*await _facts(board), *(await daily.notes() if daily else ())]
    return rank(query, notes)[: max(1, min(limit, _MAX_FOUND))]


def rank(query: str, notes: Sequence[Remembered]) -> list[Remembered]:
    """The notes with any of these words, the best first."""
    wanted = {*index_words(query)}
    counted = [Counter(index_words(f"{note.where} {note.text}")) for note in notes]
    holders = {word: sum(word in counts for counts in counted) for word in wanted}

    def score(counts: Counter[str]) -> float:
        matches = ((word, counts[word]) for word in wanted if counts[word])
        worth = sum(log(1 + len(notes) / holders[word]) * (1 + log(n)) for word, n in matches)
        return worth / sqrt(max(1, counts.total() / _USUAL_WORDS))

    scored = [(score(counts), note) for counts, note in zip(counted, notes, strict=True)]
    return [note for worth, note in sorted(scored, key=lambda pair: -pair[0]) if worth > 0]


async def _facts(board: Board | None) -> list[Remembered]:
    facts = (await board.state()).facts if board is not None else ()
    return [
        Remembered(f"board, {datetime.fromtimestamp(fact.at / 1000, UTC).date()}", fact.text)
        for fact in reversed(facts)
    ]
