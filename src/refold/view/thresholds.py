"""At how many tokens a profile acts, for one model."""

from math import ceil
from typing import NamedTuple

from refold.view.budget import ASSUMED_WINDOW, Budget
from refold.view.profiles import Profile

_BEFORE_IT_IS_CUT = 0.97


class Thresholds(NamedTuple):
    """The marks of a profile, in tokens of a whole request; 0 where it has none."""

    limit: int
    """Nothing larger is sent."""
    soft: int = 0
    """A fold starts in the background."""
    hard: int = 0
    """The request waits for the fold."""
    generation: int = 0
    """What delegated work has produced is folded."""
    target: int = 0
    """Old results are rewritten: tokens of messages alone, as they are counted."""
    fold: int = 0
    """A fixed count of tokens at which a fold starts."""
    window: int = 0
    """A fixed count of tokens that the messages are cut to."""
    messages: int = 0
    """How many messages start a fold, or are left when nothing summarises."""
    turns: int = 0
    """The same for turns."""


def thresholds(profile: Profile, budget: Budget, spread: float = 0) -> Thresholds:
    """The marks of a profile, for a model with this budget and a counter of this spread."""
    limit = min(budget.limit, profile.budget) if profile.budget else budget.limit
    trigger, window = profile.trigger, profile.window
    # By a coarse count a request is cut before it reaches the limit: what folds must come first.
    reached = int(_BEFORE_IT_IS_CUT * limit / (1 + spread)) if spread else limit
    return Thresholds(
        limit,
        soft=min(_tokens(trigger.soft, limit), reached),
        hard=min(_tokens(trigger.hard, limit), reached),
        generation=_tokens(_share(trigger.generation, budget), limit),
        target=_target(profile, (limit - budget.floor) / (1 + spread)),
        fold=trigger.tokens,
        window=window.max_tokens or window.recent_tokens,
        messages=trigger.messages or window.max_messages or window.recent_messages,
        turns=trigger.turns or window.max_turns,
    )


def _tokens(share: float, limit: int) -> int:
    """The first count that reaches the share."""
    return ceil(round(share * limit, 6))  # 0.55 of 100,000 is a little more than 55,000


def _share(steps: tuple[tuple[int, float], ...], budget: Budget) -> float:
    """The share for a window of this size: that of the last step it reaches."""
    window = ASSUMED_WINDOW if budget.window is None else budget.window
    return next((share for least, share in sorted(steps, reverse=True) if window >= least), 0)


def _target(profile: Profile, room: float) -> int:
    """Where a sticky profile rewrites; the others do so at each request."""
    if not profile.rewrite.sticky:
        return 0
    room = max(0, room)
    target = int(min(room, max(profile.rewrite.target * room, profile.rewrite.at_least)))
    return min(profile.rewrite.target_tokens or target, target)
