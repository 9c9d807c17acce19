"""What several commands have in common on the command line."""

from typing import Annotated

import typer

from refold.errors import InvalidInput, StoreNotFound
from refold.log import Store
from refold.stores import open_store

STORE = "sqlite:///refold.db"

StoreOption = Annotated[
    str,
    typer.Option(
        "--store",
        metavar="ADDRESS",
        envvar="REFOLD_STORE",
        help="Where the sessions are kept: sqlite:///FILE.",
    ),
]
TenantOption = Annotated[
    str, typer.Option("--tenant", metavar="NAME", help="Whose sessions they are.")
]
ProfileOption = Annotated[
    str | None,
    typer.Option("--profile", metavar="NAME", help="The profile, whatever the settings say."),
]


def store_at(address: str, *, create: bool) -> Store:
    """The store at the address, if a command can do anything with it."""
    if address == "memory:":
        raise InvalidInput(
            "A store in memory would end with this command.",
            "Use --store sqlite:///path/to/file.db.",
        )
    return open_store(address, create=create)


def where_to_look(error: StoreNotFound) -> StoreNotFound:
    """The same error, with the fix in the words of the command line."""
    return StoreNotFound(error.what, "Name the store with --store, or in REFOLD_STORE.")
