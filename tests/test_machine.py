"""Random histories of whole stores, held against plain lists."""

import asyncio
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path
from unittest import mock

from hypothesis import settings

from refold.log import Store, lineage
from refold.stores import MemoryStore, SqliteStore
from refold.testing.machine import LogMachine

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
        self.few_segments = mock.patch.object(lineage, "MOST_SEGMENTS", 3)
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


@cache
def empty_store() -> Path:
    """A store without sessions: making one takes longer than copying it."""
    path = Path(tempfile.mkdtemp(prefix="refold-machine-", dir=FAST)) / "empty.db"

    async def make() -> None:
        async with SqliteStore(path):
            pass

    asyncio.run(make())
    return path


EXAMPLES = {
    "quick": (100, 100),
    "ci": (300, 100),
    "thorough": (40_000, 10_000),
}[os.environ.get("HYPOTHESIS_PROFILE", "ci")]

TestMemory = MemoryMachine.TestCase
TestMemory.settings = settings(max_examples=EXAMPLES[0])
TestSqlite = SqliteMachine.TestCase
TestSqlite.settings = settings(max_examples=EXAMPLES[1])
