"""`refold import`."""

import asyncio
import json
from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from refold.cli.files import LineSource, lines_of, reading
from refold.cli.options import STORE, StoreOption, TenantOption, store_at, where_to_look
from refold.cli.outcome import explained
from refold.errors import SessionExists, SessionForgotten, SessionNotFound, StoreNotFound
from refold.log import DEFAULT_TENANT, Log, import_session
from refold.log.transfer import check_lines

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
    with explained():
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
