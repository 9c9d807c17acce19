"""The log on PostgreSQL: appending beside the bare driver, opening and forking."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from statistics import median
from typing import NamedTuple, Self

import psycopg

from benchmarks.figures import Figure
from benchmarks.log_work import BODY, DEEP, PER_BLOCK, VIEW, fill, fork_deep, in_turns, our_block
from benchmarks.postgres_bare import Bare
from refold.log import Author, Log, Message, Opened, Span
from refold.stores.postgres import Pool, PostgresStore
from refold.stores.postgres.migrate import migrate
from refold.testing.postgres import Cluster, programs

CONNECTIONS = 10
ROLE = "app"
"""Ours is measured as a role that the server keeps to its tenant's rows."""
_COUNTED = """
    SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)),
           sum(coalesce(heap_blks_hit + heap_blks_read, 0)
               + coalesce(idx_blks_hit + idx_blks_read, 0)
               + coalesce(toast_blks_hit + toast_blks_read, 0)
               + coalesce(tidx_blks_hit + tidx_blks_read, 0)),
           sum(n_tup_ins + n_tup_upd)
    FROM pg_stat_user_tables JOIN pg_statio_user_tables USING (relid)
    WHERE pg_stat_user_tables.schemaname = 'refold'
"""


def figures(*, quick: bool) -> list[Figure]:
    if programs() is None:
        print("PostgreSQL is not installed: its rows are left out.", file=sys.stderr)
        return []
    with Cluster(durable=True, settings={"max_wal_size": "4GB"}) as cluster:
        cluster.execute(f"CREATE ROLE {ROLE} LOGIN")
        return asyncio.run(_figures(cluster, quick=quick))


async def _figures(cluster: Cluster, *, quick: bool) -> list[Figure]:
    found: list[Figure] = []
    for sessions in (1, 8, 32):
        found += await _appends(cluster, sessions, blocks=6 if quick else 80)
    return found + await _long_sessions(cluster, 10_000 if quick else 1_000_000)


async def _appends(cluster: Cluster, sessions: int, blocks: int) -> list[Figure]:
    """Appends of about 1 KB each, in short blocks that take turns."""
    bare_address = cluster.database(f"bare_{sessions}")
    address = await _migrated(cluster, f"ours_{sessions}")
    names = [f"session {at}" for at in range(sessions)]
    pool = Pool(min_size=CONNECTIONS, max_size=CONNECTIONS)
    author = Author()
    async with Bare(bare_address, CONNECTIONS) as bare, PostgresStore(address, pool=pool) as store:
        log = store.log()
        for name in names:
            await bare.open(name)
            await bare.open(_other(name))
            await log.append(name, [author.draft(Opened("bench", "balanced"))], expected=0)
        each = PER_BLOCK // sessions
        ratios = [await _block(bare, log, names, block, each) for block in range(blocks)]
    label = f"{sessions} session{'s' if sessions > 1 else ''} at once"
    at_once, in_steps = map(median, zip(*ratios, strict=True))
    return [
        Figure(f"appends, PostgreSQL, ours ÷ bare in one call, {label}", at_once, 0.80),
        Figure(f"appends, PostgreSQL, ours ÷ bare by statements, {label}", in_steps, 0.80),
    ]


async def _block(
    bare: Bare, log: Log, names: list[str], block: int, each: int
) -> tuple[float, float]:
    """How long each of the two bare ways takes ÷ how long ours does."""
    author = Author()
    head = 1 + block * each
    others = list(map(_other, names))
    drafts = {name: [author.draft(Message(BODY)) for _ in range(each)] for name in names}
    at_once, ours, in_steps = await in_turns(
        block,
        lambda: _bare_block(bare.append_at_once, names, head, each),
        lambda: our_block(log, drafts, head),
        lambda: _bare_block(bare.append_in_steps, others, head, each),
    )
    return at_once / ours, in_steps / ours


def _other(name: str) -> str:
    """The session of the second bare way, which has a head of its own."""
    return f"{name}, by statements"


async def _bare_block(
    append: Callable[[str, int, bytes], Awaitable[None]], names: list[str], head: int, each: int
) -> None:
    async def talk(name: str) -> None:
        for at in range(each):
            await append(name, head + at, BODY)

    await asyncio.gather(*map(talk, names))


async def _migrated(cluster: Cluster, name: str) -> str:
    await migrate(cluster.database(name), roles=[ROLE])
    return cluster.address(name, user=ROLE)


async def _long_sessions(cluster: Cluster, entries: int) -> list[Figure]:
    address = await _migrated(cluster, "long")
    async with PostgresStore(address) as store:
        log = store.log()
        await fill(log, "short", 2 * VIEW)
        await fill(log, "long", entries)
    cluster.execute("VACUUM ANALYZE", "long")
    forks = [await _work(address, _forking(name)) for name in ("short", "long")]
    async with PostgresStore(address) as store:
        await fork_deep(store.log())
    short, long = [await _work(address, _opening(name)) for name in ("short", "long")]
    # Tables of a few rows are read whole, as often as forks are in them: real ones are larger.
    indexed = f"{address}?options=-c%20enable_seqscan%3Doff"
    one, deep = [await _work(indexed, _reading(f"fork {at}")) for at in (1, DEEP)]
    opening = f"PostgreSQL, opening {entries:,} entries ÷ {2 * VIEW}"
    through = f"PostgreSQL, reading through {DEEP} forks ÷ one"
    forking = f"PostgreSQL, forking {entries:,} entries ÷ {2 * VIEW}"
    return [
        Figure(f"{opening}, rows", long.rows / short.rows, 2, "at most"),
        Figure(f"{opening}, buffers", long.buffers / short.buffers, 2, "at most"),
        Figure(f"{forking}, rows written", forks[1].written / forks[0].written, 1, "at most"),
        Figure("PostgreSQL, rows that a fork writes", forks[1].written),
        Figure(f"{through}, rows", deep.rows / one.rows, 2, "at most"),
        Figure(f"{through}, buffers", deep.buffers / one.buffers, 2, "at most"),
    ]


Work = Callable[[Log], Awaitable[object]]


def _opening(session: str) -> Work:
    return lambda log: log.visible(session)


def _forking(session: str) -> Work:
    return lambda log: log.fork(session, f"fork of {session}")


def _reading(session: str) -> Work:
    async def read(log: Log) -> None:
        head = await log.head(session)
        await log.read(session, Span(head - VIEW + 1, head))

    return read


class Touched(NamedTuple):
    """What the server counts of the store's tables."""

    rows: int
    buffers: int
    written: int

    def since(self, before: Self) -> "Touched":
        return Touched(*(now - then for now, then in zip(self, before, strict=True)))


async def _work(address: str, work: Work) -> Touched:
    """What the server touches for this work; a connection that closes leaves its counts."""
    before = _counted(address)
    await _with_store(address, work)
    after = _counted(address)
    await _with_store(address, _nothing)
    return after.since(before).since(_counted(address).since(after))


async def _with_store(address: str, work: Work) -> None:
    async with PostgresStore(address, pool=Pool(min_size=1, max_size=1)) as store:
        await work(store.log())


async def _nothing(log: Log) -> None:
    """Opening the store is all: it costs something, too."""


def _counted(address: str) -> Touched:
    with psycopg.connect(address) as db:
        [(rows, buffers, written)] = db.execute(_COUNTED).fetchall()
    return Touched(int(rows), int(buffers), int(written))
