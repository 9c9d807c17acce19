"""The engine on DBOS does what every engine does, with workers in processes of their own."""

# ruff: noqa: F811, F401 - fixtures are imported

import os

import pytest

pytest.importorskip("dbos", reason="the extra `dbos` is not installed")

from dbos_servers import APP, PREPARED, dbos
from dbos_workers import EngineWithWorker, Workers, preload

from refold.stores.postgres import PostgresStore
from refold.stores.sqlite import SqliteStore
from refold.testing.engine import EngineConformance


@pytest.fixture(scope="module")
def workers(dbos):
    preload()
    dbos.database("engine", like=PREPARED)
    workers = Workers(dbos.address("engine", user=APP))
    yield workers
    workers.close()


class DbosEngineConformance(EngineConformance):
    where: str

    @pytest.fixture
    def new_engine(self, workers, store):  # noqa: ARG002 - it must be there
        return lambda log, make: EngineWithWorker(workers, log, make, self.where)

    async def drop(self, engine):
        assert isinstance(engine, EngineWithWorker)
        await engine.die()


@pytest.mark.skipif(os.environ.get("REFOLD_ENGINES") != "all", reason="REFOLD_ENGINES is not all")
class TestOverSqlite(DbosEngineConformance):
    """The queues elsewhere than the log."""

    @pytest.fixture
    async def store(self, tmp_path):
        self.where = f"sqlite:///{tmp_path}/refold.db"
        async with SqliteStore(tmp_path / "refold.db", clock=self.clock) as store:
            yield store


class TestOverPostgres(DbosEngineConformance):
    """The log and the queues in one database."""

    @pytest.fixture
    async def store(self, workers):
        self.where = workers.address
        async with PostgresStore(self.where, clock=self.clock) as store:
            yield store
