"""Whether to fold now: a pure decision, with its reasons as data.

Thresholds decide. A fold is not started if it would free too little, or could not help because the
instructions and tools are too large by themselves: it would be started again at the next request.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from refold.view import Fold, Profile, Thresholds, Trigger, Window
from refold.view.budget import GAIN

Act = Literal["continue", "start", "wait"]
"""Continue; start a fold and continue; or wait for a fold (perhaps one under way) first."""
FULL = 100_000
"""With room for this many tokens of messages, a profile's values apply unscaled."""


class Pressure(NamedTuple):
    """How full a view is."""

    tokens: int
    """Of the whole request."""
    messages: int
    turns: int
    floor: int
    """Tokens that are always sent: instructions and tool definitions."""
    gain: int
    """Minimum tokens that a fold would free."""
    foldable: int
    """Messages that a fold would stand for."""
    whole: int = 0
    """Tokens of everything on the session's line, folded or not."""
    again: int = 0
    """The value of `whole` from which a fold is tried again; 0 if none failed."""


class Why(NamedTuple):
    """One reason for a decision: the measured value and its threshold."""

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
        return any(reason.what == "forced" for reason in self.why)


def decide(  # noqa: PLR0913 - all that a decision depends on
    trigger: Trigger,
    marks: Thresholds,
    pressure: Pressure,
    *,
    running: bool = False,
    inline: bool = False,
    forced: bool = False,
) -> Decision:
    """Decide what to do; with `running` a fold is under way, with `inline` requests wait for it."""
    reached = tuple(_reached(trigger, marks, pressure, forced=forced))
    if not reached:
        return Decision("continue")
    if pressure.whole < pressure.again:  # even if forced: it would fail again
        under_way = (Why("under way"),) if running else ()
        return Decision("continue", (*reached, *under_way, Why("failed before", *pressure[-2:])))
    urgent = any(reason.what in ("hard", "forced") for reason in reached)
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
    if any(reason.what in ("messages", "turns") for reason in reached):
        return  # whatever is folded makes room
    # A fold cannot get below a mark under the floor; `tokens` are counted without the floor.
    marks = [why.mark for why in reached if why.what == "tokens" or pressure.floor < why.mark]
    if not marks:
        yield Why("floor", pressure.floor, max(reason.mark for reason in reached))
    elif pressure.gain < GAIN * min(marks):
        yield Why("nothing to gain", pressure.gain, int(GAIN * min(marks)))


def sized(values: Fold, room: int) -> Fold:
    """Scale the values in tokens and characters down to a small window.

    The room is what instructions and tools leave of the limit. In a small window they may take most
    of it, and unscaled values would leave a fold nothing to free.
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
    """The profile of a session that can fold: without the fixed limits.

    A few turns with too many tokens are still reduced to text. The past is rewritten only where it
    would otherwise be cut, which is beyond the point where a request waits for its fold: two ways
    of making room at the same point would each invalidate the provider's cache.
    """
    limits, rewrite = profile.window, profile.rewrite
    window = Window(read=limits.read)
    if not rewrite.sticky:
        window = Window(
            read=limits.read,
            max_tokens=limits.max_tokens,
            text_below=limits.text_below,
            halve=False,
        )
    elif profile.trigger.hard:
        rewrite = rewrite.model_copy(update={"target": 1.0})
    return profile.model_copy(update={"window": window, "rewrite": rewrite})
