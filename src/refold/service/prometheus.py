"""What the process measures, as Prometheus reads it."""

from functools import cache
from typing import TYPE_CHECKING

from refold.errors import InvalidInput

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider


def measured() -> "MeterProvider":
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
