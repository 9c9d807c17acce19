"""How many tokens a request may have, and what they are spent on."""

from dataclasses import asdict, dataclass
from math import ceil, floor
from typing import NamedTuple

from refold.view.profiles import Profile

ASSUMED_WINDOW = 128_000
"""The window of a model that nobody knows."""
PER_MESSAGE = 4
"""Tokens that each message costs besides its parts: role and separators."""
GAIN = 0.1
"""The share of the target that a rewrite must free to be worth a provider's cache."""
APART = 0.1
"""The share of the limit that lies between soft and hard at least, unless they were set closer."""


class Budget(NamedTuple):
    """The limits of one request, in tokens."""

    window: int | None = None
    """The model's window; None when it is unknown."""
    reserve: int = 0
    """Kept free for the answer."""
    instructions: int = 0
    """Tokens of instructions that are sent besides the messages."""
    tools: int = 0
    """Tokens of the tool definitions."""
    learned: int | None = None
    """A limit that the provider named when it refused a request."""
    configured: int | None = None
    """A limit of the user's own."""
    guessed: int | None = None
    """What a refusal that named no limit suggests. Requests stay below it where they can; nothing
    is refused because of it, since only a longer request could ever show it wrong."""
    refused: int = 0
    """How often in a row the provider refused it for its length: see a profile's emergency."""
    restored: int = 0
    """After a restart of the program: how many earlier turns are shown, as text; 0: all."""

    @property
    def limit(self) -> int:
        """The effective limit: everything that is sent must stay within it."""
        window = ASSUMED_WINDOW if self.window is None else self.window
        bounds = (window - self.reserve, self.learned, self.configured, self.guessed)
        return max(0, min(bound for bound in bounds if bound is not None))

    @property
    def floor(self) -> int:
        """What is sent whatever the view is."""
        return self.instructions + self.tools

    @property
    def shown_window(self) -> str:
        """The window as text, also when it is unknown."""
        if self.window is None:
            return f"unknown (assuming {ASSUMED_WINDOW:,})"
        return f"{self.window:,}"


class Account(NamedTuple):
    """Where the tokens of a request go, as counted."""

    system: int = 0
    conversation: int = 0
    tools: int = 0
    reserve: int = 0
    limit: int = 0
    headroom: int = 0
    """Left unused because a count may be too low by this much."""

    @property
    def sent(self) -> int:
        """The tokens of everything that is sent."""
        return self.system + self.conversation + self.tools

    @property
    def free(self) -> int:
        """The tokens that are left below the limit."""
        return max(0, self.limit - self.headroom - self.sent)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """At how many tokens of a whole request a profile acts; 0 where it has no such mark.

    The planner, the trigger of folds, `refold models` and the chat all read these values. Marks
    are shares of the limit, as they were set, in tokens as they are counted. A counter that may be
    too low keeps some headroom below the limit; that headroom never reaches below the hard mark,
    so "a fold starts" and "a request waits for it" stay two numbers. When an estimate lets too
    much through and the provider refuses it, a shorter request is sent, and the provider's limit is
    remembered.

    `room`, `target`, `low_water` and `fold` are tokens of messages alone, without the floor.
    """

    limit: int
    """Nothing larger is sent."""
    soft: int = 0
    """A fold starts in the background: at this many tokens or more."""
    hard: int = 0
    """A request waits for the fold: at this many tokens or more."""
    generation: int = 0
    """What delegated work has produced is folded."""
    target: int = 0
    """Old results are rewritten: at more tokens than this."""
    fold: int = 0
    """A fixed count of tokens: a fold starts at more than this."""
    window: int = 0
    """A fixed count of tokens that the messages are cut to."""
    messages: int = 0
    """How many messages start a fold, or are left when nothing summarizes."""
    turns: int = 0
    """The same for turns."""
    floor: int = 0
    """What is sent whatever the messages are: instructions and tool definitions."""
    room: int = 0
    """Messages that count more are cut to fit."""
    low_water: int = 0
    """What a rewrite brings the messages down to."""

    @property
    def gain(self) -> int:
        """The tokens that a rewrite must free."""
        return int(GAIN * self.target)

    def rewrite_due(self, total: int, tried: int) -> bool:
        """Whether it is time to rewrite; not again before there is more to gain."""
        return total > self.room or (total > self.target and total >= tried + self.gain)

    def as_json(self) -> dict[str, int]:
        """All thresholds, by their names."""
        return asdict(self)


def effective_limit(profile: Profile, budget: Budget) -> int:
    """The limit that applies: the budget's, or the profile's own if that is smaller."""
    return min(budget.limit, profile.budget) if profile.budget else budget.limit


def thresholds(
    profile: Profile, budget: Budget, spread: float = 0, *, instructions: int = 0
) -> Thresholds:
    """The marks of a profile, for a model with this budget and a counter of this spread.

    `instructions` are those that the messages carry themselves: the larger of these and the
    budget's are sent.
    """
    limit = effective_limit(profile, budget)
    trigger, window = profile.trigger, profile.window
    always_sent = budget.tools + max(budget.instructions, instructions)
    hard = _tokens(trigger.hard, limit)
    # Short sessions are left alone, unless nothing would be left for a fold in the background.
    latest = (hard or limit) - ceil(round(APART * limit, 6))
    left_alone = trigger.at_least if trigger.at_least <= latest else 0
    safe = floor((limit - always_sent) / (1 + spread))
    room = max(safe, hard - always_sent)
    target = _target(profile, safe, room)
    return Thresholds(
        limit,
        soft=_soft(profile, limit, hard, left_alone),
        hard=hard,
        generation=_tokens(_share(trigger.generation, budget), limit),
        target=target if profile.rewrite.sticky else 0,
        fold=trigger.tokens,
        window=window.max_tokens or window.recent_tokens,
        messages=trigger.messages or window.max_messages or window.recent_messages,
        turns=trigger.turns or window.max_turns,
        floor=always_sent,
        room=room,
        low_water=int(profile.rewrite.low_water * target),
    )


def _soft(profile: Profile, limit: int, hard: int, left_alone: int) -> int:
    trigger = profile.trigger
    if not (trigger.soft and limit):
        return 0
    soft = max(_tokens(trigger.soft, limit), left_alone)
    if hard and round(trigger.hard - trigger.soft, 6) >= APART:
        # Shares that are apart stay apart where a limit of a few tokens would round them together;
        # at a limit of one token there is no soft mark.
        soft = min(soft, hard - ceil(round(APART * limit, 6)))
    return soft


def _tokens(share: float, limit: int) -> int:
    return ceil(round(share * limit, 6))  # 0.55 of 100,000 is a little more than 55,000


def _share(steps: tuple[tuple[int, float], ...], budget: Budget) -> float:
    window = ASSUMED_WINDOW if budget.window is None else budget.window
    return next((share for size, share in sorted(steps, reverse=True) if window >= size), 0)


def _target(profile: Profile, safe: int, room: int) -> int:
    """Where a sticky profile rewrites; at a share of 1 only what would be cut otherwise."""
    rewrite = profile.rewrite
    share = room if rewrite.target >= 1 else int(rewrite.target * safe)
    target = max(0, min(room, max(share, rewrite.at_least)))
    return min(target, rewrite.target_tokens) if rewrite.target_tokens else target
