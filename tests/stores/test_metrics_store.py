"""What a real store tells OpenTelemetry, in PostgreSQL and over HTTP."""

import asyncio
import subprocess
import sys
from urllib.request import urlopen

import psycopg
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from refold.errors import Conflict
from refold.log import Author, Message, Opened
from refold.stores.postgres import PostgresStore
from refold.stores.postgres.metrics import Measuring

SERVED = """
import asyncio, sys
from refold.cli.serve import metrics_at
from refold.stores import open_store


async def main():
    async with open_store(sys.argv[1]) as store:
        await store.log("wisteria").sessions()
        print(address, flush=True)
        sys.stdin.read()


with metrics_at("127.0.0.1:0") as address:
    asyncio.run(main())
"""


@pytest.fixture
def reader():
    return InMemoryMetricReader()


@pytest.fixture
async def store(postgres_address, reader):
    provider = MeterProvider([reader])
    measuring = Measuring(provider=provider)
    async with PostgresStore(postgres_address, measuring=measuring) as store:
        yield store
    provider.shutdown()


def points(reader, name):
    """The points of one figure: labels and how many, or the value."""
    data = reader.get_metrics_data()
    return [
        (dict(point.attributes), getattr(point, "count", getattr(point, "value", 0)))
        for resource in (data.resource_metrics if data else ())
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == name
        for point in metric.data.data_points
    ]


def calls(reader):
    found = points(reader, "db.client.operation.duration")
    return {(one["db.operation.name"], one.get("error.type")): count for one, count in found}


async def test_the_calls_of_a_store_are_counted(store, reader):
    log, author = store.log("wisteria"), Author()
    opened = [author.draft(Opened("openai-chat", "balanced"))]
    await log.append("s", opened, expected=0)
    for _ in range(3):
        await log.append("s", [author.draft(Message(b"{}"))], expected=None)
    with pytest.raises(Conflict):
        await log.append("s", [author.draft(Message(b"{}"))], expected=1)
    await log.read("s")
    await log.visible("s")
    await log.sessions()
    await log.fork("s", "t")
    await log.search("anything")
    await log.forget("t")
    assert calls(reader) == {
        ("append", None): 4,
        ("append", "conflict"): 1,
        **{(name, None): 1 for name in ("read", "visible", "sessions", "fork", "search", "forget")},
    }
    assert "wisteria" not in str(points(reader, "db.client.operation.duration"))


async def test_its_pool_is_observed_while_it_is_open(store, reader):
    await store.log().sessions()
    states = {one["db.client.connection.state"]: count for one, count in points(reader, COUNT)}
    assert states == {"idle": 1, "used": 0}
    [(labels, most)] = points(reader, "db.client.connection.max")
    assert most == 10
    assert labels["db.client.connection.pool.name"].startswith("postgresql://127.0.0.1:")
    await store.close()
    assert points(reader, COUNT) == []


COUNT = "db.client.connection.count"


async def test_a_lost_connection_is_a_retry(store, reader, postgres, postgres_database):
    await store.log().sessions()
    with psycopg.connect(postgres.address(postgres_database), autocommit=True) as db:
        db.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    await store.log().sessions()
    [(labels, times)] = points(reader, "refold.store.retries")
    assert labels == {"reason": "lost connection"}
    assert times >= 1
    assert calls(reader) == {("sessions", None): 2}


async def test_two_writers_of_one_session_decide_again(store, reader, postgres_address):
    author = Author()
    await store.log().append("s", [author.draft(Opened("openai-chat", "balanced"))], expected=0)

    async def write(one):
        for _ in range(10):
            drafts = [author.draft(Message(b"{}")) for _ in range(2)]
            await one.log().append("s", drafts, expected=None)

    async with PostgresStore(postgres_address, measuring=store.measuring) as other:
        await asyncio.gather(*(write(one) for one in (store, other, store, other)))
    [(_, times)] = points(reader, "refold.store.decided_again")
    assert times > 0
    assert await store.log().head("s") == 81


def test_a_process_serves_its_figures_for_prometheus(postgres_address):
    command = [sys.executable, "-c", SERVED, postgres_address]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        address = process.stdout.readline().strip()
        with urlopen(address, timeout=30) as answer:  # noqa: S310 - our own
            said = answer.read().decode()
        process.stdin.close()
    lines = [line for line in said.splitlines() if line.startswith("db_client_operation")]
    [counted] = [line for line in lines if "_seconds_count{" in line]
    assert 'db_operation_name="sessions"' in counted
    assert 'db_system_name="postgresql"' in counted
    assert counted.endswith(" 1.0")
    assert any("_seconds_bucket{" in line and 'le="0.005"' in line for line in lines)
    assert "wisteria" not in said
    assert process.returncode == 0
