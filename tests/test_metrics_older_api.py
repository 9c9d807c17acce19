"""An OpenTelemetry that is older than what the extra `metrics` asks for."""

import pytest
from opentelemetry.metrics import MeterProvider, NoOpMeter

from refold.engine.dbos import measuring as of_folds
from refold.errors import Conflict
from refold.service.measuring import Measuring as OfService
from refold.stores.postgres.measuring import Measuring
from refold.telemetry import meter_of


class OlderMeter(NoOpMeter):
    """As before 1.30: nobody can say which buckets a histogram should have."""

    made: tuple[str, ...] = ()

    def create_histogram(self, name, unit="", description=""):
        self.made += (name,)
        return super().create_histogram(name, unit, description)

    def create_counter(self, name, unit="", description=""):
        self.made += (name,)
        return super().create_counter(name, unit, description)


class OlderProvider(MeterProvider):
    def __init__(self):
        self.meter = OlderMeter("refold")

    def get_meter(self, name, version=None, schema_url=None):  # noqa: ARG002 - the API's names
        return self.meter


@pytest.fixture
def older():
    return OlderProvider()


def test_with_an_older_api_a_store_works_and_nothing_is_measured(older):
    measuring = Measuring(provider=older)
    with measuring.call("append", "acme"):
        pass
    with pytest.raises(Conflict), measuring.call("append", "acme"):
        raise Conflict("meanwhile", expected=1, found=2)
    measuring.retried("deadlock")
    measuring.decided_again()
    assert measuring.watch("db", dict).name == "db"
    assert older.meter.made == ()


def test_with_an_older_api_the_service_works_and_nothing_is_measured(older):
    measuring = OfService(provider=older)
    measuring.answered("chat", 200, 0.5)
    measuring.used(10, 1)
    assert older.meter.made == ()


def test_with_an_older_api_no_folds_are_measured(older):
    of_folds.Measuring(provider=older).started("manual")
    assert older.meter.made == ()


def test_a_newer_one_has_a_meter(older):
    assert meter_of(older) is None
    assert meter_of(None) is not None
