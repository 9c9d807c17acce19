"""Scrubbing a store, looking at its condition, and listing what was forgotten.

PostgreSQL leaves a deleted row where it was until it needs the room, keeps each word in its index
forever, and has written it all to its write-ahead log. A forget notes the tables that it touched
in `refold.erasures`. A scrub rewrites these tables with their indexes, then replaces the segments
of the write-ahead log, and takes a note off the list when its step is done. A scrub that dies, or
that may not do a step, leaves the note for the next one.
"""

import re
from asyncio import sleep
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from time import monotonic
from typing import Final, LiteralString

from psycopg.errors import Diagnostic, InsufficientPrivilege, LockNotAvailable
from psycopg.sql import Identifier

from refold.errors import ErasureUnfinished, StoreFailed
from refold.log.erasure_list import Forgotten, ForgottenEntries, ForgottenSession
from refold.stores.postgres.connection import Address, Connection, execute, with_connection
from refold.stores.postgres.forget import TO_SCRUB
from refold.stores.postgres.migrate import SQL as SQL_MIGRATE
from refold.stores.postgres.migrate import check_schema, shipped
from refold.stores.sql import statements

SQL: Final = statements("refold.stores.postgres", "sql/scrub.sql")
_SQL_FORGOTTEN: Final = statements("refold.stores.postgres", "sql/forgotten.sql")
_NUMBER: Final = re.compile(r"\d+")
_TRY: Final = 1.0  # seconds to wait for a table: whoever comes meanwhile waits behind us
_PAUSE: Final = 1.0
_WAL: Final = "pg_wal"
_RECYCLING: Final = "wal_recycle"
_RELOAD: Final = 10.0  # seconds that the server may take to read its settings again
_MOMENT: Final = 0.2
_MAX_SEGMENTS: Final = 4_096
"""64 GB of write-ahead log are replaced at most in one scrub."""
_RIGHTS: Final = (
    "As a superuser, run this scrub; or grant its role the rights: GRANT pg_checkpoint, pg_monitor "
    "TO role; GRANT EXECUTE ON FUNCTION pg_switch_wal, pg_reload_conf TO role; GRANT ALTER SYSTEM "
    "ON PARAMETER wal_recycle TO role. To leave the write-ahead log alone: --tables-only."
)


@dataclass(frozen=True, slots=True)
class Scrubbed:
    """What a scrub did."""

    rewritten: tuple[str, ...]
    """The tables that hold nothing forgotten now."""
    checkpointed: bool
    """Whether the server was made to let go of its older log."""
    segments: int = 0
    """How many write-ahead segments were there before, and are removed."""
    recycling: str = ""
    """How `wal_recycle` was: `off` already, or turned `off meanwhile` and back on."""


async def scrub(connection: Connection, *, wait: float = 10.0, wal: bool = True) -> Scrubbed:
    """Leave no forgotten byte in the tables, their indexes and the write-ahead log.

    `connection` is the owner's, and commits by itself. While a table is rewritten, nobody else can
    use it, nor read a session from any other part of it: in a large store, do this in quiet hours.
    Where somebody uses a table for longer than `wait` seconds, or a transaction is open that began
    before the forget, that table is left for the next scrub, and this one says so in the end.

    The segments of the write-ahead log are written full and removed. That needs a checkpoint, and
    `wal_recycle` off for as long as it takes: the server otherwise gives old segments new names,
    and keeps their bytes. Without `wal`, or where the role may not do that, they stay noted.
    Archived segments, base backups and replicas' logs are yours to expire, as is what the file
    system keeps of deleted files. Raises ErasureUnfinished with what is left, and why.
    """
    await execute(connection, SQL["lock"])
    try:
        limit = max(1, round(min(wait, _TRY) * 1000))
        await execute(connection, SQL["be_patient"], (f"{limit}ms",))
        return await _scrub(connection, wait, wal=wal)
    finally:
        if not connection.closed:
            await execute(connection, SQL["be_as_before"])
            await execute(connection, SQL["unlock"])


async def to_scrub(connection: Connection) -> tuple[str, ...] | None:
    """Where the server still has bytes of what was forgotten; None if the role may not see that."""
    if not await _value(connection, "may_see_notes"):
        return None
    noted = {*await _column(connection, "notes")}
    tables, log = TO_SCRUB
    if noted - {_WAL, _RECYCLING}:
        return tables, log  # the log is noted only when a scrub has begun
    return (log,) if noted else ()


async def _scrub(connection: Connection, wait: float, *, wal: bool) -> Scrubbed:
    await execute(connection, SQL["begin"])
    await execute(connection, SQL["note_wal"])
    parts = await (await execute(connection, SQL["parts"])).fetchall()
    rewritten: list[str] = []
    left: list[str] = []
    for part, exists in parts:
        if exists and not await _rewrite(connection, part, wait):
            left.append(part)
            continue
        rewritten.append(part)
        await execute(connection, SQL["end"], (part,))
    if left:
        raise ErasureUnfinished(
            f"Older transactions still use or see what was forgotten in {', '.join(left)}.",
            "End those that have been open for long (see pg_stat_activity), and scrub again.",
        )
    tables = tuple(rewritten)
    if not await _is_noted(connection, _WAL):
        return Scrubbed(tables, checkpointed=False)
    if not wal:
        return Scrubbed(tables, checkpointed=await _checkpoint(connection))
    try:
        segments, recycling = await _replace_wal(connection)
    except InsufficientPrivilege as error:
        raise ErasureUnfinished(
            f"The tables are clean ({len(tables)} rewritten now), but the write-ahead log still "
            f"holds what was forgotten: {error.diag.message_primary}.",
            _RIGHTS,
        ) from error
    await execute(connection, SQL["end"], (_WAL,))
    return Scrubbed(tables, checkpointed=True, segments=segments, recycling=recycling)


async def _replace_wal(connection: Connection) -> tuple[int, str]:
    """Replace every write-ahead segment by a new one; how many, and how `wal_recycle` was."""
    await _column(
        connection, "segments"
    )  # whether the role may list them, before anything is changed
    # A scrub that died may have left it off: then the note of that is still there.
    turned_off = await _is_noted(connection, _RECYCLING)
    if await _value(connection, "recycles"):
        if not turned_off:
            await execute(connection, SQL["note_recycling"])
            turned_off = True
        try:
            await connection.execute(SQL["recycle_no_more"].encode(), prepare=False)
        except InsufficientPrivilege:
            await execute(connection, SQL["end"], (_RECYCLING,))
            raise
    try:
        await _reload(connection, recycles=False)
        return await _drain_wal(connection), "off meanwhile" if turned_off else "off"
    finally:
        if turned_off and not connection.closed:
            await connection.execute(SQL["recycle_again"].encode(), prepare=False)
            await execute(connection, SQL["reload"])
            await execute(connection, SQL["end"], (_RECYCLING,))


async def _reload(connection: Connection, *, recycles: bool) -> None:
    """Make all processes of the server read its settings."""
    until = monotonic() + _RELOAD
    if await _value(connection, "recycles") != recycles:
        await execute(connection, SQL["reload"])
    while await _value(connection, "recycles") != recycles:
        if monotonic() > until:
            raise ErasureUnfinished(
                "wal_recycle stays on, though it was turned off with ALTER SYSTEM.",
                "Look where else it is set (pg_settings.sourcefile), and scrub again.",
            )
        await sleep(_MOMENT)
    await sleep(_MOMENT)  # the checkpointer is told at the same time as we are


async def _drain_wal(connection: Connection) -> int:
    """Switch segments until every old one lies behind, and have those removed."""
    await execute(connection, SQL["checkpoint"])
    before = await _column(connection, "segments")
    for _ in range(_MAX_SEGMENTS):
        # Segments that were recycled earlier wait for their turn with a higher number, and with
        # their old bytes. A switch fills the rest of one with zeros.
        [current] = await _column(connection, "current_segment")
        if current > max(before):
            break
        await execute(connection, SQL["next_segment"])
    await execute(connection, SQL["checkpoint"])
    left = {*before} & {*await _column(connection, "segments")}
    if left:
        holders = ", ".join(await _column(connection, "held_by")) or "the server"
        raise ErasureUnfinished(
            f"The tables are clean, but {len(left)} write-ahead segments from before are kept by "
            f"{holders}.",
            "Release them (advance or drop the slot, let the archive catch up), and scrub again.",
        )
    return len(before)


async def _is_noted(connection: Connection, part: str) -> bool:
    [(noted,)] = await (await execute(connection, SQL["is_noted"], (part,))).fetchall()
    return bool(noted)


async def _column(connection: Connection, name: LiteralString) -> list[str]:
    return [value for (value,) in await (await execute(connection, SQL[name])).fetchall()]


async def _value(connection: Connection, name: LiteralString) -> object:
    [(value,)] = await (await execute(connection, SQL[name])).fetchall()
    return value


async def _rewrite(connection: Connection, part: str, wait: float) -> bool:
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
    return not any(int(match.group()) for match in map(_NUMBER.search, details) if match)


async def _checkpoint(connection: Connection) -> bool:
    try:
        await execute(connection, SQL["checkpoint"])
    except InsufficientPrivilege:
        return False
    return True


@contextmanager
def _details(connection: Connection) -> Generator[list[str]]:
    details: list[str] = []

    def keep(notice: Diagnostic) -> None:  # which is gone when this returns
        details.append(notice.message_detail or "")

    connection.add_notice_handler(keep)
    try:
        yield details
    finally:
        connection.remove_notice_handler(keep)


@dataclass(frozen=True, slots=True)
class Condition:
    """What a store is like, as the role that connects finds it."""

    schema: int
    partitions: int
    role: str
    isolated: bool
    """Whether the server keeps tenants apart for this role; not for one that may do everything."""
    tenant: str | None
    """The one that this role is bound to, if it is bound."""
    to_scrub: tuple[str, ...] | None = None
    """Where the server still has bytes of what was forgotten; None if the role may not see that."""


@dataclass(frozen=True, slots=True)
class Access:
    """What the role that connects may do."""

    database: str
    """The database, as it may be shown."""
    read_only: bool
    """Whether the server takes no writes: a standby, or set to read only."""
    lacking: tuple[str, ...]
    """The tables that the role may not read and write as a store must."""


async def access(address: str) -> Access:
    where = Address(address)

    async def look(connection: Connection) -> Access:
        [(read_only, lacking)] = await (await execute(connection, SQL_MIGRATE["access"])).fetchall()
        return Access(str(where), read_only, tuple(lacking))

    return await with_connection(where, look)


async def condition(address: str) -> Condition:
    """Check that this version can use the store from here; what the store is like."""
    where = Address(address)

    async def look(connection: Connection) -> Condition:
        await check_schema(connection, where, shipped())
        [found] = await (await execute(connection, SQL_MIGRATE["condition"])).fetchall()
        return Condition(*found, to_scrub=await to_scrub(connection))

    return await with_connection(where, look)


async def scrubbed(address: str, *, wait: float = 10.0, wal: bool = True) -> Scrubbed:
    """Erase the bytes of what was forgotten from the disk (see `scrub`)."""
    return await with_connection(Address(address), lambda db: scrub(db, wait=wait, wal=wal))


async def forgotten(address: str) -> list[Forgotten]:
    """What was forgotten, of all tenants. The role must be one that may see all of them."""
    return await with_connection(Address(address), _forgotten)


async def _forgotten(connection: Connection) -> list[Forgotten]:
    try:
        async with connection.transaction():
            await execute(connection, _SQL_FORGOTTEN["one_moment"])
            await execute(connection, _SQL_FORGOTTEN["see_all_tenants"])
            entries, sessions = [
                await (await execute(connection, _SQL_FORGOTTEN[name])).fetchall()
                for name in ("forgotten_entries", "forgotten_sessions")
            ]
    except InsufficientPrivilege as error:
        raise StoreFailed(
            f"The role may not see what all tenants have forgotten: {error.diag.message_primary}.",
            "Use the role that makes the backups: a superuser, or one with BYPASSRLS.",
        ) from error
    return [
        *(
            ForgottenEntries(tenant, session, tuple((seq, id_) for *_, seq, id_ in rows))
            for (tenant, session), rows in groupby(entries, key=lambda row: row[:2])
        ),
        *(ForgottenSession(*row) for row in sessions),
    ]
