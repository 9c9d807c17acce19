"""OpenTelemetry instruments, made once for each meter provider.

What has an extra depends on `opentelemetry-api`, which measures nothing without an SDK. The library
alone does not depend on it, and measures where a usable version is installed.
"""

from collections.abc import Callable
from inspect import signature
from typing import TYPE_CHECKING, Generic, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter, MeterProvider

__all__ = ["Instrumented"]

_T = TypeVar("_T")


class Instrumented(Generic[_T]):
    """What `make` makes of a meter, once for each provider: instruments may not be made twice."""

    def __init__(self, make: "Callable[[Meter], _T]") -> None:
        self._make = make
        self._default: list[_T] = []
        self._made: WeakKeyDictionary[MeterProvider, list[_T]] = WeakKeyDictionary()

    def of(self, provider: "MeterProvider | None") -> _T:
        """The instruments of this provider, or of the global one."""
        from opentelemetry import metrics  # noqa: PLC0415 - the library alone does without

        made = self._default if provider is None else self._made.setdefault(provider, [])
        if not made:
            made.append(self._make((provider or metrics.get_meter_provider()).get_meter("refold")))
        return made[0]

    def installed(self, provider: "MeterProvider | None" = None) -> _T | None:
        """The same for the library alone; None where OpenTelemetry is missing or older than 1.30.

        Before 1.30 a histogram could not have buckets of its own. The usual ones begin at five
        seconds: nearly every value would be in the first.
        """
        try:
            from opentelemetry.metrics import Meter  # noqa: PLC0415 - the library alone does without
        except ModuleNotFoundError:
            return None
        known = signature(Meter.create_histogram).parameters
        return self.of(provider) if "explicit_bucket_boundaries_advisory" in known else None
