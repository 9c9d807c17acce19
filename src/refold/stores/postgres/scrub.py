"""Taking the bytes of what was forgotten off the disk: the owner's work, now and then.

PostgreSQL leaves a deleted row where it was until it needs the room, keeps each word in its index
for ever, and has written it all to its write-ahead log. A scrub rewrites the tables that a forget
has touched since the last one, with their indexes.
"""

import re
from asyncio import sleep
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Final

from psycopg.errors import Diagnostic, InsufficientPrivilege, LockNotAvailable
from psycopg.sql import Identifier

from refold.errors import ErasureUnfinished
from refold.stores.postgres.transaction import Connection, execute
from refold.stores.sql import statements

SQL: Final = statements("refold.stores.postgres", "sql/scrub.sql")
_NUMBER: Final = re.compile(r"\d+")
_TRY: Final = 1.0  # seconds to wait for a table: whoever comes meanwhile waits behind us
_PAUSE: Final = 1.0


@dataclass(frozen=True, slots=True)
class Scrubbed:
    """What a scrub did."""

    rewritten: tuple[str, ...]
    """The tables that hold nothing forgotten now."""
    checkpointed: bool
    """Whether the server was made to let go of its older log; it takes a right of its own."""


async def scrub(connection: Connection, *, wait: float = 10.0) -> Scrubbed:
    """Leave no forgotten byte in the tables and their indexes.

    `connection` is the owner's, and commits by itself. While a table is rewritten, nobody else can
    use it, nor read a session from any other part of it: in a large store, do this in quiet hours.
    Where somebody uses a table for longer than `wait` seconds, or a transaction is open that began
    before the forget, that table is left for the next scrub, and this one says so in the end. A
    scrub that dies is finished by the next.

    What was forgotten stays in the write-ahead log until its segments are removed: a checkpoint
    lets the server remove them, but it uses most again under a new name and writes over their bytes
    only then, unless `wal_recycle` is off. Archived segments, base backups and replicas' logs are
    yours to expire, as is what the file system keeps of deleted files.
    """
    await execute(connection, SQL["lock"])
    try:
        limit = max(1, round(min(wait, _TRY) * 1000))
        await execute(connection, SQL["be_patient"], (f"{limit}ms",))
        return await _scrub(connection, wait)
    finally:
        if not connection.closed:
            await execute(connection, SQL["be_as_before"])
            await execute(connection, SQL["unlock"])


async def _scrub(connection: Connection, wait: float) -> Scrubbed:
    await execute(connection, SQL["begin"])
    parts = await (await execute(connection, SQL["parts"])).fetchall()
    rewritten: list[str] = []
    left: list[str] = []
    for part, exists in parts:
        if exists and not await _rewritten(connection, part, wait):
            left.append(part)
            continue
        rewritten.append(part)
        await execute(connection, SQL["end"], (part,))
    checkpointed = await _checkpointed(connection)
    if left:
        raise ErasureUnfinished(
            f"Older transactions still use or see what was forgotten in {', '.join(left)}.",
            "End those that have been open for long (see pg_stat_activity), and scrub again.",
        )
    return Scrubbed(tuple(rewritten), checkpointed)


async def _rewritten(connection: Connection, part: str, wait: float) -> bool:
    """Rewrite a table; whether nothing forgotten is left in it."""
    statement = SQL["rewrite"].format(part=Identifier(part).as_string(connection)).encode()
    until = monotonic() + wait
    with _details(connection) as details:
        while True:
            try:
                await connection.execute(statement, prepare=False)
                break
            except LockNotAvailable:
                if monotonic() > until:
                    return False
            details.clear()
            await sleep(_PAUSE)  # for those who wait behind us
    # The first number is that of the dead rows which had to be kept, in any language.
    kept = [int(found.group()) for found in map(_NUMBER.search, details) if found]
    return not any(kept)


async def _checkpointed(connection: Connection) -> bool:
    try:
        await execute(connection, SQL["checkpoint"])
    except InsufficientPrivilege:
        return False
    return True


@contextmanager
def _details(connection: Connection) -> Generator[list[str]]:
    """What the server tells in detail of its work meanwhile."""
    details: list[str] = []

    def keep(notice: Diagnostic) -> None:  # which is gone when this returns
        details.append(notice.message_detail or "")

    connection.add_notice_handler(keep)
    try:
        yield details
    finally:
        connection.remove_notice_handler(keep)
