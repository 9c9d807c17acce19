"""`refold export` and `refold import`, and the files that they write and read."""

import asyncio
import errno
import json
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from gzip import GzipFile
from pathlib import Path
from typing import Annotated, BinaryIO, NoReturn, Protocol

import typer

from refold.cli.chat.clean import Cleaner, cleaned, escaped_in_json
from refold.cli.options import (
    STORE,
    JsonOption,
    SessionName,
    StoreOption,
    TenantOption,
    forms,
    log_to_read,
    programs,
    store_at,
    where_to_look,
)
from refold.cli.outcome import FAILED, exit_on_error, wrong_usage
from refold.errors import (
    InvalidInput,
    SessionExists,
    SessionForgotten,
    SessionNotFound,
    StoreNotFound,
    TransferError,
)
from refold.exports import FORMS, exported
from refold.exports.moments import counted
from refold.log import DEFAULT_TENANT, export_session, import_session
from refold.log.entry import check_name
from refold.log.transfer import Contents, check_lines
from refold.transcripts.recording import opened
from refold.user_files import atomic_file, check_writable

STANDARD = "-"
"""Standard input or output, instead of a file."""
LINES = "jsonl"
"""The form that can be imported again."""

_FIX_FILE = "Check that it is a file that `refold export` wrote."
_FIX_NAME = "Import it under another name: --as NAME."
_MAX_HEADER = 64 << 10
_MAX_LINE = 256 << 20
"""Bytes. A line is held in memory, and may come from an untrusted file or a device."""


class LineSource(Protocol):
    """A file whose lines can be read more than once."""

    def seek(self, offset: int, /) -> int: ...

    def readline(self, size: int, /) -> bytes: ...


@contextmanager
def reading(source: str) -> Generator[LineSource, None, None]:
    """The file; a pipe is copied, because it is checked before it is imported."""
    with ExitStack() as stack:
        if source == STANDARD:
            file = _buffer(sys.stdin, "standard input")
        else:
            file = stack.enter_context(opened(Path(source)))
        if file.seekable():
            yield file
        else:
            yield _RereadablePipe(file, stack.enter_context(tempfile.TemporaryFile()))


class _RereadablePipe:
    """A pipe that can be read again, as far as it was read.

    It is copied while it is read, so that an endless pipe is refused before it fills the disk.
    """

    def __init__(self, pipe: BinaryIO | GzipFile, copy: BinaryIO) -> None:
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
    number, max_bytes = 1, _MAX_HEADER
    while line := file.readline(max_bytes + 1):
        if len(line) > max_bytes:
            what = f"Line {number} of the file is longer than {_MAX_LINE >> 20} MB."
            if number == 1:
                what = "Line 1 of the file is not the start of an exported session."
            raise TransferError(what, _FIX_FILE)
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            what = f"Line {number} of the file is not UTF-8 text."
            raise TransferError(what, _FIX_FILE) from error
        if number % 100 == 0:
            await asyncio.sleep(0)  # lets an interrupt in
        yield text
        number, max_bytes = number + 1, _MAX_LINE


@contextmanager
def writing(target: str, *, force: bool) -> Generator[BinaryIO, None, None]:
    """The file to write, which appears under its name only when it is complete."""
    path = Path(os.path.realpath(target))  # a link stays, and its target is written
    if target == STANDARD:
        output = _buffer(sys.stdout, "standard output")
        yield output
        output.flush()
    elif path.exists() and not path.is_file() and not path.is_dir():
        with path.open("wb") as device:  # or a pipe: it has a reader, not a content
            yield device
    else:
        _check_target(target, force=force)
        with atomic_file(path) as file:
            yield file
            _check_target(target, force=force)  # another file may have appeared meanwhile


def _check_target(target: str, *, force: bool) -> None:
    path = Path(target)
    check_writable(path)
    if path.exists() and not force:
        raise TransferError(
            f"There is a file {target!r} already.", "Choose another name, or add --force."
        )


def _buffer(stream: object, name: str) -> BinaryIO:
    """The bytes of a standard stream, which the process may have been started without."""
    buffer = getattr(stream, "buffer", None)
    if buffer is None:
        raise OSError(errno.EBADF, "It is closed", name)
    return buffer


def export(  # noqa: PLR0913 - an option each
    session: SessionName,
    *,
    form: Annotated[
        str,
        typer.Option(
            "--as",
            metavar="FORM",
            help="jsonl, which `refold import` reads; markdown, json or html.",
            autocompletion=forms,
        ),
    ] = LINES,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write to this file; - is standard output.",
        ),
    ] = STANDARD,
    force: Annotated[
        bool, typer.Option("--force", "-f", help="Overwrite an existing file.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="With -o: print the result as JSON.")
    ] = False,
    store: StoreOption = STORE,
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    """Write a session as JSON lines, as Markdown, as one JSON object or as a web page.

    JSON lines hold every entry of the session byte for byte, and `refold import` reads them. The
    other forms are for people. The file appears under its name only once it is complete. --json
    prints the result to standard output, so it needs -o.

    Example: refold export support-42 --as html -o parcel.html
    """
    with exit_on_error():
        check_name(session)
        with wrong_usage():
            _check(form, output, as_json=as_json)
        with writing(output, force=force) as file:
            entries, bytes_ = asyncio.run(_export(session, form, file, store, tenant))
        if as_json:
            result = {"session": session, "form": form, "file": output}
            result |= {"entries": entries, "bytes": bytes_}
            typer.echo(json.dumps(result, ensure_ascii=False))
        elif output != STANDARD:
            size = counted(entries, "entry", "entries")
            notice = f"Exported session {session!r} to {output!r}: {size}."
            typer.echo(notice, err=True)


def _check(form: str, output: str, *, as_json: bool) -> None:
    if form not in (LINES, *FORMS):
        forms = ", ".join((LINES, *FORMS))
        raise InvalidInput(f"There is no form {form!r}.", f"Use one of {forms}.")
    if as_json and output == STANDARD:
        raise InvalidInput(
            "Standard output cannot hold both the session and the result.",
            "Name a file with -o; for the session itself as JSON, use --as json.",
        )


async def _export(
    session: str, form: str, file: BinaryIO, address: str, tenant: str
) -> tuple[int, int]:
    # A file or a pipe gets every byte; a terminal must not obey what a session contains. In JSON,
    # control characters are escaped within strings, so that its values stay the same.
    clean: Callable[[str], str] = str
    if file.isatty():
        clean = escaped_in_json if form in (LINES, "json") else Cleaner().feed
    async with log_to_read(address, tenant, gone="Its entries are gone for good.") as log:
        size = 0
        pieces = export_session(log, session) if form == LINES else exported(log, session, form)
        async for piece in pieces:
            size += file.write(clean(piece).encode(errors="replace"))
        return await log.head(session), size


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import."""

    session: str
    entries: int
    messages: int
    added: int
    """How many of the entries are new."""


def import_(  # noqa: PLR0913 - an option each
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[PATH]",
            help="The file; - is standard input. With --from: a file or folder, if not the "
            "program's own.",
            show_default=False,
        ),
    ] = None,
    *,
    program: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="NAME",
            help="Read the sessions of this program instead, such as claude or codex; or of all.",
            autocompletion=programs,
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="With --from: import without asking.")
    ] = False,
    name: Annotated[
        str | None,
        typer.Option("--as", metavar="NAME", help="Give the session this name instead of its own."),
    ] = None,
    as_json: JsonOption = False,
    store: StoreOption = STORE,
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    """Read a session that `refold export` wrote, or the sessions of other programs.

    The whole file is checked before anything is written. A missing store is created. Importing a
    file again changes nothing, or completes an import that was interrupted.

    With --from, a coding agent's sessions are read from where it keeps them; its files aren't
    changed. The next import adds only what is new.

    Example: refold import parcel.jsonl --as "support-42 (copy)"

    Example: refold import --from claude
    """
    with exit_on_error():
        with wrong_usage():
            _check_import(source, name, program, yes=yes)
        if program is not None:
            _import_from(program, source, store, tenant, yes=yes, as_json=as_json)
            return
        assert source is not None  # noqa: S101 - checked above
        with reading(source) as file:
            with _interruptible_reads():
                contents = asyncio.run(check_lines(lines_of(file), name=name))
            imported = asyncio.run(_import(file, contents, name, store, tenant))
        typer.echo(json.dumps(asdict(imported)) if as_json else _sentence(imported))


def _check_import(source: str | None, name: str | None, program: str | None, *, yes: bool) -> None:
    if program is None and source is None:
        fix = "Name the file, or a program: refold import --from claude"
        raise InvalidInput("There is nothing to import.", fix)
    if program is None and yes:
        raise InvalidInput("--yes is for --from.", "Leave it out.")
    if program is not None and name is not None:
        raise InvalidInput("--as is for a single session.", "Leave it out with --from.")


def _import_from(  # noqa: PLR0913 - an option each
    program: str, path: str | None, store: str, tenant: str, *, yes: bool, as_json: bool
) -> None:
    from refold.cli import import_sessions as other  # noqa: PLC0415 - slow

    found = other.sources(program, path)
    if not other.confirmed(found, store, yes=yes):
        typer.echo("Nothing was imported.", err=True)
        raise typer.Exit(FAILED)
    reports = asyncio.run(other.import_all(found, store, tenant))
    if path is not None and not any(report.sessions or report.active for report in reports):
        raise other.nothing_in(path, reports[0])
    if as_json:
        typer.echo(json.dumps(other.report_json(reports), ensure_ascii=False))
        return
    for report in reports:
        for sentence in other.sentences(report):
            typer.echo(sentence)
        for problem in other.problems(report):
            typer.echo(cleaned(problem), err=True)


@contextmanager
def _interruptible_reads() -> Generator[None, None, None]:
    """Let Ctrl-C end a read that waits for input; asyncio alone would wait for the next line."""

    def interrupt(_number: int, _frame: object) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # else the process ignores it, as a background job
        signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


async def _import(
    file: LineSource, contents: Contents, name: str | None, address: str, tenant: str
) -> Imported:
    try:
        async with store_at(address, create=True) as store:
            log = store.log(tenant)
            before = 0
            with suppress(SessionNotFound, SessionForgotten):
                before = await log.head(contents.session)
            await import_session(log, lines_of(file), name=name)
    except StoreNotFound as error:
        raise where_to_look(error) from error
    except (SessionExists, SessionForgotten) as error:
        raise type(error)(error.what, _FIX_NAME) from error
    added = max(0, contents.entries - before)
    return Imported(contents.session, contents.entries, contents.messages, added)


def _sentence(imported: Imported) -> str:
    size = f"{_count(imported.entries, 'entry', 'entries')}, "
    size += _count(imported.messages, "message", "messages")
    if imported.added == imported.entries:
        return f"Imported session {imported.session!r}: {size}."
    if imported.added == 0:
        return f"Session {imported.session!r} was there already: {size}."
    new = _count(imported.added, "entry was", "entries were")
    return f"Completed session {imported.session!r}: {size}; {new} new."


def _count(number: int, noun: str, plural: str) -> str:
    return f"{number} {noun if number == 1 else plural}"
