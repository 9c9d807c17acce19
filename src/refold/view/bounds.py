"""What a request is measured against, and when it is time to rewrite."""

from math import floor
from typing import NamedTuple

from refold.view.budget import Budget
from refold.view.closing import limit_of
from refold.view.profiles import Profile
from refold.view.sheet import Sheet
from refold.view.thresholds import thresholds

GAIN = 0.1
"""The share of the target that a rewrite must free to be worth a provider's cache."""


class Bounds(NamedTuple):
    """What a request is measured against, in tokens of messages."""

    room: int
    target: int
    low: int
    gain: int
    generation: int = 0
    """Where what delegated work has produced is archived."""
    refused: int = 0
    """How often it was refused, where the profile says what to do then."""

    def due(self, total: int, tried: int) -> bool:
        """Whether it is time to rewrite; not again before there is more to gain."""
        return total > self.room or (total > self.target and total >= tried + self.gain)


def bounds_of(sheet: Sheet, profile: Profile, budget: Budget) -> Bounds:
    """The room for messages, and the marks at which a sticky profile acts."""
    beside = budget.tools + max(budget.instructions, sheet.instructions)
    room = floor((limit_of(profile, budget) - beside) / (1 + sheet.counter.spread))
    target = max(0, min(room, max(int(profile.rewrite.target * room), profile.rewrite.at_least)))
    if profile.rewrite.target_tokens:
        target = min(target, profile.rewrite.target_tokens)
    low, gain = int(profile.rewrite.low_water * target), int(GAIN * target)
    generation = thresholds(profile, budget).generation - beside
    refused = budget.refused if profile.emergency.on else 0
    return Bounds(room, target, low, gain, generation, refused)
