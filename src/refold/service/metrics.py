"""What the service tells of its requests, by the OpenTelemetry API.

Where no SDK is set up, nothing is measured. No label holds a tenant, a key, a session or a path.
"""

from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Final

from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation, get_meter_provider

from refold.errors import InvalidInput
from refold.gateway.unmanaged import Reason
from refold.session.pool import PoolCounts

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider as MeterProviderPrometheus


BOUNDS: Final = (0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
"""Seconds: from a look at a session to the longest answers of models."""


class Measuring:
    """Counts and times requests. `provider` is where it goes; OpenTelemetry's own, without one."""

    def __init__(
        self,
        under_way: Callable[[], int] = lambda: 0,
        sessions: Callable[[], PoolCounts] = lambda: PoolCounts(0, 0, 0),
        *,
        store_available: Callable[[], bool] = lambda: True,
        provider: MeterProvider | None = None,
    ) -> None:
        meter = (provider or get_meter_provider()).get_meter("refold")

        def under_way_now(_: CallbackOptions) -> Iterable[Observation]:
            yield Observation(under_way())

        def store_now(_: CallbackOptions) -> Iterable[Observation]:
            yield Observation(int(store_available()))

        def sessions_now(_: CallbackOptions) -> Iterable[Observation]:
            for state, count in sessions()._asdict().items():
                yield Observation(count, {"refold.state": state})

        meter.create_observable_gauge(
            "refold.serve.store.available",
            [store_now],
            description="1 while the store is asked; 0 while the circuit breaker is open.",
        )
        meter.create_observable_gauge(
            "refold.serve.requests.under_way",
            [under_way_now],
            description="Requests that have not ended.",
        )
        meter.create_observable_gauge(
            "refold.serve.sessions",
            [sessions_now],
            description="Sessions open in memory, by state.",
        )
        self._seconds = meter.create_histogram(
            "refold.serve.request.duration",
            unit="s",
            description="From the first byte of a request to the last of its answer.",
            explicit_bucket_boundaries_advisory=BOUNDS,
        )
        self._tokens = meter.create_counter(
            "refold.serve.tokens", description="What answers of models used, by the provider."
        )
        self._unmanaged = meter.create_counter(
            "refold.serve.unmanaged", description="Requests passed on unmanaged, by reason."
        )
        self._not_logged = meter.create_counter(
            "refold.serve.answers.not_logged",
            description="Answers given to clients that the store could not take.",
        )
        self._lost = meter.create_counter(
            "refold.serve.unmanaged.lost",
            description="Turns passed on unmanaged that no client sent again in time.",
        )

    def answered(self, kind: str, status: int, seconds: float) -> None:
        """A request was answered."""
        labels = {"refold.kind": kind, "http.response.status_code": status}
        self._seconds.record(seconds, labels)

    def used(self, read: int, written: int) -> None:
        """An answer of a model used this much."""
        self._tokens.add(read, {"refold.tokens": "input"})
        self._tokens.add(written, {"refold.tokens": "output"})

    def passed_unmanaged(self, reason: Reason) -> None:
        """A request was passed on unmanaged."""
        self._unmanaged.add(1, {"refold.reason": reason})

    def answer_not_logged(self) -> None:
        """An answer was given to its client, and the store could not take it."""
        self._not_logged.add(1)

    def unmanaged_lost(self, turns: int) -> None:
        """Turns were passed on unmanaged, and their clients did not send them again in time."""
        self._lost.add(turns)


# What the process measures, as Prometheus reads it.


def measured() -> "MeterProviderPrometheus":
    """A provider of metrics that Prometheus's registry reads; OpenTelemetry's, from now on.

    A process can set that once: where one is set, that one stays.
    """
    try:
        from opentelemetry import metrics  # noqa: PLC0415 - optional
        from opentelemetry.exporter.prometheus import PrometheusMetricReader  # noqa: PLC0415
        from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise InvalidInput(
            "Metrics need packages that are not installed.", 'pip install "refold[metrics]"'
        ) from error
    provider = MeterProvider([PrometheusMetricReader()])
    metrics.set_meter_provider(provider)
    return provider


@cache
def always_measured() -> bool:
    """Measure as long as the process lives; False where the packages for it are not installed."""
    try:
        measured()
    except InvalidInput:
        return False
    return True


def told() -> tuple[bytes, str]:
    """Everything that is measured, and the type of its text."""
    from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest  # noqa: PLC0415

    return generate_latest(REGISTRY), CONTENT_TYPE_LATEST
