"""Where logs are kept, by address. Nothing else in Refold imports a store."""

from pathlib import Path

from refold.errors import InvalidInput as _InvalidInput
from refold.log.protocol import Store as _Store
from refold.stores.forget_journal import JournalPath as _JournalPath
from refold.stores.memory import MemoryStore
from refold.stores.sql import without_password as _without_password
from refold.stores.sqlite import SqliteStore

__all__ = ["MemoryStore", "SqliteStore", "open_store"]

_SQLITE = "sqlite:///"
_POSTGRES = ("postgresql://", "postgres://")


def open_store(
    address: str = "memory:",
    *,
    create: bool = True,
    connect: float | None = None,
    forget_journal: _JournalPath = None,
) -> _Store:
    """Find the store at an address; `async with` opens it.

    `memory:` keeps nothing; `sqlite:///refold.db` is a file beside the program, and
    `sqlite:////home/me/refold.db` one with its whole path. With `create=False` it must be there.
    `postgresql://user@host/database` is a database that `refold store migrate` has made ready;
    `connect` is how many seconds its server may take to take a connection. `forget_journal` is the
    file that lists what is forgotten, to forget it again in a restored backup; by default it is
    beside an SQLite file, and a database has none.
    """
    if address == "memory:":
        return MemoryStore()
    if address.startswith(_SQLITE) and len(address) > len(_SQLITE):
        return SqliteStore(
            Path(address.removeprefix(_SQLITE)), create=create, forget_journal=forget_journal
        )
    if address.startswith(_POSTGRES):
        try:
            from refold.stores.postgres import Pool, PostgresStore  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise _InvalidInput(
                "The driver for PostgreSQL is not installed.", 'Run: pip install "refold[postgres]"'
            ) from error
        return PostgresStore(address, pool=Pool(connect=connect), forget_journal=forget_journal)
    raise _InvalidInput(
        f"{_without_password(address)!r} is no store's address.",
        "Use 'memory:', 'sqlite:///path/to/file.db' or 'postgresql://user@host/database'.",
    )
