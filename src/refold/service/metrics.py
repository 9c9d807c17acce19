"""Metrics of the service, by the OpenTelemetry API, and their export to Prometheus.

Without an SDK nothing is recorded. No label contains a tenant, a key, a session or a path.
"""

from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Final

from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation, get_meter_provider

from refold.errors import InvalidInput
from refold.gateway.unmanaged import Reason
from refold.session.pool import PoolCounts

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider as SdkMeterProvider

BOUNDS: Final = (0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
"""Seconds: from reading a session to the longest answers of models."""


class ServiceMetrics:
    """Counts and times requests, into OpenTelemetry's global provider unless another is given."""

    def __init__(
        self,
        under_way: Callable[[], int] = lambda: 0,
        sessions: Callable[[], PoolCounts] = lambda: PoolCounts(0, 0, 0),
        *,
        store_available: Callable[[], bool] = lambda: True,
        provider: MeterProvider | None = None,
    ) -> None:
        meter = (provider or get_meter_provider()).get_meter("refold")

        def gauge(
            name: str, description: str, observe: Callable[[], Iterable[Observation]]
        ) -> None:
            def callback(_: CallbackOptions) -> Iterable[Observation]:
                return observe()

            meter.create_observable_gauge(name, [callback], description=description)

        gauge(
            "refold.serve.store.available",
            "1 while the store is asked; 0 while the circuit breaker is open.",
            lambda: [Observation(int(store_available()))],
        )
        gauge(
            "refold.serve.requests.under_way",
            "Requests that have not ended.",
            lambda: [Observation(under_way())],
        )
        gauge(
            "refold.serve.sessions",
            "Sessions open in memory, by state.",
            lambda: [
                Observation(count, {"refold.state": state})
                for state, count in sessions()._asdict().items()
            ],
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
        labels = {"refold.kind": kind, "http.response.status_code": status}
        self._seconds.record(seconds, labels)

    def used(self, input_tokens: int, output_tokens: int) -> None:
        self._tokens.add(input_tokens, {"refold.tokens": "input"})
        self._tokens.add(output_tokens, {"refold.tokens": "output"})

    def passed_unmanaged(self, reason: Reason) -> None:
        self._unmanaged.add(1, {"refold.reason": reason})

    def answer_not_logged(self) -> None:
        self._not_logged.add(1)

    def unmanaged_lost(self, turns: int) -> None:
        self._lost.add(turns)


def export_to_prometheus() -> "SdkMeterProvider":
    """Make a provider that Prometheus's registry reads OpenTelemetry's global one.

    A process can set that only once: an earlier provider stays.
    """
    try:
        from opentelemetry import metrics  # noqa: PLC0415 - optional
        from opentelemetry.exporter.prometheus import PrometheusMetricReader  # noqa: PLC0415
        from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise InvalidInput(
            "Metrics need packages that are not installed.", 'pip install "refold[metrics]"'
        ) from error
    # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES name the service; only else do we.
    resource = Resource.create()
    if str(resource.attributes[SERVICE_NAME]).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: "refold"}))
    provider = MeterProvider([PrometheusMetricReader()], resource)
    metrics.set_meter_provider(provider)
    return provider


@cache
def has_prometheus() -> bool:
    """Whether metrics are exported; starts that, unless the packages for it are missing."""
    try:
        export_to_prometheus()
    except InvalidInput:
        return False
    return True


def render() -> tuple[bytes, str]:
    from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest  # noqa: PLC0415

    return generate_latest(REGISTRY), CONTENT_TYPE_LATEST
