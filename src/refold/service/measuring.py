"""What the service tells of its requests, by the OpenTelemetry API.

Without that package, where it is older than 1.30, or without a provider, nothing is measured and
nothing breaks. No label holds a tenant, a key, a session or a path.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from refold.telemetry import meter_of

if TYPE_CHECKING:
    from opentelemetry.metrics import (
        CallbackOptions,
        Counter,
        Histogram,
        MeterProvider,
        Observation,
    )

BOUNDS: Final = (0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
"""Seconds: from a look at a session to the longest answers of models."""


class _Instruments(NamedTuple):
    seconds: "Histogram"
    tokens: "Counter"


class Measuring:
    """Counts and times requests. `provider` is where it goes; OpenTelemetry's own, without one."""

    def __init__(
        self,
        under_way: Callable[[], int] = lambda: 0,
        *,
        provider: "MeterProvider | None" = None,
    ) -> None:
        self._to = _instruments(under_way, provider)

    def answered(self, kind: str, status: int, seconds: float) -> None:
        """A request was answered."""
        if self._to is not None:
            labels = {"refold.kind": kind, "http.response.status_code": status}
            self._to.seconds.record(seconds, labels)

    def used(self, read: int, written: int) -> None:
        """An answer of a model used this much."""
        if self._to is not None:
            self._to.tokens.add(read, {"refold.tokens": "input"})
            self._to.tokens.add(written, {"refold.tokens": "output"})


def _instruments(
    under_way: Callable[[], int], provider: "MeterProvider | None"
) -> _Instruments | None:
    meter = meter_of(provider)
    if meter is None:
        return None
    from opentelemetry.metrics import Observation  # noqa: PLC0415 - optional

    def observed(_: "CallbackOptions") -> "Iterable[Observation]":
        yield Observation(under_way())

    meter.create_observable_gauge(
        "refold.serve.requests.under_way", [observed], description="Requests that have not ended."
    )
    return _Instruments(
        meter.create_histogram(
            "refold.serve.request.duration",
            unit="s",
            description="From the first byte of a request to the last of its answer.",
            explicit_bucket_boundaries_advisory=BOUNDS,
        ),
        meter.create_counter(
            "refold.serve.tokens", description="What answers of models used, by the provider."
        ),
    )
