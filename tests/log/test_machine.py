"""Random histories of whole stores, held against plain lists."""

import asyncio
import shutil
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import ClassVar
from unittest import mock

import pytest
from amounts import amount, check_histories

from refold.log import Store, outline
from refold.stores import MemoryStore, SqliteStore
from refold.testing.machine import LogMachine

EMPTY = (
    "TRUNCATE refold.sessions, refold.entries, refold.segments, refold.copies, refold.artifacts,"
    " refold.tombstones, refold.attempts, refold.facts, refold.words, refold.marks,"
    " refold.totals, refold.accounts"
)

FAST = Path("/dev/shm") if Path("/dev/shm").is_dir() else None  # noqa: S108 - where syncing is free


class MemoryMachine(LogMachine):
    """One store in memory."""

    def new_store(self) -> Store:
        return MemoryStore(clock=self.clock)


class SqliteMachine(LogMachine):
    """Two stores over one file, as two processes have it open."""

    PEERS = 2

    def __init__(self) -> None:
        super().__init__()
        self.few_segments = mock.patch.object(outline, "MAX_SEGMENTS", 3)
        self.few_segments.start()  # so that short histories have forks that copy
        self.folder = Path(tempfile.mkdtemp(prefix="refold-machine-", dir=FAST))
        shutil.copy(empty_store(), self.folder / "refold.db")

    def new_store(self) -> Store:
        return SqliteStore(self.folder / "refold.db", clock=self.clock)

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            self.few_segments.stop()
            shutil.rmtree(self.folder)


class PostgresMachine(LogMachine):
    """Two stores over one database, as two processes have it open."""

    PEERS = 2
    empty: ClassVar[Callable[..., None]]
    opened: ClassVar[Callable[..., Store]]

    def __init__(self) -> None:
        super().__init__()
        self.few_segments = mock.patch.object(outline, "MAX_SEGMENTS", 3)
        self.few_segments.start()
        type(self).empty()

    def new_store(self) -> Store:
        return type(self).opened(clock=self.clock)

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            self.few_segments.stop()


@cache
def empty_store() -> Path:
    """A store without sessions: making one takes longer than copying it."""
    path = Path(tempfile.mkdtemp(prefix="refold-machine-", dir=FAST)) / "empty.db"

    async def make() -> None:
        async with SqliteStore(path):
            pass

    asyncio.run(make())
    return path


EXAMPLES = amount(
    few=(20, 10, 2),
    quick=(100, 100, 10),
    ci=(400, 160, 20),
    nightly=(1_400, 500, 100),
    thorough=(40_000, 10_000, 1_000),
)

PARTS = 4
"""Each with a share of the histories, for as many processes."""


@pytest.mark.parametrize("part", range(PARTS))
def test_memory(part):
    check_histories(MemoryMachine, f"memory {part}", EXAMPLES[0] // PARTS)


@pytest.mark.parametrize("part", range(PARTS))
def test_sqlite(part):
    check_histories(SqliteMachine, f"sqlite {part}", max(1, EXAMPLES[1] // PARTS))


def test_postgres(postgres, postgres_database, postgres_address):
    from refold.stores.postgres import PostgresStore  # noqa: PLC0415 - only where it is installed

    PostgresMachine.empty = partial(postgres.execute, EMPTY, postgres_database)
    PostgresMachine.opened = partial(PostgresStore, postgres_address)
    check_histories(PostgresMachine, "postgres", EXAMPLES[2])
