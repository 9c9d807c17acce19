"""Connections to PostgreSQL: opened when they are needed, and again when they were lost."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from refold.errors import InvalidInput, StoreFailed

Row = tuple[Any, ...]
_PATIENCE: Final = 10
_ALIVE: Final[dict[str, Any]] = {
    "connect_timeout": _PATIENCE,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 1_000 * _PATIENCE,
    # The server must notice soon, too, when a machine is gone without a word.
    "options": "-c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3",
}


async def connected(address: str, name: str) -> psycopg.AsyncConnection[Row]:
    """A connection that commits each statement by itself."""
    return await psycopg.AsyncConnection.connect(
        address,
        autocommit=True,
        application_name=name,
        prepare_threshold=None,
        **_ALIVE,
    )


def checked(address: str) -> str:
    """The address, if it is one. What is wrong with it is not repeated: it may hold a password."""
    try:
        conninfo_to_dict(address)
        make_url(address)
    except (psycopg.Error, ArgumentError, ValueError):
        raise InvalidInput(
            "The address of the engine's database cannot be read.",
            "Give it as postgresql://user@host/database.",
        ) from None
    return address


def refused(error: BaseException) -> StoreFailed:
    """What the engine's database says, in our words."""
    # SQLAlchemy's error repeats the statement and what it was given; the driver's does not.
    told = (isinstance(error, DBAPIError) and error.orig) or error
    said = str(told).strip().splitlines() or [type(told).__name__]
    return StoreFailed(
        f"The engine's database refused: {said[0].rstrip('.')}.",
        "Check that it runs, and that `refold store migrate` has prepared it.",
    )


class Link:
    """Runs one statement at a time, once more where the connection was lost."""

    def __init__(self, address: str, name: str = "refold engine") -> None:
        self._address = address
        self._name = name
        self._db: psycopg.AsyncConnection[Row] | None = None
        self._one = asyncio.Lock()
        self._closed = False

    async def run(self, statement: str, values: Mapping[str, Any] | None = None) -> Sequence[Row]:
        """The rows that a statement gives. It may be run twice: each of ours may."""
        async with self._one:
            try:
                return await self._run(statement, values)
            except psycopg.OperationalError:
                await self._drop()
            except psycopg.Error as error:
                raise refused(error) from error
            try:
                return await self._run(statement, values)
            except psycopg.Error as error:
                await self._drop()
                raise refused(error) from error

    async def close(self) -> None:
        """Close the connection; nothing more is run."""
        self._closed = True
        async with self._one:
            await self._drop()

    async def _run(self, statement: str, values: Mapping[str, Any] | None) -> Sequence[Row]:
        if self._closed:
            raise InvalidInput("The engine is closed.", "Make a new one over the same log.")
        if self._db is None:
            self._db = await connected(self._address, self._name)
        done = await self._db.execute(statement.encode(), values)
        return await done.fetchall() if done.description else []

    async def _drop(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            await db.close()


class Links:
    """A few links, of which each statement goes over one that is free."""

    def __init__(self, address: str, name: str, most: int) -> None:
        self._links = [Link(address, name) for _ in range(most)]
        self._free = list(self._links)
        self._places = asyncio.Semaphore(most)

    async def run(self, statement: str, values: Mapping[str, Any] | None = None) -> Sequence[Row]:
        """See `Link.run`."""
        async with self._places:
            link = self._free.pop()  # the one used last: few are opened where few are needed
            try:
                return await link.run(statement, values)
            finally:
                self._free.append(link)

    async def close(self) -> None:
        """Close the connections; nothing more is run."""
        for link in self._links:
            await link.close()
