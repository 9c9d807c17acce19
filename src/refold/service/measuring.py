"""What the service tells of its requests, by the OpenTelemetry API.

Where no SDK is set up, nothing is measured. No label holds a tenant, a key, a session or a path.
"""

from collections.abc import Callable, Iterable
from typing import Final

from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation, get_meter_provider

from refold.gateway.unmanaged import Reason
from refold.session.pool import PoolCounts

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
