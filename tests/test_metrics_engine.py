"""What the engine's tables tell OpenTelemetry: how the queues stand, and who took over what."""

from time import time

import psycopg
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from refold.engine.dbos import prepare
from refold.engine.dbos.link import Link
from refold.engine.dbos.measuring import Measuring
from refold.engine.dbos.names import SCHEMA, WORKFLOW
from refold.engine.dbos.tables import Tables

QUEUE = "refold/background/gpt"


@pytest.fixture
def reader():
    return InMemoryMetricReader()


@pytest.fixture
async def tables(postgres, postgres_database, reader):
    address = postgres.address(postgres_database)
    await prepare(address)
    provider, link = MeterProvider([reader]), Link(address)
    yield Tables(link, Measuring(provider=provider))
    await link.close()
    provider.shutdown()


@pytest.fixture
def put(postgres, postgres_database):
    def put(workflow, status, executor=None, age=0.0):
        with psycopg.connect(postgres.address(postgres_database)) as db:
            db.execute(
                f"INSERT INTO {SCHEMA}.workflow_status (workflow_uuid, status, name, executor_id,"  # noqa: S608 - our own words
                " queue_name, created_at) VALUES (%s, %s, %s, %s, %s, %s)".encode(),
                (workflow, status, WORKFLOW, executor, QUEUE, int((time() - age) * 1000)),
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


async def test_queues_are_told_by_how_many_wait_and_for_how_long(tables, put, reader):
    put("one", "ENQUEUED", age=1_000)
    put("two", "ENQUEUED", age=10)
    put("three", "PENDING", "worker")
    put("four", "SUCCESS", "worker")
    await tables.measure()
    found = told(reader)
    assert found["refold.queue.waiting", QUEUE] == 2
    assert found["refold.queue.running", QUEUE] == 1
    assert 1_000 <= found["refold.queue.oldest", QUEUE] < 1_300


async def test_what_is_taken_over_is_counted(tables, put, reader):
    put("one", "PENDING", "dead")
    put("two", "PENDING", "dead")
    put("three", "PENDING", "other")
    assert await tables.take_over("dead") == 2
    assert told(reader)["refold.fold.taken_over",] == 2
    await tables.measure()
    assert told(reader)["refold.queue.waiting", QUEUE] == 2
