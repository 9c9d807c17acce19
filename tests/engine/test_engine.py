"""The conformance suite, whole, on the local engine over every store of ours."""

import pytest

from refold.engine import LocalEngine
from refold.stores import MemoryStore, SqliteStore
from refold.testing.engine import EngineConformance


class TestInMemory(EngineConformance):
    @pytest.fixture
    async def store(self):
        async with MemoryStore(clock=self.clock) as store:
            yield store

    @pytest.fixture
    def new_engine(self):
        return LocalEngine


class TestOverSqlite(EngineConformance):
    @pytest.fixture
    async def store(self, tmp_path):
        async with SqliteStore(tmp_path / "refold.db", clock=self.clock) as store:
            yield store

    @pytest.fixture
    def new_engine(self, tmp_path):
        return lambda log, make: LocalEngine(log, make, locks=tmp_path / "locks")


class TestOverPostgres(EngineConformance):
    @pytest.fixture
    async def store(self, postgres_address):
        from refold.stores.postgres import PostgresStore  # noqa: PLC0415 - if installed

        async with PostgresStore(postgres_address, clock=self.clock) as store:
            yield store

    @pytest.fixture
    def new_engine(self):
        return LocalEngine
