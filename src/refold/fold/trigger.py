"""Whether to fold now: a pure decision, with its reasons as data.

Thresholds decide. A fold is not started if it would free too little, or could not help because the
instructions and tools are too large by themselves: it would be started again at the next request.
"""

from collections.abc import Container, Iterator
from typing import Final, Literal, NamedTuple

from refold.fold.economics import Worth
from refold.view import Fold, Profile, Thresholds, Trigger, Window
from refold.view.budget import GAIN
from refold.view.profiles import STATIC_MARKER

Act = Literal["continue", "start", "wait"]
"""Continue; start a fold and continue; or wait for a fold (perhaps one under way) first."""
FULL = 100_000
"""With room for this many tokens of messages, a profile's values apply unscaled."""
_MIN_TOKENS = 200
_FORCED: Final = {"hard", "forced"}
"""What the window leaves no choice about, whatever was saved so far."""
_MAX_SHOWN = 0.75  # of what a fold replaces


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
        "savings",
        "forced",  # for folding
        "too few messages",
        "floor",
        "nothing to gain",
        "failed before",
        "under way",
        "rewritten",
        "short",
        "debt",  # against
    ]
    value: int = 0
    mark: int = 0


class Decision(NamedTuple):
    """What to do before the next request, and why."""

    act: Act
    why: tuple[Why, ...] = ()
    worth: Worth | None = None
    """What a fold would cost and save, where the profile looks at that."""

    @property
    def forced(self) -> bool:
        """Whether a provider refused the last request for its length."""
        return any(reason.what == "forced" for reason in self.why)

    @property
    def by_share(self) -> bool:
        """Whether the request takes up a share of the limit that was set."""
        return any(reason.what in ("soft", "hard") for reason in self.why)


def decide(  # noqa: PLR0913 - all that a decision depends on
    trigger: Trigger,
    marks: Thresholds,
    pressure: Pressure,
    *,
    limits: Window = Window(),  # noqa: B008 - it is frozen
    running: bool = False,
    inline: bool = False,
    forced: bool = False,
    worth: Worth | None = None,
    set_limits: Container[str] = (),
) -> Decision:
    """Decide what to do.

    Args:
        trigger: The profile's.
        marks: Its thresholds, in tokens.
        pressure: How full the view is.
        limits: Fixed limits that no request may exceed: beyond them it waits for the fold.
        running: Whether a fold is under way.
        inline: Whether requests wait for every fold.
        forced: Whether the provider refused the last request for its length.
        worth: What a fold would cost and save; None: that counts for nothing.
        set_limits: Limits that hold whatever folds have cost so far.
    """
    reached = tuple(_reached(trigger, marks, pressure, worth, forced=forced))
    if not reached:
        return Decision("continue")
    if pressure.whole < pressure.again:  # even if forced: it would fail again
        under_way = (Why("under way"),) if running else ()
        return Decision("continue", (*reached, *under_way, Why("failed before", *pressure[-2:])))
    urgent = any(_is_urgent(reason, limits, worth) for reason in reached)
    if running:
        act: Act = "wait" if urgent else "continue"
        return Decision(act, (*reached, Why("under way")))
    against = tuple(_against(trigger, pressure, reached, worth, set_limits))
    if against:
        return Decision("continue", (*reached, *against))
    return Decision("wait" if urgent or inline else "start", reached)


def decide_for_left_out(pressure: Pressure, reached: Decision, *, running: bool) -> Decision:
    """Decide for requests that are cut at once: what they left out is folded, and nothing waits.

    `reached` names the limits; `foldable` counts what was left out and is not folded yet.
    """
    limits = tuple(why for why in reached.why if why.what in ("messages", "turns", "tokens"))
    if not pressure.foldable:
        return Decision("continue", limits)
    why = limits or (Why("tokens", pressure.tokens - pressure.floor),)
    if pressure.whole < pressure.again:
        return Decision("continue", (*why, Why("failed before", *pressure[-2:])))
    if running:
        return Decision("continue", (*why, Why("under way")))
    return Decision("start", why)


def _is_urgent(reason: Why, limits: Window, worth: Worth | None) -> bool:
    if reason.what == "savings":  # after this request, the cache is warm again
        return worth is not None and worth.at_once
    fixed = {
        "messages": limits.max_messages,
        "turns": limits.max_turns,
        "tokens": limits.max_tokens,
    }
    limit = fixed.get(reason.what, 0)
    return reason.what in ("hard", "forced") or 0 < limit < reason.value


def _reached(
    trigger: Trigger, marks: Thresholds, pressure: Pressure, worth: Worth | None, *, forced: bool
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
    if trigger.savings and worth is not None and worth.due:
        yield Why("savings", worth.before, worth.after)


def _against(
    trigger: Trigger,
    pressure: Pressure,
    reached: tuple[Why, ...],
    worth: Worth | None,
    set_limits: Container[str],
) -> Iterator[Why]:
    forced = any(why.what in _FORCED or why.what in set_limits for why in reached)
    if worth is not None and worth.waits and not forced:
        yield Why("debt", worth.before, worth.after)
    if pressure.messages < trigger.min_messages or not pressure.foldable:
        yield Why("too few messages", pressure.foldable, trigger.min_messages)
    if any(reason.what in ("messages", "turns", "savings", "forced") for reason in reached):
        return  # whatever is folded makes room; of savings, how much was looked at already
    # A fold cannot get below a mark under the floor; `tokens` are counted without the floor.
    marks = [why.mark for why in reached if why.what == "tokens" or pressure.floor < why.mark]
    if not marks:
        yield Why("floor", pressure.floor, max(reason.mark for reason in reached))
    elif pressure.gain < GAIN * min(marks):
        yield Why("nothing to gain", pressure.gain, int(GAIN * min(marks)))


def sized(profile: Profile, room: int) -> Fold:
    """Scale a profile's values for folds down to a small window, or to a limit of the user's own.

    The room is what instructions and tools leave of the limit. In a small window they may take most
    of it, and unscaled values would leave a fold nothing to free.
    """
    values, trigger = profile.fold, profile.trigger
    share = max(0.0, min(1.0, min(room, trigger.tokens or room) / FULL))
    keep = values.keep
    if keep.unit == "tokens":
        keep = keep.model_copy(update={"amount": int(keep.amount * share)})
    elif keep.unit == "messages" and keep.amount < 1:
        keep = keep.model_copy(update={"amount": int(keep.amount * trigger.messages)})
    keep = keep.model_copy(update={"head_tokens": int(keep.head_tokens * share)})
    return values.model_copy(
        update={
            "keep": keep,
            "max_tokens": max(_MIN_TOKENS, int(values.max_tokens * share)),
            "ledger_tokens": int(values.ledger_tokens * share),
            "region_tokens": int(values.region_tokens * share * share),  # words come first
            "user_chars": int(values.user_chars * share),
        }
    )


def smaller_than(values: Fold, replaced: int) -> Fold:
    """The values of a fold that shows less than the tokens that it replaces in requests.

    A fold of a few messages that quotes them whole, with their entries, could be longer than they
    are. Where a model's words are used as they are, they are not cut: a summary that is longer than
    what it stands for is refused.
    """
    if values.ground == "report" or replaced <= 0:
        return values
    most = max(_MIN_TOKENS, int(_MAX_SHOWN * replaced))
    shown = min(values.max_tokens, most)
    regions = min(values.region_tokens, most - min(shown, most // 3))
    return values.model_copy(update={"max_tokens": shown, "region_tokens": regions})


def while_folding(profile: Profile) -> Profile:
    """The profile of a session that can fold: it sees more than the newest messages.

    The past is rewritten only where it would otherwise be cut, which is beyond the point where a
    request waits for its fold: two ways of making room at the same point would each invalidate the
    provider's cache.
    """
    rewrite, off = profile.rewrite, {"recent_messages": 0, "recent_tokens": 0}
    window = profile.window.model_copy(update=off)
    if rewrite.sticky and (profile.trigger.hard or profile.keeps_account):
        rewrite = rewrite.model_copy(update={"target": 1.0})
    return profile.model_copy(update={"window": window, "rewrite": rewrite})


def while_not_folding(profile: Profile) -> Profile:
    """The profile of a session without a summarizer: a marker says what is left out."""
    fit = profile.fit
    if fit.marker:
        return profile
    return profile.model_copy(update={"fit": fit.model_copy(update={"marker": STATIC_MARKER})})
