"""The least that keeps a log in PostgreSQL: the same driver, pool and transaction, plain tables."""

from types import TracebackType
from typing import Final, Self

from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

TENANT: Final = "default"
_TABLES: Final = """
    CREATE TABLE sessions (
        head bigint NOT NULL, tenant text COLLATE "C", session text COLLATE "C",
        PRIMARY KEY (tenant, session)
    ) WITH (fillfactor = 50);
    CREATE TABLE entries (
        seq bigint, tenant text COLLATE "C", session text COLLATE "C", body bytea NOT NULL,
        PRIMARY KEY (tenant, session, seq)
    );
    CREATE FUNCTION append(whose text, name text, expected bigint, new bytea) RETURNS bigint
    LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM set_config('bare.tenant', whose, true);
        UPDATE sessions SET head = head + 1
        WHERE tenant = whose AND session = name AND head = expected;
        IF NOT FOUND THEN
            RETURN NULL;
        END IF;
        INSERT INTO entries VALUES (expected + 1, whose, name, new);
        RETURN expected + 1;
    END
    $$
"""


class Bare:
    """Plain tables, and two ways to append to them."""

    def __init__(self, address: str, connections: int) -> None:
        self._pool = AsyncConnectionPool(
            address,
            min_size=connections,
            max_size=connections,
            open=False,
            kwargs={"autocommit": True},
        )

    async def __aenter__(self) -> Self:
        await self._pool.open(wait=True)
        async with self._pool.connection() as db:
            await db.execute(_TABLES)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._pool.close()

    async def open(self, session: str) -> None:
        async with self._pool.connection() as db:
            await db.execute("INSERT INTO sessions VALUES (1, %s, %s)", (TENANT, session))

    async def append_at_once(self, session: str, head: int, body: bytes) -> None:
        """The best there is: the server does all of it, asked once."""
        async with self._pool.connection() as db:
            done = await db.execute(
                "SELECT append(%s, %s, %s, %s)",
                (TENANT, session, head, body),
                prepare=True,
                binary=True,
            )
            assert await done.fetchone() == (head + 1,)

    async def append_in_steps(self, session: str, head: int, body: bytes) -> None:
        """As one would write it first: a transaction, a statement at a time."""
        async with self._pool.connection() as db, db.transaction():
            await db.execute("SELECT set_config('bare.tenant', %s, true)", (TENANT,), prepare=True)
            assert await self._head(db, session) == (head,)
            await db.execute(
                "UPDATE sessions SET head = %s WHERE tenant = %s AND session = %s",
                (head + 1, TENANT, session),
                prepare=True,
            )
            await db.execute(
                "INSERT INTO entries VALUES (%s, %s, %s, %s)",
                (head + 1, TENANT, session, body),
                prepare=True,
            )

    async def _head(self, db: AsyncConnection, session: str) -> object:
        found = await db.execute(
            "SELECT head FROM sessions WHERE tenant = %s AND session = %s FOR UPDATE",
            (TENANT, session),
            prepare=True,
        )
        return await found.fetchone()
