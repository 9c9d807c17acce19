"""The instruments of OpenTelemetry's providers, made once for each."""

from collections.abc import Callable
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
        self._made: WeakKeyDictionary[MeterProvider, _T] = WeakKeyDictionary()

    def of(self, provider: "MeterProvider | None") -> _T | None:
        """The instruments of this provider; of OpenTelemetry's own, if none is given.

        None without that package: then nothing is measured, and nothing breaks.
        """
        try:
            from opentelemetry import metrics  # noqa: PLC0415 - optional
        except ModuleNotFoundError:
            return None
        if provider is None:
            if not self._default:
                self._default.append(self._make(metrics.get_meter("refold")))
            return self._default[0]
        if provider not in self._made:
            self._made[provider] = self._make(provider.get_meter("refold"))
        return self._made[provider]
