"""`refold store`, to prepare and maintain stores, and `refold forget`."""

import asyncio
import json
import re
import sys
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from refold.cli.options import (
    POSTGRES,
    STORE,
    JsonOption,
    SessionName,
    StoreOption,
    TenantOption,
    forget_journal,
    log_to_read,
    store_at,
    where_is,
)
from refold.cli.outcome import FAILED, exit_on_error, require_extra, wrong_usage
from refold.cli.transfer import STANDARD, writing
from refold.errors import InvalidInput
from refold.fold.checkpoints import forget_files
from refold.log import DEFAULT_TENANT, Erased, Span
from refold.log.entry import check_name
from refold.log.erasure_list import (
    Forgotten,
    ForgottenAgain,
    dump,
    dump_header,
    forget_again,
    parse,
)
from refold.memory.memory import forget as forget_with_facts
from refold.memory.memory import forgotten_words, shares_words
from refold.settings import load_settings
from refold.settings.names import printable
from refold.stores.sqlite import SqliteStore
from refold.terminal_text import counted

if TYPE_CHECKING:
    from refold.stores.postgres.maintenance import Scrubbed


store = typer.Typer(
    name="store",
    help="Prepare a store on a PostgreSQL server, and maintain stores.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_PARTITIONS = 16
_WORDS_IN_NAME = (
    "The session's name still has words of what was forgotten. A name cannot change: export the "
    "session, import it under another name (refold import FILE --as NAME), then run: "
    "refold forget {session}"
)
_TO_SCRUB = (
    "Nobody can read it any more. The server still has its bytes in its {what}, and has noted "
    "that. To remove them, run as the store's owner: refold store scrub"
)
_RECOUNTED = 100
"""Sessions that are counted at once, with a look at the rest in between."""
_SCRUB_WAIT = 60.0
"""Seconds that a scrub waits for each table that others use."""
_SPAN = re.compile(r"([1-9][0-9]{0,17})(?:-([1-9][0-9]{0,17}))?")


@store.command("migrate")
def migrate_(
    *,
    address: StoreOption = STORE,
    partitions: Annotated[
        int,
        typer.Option(
            "--partitions",
            metavar="N",
            min=1,
            max=1024,
            help="Partitions of the large tables of a new store.",
        ),
    ] = _PARTITIONS,
    role: Annotated[
        list[str] | None,
        typer.Option("--role", metavar="NAME", help="Grant this role what a store needs."),
    ] = None,
    bind: Annotated[
        str | None,
        typer.Option("--bind", metavar="TENANT", help="Bind the roles to one tenant permanently."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Create a store's tables, or upgrade them to the newest schema.

    Run it as the owner of the database, before you start programs of a new version. Running
    programs can continue meanwhile. Running it again changes nothing.

    Example: refold store migrate --store postgresql://owner@db/refold --role app
    """
    if bind is not None and not role:
        raise typer.BadParameter("--bind needs a --role to bind.")
    with exit_on_error(), require_extra("postgres"):
        from refold.stores.postgres import migrate  # noqa: PLC0415 - optional

        server, roles = _server(address), role or []
        applied = asyncio.run(migrate(server, partitions, roles=roles, tenant=bind))
        if find_spec("dbos") is not None:
            from refold.engine.dbos import prepare  # noqa: PLC0415 - optional

            asyncio.run(prepare(server, () if bind else roles))
        if as_json:
            typer.echo(json.dumps({"applied": [migration.number for migration in applied]}))
        elif applied:
            count = counted(len(applied), "migration")
            typer.echo(f"{count} applied; schema {applied[-1].number}.")
        else:
            typer.echo("The schema is the newest.")


@store.command("check")
def check(*, address: StoreOption = STORE, as_json: JsonOption = False) -> None:
    """Check whether a store can be used from here, with this version.

    It also says when the role that connects may do everything: then the server does not keep
    tenants apart for it. To the owner of the store it says what is still to be scrubbed.

    Example: refold store check --store postgresql://app@db/refold
    """
    with exit_on_error(), require_extra("postgres"):
        from refold.stores.postgres.maintenance import condition  # noqa: PLC0415 - optional

        found = asyncio.run(condition(_server(address)))
        if as_json:
            typer.echo(json.dumps(asdict(found)))
            return
        parts = counted(found.partitions, "partition")
        bound = f", bound to the tenant {found.tenant!r}" if found.tenant else ""
        role = f"as {found.role!r}{bound}"
        typer.echo(f"The store can be used: schema {found.schema}, {parts}, {role}.")
        if not found.isolated:
            typer.echo(
                f"warning: {found.role!r} may do everything, so the server keeps no tenants apart "
                "for it.\nLet programs connect as another role: refold store migrate --role NAME",
                err=True,
            )
        if found.to_scrub:
            typer.echo(
                f"warning: the server still has bytes of what was forgotten in its "
                f"{' and '.join(found.to_scrub)}.\nTo remove them: refold store scrub",
                err=True,
            )


@store.command("recount")
def recount_(
    *,
    address: StoreOption = STORE,
    tenant: TenantOption = DEFAULT_TENANT,
    anew: Annotated[
        bool, typer.Option("--anew", help="Count every session, not only those that need it.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Recount the daily totals of costs from the log.

    Each request updates the totals. Sessions of an older version, new forks, and sessions of which
    a part was forgotten are counted later: a few each time that someone asks for costs, or all at
    once with this command. Programs that use the store can continue meanwhile.

    Example: refold store recount --store sqlite:///refold.db
    """
    with exit_on_error():
        before, left = asyncio.run(_recount(address, tenant, anew=anew))
        if as_json:
            typer.echo(json.dumps({"counted": before - left, "left": left}))
        elif before:
            typer.echo(f"{counted(before - left, 'session')} counted; {left} left.")
        else:
            typer.echo("All sessions are counted.")


async def _recount(address: str, tenant: str, *, anew: bool) -> tuple[int, int]:
    """How many sessions were to be counted, and how many could not be, because others write."""
    async with store_at(address, create=False) as opened:
        log = opened.log(tenant)
        before = left = await log.recount(0, anew=anew)
        while left:
            left, earlier = await log.recount(_RECOUNTED), left
            if left >= earlier:
                break
        return before, left


@store.command("scrub")
def scrub_(
    *,
    address: StoreOption = STORE,
    tables_only: Annotated[
        bool,
        typer.Option("--tables-only", help="Skip the write-ahead log; the next scrub covers it."),
    ] = False,
    wait: Annotated[
        float,
        typer.Option(
            "--wait", metavar="SECONDS", min=0, help="How long to wait for a table in use."
        ),
    ] = 10.0,
    as_json: JsonOption = False,
) -> None:
    """Remove what was forgotten from the server's tables, indexes and write-ahead log.

    Run it as the owner of the database, in quiet hours: tables with forgotten text are rewritten,
    and nobody can use such a table meanwhile. Then every write-ahead segment is filled and removed.
    That needs a superuser, for a checkpoint and to turn wal_recycle off and on again. If a step
    fails, it is listed with the reason (exit code 1), and the next scrub tries it again.

    Example: refold store scrub --store postgresql://owner@db/refold
    """
    with exit_on_error():
        result = _scrub(_server(address), wait=wait, wal=not tables_only)
        if as_json:
            typer.echo(json.dumps(asdict(result)))
        else:
            _print_scrubbed(result)


def _scrub(address: str, *, wait: float, wal: bool = True) -> "Scrubbed":
    """Scrub the store; raises ErasureUnfinished with what is left and why."""
    with require_extra("postgres"):
        from refold.stores.postgres.maintenance import scrubbed  # noqa: PLC0415 - optional

        return asyncio.run(scrubbed(address, wait=wait, wal=wal))


def _print_scrubbed(result: "Scrubbed") -> None:
    typer.echo(f"{counted(len(result.rewritten), 'table')} rewritten.")
    if result.segments:
        settings = "wal_recycle was off"
        if result.recycling != "off":
            settings = "wal_recycle was turned off meanwhile, and is on again"
        segments = counted(result.segments, "write-ahead segment")
        typer.echo(f"{segments} removed after a checkpoint; {settings}.")
    elif result.rewritten:
        typer.echo("The write-ahead log is left for the next scrub.")


@store.command("forgotten")
def forgotten_(
    *,
    address: StoreOption = STORE,
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write to this file; - is standard output."
        ),
    ] = STANDARD,
    force: Annotated[
        bool, typer.Option("--force", "-f", help="Overwrite an existing file.")
    ] = False,
) -> None:
    """List what was forgotten, to forget it again in a restored backup.

    The list identifies tenants, sessions and entries by number and id, and has no text of a
    conversation. Write one with each backup and after each `forget`, and keep it away from the
    store. On PostgreSQL, it needs a role that sees all tenants, as a backup does.

    Example: refold store forgotten -o forgotten.jsonl --force
    """
    with exit_on_error():
        found = asyncio.run(_forgotten(where_is(address)))
        lines = [dump_header(), *(line for erasure in found for line in dump(erasure))]
        with writing(output, force=force) as file:
            file.write("".join(f"{line}\n" for line in lines).encode())


@store.command("forget-again")
def forget_again_(
    lists: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="Forget journals, and lists that `refold store forgotten` wrote.",
            show_default="the store's forget journal",
        ),
    ] = None,
    *,
    address: StoreOption = STORE,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List what would be forgotten, and change nothing.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """After restoring a backup, forget again what was forgotten since it was made.

    Each `forget` is listed in the store's forget journal, by ids: beside an SQLite file, and for
    PostgreSQL where store.forget_journal says. Don't restore an older journal over it.

    Run it before any program uses the restored store. It can be run again: what is missing or
    already forgotten is skipped. Sessions and entries are identified by their ids, so a newer
    session of the same name stays. On PostgreSQL, run `refold store scrub` afterwards.

    Example: refold store forget-again --dry-run
    """
    with exit_on_error():
        # All lists are read before anything is forgotten.
        paths = lists or [_journal_of(where_is(address))]
        erasures = [erasure for path in paths for erasure in _read_list(path)]
        result = asyncio.run(_forget_again(where_is(address), erasures, dry_run=dry_run))
        if as_json:
            typer.echo(json.dumps(asdict(result)))
            return
        if dry_run:
            for place in result.places:
                typer.echo(printable(place))
        verb = "Would forget" if dry_run else "Forgot"
        typer.echo(
            f"{verb} {counted(result.sessions, 'session')} and {_entries(result.entries)} again. "
            f"Not there, or forgotten already: {result.absent:,}."
        )
        changed = 0 if dry_run else result.sessions + result.entries
        if where_is(address).startswith(POSTGRES) and changed:
            typer.echo("To remove the bytes, run as the store's owner: refold store scrub")


async def _forgotten(address: str) -> list[Forgotten]:
    if address.startswith(POSTGRES):
        with require_extra("postgres"):
            from refold.stores.postgres.maintenance import forgotten  # noqa: PLC0415 - optional

            return await forgotten(address)
    async with store_at(address, create=False) as opened:
        return await opened.forgotten() if isinstance(opened, SqliteStore) else []


def _read_list(path: Path) -> list[Forgotten]:
    try:
        with path.open(encoding="utf-8") as lines:
            return [*parse(lines)]
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise InvalidInput(f"{path} cannot be read: {why}.") from error


def _journal_of(address: str) -> Path:
    opened = store_at(address, create=False)
    path = opened.forget_journal.path if isinstance(opened, SqliteStore) else None
    if path is None and (named := forget_journal()):
        path = Path(named).expanduser()
    if path is None:
        raise InvalidInput(
            "No forget journal is set for this store.",
            "Set store.forget_journal, or name a list that `refold store forgotten` wrote.",
        )
    return path


async def _forget_again(
    address: str, erasures: list[Forgotten], *, dry_run: bool
) -> ForgottenAgain:
    async with store_at(address, create=False) as opened:
        if not isinstance(opened, SqliteStore):
            return await forget_again(opened, erasures, dry_run=dry_run)
        async with opened.erasing_many():
            return await forget_again(opened, erasures, dry_run=dry_run)


def _entries(number: int) -> str:
    return counted(number, "entry", "entries")


def _server(address: str) -> str:
    found = where_is(address)
    with wrong_usage():
        if not found.startswith(POSTGRES):
            raise InvalidInput(
                "This is only for a store in PostgreSQL; one in a file does not need it.",
                "Name it: --store postgresql://user@host/database, or REFOLD_STORE.",
            )
    return found


def forget(  # noqa: PLR0913 - an option each
    session: SessionName,
    *,
    span: Annotated[
        str | None,
        typer.Option(
            "--span", metavar="A-B", help="Only these entries; `refold show` has their numbers."
        ),
    ] = None,
    scrub: Annotated[
        bool,
        typer.Option(
            "--scrub", help="Also wait until the bytes are off the server's disk (PostgreSQL)."
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: JsonOption = False,
    store: StoreOption = STORE,
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    """Erase a session for good, or some of its entries, and all that was derived from them.

    It shows what would be erased, and asks first. This can't be undone: afterwards nobody can read
    or find the text, nor a title made of it. An SQLite file no longer contains it. A PostgreSQL
    server still has its bytes in tables, indexes and the write-ahead log: `refold store scrub`
    removes them later, or --scrub at once, if the role in --store may. Copies outside the store
    (backups, archived log, replicas, exports) are yours to erase. Without a terminal to ask on, it
    needs --yes.

    Example: refold forget support-42 --span 12-14
    """
    with exit_on_error():
        check_name(session)
        with wrong_usage():
            entries = _parse_span(span)
        preview = asyncio.run(_preview(session, entries, store, tenant))
        if not yes and not _confirm(preview):
            typer.echo("Nothing was forgotten.", err=True)
            raise typer.Exit(FAILED)
        erased, words_in_name = asyncio.run(_forget(session, entries, store, tenant))
        typer.echo(json.dumps(asdict(erased)) if as_json else _sentence(erased, entries))
        if words_in_name:
            typer.echo(_WORDS_IN_NAME.format(session=quote(session)), err=True)
        if erased.to_scrub and scrub:
            _print_scrubbed(_scrub(where_is(store), wait=_SCRUB_WAIT))
        elif erased.to_scrub:
            typer.echo(_TO_SCRUB.format(what=" and ".join(erased.to_scrub)), err=True)


def _parse_span(text: str | None) -> Span | None:
    if text is None:
        return None
    match = _SPAN.fullmatch(text.strip())
    if not match or int(match[2] or match[1]) < int(match[1]):
        raise InvalidInput(f"{text!r} is not a span.", "Write it like 12 or 12-14.")
    return Span(int(match[1]), int(match[2] or match[1]))


async def _preview(session: str, span: Span | None, address: str, tenant: str) -> str:
    async with log_to_read(address, tenant, gone="It is gone already.") as log:
        info = await log.info(session)
        if span is None:
            title = f" ({info.title})" if info.title else ""
            return f"All of session {session!r}{title}: {counted(info.messages, 'message')}."
        entries = await log.read(session, span, whole=False)
        present = sum(not entry.forgotten for entry in entries)
        if not present:
            raise InvalidInput(
                f"Nothing is left at {span.first}-{span.last} of session {session!r}.",
                f"It has entries 1 to {info.entries}; `refold show` has their numbers.",
            )
        return f"{_entries(present)} of session {session!r}, and every fold made of them."


def can_ask() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _confirm(preview: str) -> bool:
    if not can_ask():
        raise InvalidInput(
            "Can't ask for confirmation: not a terminal. This cannot be undone.",
            "Add --yes if you are sure.",
        )
    typer.echo(f"This would be erased for good:\n  {preview}", err=True)
    try:
        return typer.confirm("Go on?", err=True)
    except typer.Abort as error:
        raise KeyboardInterrupt from error


async def _forget(
    session: str, span: Span | None, address: str, tenant: str
) -> tuple[Erased, bool]:
    """What was erased, and whether the session's name still has words of it."""
    workspaces = load_settings().profile.workspace
    async with log_to_read(address, tenant, gone="It is gone already.") as log:
        words = await forgotten_words(log, session, span) if span is not None else set[str]()
        erased = await forget_with_facts(log, session, span)
        await forget_files(workspaces, log, session)
        return erased, shares_words(session, words)


def _sentence(erased: Erased, span: Span | None) -> str:
    derived = f", and {_entries(erased.derived)} made of them" if erased.derived else ""
    if span is None:
        return f"Forgot session {erased.session!r}: {_entries(erased.entries)}{derived}."
    return f"Forgot {_entries(erased.entries)} of session {erased.session!r}{derived}."
