"""`refold import --from`: sessions that other programs recorded, into the log."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final

import typer
from pydantic import TypeAdapter

from refold.cli.chat.clean import cleaned
from refold.cli.options import store_at, where_is, where_to_look
from refold.cli.outcome import wrong_usage
from refold.errors import (
    InvalidInput,
    SessionExists,
    SessionForgotten,
    SessionNotFound,
    StoreNotFound,
    TransferError,
)
from refold.log import Log
from refold.settings import load_settings
from refold.terminal_text import counted
from refold.transcripts.log_import import import_recording, without_last_answer
from refold.transcripts.programs import PROGRAMS, SessionFile, files_in, read_sessions
from refold.transcripts.recording import uncompressed
from refold.user_files import state_folder, write_whole
from refold.view import Profile

ALL: Final = "all"
_QUIET_SECONDS: Final = 10
"""A file that was written less long ago may have an answer that is not whole."""
_MB: Final = 1_000_000
_DAY: Final = 86_400
_SUFFIXES: Final = frozenset({".json", ".jsonl", ".db"})
_SNAPSHOTS: Final = "rewind-file-snapshots"
"""Where Copilot CLI has copies of the user's files, beside a session."""


@dataclass
class ImportReport:
    """The result of an import from one program."""

    program: str
    new: int = 0
    """Sessions that were not in the log."""
    grown: int = 0
    """Sessions with new messages."""
    unchanged: int = 0
    forgotten: int = 0
    """Sessions that were forgotten here, and do not come back."""
    expired: int = 0
    """Sessions that the profile's retention would delete, so they are not imported."""
    messages: int = 0
    """Messages that are new."""
    broken: int = 0
    """Lines that are no JSON."""
    active: int = 0
    """Sessions that are being written; their last answer waits."""
    unread: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    """Files without a session of the program, and why."""

    @property
    def sessions(self) -> int:
        return self.new + self.grown + self.unchanged + self.forgotten + self.expired


def programs_of(name: str) -> list[str]:
    """The programs that `--from` names."""
    if name == ALL:
        return [*PROGRAMS]
    if name not in PROGRAMS:
        choices = ", ".join((*PROGRAMS, ALL))
        raise InvalidInput(f"Sessions of {name!r} cannot be read.", f"Use one of {choices}.")
    return [name]


@dataclass(frozen=True, slots=True)
class Source:
    """What would be read of one program."""

    program: str
    paths: tuple[Path, ...]
    files: tuple[Path, ...]
    size: int


def sources(name: str, path: str | None) -> list[Source]:
    """What an import would read. Raises where there is nothing."""
    with wrong_usage():
        programs = programs_of(name)
        if path is not None and len(programs) > 1:
            raise InvalidInput("A path needs the program that wrote it.", "Name it with --from.")
    found: list[Source] = []
    for program in programs:
        paths = [Path(path)] if path is not None else PROGRAMS[program].paths()
        for missing in (one for one in paths if not one.exists()):
            raise FileNotFoundError(2, "No such file or folder", str(missing))
        files = [
            file
            for file in files_in(paths)
            if file in paths
            or (uncompressed(file).suffix in _SUFFIXES and _SNAPSHOTS not in file.parts)
        ]
        if files:
            size = sum(map(_size, files))
            found.append(Source(program, tuple(paths), tuple(files), size))
    if not found:
        raise TransferError(*_nowhere(programs, path))
    return found


def _nowhere(programs: Sequence[str], path: str | None) -> tuple[str, str]:
    if path is not None:
        return f"No session files are in {path!r}.", "Name a .jsonl or .json file, or its folder."
    names = ", ".join(PROGRAMS[program].name for program in programs)
    variables = ", ".join(PROGRAMS[program].variable for program in programs)
    fix = f"Name the folder: refold import --from NAME PATH, or set {variables}."
    return f"No sessions of {names} are where it keeps them.", fix


def confirmed(found: Sequence[Source], address: str, *, yes: bool) -> bool:
    """Whether the person agrees to read these files."""
    if yes:
        return True
    for source in found:
        where = " and ".join(map(_short, source.paths))
        size = f"{counted(len(source.files), 'file')}, {source.size / _MB:,.1f} MB"
        typer.echo(cleaned(f"{PROGRAMS[source.program].name}: {size} in {where}"), err=True)
    with wrong_usage():
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise InvalidInput("Can't ask for confirmation: not a terminal.", "Add --yes.")
    store = where_is(address, quiet=True).removeprefix("sqlite:///").rpartition("@")[2]
    question = f"Import them into {_short(Path(store))}? Nothing of the files changes."
    try:
        return typer.confirm(cleaned(question), default=True, err=True)
    except typer.Abort as error:
        raise KeyboardInterrupt from error


async def import_all(found: Sequence[Source], address: str, tenant: str) -> list[ImportReport]:
    profile = load_settings().profile
    stamps = FileStamps(f"{where_is(address, quiet=True)} {tenant}")
    try:
        async with store_at(address, create=True) as store:
            importer = _Importer(store.log(tenant), profile, stamps)
            return [await importer.run(source) for source in found]
    except StoreNotFound as error:
        raise where_to_look(error) from error
    finally:
        stamps.save()


class FileStamps:
    """Which sessions each file held when it was imported last, so that it need not be read again.

    Only saves time: without its file, or after a change of anything, all is read as the first time.
    """

    def __init__(self, log: str) -> None:
        self._path = state_folder() / "imports.json"
        self._log = sha256(log.encode()).hexdigest()
        self._all: dict[str, dict[str, FileStamp]] = {}
        with suppress(OSError, ValueError):
            self._all = _STAMPS.validate_json(self._path.read_bytes())
        self._files = self._all.setdefault(self._log, {})

    async def unchanged(self, log: Log, path: Path) -> list[str]:
        """The sessions of a file that is as it was; empty where it must be read."""
        known = self._files.get(str(path))
        if known is None or known.stamp != stamp_of(path):
            return []
        for session in known.sessions:  # the log may be another one by now
            try:
                await log.head(session)
            except (SessionNotFound, SessionForgotten):
                return []
        return known.sessions

    def note(self, path: Path, stamp: list[int], sessions: list[str]) -> None:
        self._files[str(path)] = FileStamp(stamp, sessions)

    def save(self) -> None:
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self._path, _STAMPS.dump_json(self._all))


@dataclass(frozen=True, slots=True)
class FileStamp:
    stamp: list[int]
    sessions: list[str]


_STAMPS: Final = TypeAdapter(dict[str, dict[str, FileStamp]])


def stamp_of(path: Path) -> list[int]:
    """Sizes and times by which a change of the file, or of a database's log beside it, shows."""
    stamp: list[int] = []
    for file in (path, path.with_name(f"{path.name}-wal")):
        with suppress(OSError, ValueError):
            status = file.stat()
            stamp += [status.st_size, status.st_mtime_ns]
    return stamp


class _Importer:
    def __init__(self, log: Log, profile: Profile, stamps: FileStamps) -> None:
        self._log = log
        self._profile = profile
        self._stamps = stamps
        days = profile.retention.days
        self._expired_before = time.time() - days * _DAY if days else 0.0

    async def run(self, source: Source) -> ImportReport:
        report = ImportReport(source.program)
        for path in _with_progress(source):
            if sessions := await self._stamps.unchanged(self._log, path):
                report.unchanged += len(sessions)
                continue
            stamp, active, unread = stamp_of(path), report.active, len(report.unread)
            names = [await self._import(file, report) for file in read_sessions(path)]
            if (active, unread) == (report.active, len(report.unread)):
                self._stamps.note(path, stamp, [*filter(None, names)])
        return report

    async def _import(self, file: SessionFile, report: ImportReport) -> str:
        """Import one session; its name in the log."""
        report.broken += file.broken
        recording, why = file.recording, file.why
        if recording and recording.origin and recording.origin.program != report.program:
            why = f"it is of {PROGRAMS[recording.origin.program].name}"
        if recording is None or why:
            report.unread.append({"file": str(file.path), "why": why})
            return ""
        times = (message.at for message in reversed(recording.messages) if message.at is not None)
        if next(times, file.modified * 1000) < self._expired_before * 1000:
            report.expired += 1
            return ""
        if time.time() - file.modified < _QUIET_SECONDS:
            report.active += 1
            recording = without_last_answer(recording)
            if not recording.messages:
                return ""
        try:
            outcome = await import_recording(
                self._log,
                recording,
                profile=self._profile.name,
                modified=int(file.modified * 1000),
            )
        except SessionForgotten:
            report.forgotten += 1
            return ""
        except SessionExists as error:
            report.unread.append({"file": str(file.path), "why": error.what})
            return ""
        report.messages += outcome.messages
        report.new += outcome.new
        report.grown += bool(outcome.messages) and not outcome.new
        report.unchanged += not outcome.messages and not outcome.new
        return outcome.session


def _with_progress(source: Source) -> Iterator[Path]:
    """The files; a terminal shows how many of them are done."""
    name, total = PROGRAMS[source.program].name, len(source.files)
    for number, path in enumerate(source.files, 1):
        if sys.stderr.isatty():
            typer.echo(f"\r{name}: {number:,} of {total:,}", err=True, nl=False)
        yield path
    if sys.stderr.isatty():
        typer.echo("\r\x1b[K", err=True, nl=False)


def _short(path: Path) -> str:
    return str(path).replace(f"{Path.home()}/", "~/", 1)


def _size(path: Path) -> int:
    with suppress(OSError, ValueError):
        return path.stat().st_size
    return 0


def report_json(reports: Sequence[ImportReport]) -> list[dict[str, object]]:
    return [asdict(report) for report in reports]


def nothing_in(path: str, report: ImportReport) -> TransferError:
    """The error of a path without a session of the program."""
    name = PROGRAMS[report.program].name
    why = f": {report.unread[0]['why']}" if report.unread else ""
    return TransferError(
        f"No session of {name} is in {path!r}{why}.", "Name a session file, or a folder with some."
    )


def sentences(report: ImportReport) -> Iterator[str]:
    """What people read of the result."""
    name = PROGRAMS[report.program].name
    if not report.sessions:
        yield f"No session of {name} was found."
    else:
        total = counted(report.new + report.grown + report.unchanged, "session")
        counts = [
            f"{report.new:,} new",
            f"{report.grown:,} grown",
            f"{report.unchanged:,} unchanged",
        ]
        messages = counted(report.messages, "new message")
        yield f"{name}: {total} ({', '.join(counts)}), {messages}."
    if report.active:
        sessions = counted(report.active, "session is", "sessions are")
        yield f"{sessions} being written: the last answer comes with the next import."
    if report.forgotten:
        yield f"Left out because you forgot them: {counted(report.forgotten, 'session')}."
    if report.expired:
        sessions = counted(report.expired, "session")
        yield f"Left out because retention.days would delete them: {sessions}."


def problems(report: ImportReport) -> Iterator[str]:
    """What could not be read."""
    if report.broken:
        yield f"Passed over: {counted(report.broken, 'line')} that hold no JSON object."
    if report.unread:
        files = counted(len(report.unread), "file")
        yield f"Skipped {files} without a session of this program; --json says why."
