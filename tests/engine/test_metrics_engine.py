"""What the engine's tables tell OpenTelemetry: how the queues stand, and who took over what."""

from uuid import uuid4

import psycopg
import pytest
from dbos_working import QUICK, no_look
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from refold.engine.dbos import prepare
from refold.engine.dbos.database import POOL, VERSION
from refold.engine.dbos.metrics import FoldMetrics
from refold.engine.dbos.queue import FoldQueue
from refold.engine.dbos.recovery import Sweeper

QUEUE = "refold/background/gpt"


@pytest.fixture
def reader():
    return InMemoryMetricReader()


@pytest.fixture
async def sweeper(postgres, postgres_database, reader):
    address = postgres.address(postgres_database)
    await prepare(address)
    provider, queue = MeterProvider([reader]), FoldQueue(address, QUICK, POOL, VERSION)
    yield Sweeper(queue, FoldMetrics(provider=provider), grace=0, every=60.0, on_sweep=no_look)
    await queue.close()
    provider.shutdown()


@pytest.fixture
def put(postgres, postgres_database):
    def put(worker=None, age=0):
        with psycopg.connect(postgres.address(postgres_database)) as db:
            db.execute(
                "INSERT INTO refold_engine.folds (id, tenant, session, fold, pool, version, queue,"
                " worker, queued_at)"
                " VALUES (%s, 't', 's', %s, %s, %s, %s, %s, now() - %s * interval '1 second')",
                (str(uuid4()), uuid4(), POOL, VERSION, QUEUE, worker, age),
            )

    return put


def told(reader):
    data = reader.get_metrics_data()
    return {
        (metric.name, *point.attributes.values()): point.value
        for resource in (data.resource_metrics if data else ())
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for point in metric.data.data_points
    }


async def test_queues_are_told_by_how_many_wait_and_for_how_long(sweeper, put, reader):
    put(age=1_000)
    put(age=10)
    put("worker")
    await sweeper.measure()
    found = told(reader)
    assert found["refold.queue.waiting", QUEUE] == 2
    assert found["refold.queue.running", QUEUE] == 1
    assert 1_000 <= found["refold.queue.oldest", QUEUE] < 1_300


async def test_what_is_taken_over_is_counted(sweeper, put, reader):
    put("dead")
    put("dead")
    await sweeper.sweep()
    assert told(reader)["refold.fold.taken_over",] == 2
    await sweeper.measure()
    assert told(reader)["refold.queue.waiting", QUEUE] == 2
