"""The log: appending beside the bare database, opening and forking beside a short session."""

import asyncio
import sqlite3
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks import postgres_log
from benchmarks.figures import Figure
from benchmarks.log_work import BODY, DEEP, PER_BLOCK, VIEW, fill, fork_deep, in_turns, our_block
from refold.log import Author, Log, Message, Opened, Span
from refold.stores import SqliteStore
from refold.stores.sqlite.read import Reading, read, require_session, visible


def figures(*, quick: bool) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="refold-bench-") as folder:
        found = asyncio.run(_figures(Path(folder), quick=quick))
    return found + postgres_log.figures(quick=quick)


async def _figures(folder: Path, *, quick: bool) -> list[Figure]:
    found: list[Figure] = []
    for sessions in (1, 8, 32):
        found += await _appends(folder / f"{sessions}", sessions, blocks=40 if quick else 120)
    found.append(_encoding())
    return found + await _long_sessions(folder, 50_000 if quick else 1_000_000)


class Bare:
    """The least that keeps a log: the same driver, one transaction for each append."""

    def __init__(self, path: Path) -> None:
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("PRAGMA synchronous = FULL")
        self.db.execute("CREATE TABLE sessions (id TEXT PRIMARY KEY, head INTEGER NOT NULL)")
        self.db.execute(
            "CREATE TABLE entries (session TEXT, seq INTEGER, body BLOB,"
            " PRIMARY KEY (session, seq))"
        )
        self.db.execute("CREATE TABLE naive (body BLOB)")

    def open(self, session: str) -> None:
        self.db.execute("INSERT INTO sessions VALUES (?, 1)", (session,))

    def append(self, session: str, head: int, body: bytes) -> None:
        db = self.db
        db.execute("BEGIN IMMEDIATE")
        found = db.execute("SELECT head FROM sessions WHERE id = ?", (session,)).fetchone()[0]
        assert found == head
        db.execute("UPDATE sessions SET head = ? WHERE id = ?", (head + 1, session))
        db.execute("INSERT INTO entries VALUES (?, ?, ?)", (session, head + 1, body))
        db.execute("COMMIT")

    def append_naively(self, body: bytes) -> None:
        self.db.execute("INSERT INTO naive VALUES (?)", (body,))


async def _appends(folder: Path, sessions: int, blocks: int) -> list[Figure]:
    """Appends of about 1 KB each, in short blocks that take turns."""
    folder.mkdir()  # noqa: ASYNC240 - before anything is timed
    author = Author()
    names = [f"session {at}" for at in range(sessions)]
    bare = Bare(folder / "bare.db")
    to_bare: list[float] = []
    to_naive: list[float] = []
    async with SqliteStore(folder / "ours.db") as store:
        log = store.log()
        for name in names:
            bare.open(name)
            await log.append(name, [author.draft(Opened("bench", "balanced"))], expected=0)
        each = PER_BLOCK // sessions
        for block in range(blocks):
            head = 1 + block * each
            drafts = {name: [author.draft(Message(BODY)) for _ in range(each)] for name in names}
            times = await in_turns(
                block,
                lambda head=head: _bare_block(bare, names, head, each),
                lambda head=head, drafts=drafts: our_block(log, drafts, head),
                lambda: _naive_block(bare, each * sessions),
            )
            to_bare.append(times[0] / times[1])
            to_naive.append(times[2] / times[1])
    label = f"{sessions} session{'s' if sessions > 1 else ''} at once"
    return [
        Figure(f"appends, ours ÷ bare, {label}", median(to_bare), 0.85),
        Figure(f"appends, ours ÷ naive single inserts, {label}", median(to_naive)),
    ]


async def _bare_block(bare: Bare, names: list[str], head: int, each: int) -> None:
    for at in range(each):
        for name in names:
            bare.append(name, head + at, BODY)


async def _naive_block(bare: Bare, count: int) -> None:
    for _ in range(count):
        bare.append_naively(BODY)


def _encoding() -> Figure:
    author = Author()
    times: list[float] = []
    for _ in range(2_000):
        start = perf_counter()
        author.draft(Message(BODY))
        times.append(perf_counter() - start)
    return Figure("encoding an entry of 1 KB, microseconds", median(times) * 1e6)


async def _long_sessions(folder: Path, entries: int) -> list[Figure]:
    path = folder / "long.db"
    async with SqliteStore(path) as store:
        log = store.log()
        await fill(log, "short", 2 * VIEW)
        await fill(log, "long", entries)
        forks = [await _rows_written(store, log, name) for name in ("short", "long")]
        await fork_deep(log)
    short, long = _Work(path, "short"), _Work(path, "long")
    one, deep = (_Work(path, name, span=VIEW) for name in ("fork 1", f"fork {DEEP}"))
    count = f"{entries:,}"
    return [
        Figure(f"opening {count} entries ÷ {2 * VIEW}, rows", long.rows / short.rows, 2, "at most"),
        Figure(
            f"opening {count} entries ÷ {2 * VIEW}, steps", long.steps / short.steps, 2, "at most"
        ),
        Figure(
            f"forking {count} entries ÷ {2 * VIEW}, rows written", forks[1] / forks[0], 1, "at most"
        ),
        Figure("rows that a fork writes", forks[1]),
        Figure(f"reading through {DEEP} forks ÷ one, rows", deep.rows / one.rows, 2, "at most"),
        Figure(f"reading through {DEEP} forks ÷ one, steps", deep.steps / one.steps, 2, "at most"),
    ]


async def _rows_written(store: SqliteStore, log: Log, name: str) -> int:
    before = await store.write("default", lambda tx: tx.db.total_changes)
    await log.fork(name, f"fork of {name}")
    return await store.write("default", lambda tx: tx.db.total_changes) - before


class _Work:
    """How many rows SQLite hands out, and how many steps it takes, to open or read a session."""

    def __init__(self, path: Path, session: str, span: int | None = None) -> None:
        self.rows = self.steps = 0
        db = sqlite3.connect(path)
        db.row_factory = self._row
        db.set_progress_handler(self._step, 1)
        tx = Reading(db, "default")
        if span is None:
            visible(tx, session, None)
        else:
            row = require_session(tx, session)
            read(tx, row, Span(row.state.head - span + 1, row.state.head))
        db.close()

    def _row(self, _: sqlite3.Cursor, row: tuple[object, ...]) -> tuple[object, ...]:
        self.rows += 1
        return row

    def _step(self) -> int:
        self.steps += 1
        return 0
