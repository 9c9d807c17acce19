"""Whether a fold pays now: what reading the past again and again costs, and what folding it costs.

Nobody knows how long a session will go on. Whoever folds too early writes the context anew for
nothing; whoever waits reads what a fold would have left out, at each request. The rule is that of
renting skis: wait until what was read in vain since the newest fold has cost as much as folding
would now, then fold. In a session whose context grows by even steps that is also the cheapest
interval, and whatever comes, it costs about twice the best fold times at most.

The price of a fold is what it adds to the next request, with its summary and with what will be read
again after it. It is nothing where all has to be written anyway, because the cache has expired or
another model has its own, and where a provider gives no discount on what it has cached: there a
fold is made as soon as it leaves enough out.
"""

from collections.abc import Callable, Iterator
from math import ceil
from typing import Final, Literal, NamedTuple

from pydantic import JsonValue

from refold.fold.debt import Move, NextRequest, Rates, Verdict
from refold.terminal_text import counted
from refold.view import Pace

READ, WRITE, OUTPUT = 0.1, 1.25, 5.0
"""Of a token of input, in the prices of models whose prices are unknown: the commonest ones."""
MIN_SHARE: Final = 0.25
"""Of a request, what a fold must leave out."""
_MILLION: Final = 1_000_000

Finding = Literal["not dearer", "paid by reading", "not yet", "too little to leave out"]


class Tariff(NamedTuple):
    """What a model's tokens cost: in dollars, or in tokens of input where no price is known."""

    rates: Rates
    output: float
    in_dollars: bool = True

    @classmethod
    def of(
        cls,
        price: float | None,
        cache_read: float | None = None,
        cache_write: float | None = None,
        output: float | None = None,
    ) -> "Tariff":
        """The tariff of these prices for a million tokens.

        Where none is published for the cache, there is no discount.
        """
        if not price:
            return cls(Rates(READ, WRITE), OUTPUT, in_dollars=False)
        read = price if cache_read is None else cache_read
        write = price if cache_write is None else cache_write
        answer = OUTPUT * price if output is None else output
        return cls(Rates(read / _MILLION, write / _MILLION), answer / _MILLION)


class Outlook(NamedTuple):
    """A fold that could be made before the next request."""

    request: NextRequest
    """As it would be without it."""
    kept: int
    """Tokens that begin the request before and after the fold: instructions, tools, the head."""
    size: int
    """Tokens of the request after it, about."""
    summary: float = 0.0
    """What its summary costs."""
    rereads: float = 0.0
    """What is likely to be read again because of it."""


class Worth(NamedTuple):
    """Whether a fold pays now, and the figures that say so."""

    finding: Finding
    before: int
    """Tokens of the next request without the fold."""
    after: int
    """The same with it, about."""
    price: float
    """What folding now costs more than not folding, at once."""
    read: float
    """What is paid since the newest fold, with the next request, for reading what this one would
    leave out."""
    saves: float
    """What each later request costs less."""
    requests: int = 0
    """How many there are since the newest fold, with the next one."""
    cold: bool = False
    """Whether the cache has expired, so that everything is written anyway."""
    in_dollars: bool = True
    verdict: Verdict | None = None
    """Whether what folds have cost so far allows this one; None where no account is kept."""
    debt: float = 0.0
    """What folds have cost so far, less what they saved."""

    @property
    def due(self) -> bool:
        return self.finding in ("not dearer", "paid by reading") and not self.waits

    @property
    def waits(self) -> bool:
        """Whether earlier folds must pay for themselves first."""
        return self.verdict is not None and not self.verdict.allowed

    @property
    def at_once(self) -> bool:
        """Whether the fold must be made before the next request: it would cost more later."""
        return self.finding == "not dearer" or (self.verdict is not None and self.verdict.at_once)

    def as_json(self) -> dict[str, JsonValue]:
        """The figures, and the sentence that says them."""
        return {
            "finding": self.finding,
            "made": self.due,
            "price": self.price,
            "saves": self.saves,
            "pays_after": self.pays_after,
            "read": self.read,
            "debt": self.debt,
            "in_dollars": self.in_dollars,
            "text": str(self),
        }

    def __str__(self) -> str:
        return " ".join(self._sentences())

    def _sentences(self) -> Iterator[str]:
        sizes = f"from {self.before:,} to about {self.after:,} tokens"
        yield f"A fold would bring the next request {sizes}."
        if self.finding == "too little to leave out":
            yield f"It must leave out {MIN_SHARE:.0%} at least."
            return
        if self.finding == "not dearer":
            why = "the cache has expired" if self.cold else "the cache gives no discount worth it"
            yield f"It pays at once, because {why}, and saves {self._amount(self.saves)} a request."
        else:
            yield (
                f"Folding now costs {self._amount(self.price)} and saves "
                f"{self._amount(self.saves)} a request: after "
                f"{counted(self.pays_after, 'request')} it pays."
            )
        if self.waits:
            yield f"It is not made now: {self._why_not()}."
            return
        if self.finding == "not dearer":
            return
        spent = f"{self._amount(self.read)} in {counted(self.requests, 'request')}"
        so = ", so it is made" if self.due else "; it is made when that is as much as the fold"
        yield f"Reading what it would leave out has cost {spent}{so}."

    @property
    def pays_after(self) -> int:
        """Requests until the fold has saved its price."""
        return max(1, ceil(self.price / self.saves)) if self.saves else 0

    def _why_not(self) -> str:
        match self.verdict:
            case Verdict(why="unfolded"):
                return "folds were undone, because reading them back cost as much as undoing them"
            case Verdict(why="not smaller"):
                return "it would be larger than the whole history"
            case _ if self.debt > 0:
                return f"earlier folds have yet to save {self._amount(self.debt)}"
            case _:
                return f"folds may only cost what they saved so far, {self._amount(-self.debt)}"

    def _amount(self, cost: float) -> str:
        if not self.in_dollars:
            return f"as much as {max(0, round(cost)):,} tokens of input"
        return f"${max(0.0, cost):.4f}" if cost < 1 else f"${cost:,.2f}"


def weigh(
    outlook: Outlook,
    pace: Pace,
    tariff: Tariff,
    patience: float = 1.0,
    may: Callable[[Move], tuple[Verdict, float]] | None = None,
) -> Worth:
    """Whether to fold before the next request.

    Args:
        outlook: The fold.
        pace: What was sent since the newest fold.
        tariff: What the model's tokens cost.
        patience: What must have been read in vain, in prices of the fold.
        may: Whether what folds have cost so far allows this one, and the debt; None: it does.
    """
    request, rates = outlook.request, tariff.rates
    move = Move(outlook.kept, outlook.size, outlook.summary)
    verdict, debt = may(move) if may else (None, 0.0)
    price = move.price(request, rates) + outlook.rereads
    kept = 0 if request.cold else request.kept
    in_vain = pace.tokens - pace.requests * outlook.size + max(0, kept - outlook.size)
    read = rates.read * max(0, in_vain)
    finding: Finding = "not yet"
    if request.size - outlook.size < MIN_SHARE * request.size:
        finding = "too little to leave out"
    elif price <= 0:
        finding = "not dearer"
    elif read >= patience * price:
        finding = "paid by reading"
    return Worth(
        finding,
        request.size,
        outlook.size,
        max(0.0, price),
        read,
        rates.read * max(0, request.size - outlook.size),
        pace.requests + 1,
        request.cold,
        tariff.in_dollars,
        verdict,
        debt,
    )
