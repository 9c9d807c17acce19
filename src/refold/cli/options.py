"""Options, completions and store access that commands share."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer

from refold.cli.outcome import wrong_usage
from refold.errors import InvalidInput, SessionForgotten, SessionNotFound, StoreNotFound
from refold.user_files import data_folder

if TYPE_CHECKING:  # slow, and `refold chat` has its prompt on screen first
    from refold.log import Log, SessionPage, Store

STORE = ""
"""Not named: see `where_is`."""
TENANT: Final = "default"
"""`refold.log.DEFAULT_TENANT`."""
HERE = "refold.db"
POSTGRES = ("postgresql://", "postgres://")
MAX_NAMES = 100
"""How many names a shell is offered; of sessions, those used last."""

_COMPLETION_SECONDS = 1.0
BEGIN = "Begin one with `refold chat`, or watch one with `refold demo`."
_ADDRESSES = "Use --store sqlite:///path/to/file.db, or --store postgresql://user@host/database."
_MAX_LISTED = 5
_Profiles = TypeVar("_Profiles", str | None, list[str] | None)
_FORMS = ("jsonl", "markdown", "json", "html")

StoreOption = Annotated[
    str,
    typer.Option(
        "--store",
        metavar="ADDRESS",
        envvar="REFOLD_STORE",
        help="Where sessions are stored: sqlite:///FILE, or postgresql://USER@HOST/NAME.",
        show_default=f"your {HERE} in this folder, else your own",
    ),
]
TenantOption = Annotated[
    str, typer.Option("--tenant", metavar="NAME", help="The tenant that owns the sessions.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def where_is(store: str, *, quiet: bool = False) -> str:
    """The address of the store: as named, else the user's own in this folder, else at home.

    Unless `quiet`, a notice on standard error reports a store in this folder that is not used.
    """
    if store:
        return store
    if os.path.lexists(HERE):
        from refold.stores.sqlite.ownership import is_own_store  # noqa: PLC0415 - slow

        if is_own_store(Path(HERE)):
            return f"sqlite:///{HERE}"
        if not quiet:
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
) -> "Store":
    """The store at the address, unless it is in memory, where it would end with the command.

    `connect` is the connection timeout in seconds; `quiet` as in `where_is`.
    """
    from refold.stores import open_store  # noqa: PLC0415 - slow

    address = where_is(store, quiet=quiet)
    if create and address == f"sqlite:///{own_store()}":
        own_store().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not address.startswith(POSTGRES):
        with wrong_usage():
            if address == "memory:":
                raise InvalidInput("A store in memory would end with this command.", _ADDRESSES)
            try:
                return open_store(address, create=create, forget_journal=forget_journal)
            except InvalidInput as error:
                raise InvalidInput(error.what, _ADDRESSES) from error
    return open_store(address, create=create, connect=connect, forget_journal=forget_journal)


def forget_journal() -> str:
    """The journal that the settings name; read when something is forgotten, not before."""
    from refold.settings import load_settings  # noqa: PLC0415 - slow

    return load_settings().profile.store.forget_journal


def where_to_look(error: StoreNotFound) -> StoreNotFound:
    """The same error, with the fix in the words of the command line."""
    return StoreNotFound(error.what, "Name the store with --store, or in REFOLD_STORE.")


def full_terminal() -> bool:
    """Whether there is a terminal that can do more than print lines."""
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


# Completions for a shell: quick, and silent on every error.


def session_names(ctx: typer.Context, incomplete: str) -> list[str]:
    address = str(ctx.params.get("store") or STORE)
    tenant = str(ctx.params.get("tenant") or TENANT)
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
        page = await _conversations(store.log(tenant), MAX_NAMES)
    return [info.session for info in page.sessions]


def profiles(incomplete: str) -> list[str]:
    from refold.view.profiles import PROFILES  # noqa: PLC0415 - slow

    return _matches(PROFILES, incomplete)


def models(incomplete: str) -> list[str]:
    """The well-known models; once something is typed, all of the catalog."""
    from refold.models import WELL_KNOWN, model_names  # noqa: PLC0415 - slow
    from refold.settings import load_settings  # noqa: PLC0415 - slow

    try:
        names = model_names(load_settings().models) if incomplete else WELL_KNOWN
    except Exception:  # noqa: BLE001 - as above
        names = WELL_KNOWN
    return _matches(names, incomplete)


def setting_names(incomplete: str) -> list[str]:
    from refold.settings import ALIASES, KEYS  # noqa: PLC0415 - slow
    from refold.settings.names import PROFILE  # noqa: PLC0415 - slow

    aliases = (alias.file for alias in ALIASES if alias.file)
    return _matches((PROFILE, *KEYS, *aliases), incomplete)


def setting_values(ctx: typer.Context, incomplete: str) -> list[str]:
    """The values of a setting that has only a few."""
    from refold.settings import KEYS  # noqa: PLC0415 - slow
    from refold.settings.names import PROFILE  # noqa: PLC0415 - slow

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


def programs(incomplete: str) -> list[str]:
    from refold.transcripts.programs import PROGRAMS  # noqa: PLC0415 - slow

    return _matches((*PROGRAMS, "all"), incomplete)


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
        help="The session's name; default: the one used last.",
        show_default=False,
        autocompletion=session_names,
    ),
]


def known_profile(value: _Profiles) -> _Profiles:
    """What --profile names, if there is one of each name."""
    from refold.view.profiles import PROFILES  # noqa: PLC0415 - slow

    for name in [value] if isinstance(value, str) else value or []:
        if name not in PROFILES:
            raise typer.BadParameter(
                f"There is no profile {name!r}. Use one of {', '.join(PROFILES)}."
            )
    return value


ProfileChoice = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME",
        help="Override the configured profile.",
        autocompletion=profiles,
        callback=known_profile,
    ),
]


async def chosen(log: "Log", session: str | None) -> str:
    """The name that was given, else that of the session used last."""
    from refold.log.entry import check_name  # noqa: PLC0415 - slow

    if session is not None:
        check_name(session)
        return session
    page = await _conversations(log, 1)
    if not page.sessions:
        raise SessionNotFound("There is no session yet.", BEGIN)
    return page.sessions[0].session


async def _conversations(log: "Log", limit: int) -> "SessionPage":
    from refold.memory.board import conversations  # noqa: PLC0415 - most commands list nothing

    return await conversations(log, limit=limit)


@asynccontextmanager
async def log_to_read(address: str, tenant: str, *, gone: str) -> "AsyncGenerator[Log]":
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
        if where_is(address, quiet=True) == f"sqlite:///{own_store()}":  # nobody named another
            raise SessionNotFound("There is no session yet.", BEGIN) from error
        raise where_to_look(error) from error


async def _available_sessions(log: "Log") -> str:
    page = await _conversations(log, _MAX_LISTED)
    if not page.sessions:
        return f"Tenant {log.tenant!r} has no sessions here: check --store and --tenant."
    names = ", ".join(repr(info.session) for info in page.sessions)
    return f"Last used here: {names}." if page.next else f"The sessions here: {names}."
