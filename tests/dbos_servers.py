"""Servers and databases for tests of the engine on DBOS."""

import asyncio
from itertools import count

import pytest
from needed import need_postgres

from refold.engine.dbos import prepare
from refold.stores.postgres import migrate
from refold.testing.postgres import Cluster

PREPARED = "prepared"
APP = "refold_app"
_NUMBERS = count(1)


@pytest.fixture(scope="module")
def dbos():
    """A server with a database that is prepared; a module's own, so that it may be restarted."""
    need_postgres()
    with Cluster() as cluster:
        address = cluster.database(PREPARED)
        cluster.execute(f"CREATE ROLE {APP} LOGIN")
        asyncio.run(migrate(address, partitions=4, roles=[APP]))
        asyncio.run(prepare(address, roles=[APP]))
        yield cluster


@pytest.fixture
def dbos_address(dbos):
    """The address of an empty store that is prepared, for a role that may use it and no more."""
    name = f"engine_{next(_NUMBERS)}"
    dbos.database(name, like=PREPARED)
    yield dbos.address(name, user=APP)
    dbos.drop(name)
