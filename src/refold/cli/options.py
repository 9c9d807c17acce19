"""Options, completions and store access that commands share."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Annotated

import typer

from refold.errors import InvalidInput, SessionForgotten, SessionNotFound, StoreNotFound
from refold.log import DEFAULT_TENANT, Log, Store
from refold.log.entry import check_name
from refold.models import WELL_KNOWN, model_names
from refold.settings import ALIASES, KEYS, load_settings
from refold.settings.names import PROFILE
from refold.stores import open_store
from refold.stores.sqlite.ownership import is_own_store
from refold.user_files import data_folder
from refold.view.profiles import PROFILES

STORE = ""
"""Not named: see `where_is`."""
HERE = "refold.db"
POSTGRES = ("postgresql://", "postgres://")
MAX_NAMES = 100
"""How many names a shell is offered; of sessions, those used last."""

_COMPLETION_SECONDS = 1.0
_MAX_LISTED = 5
_FORMS = ("jsonl", "markdown", "json", "html")

StoreOption = Annotated[
    str,
    typer.Option(
        "--store",
        metavar="ADDRESS",
        envvar="REFOLD_STORE",
        help="Where the sessions are kept: sqlite:///FILE, or postgresql://USER@HOST/NAME.",
        show_default=f"your {HERE} in this folder, else your own",
    ),
]
TenantOption = Annotated[
    str, typer.Option("--tenant", metavar="NAME", help="Whose sessions they are.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def where_is(store: str, *, quiet: bool = False) -> str:
    """The address of the store: as named, else the user's own in this folder, else at home.

    Unless `quiet`, a notice on standard error reports a store in this folder that is not used.
    """
    if store:
        return store
    if is_own_store(Path(HERE)):
        return f"sqlite:///{HERE}"
    if os.path.lexists(HERE) and not quiet:
        _report_unused_store()
    return f"sqlite:///{own_store()}"


def own_store() -> Path:
    return data_folder() / HERE


@cache
def _report_unused_store() -> None:  # cached, so that a command reports it once
    typer.echo(
        f"{HERE} in this folder is not used, because you did not make it on this machine. "
        f"Your own store is: {own_store()}. To use the one in this folder, add "
        f"--store sqlite:///{HERE}, or run `refold trust`.",
        err=True,
    )


def store_at(
    store: str, *, create: bool, connect: float | None = None, quiet: bool = False
) -> Store:
    """The store at the address, unless it is in memory, where it would end with the command.

    `connect` is the connection timeout in seconds; `quiet` as in `where_is`.
    """
    address = where_is(store, quiet=quiet)
    if create and address == f"sqlite:///{own_store()}":
        own_store().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if address == "memory:":
        raise InvalidInput(
            "A store in memory would end with this command.",
            "Use --store sqlite:///path/to/file.db.",
        )
    return open_store(address, create=create, connect=connect)


def where_to_look(error: StoreNotFound) -> StoreNotFound:
    """The same error, with the fix in the words of the command line."""
    return StoreNotFound(error.what, "Name the store with --store, or in REFOLD_STORE.")


def full_terminal() -> bool:
    """Whether there is a terminal that can do more than print lines."""
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


# Completions for a shell: quick, and silent on every error.


def session_names(ctx: typer.Context, incomplete: str) -> list[str]:
    address = str(ctx.params.get("store") or STORE)
    tenant = str(ctx.params.get("tenant") or DEFAULT_TENANT)
    try:
        names = asyncio.run(_recent_sessions(address, tenant))
    except Exception:  # noqa: BLE001 - completion must not print errors
        return []
    return _matches(names, incomplete)


async def _recent_sessions(address: str, tenant: str) -> list[str]:
    async with (
        asyncio.timeout(_COMPLETION_SECONDS),
        store_at(address, create=False, quiet=True) as store,
    ):
        page = await store.log(tenant).sessions(limit=MAX_NAMES)
    return [info.session for info in page.sessions]


def profiles(incomplete: str) -> list[str]:
    return _matches(PROFILES, incomplete)


def models(incomplete: str) -> list[str]:
    """The well-known models; once something is typed, all of the catalog."""
    try:
        names = model_names(load_settings().models) if incomplete else WELL_KNOWN
    except Exception:  # noqa: BLE001 - as above
        names = WELL_KNOWN
    return _matches(names, incomplete)


def setting_names(incomplete: str) -> list[str]:
    aliases = (alias.file for alias in ALIASES if alias.file)
    return _matches((PROFILE, *KEYS, *aliases), incomplete)


def setting_values(ctx: typer.Context, incomplete: str) -> list[str]:
    """The values of a setting that has only a few."""
    key = str(ctx.params.get("key") or "")
    if key == PROFILE:
        return profiles(incomplete)
    field = KEYS.get(key)
    if field is None:
        return []
    if field.annotation is bool:
        return _matches(("true", "false"), incomplete)
    values = getattr(field.annotation, "__args__", ())
    return _matches((value for value in values if isinstance(value, str)), incomplete)


def forms(incomplete: str) -> list[str]:
    return _matches(_FORMS, incomplete)


def _matches(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)][:MAX_NAMES]


SessionName = Annotated[
    str,
    typer.Argument(
        metavar="SESSION",
        help="The session's name.",
        show_default=False,
        autocompletion=session_names,
    ),
]
SessionChoice = Annotated[
    str | None,
    typer.Argument(
        metavar="[SESSION]",
        help="The session's name; else the one used last.",
        show_default=False,
        autocompletion=session_names,
    ),
]
ProfileChoice = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME",
        help="The profile, whatever the settings say.",
        autocompletion=profiles,
    ),
]


async def chosen(log: Log, session: str | None) -> str:
    """The name that was given, else that of the session used last."""
    if session is not None:
        check_name(session)
        return session
    page = await log.sessions(limit=1)
    if not page.sessions:
        raise SessionNotFound("There is no session yet.")
    return page.sessions[0].session


@asynccontextmanager
async def log_to_read(address: str, tenant: str, *, gone: str) -> AsyncGenerator[Log]:
    """The tenant's log; `gone` is the fix of the error when a session was forgotten."""
    try:
        async with store_at(address, create=False) as store:
            log = store.log(tenant)
            try:
                yield log
            except SessionNotFound as error:
                raise SessionNotFound(error.what, await _available_sessions(log)) from error
            except SessionForgotten as error:
                raise SessionForgotten(error.what, gone) from error
    except StoreNotFound as error:
        raise where_to_look(error) from error


async def _available_sessions(log: Log) -> str:
    page = await log.sessions(limit=_MAX_LISTED)
    if not page.sessions:
        return f"Tenant {log.tenant!r} has no sessions here: check --store and --tenant."
    names = ", ".join(repr(info.session) for info in page.sessions)
    return f"Last used here: {names}." if page.next else f"The sessions here: {names}."
