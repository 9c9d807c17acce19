"""`refold import --from`: sessions that other programs recorded, into the log."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

import typer

from refold.cli.chat.clean import cleaned
from refold.cli.options import store_at, where_is, where_to_look
from refold.cli.outcome import wrong_usage
from refold.errors import (
    InvalidInput,
    SessionExists,
    SessionForgotten,
    StoreNotFound,
    TransferError,
)
from refold.log import Log
from refold.settings import load_settings
from refold.terminal_text import counted
from refold.transcripts.log_import import import_recording, without_last_answer
from refold.transcripts.programs import PROGRAMS, SessionFile, files_in, read_sessions

ALL: Final = "all"
_QUIET_SECONDS: Final = 10
"""A file that was written less long ago may have an answer that is not whole."""
_MB: Final = 1_000_000
_SUFFIXES: Final = frozenset({".json", ".jsonl", ".db"})


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
        return self.new + self.grown + self.unchanged + self.forgotten


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
        files = [file for file in files_in(paths) if file in paths or file.suffix in _SUFFIXES]
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
            raise InvalidInput("There is no terminal to ask on.", "Add --yes.")
    store = where_is(address, quiet=True).removeprefix("sqlite:///").rpartition("@")[2]
    question = f"Import them into {_short(Path(store))}? Nothing of the files changes."
    try:
        return typer.confirm(cleaned(question), default=True, err=True)
    except typer.Abort as error:
        raise KeyboardInterrupt from error


async def import_all(found: Sequence[Source], address: str, tenant: str) -> list[ImportReport]:
    profile = load_settings().profile.name
    try:
        async with store_at(address, create=True) as store:
            log = store.log(tenant)
            return [await _import(log, source, profile) for source in found]
    except StoreNotFound as error:
        raise where_to_look(error) from error


async def _import(log: Log, source: Source, profile: str) -> ImportReport:
    report = ImportReport(source.program)
    for file in _with_progress(source):
        await _import_file(log, file, profile, report)
    return report


async def _import_file(log: Log, file: SessionFile, profile: str, report: ImportReport) -> None:
    report.broken += file.broken
    recording, why = file.recording, file.why
    if recording is None or recording.origin is None or why:
        report.unread.append({"file": str(file.path), "why": why})
        return
    if recording.origin.program != report.program:
        why = f"it is of {PROGRAMS[recording.origin.program].name}"
        report.unread.append({"file": str(file.path), "why": why})
        return
    if time.time() - file.modified < _QUIET_SECONDS:
        report.active += 1
        recording = without_last_answer(recording)
        if not recording.messages:
            return
    try:
        modified = int(file.modified * 1000)
        outcome = await import_recording(log, recording, profile=profile, modified=modified)
    except SessionForgotten:
        report.forgotten += 1
        return
    except SessionExists as error:
        report.unread.append({"file": str(file.path), "why": error.what})
        return
    report.messages += outcome.messages
    report.new += outcome.new
    report.grown += bool(outcome.messages) and not outcome.new
    report.unchanged += not outcome.messages and not outcome.new


def _with_progress(source: Source) -> Iterator[SessionFile]:
    """The sessions; a terminal shows how much is done."""
    name, total = PROGRAMS[source.program].name, len(source.files)
    for number, path in enumerate(source.files, 1):
        for nth, file in enumerate(read_sessions(path), 1):
            if sys.stderr.isatty():
                sessions = f", session {nth:,}" if nth > 1 else ""
                line = f"\r\x1b[K{name}: file {number:,} of {total:,}{sessions}"
                typer.echo(line, err=True, nl=False)
            yield file
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
        total = counted(report.sessions, "session")
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


def problems(report: ImportReport) -> Iterator[str]:
    """What could not be read."""
    if report.broken:
        yield f"Passed over: {counted(report.broken, 'line')} that hold no JSON object."
    if report.unread:
        files = counted(len(report.unread), "file")
        yield f"Skipped {files} without a session of this program; --json says why."
