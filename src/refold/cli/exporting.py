"""`refold export`."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict, dataclass
from typing import Annotated, BinaryIO

import typer

from refold.cli.chat.clean import Cleaner, escaped_in_json
from refold.cli.choosing import SessionName
from refold.cli.completing import forms
from refold.cli.files import STANDARD, writing
from refold.cli.options import STORE, StoreOption, TenantOption
from refold.cli.outcome import explained
from refold.cli.reading import log_to_read
from refold.errors import InvalidInput
from refold.exports import FORMS, exported
from refold.log import DEFAULT_TENANT, Log, export_session
from refold.log.names import check_name

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
    with explained():
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
