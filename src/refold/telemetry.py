"""OpenTelemetry instruments, created once for each meter provider, and the tracer of folds.

The extras depend on `opentelemetry-api`, a no-op without an SDK. The library alone does not, and
records metrics only if a usable version is installed.
"""

from collections.abc import Callable
from inspect import signature
from typing import TYPE_CHECKING, Generic, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter, MeterProvider
    from opentelemetry.trace import Tracer

__all__ = ["Instrumented", "global_tracer"]

_T = TypeVar("_T")


def global_tracer() -> "Tracer | None":
    """The tracer of the program's own provider; None if OpenTelemetry is not installed."""
    try:
        from opentelemetry import trace  # noqa: PLC0415 - the library alone does without
    except ModuleNotFoundError:
        return None
    return trace.get_tracer("refold")


class Instrumented(Generic[_T]):
    """The result of `make`, once for each provider: instruments may not be created twice."""

    def __init__(self, make: "Callable[[Meter], _T]") -> None:
        self._make = make
        self._default: list[_T] = []
        self._by_provider: WeakKeyDictionary[MeterProvider, list[_T]] = WeakKeyDictionary()

    def of(self, provider: "MeterProvider | None") -> _T:
        """The instruments of this provider, or of the global one."""
        from opentelemetry import metrics  # noqa: PLC0415 - the library alone does without

        instruments = (
            self._default if provider is None else self._by_provider.setdefault(provider, [])
        )
        if not instruments:
            meter = (provider or metrics.get_meter_provider()).get_meter("refold")
            instruments.append(self._make(meter))
        return instruments[0]

    def installed(self, provider: "MeterProvider | None" = None) -> _T | None:
        """The same for the library alone; None if OpenTelemetry is missing or older than 1.30.

        Before 1.30, a histogram could not have its own buckets. The default ones begin at five
        seconds, so nearly every value would be in the first.
        """
        try:
            from opentelemetry.metrics import Meter  # noqa: PLC0415 - the library alone does without
        except ModuleNotFoundError:
            return None
        parameters = signature(Meter.create_histogram).parameters
        return self.of(provider) if "explicit_bucket_boundaries_advisory" in parameters else None
