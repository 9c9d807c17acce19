"""`refold export`."""

import asyncio
import errno
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, BinaryIO, Protocol

import typer

from refold.cli.chat.clean import Cleaner, escaped_in_json
from refold.cli.options import (
    STORE,
    SessionName,
    StoreOption,
    TenantOption,
    forms,
    log_to_read,
    store_at,
    where_to_look,
)
from refold.cli.outcome import exit_on_error
from refold.errors import (
    InvalidInput,
    SessionExists,
    SessionForgotten,
    SessionNotFound,
    StoreNotFound,
    TransferError,
)
from refold.exports import FORMS, exported
from refold.log import DEFAULT_TENANT, Log, export_session, import_session
from refold.log.entry import check_name
from refold.log.transfer import check_lines
from refold.user_files import appearing_whole

# Files to read a session from and to write one to.

_EXPORTED = "Check that it is a file that `refold export` wrote."
STANDARD = "-"
"""Stands for standard input or output where a file is named."""


_LONGEST_HEADER = 64 << 10
_LONGEST_LINE = 256 << 20
"""Bytes. A line is held in memory, and may be of a file that somebody else made, or of a device."""


class LineSource(Protocol):
    """What lines are read from, more than once."""

    def seek(self, offset: int, /) -> int: ...

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


LINES = "jsonl"
"""The form that can be imported again."""


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export came to."""

    session: str
    form: str
    file: str
    entries: int
    bytes: int


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
        bool, typer.Option("--force", "-f", help="Replace the file if it is there.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="With a file: print what was written as JSON.")
    ] = False,
    store: StoreOption = STORE,
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    """Write a session as JSON lines, as Markdown, as one JSON object or as a web page.

    JSON lines hold every entry of the session byte for byte, and `refold import` reads them. The
    other forms are to be read. A file appears under its name only when it is whole. The result
    that --json prints goes to standard output, so it needs a file to write to.

    Example: refold export support-42 --as html -o parcel.html
    """
    with exit_on_error():
        check_name(session)
        _check(form, output, as_json=as_json)
        with writing(output, force=force) as file:
            entries, size = asyncio.run(_export(session, form, file, store, tenant))
        if as_json:
            done = Exported(session, form, output, entries, size)
            typer.echo(json.dumps(asdict(done), ensure_ascii=False))
        elif output != STANDARD:
            said = f"Exported session {session!r} to {output!r}: {entries} entries."
            typer.echo(said, err=True)


def _check(form: str, output: str, *, as_json: bool) -> None:
    if form not in (LINES, *FORMS):
        known = ", ".join((LINES, *FORMS))
        raise InvalidInput(f"There is no form {form!r}.", f"Use one of {known}.")
    if as_json and output == STANDARD:
        raise InvalidInput(
            "Standard output cannot hold both the session and the result.",
            "Name a file with -o; for the session itself as JSON, use --as json.",
        )


async def _export(
    session: str, form: str, file: BinaryIO, address: str, tenant: str
) -> tuple[int, int]:
    async with log_to_read(address, tenant, gone="Its entries are gone for good.") as log:
        size = 0
        shown = _shown_on_a_terminal(form) if file.isatty() else str
        async for piece in _pieces(log, session, form):
            size += file.write(shown(piece).encode(errors="replace"))
        return await log.head(session), size


def _shown_on_a_terminal(form: str) -> Callable[[str], str]:
    """What makes pieces of an export harmless to a terminal. A file or a pipe gets every byte."""
    # Controls are within strings of JSON only, so that its values stay as they are.
    return escaped_in_json if form in (LINES, "json") else Cleaner().feed


def _pieces(log: Log, session: str, form: str) -> AsyncIterator[str]:
    return export_session(log, session) if form == LINES else exported(log, session, form)


# `refold import`.

_ANOTHER_NAME = "Import it under another name: --as NAME."


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import came to."""

    session: str
    entries: int
    """How many the file holds."""
    messages: int
    added: int
    """How many of the entries were not there before."""


def import_(
    source: Annotated[
        str,
        typer.Argument(metavar="FILE", help="The file; - is standard input.", show_default=False),
    ],
    *,
    name: Annotated[
        str | None,
        typer.Option("--as", metavar="NAME", help="Give the session this name instead of its own."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    store: StoreOption = STORE,
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    """Read a session that `refold export` wrote.

    The whole file is checked before anything is written. The store is made if it is missing.
    Importing a file again changes nothing, and completes an import that was interrupted.

    Example: refold import parcel.jsonl --as "support-42 (copy)"
    """
    with exit_on_error():
        with reading(source) as file:
            imported = asyncio.run(_import(file, name, store, tenant))
        typer.echo(json.dumps(asdict(imported)) if as_json else _sentence(imported))


async def _import(file: LineSource, name: str | None, address: str, tenant: str) -> Imported:
    contents = await check_lines(lines_of(file), name=name)
    try:
        async with store_at(address, create=True) as store:
            log = store.log(tenant)
            before = await _head(log, contents.session)
            await import_session(log, lines_of(file), name=name)
    except StoreNotFound as error:
        raise where_to_look(error) from error
    except SessionExists as error:
        raise SessionExists(error.what, _ANOTHER_NAME) from error
    except SessionForgotten as error:
        raise SessionForgotten(error.what, _ANOTHER_NAME) from error
    added = max(0, contents.entries - before)
    return Imported(contents.session, contents.entries, contents.messages, added)


async def _head(log: Log, session: str) -> int:
    try:
        return await log.head(session)
    except (SessionNotFound, SessionForgotten):
        return 0


def _sentence(imported: Imported) -> str:
    size = f"{_count(imported.entries, 'entry', 'entries')}, "
    size += _count(imported.messages, "message", "messages")
    if imported.added == imported.entries:
        return f"Imported session {imported.session!r}: {size}."
    if imported.added == 0:
        return f"Session {imported.session!r} was there already: {size}."
    new = _count(imported.added, "entry was", "entries were")
    return f"Completed session {imported.session!r}: {size}; {new} new."


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
