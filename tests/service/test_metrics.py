"""What the store and the engine measure, as OpenTelemetry is told of it."""

import asyncio
import gc
import os
import re
import subprocess
import sys
from uuid import uuid4

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from project_paths import DOCS

from refold.cli.serve import metrics_at
from refold.engine import LocalSteps
from refold.engine.dbos.metrics import STALE, Queued, kind_of
from refold.engine.dbos.metrics import FoldMetrics as Folds
from refold.engine.fold_runner import OFF_THE_LINE
from refold.engine.protocol import Ended
from refold.errors import Conflict, InvalidInput
from refold.fold.job import Job
from refold.log import Span
from refold.session.compaction import WAITS
from refold.stores.postgres.metrics import Measuring

RUNBOOK = DOCS / "gateway" / "runbook.md"
JOB = Job("a session", uuid4(), (Span(2, 3),), "soft")
STATS = {"pool_size": 5, "pool_available": 2, "pool_max": 10, "requests_waiting": 1}


class Told:
    """Where the figures go, and what they say."""

    def __init__(self):
        self._reader = InMemoryMetricReader()
        self.provider = MeterProvider([self._reader])

    def points(self):
        data = self._reader.get_metrics_data()
        found = {}
        for resource in data.resource_metrics if data else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    for point in metric.data.data_points:
                        labels = frozenset((point.attributes or {}).items())
                        value = getattr(point, "count", getattr(point, "value", None))
                        found[metric.name, labels] = value
        return found

    def __getitem__(self, key):
        name, labels = key
        found = {at: value for (one, at), value in self.points().items() if one == name}
        return found[frozenset(labels.items())]


@pytest.fixture
def told():
    told = Told()
    yield told
    told.provider.shutdown()


@pytest.fixture
def spans(monkeypatch):
    """The spans that are made, by a provider that only this test has."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    yield exporter, provider.get_tracer("test")
    provider.shutdown()


def called(operation, **more):
    return {"db.system.name": "postgresql", "db.operation.name": operation, **more}


def test_a_call_is_counted_by_how_it_ended(told):
    measuring = Measuring(provider=told.provider)
    for _ in range(3):
        with measuring.call("append", "acme"):
            pass
    with pytest.raises(Conflict), measuring.call("append", "acme"):
        raise Conflict("secret words", expected=1, found=2)
    with pytest.raises(asyncio.CancelledError), measuring.call("read", "acme"):
        raise asyncio.CancelledError
    name = "db.client.operation.duration"
    assert told[name, called("append")] == 3
    assert told[name, called("append", **{"error.type": "conflict"})] == 1
    assert told[name, called("read", **{"error.type": "CancelledError"})] == 1
    assert "acme" not in str(told.points())
    assert "secret" not in str(told.points())


def test_tenants_are_told_apart_only_when_asked_for(told):
    with Measuring(provider=told.provider, tenants=True).call("append", "acme"):
        pass
    labels = called("append", **{"refold.tenant": "acme"})
    assert told["db.client.operation.duration", labels] == 1


def test_pools_are_observed_while_they_are_there(told):
    measuring = Measuring(provider=told.provider)
    one = measuring.watch("db", lambda: STATS)
    other = Measuring(provider=told.provider).watch("db", lambda: STATS)
    pool = {"db.client.connection.pool.name": "db"}
    count = "db.client.connection.count"
    assert told[count, pool | {"db.client.connection.state": "idle"}] == 4
    assert told[count, pool | {"db.client.connection.state": "used"}] == 6
    assert told["db.client.connection.max", pool] == 20
    assert told["db.client.connection.pending_requests", pool] == 2
    assert told["db.client.connection.timeouts", pool] == 0
    assert one is not other
    del one, other
    gc.collect()
    assert told.points() == {}


def test_what_is_done_again_is_counted(told):
    measuring = Measuring(provider=told.provider)
    measuring.retried("deadlock")
    measuring.decided_again()
    assert told["refold.store.retries", {"reason": "deadlock"}] == 1
    assert told["refold.store.decided_again", {}] == 1


def test_a_call_is_a_span_of_the_trace_under_way(told, spans):
    exporter, tracer = spans
    measuring = Measuring(provider=told.provider)
    with measuring.call("append", "acme"):
        pass
    assert not exporter.get_finished_spans()
    with (
        tracer.start_as_current_span("turn") as turn,
        pytest.raises(Conflict),
        measuring.call("append", "acme"),
    ):
        raise Conflict("secret words", expected=1, found=2)
    span = exporter.get_finished_spans()[0]
    assert span.name == "refold.store.append"
    assert span.parent.span_id == turn.get_span_context().span_id
    assert span.attributes["error.type"] == "conflict"
    assert "secret" not in span.to_json()


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("TimeoutError: it took longer than 5 seconds", "TimeoutError"),
        ("cancelled", "cancelled"),
        ("interrupted", "interrupted"),
        (OFF_THE_LINE, "off_the_line"),
        ("Wisteria is blue", "other"),
        ("a: b", "a"),
        ("x" * 80, "other"),
    ],
)
def test_a_failure_is_told_by_its_kind(reason, kind):
    assert kind_of(reason) == kind


def fail(_):
    raise ValueError("secret words")


def test_a_fold_is_timed_by_how_it_ended(told, spans):
    exporter, _ = spans
    measuring = Folds(provider=told.provider)
    for reason in (None, "ValueError: secret words"):
        with measuring.fold() as making:
            making.steps(LocalSteps(), JOB)
            making.ended(Ended(uuid4(), 7, reason=reason))
    with pytest.raises(ValueError, match="secret"), measuring.fold() as making:
        fail(making.steps(LocalSteps(), JOB))
    with measuring.fold() as making:  # it had ended, and nothing was made
        making.ended(None)
    name = "refold.fold.duration"
    labels = {"gen_ai.request.model": "none", "refold.fold.trigger": "soft"}
    failed = labels | {"refold.fold.outcome": "failed", "error.type": "ValueError"}
    assert told[name, labels | {"refold.fold.outcome": "completed"}] == 1
    assert told[name, failed] == 1
    assert told[name, labels | {"refold.fold.outcome": "abandoned"}] == 1
    ended = exporter.get_finished_spans()
    assert [one.name for one in ended] == ["refold.fold"] * 4
    assert sum(value for (one, _), value in told.points().items() if one == name) == 3
    assert not any("secret" in one.to_json() for one in ended)


async def test_only_a_step_that_is_done_is_timed(told, spans):
    class Known(LocalSteps):
        async def step(self, name, work):
            return "known" if name == "known" else await super().step(name, work)

    async def work():
        return "done"

    async def fails():
        raise ValueError("secret words")

    with Folds(provider=told.provider).fold() as making:
        steps = making.steps(Known(), JOB)
    assert await steps.step("known", work) == "known"
    assert await steps.step("new", work) == "done"
    with pytest.raises(ValueError, match="secret"):
        await steps.step("bad", fails)
    assert told["refold.fold.step.duration", {}] == 1
    assert told["refold.fold.step.duration", {"error.type": "ValueError"}] == 1
    assert not any("secret" in one.to_json() for one in spans[0].get_finished_spans())


def test_queues_are_told_until_nobody_looks(told, monkeypatch):
    measuring = Folds(provider=told.provider)
    assert told.points() == {}
    measuring.queues([Queued("a", 3, 2, 1.5)])
    queue = {"refold.queue": "a"}
    assert told["refold.queue.waiting", queue] == 3
    assert told["refold.queue.running", queue] == 2
    assert told["refold.queue.oldest", queue] == 1.5
    measuring.queues([Queued("b", 1, 0, 0.5)])
    assert told["refold.queue.waiting", queue] == 0
    assert told["refold.queue.waiting", {"refold.queue": "b"}] == 1
    monkeypatch.setattr("refold.engine.dbos.metrics.monotonic", lambda: STALE + 1e9)
    assert told.points() == {}


def test_workers_count_what_happens_to_them(told):
    measuring = Folds(provider=told.provider)
    measuring.started("hard")
    measuring.taken_over(2)
    measuring.taken_over(0)
    measuring.fenced()
    assert told["refold.fold.started", {"refold.fold.trigger": "hard"}] == 1
    assert told["refold.fold.taken_over", {}] == 2
    assert told["refold.worker.fenced", {}] == 1


@pytest.mark.parametrize(
    "where", ["9464", ":9464", "localhost:", "localhost:http", "127.0.0.1:99999"]
)
def test_a_wrong_address_for_metrics_is_refused(where):
    with pytest.raises(InvalidInput, match="is not HOST:PORT"), metrics_at(where):
        pass


def test_without_an_address_no_metrics_are_served():
    with metrics_at(None) as address:
        assert address is None


def test_metrics_without_their_packages_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.prometheus", None)
    with pytest.raises(InvalidInput) as raised, metrics_at("127.0.0.1:0"):
        pass
    assert 'pip install "refold[metrics]"' in raised.value.fix


def test_the_runbook_explains_every_figure(told):
    """Those that it names are measured, and those that are measured are named."""
    kept = Measuring(provider=told.provider).watch("db", lambda: STATS)
    Folds(provider=told.provider)
    assert WAITS.of(told.provider) is not None
    made = {one.name for one in instruments(told.provider)}
    assert kept.name == "db"
    named = set(re.findall(r"`((?:refold|db\.client)\.[a-z_.]+)`", watched_table()))
    assert named - {"db.operation.name"} == made


def instruments(provider):
    meters = list(provider._meters.values())
    return [one for meter in meters for one in meter._instrument_id_instrument.values()]


def watched_table():
    page = RUNBOOK.read_text("utf-8")
    return page.partition("## Metrics to watch")[2].partition("\n## ")[0].partition("| metric |")[2]


# The name of the service.


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({}, "refold"),
        ({"OTEL_SERVICE_NAME": "gateway-eu"}, "gateway-eu"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "service.name=gateway-us,team=a"}, "gateway-us"),
    ],
)
def test_exported_metrics_name_their_service(variables, name):
    code = (
        "from refold.service import metrics\n"
        "assert metrics.has_prometheus()\n"
        "metrics.ServiceMetrics()\n"
        "print(metrics.render()[0].decode())"
    )
    inherited = {key: one for key, one in os.environ.items() if not key.startswith("OTEL_")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**inherited, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    assert f'service_name="{name}"' in done.stdout
