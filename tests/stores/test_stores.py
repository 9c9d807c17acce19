"""The conformance suite, whole, on every store of ours."""

import pytest

from refold.stores import MemoryStore, SqliteStore
from refold.testing.conformance import LogConformance
from refold.testing.conformance.totals import DAYS


class TestMemory(LogConformance):
    @pytest.fixture
    async def store(self):
        async with MemoryStore(clock=self.clock) as store:
            yield store


async def check_lost_totals(suite, log):
    """A process of an older version has forgotten a session, and knew nothing of its totals."""
    await suite.begin(log, "s")
    await suite.spend(log, "s", 1_000)
    await log.fork("s", "t")
    await log.recount(0, anew=True)
    await log.forget("s")
    assert await log.recount(9) == 0
    assert await log.dearest(*DAYS) == []
    assert await log.recount(9, anew=True) == 0
    assert await log.totals(*DAYS) == ((), 0, 0)


class TestPostgres(LogConformance):
    async def test_totals_that_an_older_version_left(self, log, monkeypatch):
        async def nothing(*_):
            pass

        monkeypatch.setattr("refold.stores.postgres.forget.drop_totals", nothing)
        await check_lost_totals(self, log)

    @pytest.fixture
    async def store(self, postgres_address):
        from refold.stores.postgres import PostgresStore  # noqa: PLC0415 - if installed

        async with PostgresStore(postgres_address, clock=self.clock) as store:
            yield store


class TestSqlite(LogConformance):
    async def test_totals_that_an_older_version_left(self, log, monkeypatch):
        monkeypatch.setattr("refold.stores.sqlite.forget.drop_totals", lambda *_: None)
        await check_lost_totals(self, log)

    @pytest.fixture
    async def store(self, tmp_path):
        async with SqliteStore(tmp_path / "refold.db", clock=self.clock) as store:
            yield store
