"""What several commands have in common on the command line."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from refold.errors import InvalidInput, StoreNotFound
from refold.log import Store
from refold.stores import open_store

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
        show_default=f"{HERE} in this folder, else your own",
    ),
]
TenantOption = Annotated[
    str, typer.Option("--tenant", metavar="NAME", help="Whose sessions they are.")
]


def where_is(store: str) -> str:
    """The address of the store: the one named, the one in this folder, else the user's own."""
    if store:
        return store
    return f"sqlite:///{HERE if Path(HERE).exists() else _own()}"


def _own() -> Path:
    """The user's own store."""
    given = os.environ.get("XDG_DATA_HOME")
    folder = Path(given) if given else Path.home() / ".local" / "share"
    return folder / "refold" / HERE


def store_at(store: str, *, create: bool) -> Store:
    """The store at the address, if a command can do anything with it."""
    address = where_is(store)
    if create and address == f"sqlite:///{_own()}":
        _own().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if address == "memory:":
        raise InvalidInput(
            "A store in memory would end with this command.",
            "Use --store sqlite:///path/to/file.db.",
        )
    return open_store(address, create=create)


def where_to_look(error: StoreNotFound) -> StoreNotFound:
    """The same error, with the fix in the words of the command line."""
    return StoreNotFound(error.what, "Name the store with --store, or in REFOLD_STORE.")


def able() -> bool:
    """Whether there is a terminal that can do more than lines."""
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
