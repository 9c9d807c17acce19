"""Metrics and spans of the store, by the OpenTelemetry API: nothing, where no SDK is set up.

No label holds a session's name or any text of it. Tenants are labeled only where `tenants` says so:
they may be many, and every label is kept for as long as the process runs.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import wraps
from time import perf_counter
from types import CoroutineType, TracebackType
from typing import Any, Concatenate, Final, ParamSpec, Protocol, Self, TypeVar
from weakref import WeakSet

from opentelemetry import trace
from opentelemetry.metrics import CallbackOptions, Meter, MeterProvider, Observation
from opentelemetry.trace import Span, SpanKind

from refold.errors import RefoldError
from refold.telemetry import Instrumented

SYSTEM: Final = {"db.system.name": "postgresql"}
BOUNDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
"""Seconds: from an append on the same machine to the longest that a statement may take."""
_POOL_NAME: Final = "db.client.connection.pool.name"
_STATE: Final = "db.client.connection.state"

P = ParamSpec("P")
T = TypeVar("T")
Stats = Callable[[], Mapping[str, int]]
"""What a pool says of itself, as psycopg's pools do (`get_stats`)."""


class Pooled:
    """A pool that is watched for as long as this object lives."""

    def __init__(self, name: str, stats: Stats) -> None:
        self.name = name
        self.stats = stats


class Measuring:
    """Counts and times what a store does.

    `provider` is where the measures go; OpenTelemetry's own, if none is given. With `tenants`, each
    measure of a call has the label `refold.tenant`.
    """

    def __init__(self, *, provider: MeterProvider | None = None, tenants: bool = False) -> None:
        self._to = _INSTRUMENTS.of(provider)
        self._tenants = tenants

    def call(self, operation: str, tenant: str) -> "Call":
        """Times its block, and records how that ended."""
        labels = {**SYSTEM, "db.operation.name": operation}
        if self._tenants:
            labels["refold.tenant"] = tenant
        return Call(self._to, labels)

    def watch(self, name: str, stats: Stats) -> Pooled:
        pool = Pooled(name, stats)
        self._to.pools.add(pool)
        return pool

    def retried(self, reason: str) -> None:
        """Count a retried transaction: `deadlock`, `serialization`, `lost connection`."""
        self._to.retries.add(1, {"reason": reason})

    def decided_again(self) -> None:
        """Count an append that was decided again because its session had changed."""
        self._to.decided_again.add(1)


class Call:
    """One call of the store. Within a trace it is a span, too."""

    __slots__ = ("_labels", "_span", "_start", "_to")

    def __init__(self, to: "_Instruments", labels: dict[str, str]) -> None:
        self._to = to
        self._labels = labels
        self._span: Span | None = None
        self._start = 0.0

    def __enter__(self) -> Self:
        self._span = self._to.span(self._labels)
        self._start = perf_counter()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        took = perf_counter() - self._start
        if error is not None:
            # An error's kind, never its text: `conflict`, `store-busy`, `CancelledError`.
            kind_name = error.code if isinstance(error, RefoldError) else type(error).__name__
            self._labels["error.type"] = kind_name
        self._to.duration.record(took, self._labels)
        if self._span is not None:
            self._span.set_attributes(self._labels)
            self._span.end()


class Measured(Protocol):
    tenant: str
    measuring: Measuring


M = TypeVar("M", bound=Measured)


def measured(
    method: Callable[Concatenate[M, P], Awaitable[T]],
) -> "Callable[Concatenate[M, P], CoroutineType[Any, Any, T]]":
    name = method.__name__

    @wraps(method)
    async def call(self: M, *args: P.args, **kwargs: P.kwargs) -> T:
        with self.measuring.call(name, self.tenant):
            return await method(self, *args, **kwargs)

    return call


class _Instruments:
    """The instruments of one provider; all pools of the process are observed through them."""

    def __init__(self, meter: Meter) -> None:
        self.pools: WeakSet[Pooled] = WeakSet()
        self._tracer = trace.get_tracer("refold")
        self.duration = meter.create_histogram(
            "db.client.operation.duration",
            "s",
            "How long calls of the store take.",
            explicit_bucket_boundaries_advisory=BOUNDS,
        )
        self.retries = meter.create_counter(
            "refold.store.retries", "{retry}", "Transactions that were done again."
        )
        self.decided_again = meter.create_counter(
            "refold.store.decided_again",
            "{append}",
            "Appends decided again, because the session had changed.",
        )
        self._observe_pools(meter)

    def span(self, labels: dict[str, str]) -> Span | None:
        """A span in the current trace; None where there is none."""
        if not trace.get_current_span().is_recording():
            return None
        name = f"refold.store.{labels['db.operation.name']}"
        return self._tracer.start_span(name, kind=SpanKind.CLIENT)

    def _observe_pools(self, meter: Meter) -> None:
        meter.create_observable_up_down_counter(
            "db.client.connection.count", [self._count], "{connection}", "Connections by state."
        )
        meter.create_observable_up_down_counter(
            "db.client.connection.max",
            [self._each("pool_max")],
            "{connection}",
            "The most connections of the pool.",
        )
        meter.create_observable_up_down_counter(
            "db.client.connection.pending_requests",
            [self._each("requests_waiting")],
            "{request}",
            "Who waits for a connection.",
        )
        for name, stat, unit, description in (
            ("db.client.connection.timeouts", "requests_errors", "{timeout}", "Waits in vain."),
            ("refold.store.connections.lost", "connections_lost", "{connection}", "Found dead."),
            ("refold.store.connections.opened", "connections_num", "{connection}", "Tries."),
        ):
            meter.create_observable_counter(name, [self._each(stat)], unit, description)

    def _count(self, _: CallbackOptions) -> Iterable[Observation]:
        for name, stats in self._stats():
            idle = stats.get("pool_available", 0)
            for state, count in (("idle", idle), ("used", stats.get("pool_size", 0) - idle)):
                yield Observation(count, {_POOL_NAME: name, _STATE: state})

    def _each(self, stat: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def observe(_: CallbackOptions) -> Iterable[Observation]:
            for name, stats in self._stats():
                yield Observation(stats.get(stat, 0), {_POOL_NAME: name})

        return observe

    def _stats(self) -> Iterator[tuple[str, dict[str, int]]]:
        """The pools' statistics; those of one name (stores of one database) are summed."""
        by_name: dict[str, dict[str, int]] = {}
        for pool in list(self.pools):
            summed = by_name.setdefault(pool.name, {})
            for stat, value in pool.stats().items():
                summed[stat] = summed.get(stat, 0) + value
        yield from by_name.items()


_INSTRUMENTS: Final = Instrumented(_Instruments)
