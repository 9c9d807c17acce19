"""Whether to fold now: a pure decision, with its reasons as data.

Thresholds decide. A fold that would free too little, or could not help because what is always sent
is too large by itself, is not begun: it would only be begun again at the next request.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from refold.view import Fold, Profile, Thresholds, Trigger, Window
from refold.view.budget import GAIN

Act = Literal["continue", "start", "wait"]
"""Go on; begin a fold and go on; have one made (or the one under way finished) first."""


class Pressure(NamedTuple):
    """How full a view is."""

    tokens: int
    """Of the whole request."""
    messages: int
    turns: int
    floor: int
    """Tokens that are sent whatever the view is: instructions and tool definitions."""
    gain: int
    """Tokens that a fold would free, at least."""
    foldable: int
    """Messages that a fold would stand for."""
    whole: int = 0
    """Tokens of everything on the session's line, folded or not."""
    again: int = 0
    """How many of those there must be before a fold is tried again; 0 when none failed."""


class Why(NamedTuple):
    """One reason for a decision: what was measured, and what it was measured against."""

    what: Literal[
        "soft",
        "hard",
        "messages",
        "turns",
        "tokens",
        "forced",  # for folding
        "too few messages",
        "floor",
        "nothing to gain",
        "failed before",
        "under way",
        "rewritten",
        "short",  # against
    ]
    value: int = 0
    mark: int = 0


class Decision(NamedTuple):
    """What to do before the next request, and why."""

    act: Act
    why: tuple[Why, ...] = ()

    @property
    def forced(self) -> bool:
        """Whether a provider refused the last request for its length."""
        return any(one.what == "forced" for one in self.why)


def decide(  # noqa: PLR0913 - all that a decision depends on
    trigger: Trigger,
    marks: Thresholds,
    pressure: Pressure,
    *,
    running: bool = False,
    inline: bool = False,
    forced: bool = False,
) -> Decision:
    """What to do, given whether a fold is under way and whether requests wait for theirs."""
    reached = tuple(_reached(trigger, marks, pressure, forced=forced))
    if not reached:
        return Decision("continue")
    if pressure.whole < pressure.again:  # nor when a provider insists: it would fail again
        under_way = (Why("under way"),) if running else ()
        return Decision("continue", (*reached, *under_way, Why("failed before", *pressure[-2:])))
    urgent = any(one.what in ("hard", "forced") for one in reached)
    if running:
        act: Act = "wait" if urgent else "continue"
        return Decision(act, (*reached, Why("under way")))
    against = tuple(_against(trigger, pressure, reached))
    if against:
        return Decision("continue", (*reached, *against))
    return Decision("wait" if urgent or inline else "start", reached)


def _reached(
    trigger: Trigger, marks: Thresholds, pressure: Pressure, *, forced: bool
) -> Iterator[Why]:
    if forced:
        yield Why("forced", pressure.tokens, marks.limit)
    if marks.hard and pressure.tokens >= marks.hard:
        yield Why("hard", pressure.tokens, marks.hard)
    if marks.soft and pressure.tokens >= marks.soft:
        yield Why("soft", pressure.tokens, marks.soft)
    if marks.fold and pressure.tokens - pressure.floor > marks.fold:
        yield Why("tokens", pressure.tokens - pressure.floor, marks.fold)
    if trigger.messages and pressure.messages > trigger.messages:
        yield Why("messages", pressure.messages, trigger.messages)
    if trigger.turns and pressure.turns > trigger.turns:
        yield Why("turns", pressure.turns, trigger.turns)


def _against(trigger: Trigger, pressure: Pressure, reached: tuple[Why, ...]) -> Iterator[Why]:
    if pressure.messages < trigger.min_messages or not pressure.foldable:
        yield Why("too few messages", pressure.foldable, trigger.min_messages)
    sized = [one for one in reached if one.what in ("soft", "hard", "tokens", "forced")]
    if len(sized) < len(reached):
        return  # counted in messages or turns: whatever is folded makes room
    within_reach = [one.mark for one in sized if _above_floor(one, pressure)]
    if not within_reach:
        yield Why("floor", pressure.floor, max(one.mark for one in sized))
        return
    mark = min(within_reach)
    if pressure.gain < GAIN * mark:
        yield Why("nothing to gain", pressure.gain, int(GAIN * mark))


def _above_floor(why: Why, pressure: Pressure) -> bool:
    """Whether a fold could get below the mark; `tokens` are counted without the floor."""
    return why.what == "tokens" or pressure.floor < why.mark


# A fold's values for one model: what suits a large window is too much for a small one.

FULL = 100_000
"""From room for this many tokens of messages on, the values of a profile count as they are."""


def sized(values: Fold, room: int) -> Fold:
    """The values, with what is counted in tokens or characters brought down to a smaller room.

    The room is what instructions and tools leave of the limit: at a small window they may take most
    of it, and what suits the limit would leave a fold nothing to free.
    """
    share = max(0.0, min(1.0, room / FULL))
    keep = values.keep
    if keep.unit == "tokens":
        keep = keep.model_copy(update={"amount": int(keep.amount * share)})
    keep = keep.model_copy(update={"head_tokens": int(keep.head_tokens * share)})
    return values.model_copy(
        update={
            "keep": keep,
            "max_tokens": max(200, int(values.max_tokens * share)),
            "ledger_tokens": int(values.ledger_tokens * share),
            "user_chars": int(values.user_chars * share),
        }
    )


def while_folding(profile: Profile) -> Profile:
    """The profile of a session that folds: fixed limits are for those that cannot.

    Where few turns are too many tokens, they are reduced to text all the same.
    The past is then rewritten only where it would be cut otherwise, which is beyond the point where
    a request waits for its fold: two ways of making room at the same point would each cost a
    provider's cache.
    """
    limits = profile.window
    window = Window(read=limits.read)
    rewrite = profile.rewrite
    if not rewrite.sticky:
        window = Window(
            read=limits.read,
            max_tokens=limits.max_tokens,
            text_below=limits.text_below,
            halve=False,
        )
    if profile.rewrite.sticky and profile.trigger.hard:
        rewrite = rewrite.model_copy(update={"target": 1.0})
    return profile.model_copy(update={"window": window, "rewrite": rewrite})
