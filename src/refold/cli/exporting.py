"""`refold export`."""

import asyncio
import json
from typing import Annotated, BinaryIO

import typer

from refold.cli.files import STANDARD, writing
from refold.cli.options import STORE, StoreOption, TenantOption
from refold.cli.outcome import explained
from refold.cli.reading import log_to_read
from refold.log import DEFAULT_TENANT, Log, export_session
from refold.log.admit import check_name


def export(
    session: Annotated[
        str, typer.Argument(metavar="SESSION", help="The session's name.", show_default=False)
    ],
    *,
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
    store: StoreOption = STORE,
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    """Write a session as JSON lines.

    The file holds every entry of the session byte for byte, and `refold import` reads it.
    It appears under its name only when it is whole.
    """
    with explained():
        check_name(session)
        with writing(output, force=force) as file:
            entries = asyncio.run(_export(session, file, store, tenant))
        if output != STANDARD:
            said = f"Exported session {session!r} to {output!r}: {entries} entries."
            typer.echo(said, err=True)


async def _export(session: str, file: BinaryIO, address: str, tenant: str) -> int:
    async with log_to_read(address, tenant, gone="Its entries are gone for good.") as log:
        return await _write(log, session, file)


async def _write(log: Log, session: str, file: BinaryIO) -> int:
    line = ""
    async for line in export_session(log, session):
        file.write(line.encode())
    return json.loads(line)["entries"]
