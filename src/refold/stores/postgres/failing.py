"""PostgreSQL's errors in our words, and which of them to try again after."""

import re
from typing import Final

import psycopg
from psycopg import InterfaceError, OperationalError
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

from refold.errors import (
    NotAStore,
    StoreBusy,
    StoreClosed,
    StoreCorrupt,
    StoreError,
    StoreFailed,
    StoreFull,
    StoreNotFound,
    StoreOutdated,
    StoreReadOnly,
)
from refold.stores.postgres.connection import Address

_BY_CODE: Final[dict[str, tuple[type[StoreError], str, str | None]]] = {
    "25006": (
        StoreReadOnly,
        "cannot be written: it is a standby, or set to read only",
        "Use the address of the primary; if it is that, see its `default_transaction_read_only`.",
    ),
    "28000": (
        StoreFailed,
        "does not let us in",
        "Check the user in the address, and what the server's pg_hba.conf lets it do.",
    ),
    "28P01": (
        StoreFailed,
        "does not let us in",
        (
            "Check the user and the password. They come from the address, else from PGUSER and "
            "PGPASSWORD or ~/.pgpass."
        ),
    ),
    "3D000": (StoreNotFound, "is not there: the server has no such database", None),
    "3F000": (StoreOutdated, "has no tables yet", None),
    "42501": (
        StoreFailed,
        "refuses this role",
        (
            "Run `refold store migrate --role ROLE` as the owner of the schema, who lets other "
            "roles use the store. Only the owner can migrate and scrub."
        ),
    ),
    "42704": (StoreFailed, "knows no role of that name", "Make it first: CREATE ROLE … LOGIN."),
    "42883": (StoreOutdated, "lacks a function", None),
    "42P01": (StoreOutdated, "lacks a table", None),
    "53100": (StoreFull, "cannot grow: the server's disk is full", None),
    "53300": (StoreBusy, "has no connection left", "Use smaller pools, or a pooler before it."),
    "55P03": (StoreBusy, "is locked by another", None),
    "57014": (
        StoreBusy,
        "took longer than a statement may",
        "Try again; if it stays so, look at the server's load, or give `Pool(statement=…)` more.",
    ),
    "XX001": (StoreCorrupt, "is damaged", None),
    "XX002": (StoreCorrupt, "is damaged", None),
}
_AT_THE_DOOR: Final = (
    (re.compile('database ".*" does not exist'), "3D000"),
    (re.compile('password|authentication|pg_hba.conf|role ".*" does not exist'), "28P01"),
    (re.compile("too many clients|connection slots|too many connections"), "53300"),
)
"""A connection that is refused comes without a code, only with words."""
_LOST: Final = ("08", "57P01", "57P02", "57P03", "57P05", "25P03")
_AGAIN: Final = {"40001", "40P01"}
_POOL_FIX: Final = "Try again later; if it stays so, give `Pool(most=…)` more, or use fewer tasks."

_SILENT_FIX: Final = "See whether the server runs and how busy it is, then try again."
_STRANGE: Final = "42703"  # a table of our name that lacks our columns


def is_lost(error: BaseException) -> bool:
    """Whether the connection went, and not what was asked for is at fault."""
    if isinstance(error, PoolTimeout | TooManyRequests | PoolClosed):
        return False
    if isinstance(error, InterfaceError):
        return True
    if not isinstance(error, psycopg.Error):
        return False
    code = error.sqlstate or _at_the_door(str(error))
    return code.startswith(_LOST) if code else isinstance(error, OperationalError)


def is_passing(error: psycopg.Error) -> bool:
    """Whether two transactions were in each other's way, and one of them may try again."""
    return error.sqlstate in _AGAIN


def explained(where: object, error: BaseException) -> StoreError:
    """The error of ours that one of psycopg stands for."""
    match error:
        case TooManyRequests():
            return StoreBusy(f"Too many wait for the store {where}.", _POOL_FIX)
        case PoolTimeout():
            return StoreBusy(f"No connection to the store {where} came free in time.", _POOL_FIX)
        case PoolClosed():
            return StoreClosed(f"The store {where} is not open.")
        case TimeoutError():
            return StoreBusy(f"The store {where} does not answer.", _SILENT_FIX)
        case psycopg.Error():
            return _by_code(where, error)
        case _:
            return StoreFailed(f"The store {where} failed.")


def _by_code(where: object, error: psycopg.Error) -> StoreError:
    code = error.sqlstate or _at_the_door(str(error))
    if code == _STRANGE:
        return stranger(where)
    if code in _BY_CODE:
        kind, what, fix = _BY_CODE[code]
        if kind is StoreNotFound and isinstance(where, Address):
            fix = f"Check the address, or make the database: `{where.createdb}`."
        return kind(f"The store {where} {what}.", fix)
    # Only the first line of what the server says: others may repeat rows.
    said = error.diag.message_primary or str(error).partition("\n")[0]
    if is_lost(error):
        return unreachable(where, said)
    return StoreFailed(f"The store {where} failed: {said} ({code}).")


def _at_the_door(said: str) -> str:
    return next((code for words, code in _AT_THE_DOOR if words.search(said)), "")


def unreachable(where: object, why: str) -> StoreFailed:
    """The error for a server that is not there."""
    return StoreFailed(
        f"The store {where} cannot be reached: {why}.",
        "Check that the server runs, can be reached from here and has connections left for this "
        "role, then try again.",
    )


def stranger(where: object) -> NotAStore:
    """The error for a schema of our name that somebody else made."""
    return NotAStore(
        f"The database {where} has a schema `refold` of another program.",
        "Use another database.",
    )
