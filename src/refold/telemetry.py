"""The meters of OpenTelemetry's providers, and the instruments that are made once for each.

Without that package, or where it is older than 1.30, nothing is measured and nothing breaks.
"""

from collections.abc import Callable
from inspect import signature
from typing import TYPE_CHECKING, Generic, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter, MeterProvider

__all__ = ["Instrumented", "meter_of"]

_T = TypeVar("_T")


def meter_of(provider: "MeterProvider | None") -> "Meter | None":
    """The meter of this provider; of OpenTelemetry's own, if none is given.

    Before 1.30 nobody could say which buckets a histogram should have. The usual ones begin at
    five seconds: nearly all would be in the first, and tell nothing.
    """
    try:
        from opentelemetry import metrics  # noqa: PLC0415 - optional
    except ModuleNotFoundError:
        return None
    meter = (provider or metrics.get_meter_provider()).get_meter("refold")
    known = signature(meter.create_histogram).parameters
    return meter if "explicit_bucket_boundaries_advisory" in known else None


class Instrumented(Generic[_T]):
    """What `make` makes of a meter, once for each provider: instruments may not be made twice."""

    def __init__(self, make: "Callable[[Meter], _T]") -> None:
        self._make = make
        self._default: list[_T] = []
        self._made: WeakKeyDictionary[MeterProvider, list[_T]] = WeakKeyDictionary()

    def of(self, provider: "MeterProvider | None") -> _T | None:
        """The instruments of this provider, or of the usual one; None where nothing is measured."""
        meter = meter_of(provider)
        if meter is None:
            return None
        made = self._default if provider is None else self._made.setdefault(provider, [])
        if not made:
            made.append(self._make(meter))
        return made[0]
