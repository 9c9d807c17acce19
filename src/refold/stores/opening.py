"""Stores by address, for settings, command lines and two-line examples."""

from pathlib import Path

from refold.errors import InvalidInput
from refold.log.protocol import Store
from refold.stores.memory import MemoryStore
from refold.stores.sqlite import SqliteStore

_SQLITE = "sqlite:///"


def open_store(address: str = "memory:", *, create: bool = True) -> Store:
    """Find the store at an address; `async with` opens it.

    `memory:` keeps nothing; `sqlite:///refold.db` is a file beside the program, and
    `sqlite:////home/me/refold.db` one with its whole path. With `create=False` it must be there.
    """
    if address == "memory:":
        return MemoryStore()
    if address.startswith(_SQLITE) and len(address) > len(_SQLITE):
        return SqliteStore(Path(address.removeprefix(_SQLITE)), create=create)
    raise InvalidInput(
        f"{_without_password(address)!r} is no store's address.",
        "Use 'memory:' or 'sqlite:///path/to/file.db'.",
    )


def _without_password(address: str) -> str:
    """The address as it may be shown, in logs too: without who is let in, and how."""
    before, at, place = address.rpartition("@")
    scheme, slashes, _ = before.partition("://")
    begin = (f"{scheme}{slashes}" if slashes and ":" not in scheme else "") + ("…@" if at else "")
    place, asks, _ = place.partition("?")
    return f"{begin}{place}" + ("?…" if asks else "")
