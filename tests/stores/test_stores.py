"""The conformance suite, whole, on every store of ours."""

import pytest

from refold.stores import MemoryStore, SqliteStore
from refold.testing.conformance import LogConformance


class TestMemory(LogConformance):
    @pytest.fixture
    async def store(self):
        async with MemoryStore(clock=self.clock) as store:
            yield store


class TestPostgres(LogConformance):
    @pytest.fixture
    async def store(self, postgres_address):
        from refold.stores.postgres import PostgresStore  # noqa: PLC0415 - if installed

        async with PostgresStore(postgres_address, clock=self.clock) as store:
            yield store


class TestSqlite(LogConformance):
    @pytest.fixture
    async def store(self, tmp_path):
        async with SqliteStore(tmp_path / "refold.db", clock=self.clock) as store:
            yield store
