"""What several commands have in common on the command line."""

import os
import sys
from functools import cache
from pathlib import Path
from typing import Annotated

import typer

from refold.errors import InvalidInput, StoreNotFound
from refold.log import Store
from refold.stores import open_store
from refold.stores.sqlite.ownership import is_own_store
from refold.user_folders import data_folder

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
    """The user's own store."""
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
