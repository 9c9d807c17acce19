"""Taking the bytes of what was forgotten off the disk: the owner's work, in steps that are tracked.

PostgreSQL leaves a deleted row where it was until it needs the room, keeps each word in its index
for ever, and has written it all to its write-ahead log. A forget notes the tables that it touched
in `refold.erasures`. A scrub rewrites these tables with their indexes, then replaces the segments
of the write-ahead log, and takes a note off the list when its step is done. A scrub that dies, or
that may not do a step, leaves the note for the next one.
"""

import re
from asyncio import sleep
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from time import monotonic
from typing import Final, LiteralString, TypeVar

import psycopg
from psycopg.errors import Diagnostic, InsufficientPrivilege, LockNotAvailable
from psycopg.sql import Identifier

from refold.errors import ErasureUnfinished, StoreFailed
from refold.log.forgotten import Forgotten, ForgottenEntries, ForgottenSession
from refold.stores.postgres.connection import Address, Connection, Pool, connect, execute, explained
from refold.stores.postgres.forget import TO_SCRUB
from refold.stores.postgres.migrate import SQL as SQL_OWNING
from refold.stores.postgres.migrate import check_schema, shipped
from refold.stores.sql import statements

SQL: Final = statements("refold.stores.postgres", "sql/scrub.sql")
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
    noted = {*await _row(connection, "notes")}
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
        if exists and not await _rewritten(connection, part, wait):
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
        return Scrubbed(tables, checkpointed=await _checkpointed(connection))
    try:
        segments, recycling = await _replaced_log(connection)
    except InsufficientPrivilege as error:
        raise ErasureUnfinished(
            f"The tables are clean ({len(tables)} rewritten now), but the write-ahead log still "
            f"holds what was forgotten: {error.diag.message_primary}.",
            _RIGHTS,
        ) from error
    await execute(connection, SQL["end"], (_WAL,))
    return Scrubbed(tables, checkpointed=True, segments=segments, recycling=recycling)


async def _replaced_log(connection: Connection) -> tuple[int, str]:
    """Replace every write-ahead segment by a new one; how many, and how `wal_recycle` was."""
    await _row(connection, "segments")  # whether the role may list them, before anything is changed
    # A scrub that died may have left it off: then the note of that is still there.
    turned_off = await _is_noted(connection, _RECYCLING)
    if await _value(connection, "recycles"):
        if not turned_off:
            await execute(connection, SQL["note_recycling"])
            turned_off = True
        try:
            await connection.execute(_bare("recycle_no_more"), prepare=False)
        except InsufficientPrivilege:
            await execute(connection, SQL["end"], (_RECYCLING,))
            raise
    try:
        await _reloaded(connection, recycles=False)
        return await _drained(connection), "off meanwhile" if turned_off else "off"
    finally:
        if turned_off and not connection.closed:
            await connection.execute(_bare("recycle_again"), prepare=False)
            await execute(connection, SQL["reload"])
            await execute(connection, SQL["end"], (_RECYCLING,))


async def _reloaded(connection: Connection, *, recycles: bool) -> None:
    """Let all processes of the server read its settings."""
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


async def _drained(connection: Connection) -> int:
    """Write on until every segment that there was lies behind, and have them removed."""
    await execute(connection, SQL["checkpoint"])
    before = await _row(connection, "segments")
    for _ in range(_MAX_SEGMENTS):
        # Segments that were recycled earlier wait for their turn with a higher number, and with
        # their old bytes. A switch fills the rest of one with zeros.
        [current] = await _row(connection, "current_segment")
        if current > max(before):
            break
        await execute(connection, SQL["next_segment"])
    await execute(connection, SQL["checkpoint"])
    left = {*before} & {*await _row(connection, "segments")}
    if left:
        holders = ", ".join(await _row(connection, "held_by")) or "the server"
        raise ErasureUnfinished(
            f"The tables are clean, but {len(left)} write-ahead segments from before are kept by "
            f"{holders}.",
            "Let go of them (advance or drop the slot, let the archive catch up), and scrub again.",
        )
    return len(before)


async def _is_noted(connection: Connection, part: str) -> bool:
    [(noted,)] = await (await execute(connection, SQL["is_noted"], (part,))).fetchall()
    return bool(noted)


async def _row(connection: Connection, name: LiteralString) -> list[str]:
    return [value for (value,) in await (await execute(connection, SQL[name])).fetchall()]


async def _value(connection: Connection, name: LiteralString) -> object:
    [(value,)] = await (await execute(connection, SQL[name])).fetchall()
    return value


def _bare(name: LiteralString) -> bytes:
    """A statement that the server takes only by itself, and unprepared."""
    return SQL[name].encode()


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


# What is done with a whole store now and then: scrubbing it, looking at its condition.

T = TypeVar("T")
_LONG = 24 * 3600.0
_FORGOTTEN = statements("refold.stores.postgres", "sql/forgotten.sql")


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
    """Look what the role may do with the store."""
    where = Address(address)

    async def look(connection: Connection) -> Access:
        [(read_only, lacking)] = await (await execute(connection, SQL_OWNING["access"])).fetchall()
        return Access(str(where), read_only, tuple(lacking))

    return await _connected(where, look)


async def condition(address: str) -> Condition:
    """Look whether the store can be used from here with this version, and what it is like."""
    where = Address(address)

    async def look(connection: Connection) -> Condition:
        await check_schema(connection, where, shipped())
        [found] = await (await execute(connection, SQL_OWNING["condition"])).fetchall()
        return Condition(*found, to_scrub=await to_scrub(connection))

    return await _connected(where, look)


async def scrubbed(address: str, *, wait: float = 10.0, wal: bool = True) -> Scrubbed:
    """Take the bytes of what was forgotten off the disk (see `scrub`)."""
    return await _connected(Address(address), lambda db: scrub(db, wait=wait, wal=wal))


async def forgotten(address: str) -> list[Forgotten]:
    """What was forgotten, of all tenants. The role must be one that may see all of them."""
    return await _connected(Address(address), _forgotten)


async def _forgotten(connection: Connection) -> list[Forgotten]:
    found: list[Forgotten] = []
    try:
        async with connection.transaction():
            await execute(connection, _FORGOTTEN["one_moment"])
            await execute(connection, _FORGOTTEN["see_all_tenants"])
            entries, sessions = [
                await (await execute(connection, _FORGOTTEN[name])).fetchall()
                for name in ("forgotten_entries", "forgotten_sessions")
            ]
    except InsufficientPrivilege as error:
        raise StoreFailed(
            f"The role may not see what all tenants have forgotten: {error.diag.message_primary}.",
            "Use the role that makes the backups: a superuser, or one with BYPASSRLS.",
        ) from error
    for (tenant, session), some in groupby(entries, key=lambda row: row[:2]):
        places = tuple((seq, id_) for *_, seq, id_ in some)
        found.append(ForgottenEntries(tenant, session, places))
    found += [ForgottenSession(*row) for row in sessions]
    return found


async def _connected(address: Address, work: Callable[[Connection], Awaitable[T]]) -> T:
    try:
        connection = await connect(address, Pool(statement=_LONG))
        try:
            return await work(connection)
        finally:
            await connection.close()
    except psycopg.Error as error:
        raise explained(address, error) from error
