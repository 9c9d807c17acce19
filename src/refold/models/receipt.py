"""What requests cost, beside what the same requests would have cost with everything in them.

`refold.models.accounts` says how both are counted.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from operator import add, attrgetter, sub
from typing import Any, Final, NamedTuple

from pydantic import JsonValue, TypeAdapter, ValidationError

from refold.fold.debt import Ruled
from refold.models.catalog import Prices, Usage
from refold.terminal_text import counted


class Basis(NamedTuple):
    """What is recorded of a request so that a receipt can be made; tokens are our own count."""

    model: str
    whole: int
    """Of a request with the whole history."""
    before: int
    """Of these, those that such a request had the time before."""
    counted: int
    """Of what was sent."""
    limit: int
    """What the window holds besides the answer."""
    prices: Prices = Prices()
    """Dollars for a million tokens."""
    added: int = 0
    """Definitions of tools that the agent has because of Refold."""
    read_back: int = 0
    """Recall calls, rereads and their results, since the request before."""
    extra: bool = False
    """Whether the answer before this request asked for these alone."""
    moved: bool = False
    """Whether this request begins otherwise than the one before."""
    rule: Ruled | None = None
    """For the rule of the open fold, where the profile keeps an account."""

    def as_json(self) -> JsonValue:
        """The basis as it is recorded."""
        own = {**self._asdict(), "prices": self.prices._asdict()}
        own["rule"] = self.rule and self.rule._asdict()
        return {name: value for name, value in own.items() if name != "rule" or value}

    @classmethod
    def parse(cls, value: JsonValue) -> "Basis | None":
        """What was recorded; None in records of older versions, and with impossible numbers."""
        try:
            basis = _BASIS.validate_python(value)
        except ValidationError:
            return None
        rule = (*basis.rule, *basis.rule.state) if basis.rule else ()
        numbers = (x for x in (*basis, *basis.prices, *rule) if isinstance(x, int | float))
        return basis if all(map(possible, numbers)) else None


def possible(number: float) -> bool:
    """Whether sums with it stay finite: a log may hold what other programs wrote."""
    return abs(number) <= MAX_COUNT


MAX_COUNT: Final = 2**53
"""Above this, a float is no exact count."""
_BASIS = TypeAdapter(Basis)


@dataclass(frozen=True, slots=True)
class Receipt:
    """What requests cost, next to what the same requests would have cost with everything in them.

    All sums are dollars.
    """

    requests: int = 0
    """Those that were answered."""
    folds: int = 0
    """Those that were made."""
    input: int = 0
    """Tokens of requests and of calls for summaries; our own count where none was reported."""
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    compared: int = 0
    """Of these, those that both accounts hold."""
    paid: float = 0.0
    """For those, and the summaries made for them."""
    whole: float = 0.0
    """What they would have cost with the whole history, without recall calls and rereads."""
    summaries: int = 0
    """Calls of models for summaries."""
    summaries_cost: float = 0.0
    unused: int = 0
    """Of these calls, those for folds that failed, or that have another summary."""
    unused_cost: float = 0.0
    rereads: int = 0
    """Requests whose answers only asked for what is folded."""
    rereads_cost: float = 0.0
    """Of `paid`: for these requests, and for writing what was read."""
    added_cost: float = 0.0
    """Of `paid`: for the definitions of recall's tools."""
    misses: int = 0
    """Requests that the cache did not hold, although it was in its lifetime and nothing moved."""
    misses_cost: float = 0.0
    """Of `paid`: what these cost more than with the cache."""
    over_window: int = 0
    """Requests whose whole history would not have fitted, so that there is nothing to compare."""
    over_window_cost: float = 0.0
    """What they cost, with the folds that the window forced."""
    forced: int = 0
    """Of the calls for summaries, those of these folds."""
    forced_cost: float = 0.0
    older: int = 0
    """Requests that were recorded by a version that wrote down too little to compare."""
    older_cost: float = 0.0
    unpriced: int = 0
    """Requests and summaries whose model's price is unknown: they are in no sum."""
    estimated: int = 0
    """Requests whose usage no provider reported."""
    highest: float = 0.0
    """The highest debt at any request of a session, without what Refold did not cause."""
    reported: int = 0
    """Tokens of compared requests after another one, as the provider reported them."""
    miscounted: float = 0.0
    """By how much our counts of them were off, corrected as the request before them was."""
    promised: float = 0.0
    """The most that debt was not to exceed, where the rule of the open fold was on."""
    broken: int = 0
    """Requests at which it did."""
    outside_cost: float = 0.0
    """Of `promised`, the most: moves that the rule doesn't decide, such as folds asked for."""

    @property
    def billed(self) -> float:
        """All that was paid, compared or not."""
        return self.paid + self.over_window_cost + self.older_cost

    @property
    def everything(self) -> float:
        """What all of it would have cost with the whole history; what cannot be compared, as paid.

        That is what sending everything costs wherever one figure is shown for it.
        """
        return self.billed - self.debt

    @property
    def debt(self) -> float:
        """Paid less whole; negative where Refold saved something."""
        return self.paid - self.whole

    @property
    def tokens(self) -> Usage:
        return Usage(self.input, self.output, self.cache_read, self.cache_write)

    @property
    def cost(self) -> float | None:
        """All that was paid; None if a price is unknown."""
        return None if self.unpriced else self.billed

    @property
    def saved(self) -> float | None:
        """What sending everything would have cost more; None if a price is unknown."""
        return None if self.unpriced else -self.debt

    @property
    def apart(self) -> float:
        """Of the debt, what no fold caused: added tools, and misses of the cache."""
        return self.added_cost + self.misses_cost

    @property
    def error(self) -> float:
        """By what share our counts, corrected by one request, are off in the next one."""
        return self.miscounted / self.reported if self.reported else 0.0

    def __str__(self) -> str:
        """The sums in one sentence."""
        unknown = f"; {self.unpriced:,} without a known price" if self.unpriced else ""
        return (
            f"{counted(self.requests, 'request')}, {counted(self.folds, 'fold')}: "
            f"${self.billed:,.4f} billed; sending everything would have cost ${self.whole:,.4f} "
            f"for what cost ${self.paid:,.4f}{unknown}."
        )

    def plus(self, other: "Receipt") -> "Receipt":
        """Of both together; the highest debt, and what was promised, are those of one session."""
        values: list[Any] = [*map(add, self.sums, other.sums)]
        values[_HIGHEST] = max(self.highest, other.highest)
        return Receipt(
            *values,
            promised=max(self.promised, other.promised),
            broken=self.broken + other.broken,
            outside_cost=max(self.outside_cost, other.outside_cost),
        )

    @classmethod
    def of(cls, sums: Iterable[float]) -> "Receipt":
        """The receipt with these sums, in the order of its fields, as a store keeps them."""
        values: Any = zip(sums, _IS_COUNT, strict=True)  # whole numbers are floats in a store
        return cls(*[int(value) if is_count else value for value, is_count in values])

    @property
    def sums(self) -> tuple[float, ...]:
        """What a store keeps: all but the promise, which one session has, and no day."""
        return _values(self)

    def less(self, earlier: "Receipt") -> "Receipt":
        """What came since an earlier state of the same accounts; the highest debt stays."""
        values: list[Any] = [*map(sub, self.sums, earlier.sums)]
        values[_HIGHEST] = self.highest
        return replace(self, **dict(zip(SUMS, values, strict=True)))

    def as_json(self) -> dict[str, JsonValue]:
        """The sums, and what follows from them."""
        own: dict[str, JsonValue] = asdict(self)
        return own | {"billed": self.billed, "debt": self.debt, "error": self.error}


_STORED: Final = fields(Receipt)[:-3]
SUMS: Final = tuple(each.name for each in _STORED)
_IS_COUNT: Final = tuple(each.type is int for each in _STORED)
_HIGHEST: Final = SUMS.index("highest")
_values: Final = attrgetter(*SUMS)
