"""Counts corrected by the usage that a provider reports.

A calibration remembers the last pairs of what was counted and what was reported for the same
request. Their median ratio corrects the counter; how far they lie above it is the headroom.
"""

from dataclasses import dataclass
from math import ceil
from statistics import median

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from refold.errors import InvalidInput
from refold.view.tokens import Counter
from refold.wire import Kind, Shape

LAST = 100
"""How many pairs are remembered."""
ENOUGH = 8
"""How many pairs it takes until the measured spread stands alone."""
PRIOR = 2
"""How many pairs that say "the counter is right" every calibration starts with."""
COVERED = 0.99
"""Share of the pairs that the spread covers."""
SMALLEST = 0.01
"""The spread is never less."""
ABSURD = 4.0
"""A ratio above this, or below its inverse, is a mistake: another request, another unit."""


class Calibration(BaseModel):
    """How a counter's counts relate to what a provider reports."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    prior: float = Field(default=0.1, gt=0, le=ABSURD)
    """The spread while little was observed: the counter's own."""
    pairs: tuple[tuple[int, int], ...] = ()
    """Counted and reported, the oldest first."""

    def observed(self, estimated: int, reported: int) -> "Calibration":
        """After one more request: its tokens by the counter as it is, and by the provider."""
        if estimated <= 0 or not 1 / ABSURD <= reported / estimated <= ABSURD:
            return self
        pairs = (*self.pairs, (estimated, reported))[-LAST:]
        return self.model_copy(update={"pairs": pairs})

    @property
    def factor(self) -> float:
        """Reported tokens for each one counted, in hundredths, so that it seldom moves."""
        return max(0.01, round(median([*self._ratios, *[1.0] * PRIOR]), 2))

    @property
    def spread(self) -> float:
        """How far reports may lie above corrected counts, as a share of them."""
        ratios = sorted(self._ratios)
        doubt = self.prior * max(0, ENOUGH - len(ratios)) / ENOUGH
        if not ratios:
            return max(doubt, SMALLEST)
        highest = ratios[ceil(COVERED * len(ratios)) - 1]
        return max(highest / self.factor - 1, doubt, SMALLEST)

    @property
    def _ratios(self) -> list[float]:
        return [reported / estimated for estimated, reported in self.pairs]

    def to_json(self) -> str:
        """It, as JSON."""
        return self.model_dump_json()

    @classmethod
    def from_json(cls, text: str | bytes) -> "Calibration":
        """What `to_json` wrote."""
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise InvalidInput(
                f"This is no calibration: {error.errors()[0]['msg']}.", "Start with Calibration()."
            ) from error


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A counter whose counts are corrected."""

    counter: Counter
    factor: float
    spread: float

    @property
    def name(self) -> str:
        """The counter's, and the correction."""
        return f"{self.counter.name} * {self.factor:.2f}"

    def text(self, text: str, kind: Kind = "text") -> int:
        """The tokens of a text, corrected."""
        return ceil(self.counter.text(text, kind) * self.factor)

    def part(self, shape: Shape) -> int:
        """The tokens of a whole part, corrected."""
        return ceil(self.counter.part(shape) * self.factor)


def calibrated(counter: Counter, calibration: Calibration) -> Calibrated:
    """The counter, corrected."""
    return Calibrated(counter, calibration.factor, calibration.spread)
