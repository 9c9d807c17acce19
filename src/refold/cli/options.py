"""What several commands have in common on the command line."""

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
"""Where nobody says: see `where_is`."""
HERE = "refold.db"

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


def where_is(store: str, *, quiet: bool = False) -> str:
    """The address of the store: the one named, the user's own one in this folder, else at home.

    Unless `quiet`, standard error says it when there is one in this folder that is not used.
    """
    if store:
        return store
    if is_own_store(Path(HERE)):
        return f"sqlite:///{HERE}"
    if os.path.lexists(HERE) and not quiet:
        _say_unused()
    return f"sqlite:///{own_store()}"


def own_store() -> Path:
    return data_folder() / HERE


@cache
def _say_unused() -> None:
    """Once for each command, however often it looks where the store is."""
    typer.echo(
        f"{HERE} in this folder is not used, because you did not make it on this machine. "
        f"Your own store is: {own_store()}. To use the one in this folder, add "
        f"--store sqlite:///{HERE}, or run `refold trust`.",
        err=True,
    )


def store_at(
    store: str, *, create: bool, connect: float | None = None, quiet: bool = False
) -> Store:
    """The store at the address, if a command can do anything with it.

    `connect` is how many seconds a server may take to take a connection; `quiet` as in `where_is`.
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


def able() -> bool:
    """Whether there is a terminal that can do more than lines."""
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


# What a shell may offer where a command takes a name. It is quick, and silent on every error.

MOST = 100
"""How many names are offered at most; of sessions, those used last."""
_SECONDS = 1.0
_FORMS = ("jsonl", "markdown", "json", "html")


def session_names(ctx: typer.Context, incomplete: str) -> list[str]:
    address = str(ctx.params.get("store") or STORE)
    tenant = str(ctx.params.get("tenant") or DEFAULT_TENANT)
    try:
        names = asyncio.run(_names(address, tenant))
    except Exception:  # noqa: BLE001 - a shell that completes has nobody to tell
        return []
    return _beginning(names, incomplete)


def profiles(incomplete: str) -> list[str]:
    return _beginning(PROFILES, incomplete)


def models(incomplete: str) -> list[str]:
    """The well-known models; once something is typed, all that are known."""
    try:
        known = model_names(load_settings().models) if incomplete else WELL_KNOWN
    except Exception:  # noqa: BLE001 - as above
        known = WELL_KNOWN
    return _beginning(known, incomplete)


def setting_names(incomplete: str) -> list[str]:
    """The settings, by our names and the seeds'."""
    seeds = (one.file for one in ALIASES if one.file)
    return _beginning((PROFILE, *KEYS, *seeds), incomplete)


def setting_values(ctx: typer.Context, incomplete: str) -> list[str]:
    """What a setting may be, where that is one of a few."""
    key = str(ctx.params.get("key") or "")
    if key == PROFILE:
        return profiles(incomplete)
    field = KEYS.get(key)
    if field is None:
        return []
    if field.annotation is bool:
        return _beginning(("true", "false"), incomplete)
    chosen = getattr(field.annotation, "__args__", ())
    return _beginning((one for one in chosen if isinstance(one, str)), incomplete)


def forms(incomplete: str) -> list[str]:
    """The forms in which a session can be exported."""
    return _beginning(_FORMS, incomplete)


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)][:MOST]


async def _names(address: str, tenant: str) -> list[str]:
    async with asyncio.timeout(_SECONDS), store_at(address, create=False, quiet=True) as store:
        page = await store.log(tenant).sessions(limit=MOST)
    return [one.session for one in page.sessions]


# What a command is about: the session, and the profile.

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
    """The session of this name; where nobody names one, the one used last."""
    if session is not None:
        check_name(session)
        return session
    page = await log.sessions(limit=1)
    for one in page.sessions:
        return one.session
    raise SessionNotFound("There is no session yet.")


# The log that a command reads a session of, and what it says when it cannot.

_SHOWN = 5


@asynccontextmanager
async def log_to_read(address: str, tenant: str, *, gone: str) -> AsyncGenerator[Log]:
    """The tenant's log; `gone` is what there is to say of a session that was forgotten."""
    try:
        async with store_at(address, create=False) as store:
            log = store.log(tenant)
            try:
                yield log
            except SessionNotFound as error:
                raise SessionNotFound(error.what, await _what_there_is(log)) from error
            except SessionForgotten as error:
                raise SessionForgotten(error.what, gone) from error
    except StoreNotFound as error:
        raise where_to_look(error) from error


async def _what_there_is(log: Log) -> str:
    page = await log.sessions(limit=_SHOWN)
    if not page.sessions:
        return f"Tenant {log.tenant!r} has no sessions here: check --store and --tenant."
    names = ", ".join(repr(info.session) for info in page.sessions)
    return f"Last used here: {names}." if page.next else f"The sessions here: {names}."
