"""When to fold: how full the view is, and what was tried before."""

from refold.fold.boundary import boundary
from refold.fold.sizing import sized
from refold.fold.trigger import Decision, Pressure, Why, decide
from refold.models.setup import Setup
from refold.session.follow import Following
from refold.view import Fold, View
from refold.view.thresholds import GAIN, effective_limit


class Timing:
    """Decides about the folds of one session; what failed is not tried again at once."""

    def __init__(self, following: Following) -> None:
        self._following = following
        self._again = 0
        """After a failure: the tokens of the whole session from which on it is tried again."""
        self._held_at = 0
        """The tokens of the whole session when it failed."""
        self._rewritten = 0
        """The tokens of the newest request that changed what had been sent."""

    def decide(self, *, running: bool, forced: bool) -> Decision:
        """Whether to fold before the next request, and why."""
        following, view = self._following, self._following.view
        if following.whole < self._held_at:  # cleared or rewound since: another past
            self._again = self._held_at = 0
        setup, sheet = following.setup, view.sheet
        marks = following.thresholds
        shown = sum(len(fold.shown) for fold in sheet.foldings if not fold.merged)
        pressure = Pressure(
            self._size() + marks.floor,
            len(sheet.rows) + shown,
            len(sheet.turns),
            marks.floor,
            gain=marks.limit,
            foldable=len(sheet.rows),
            whole=following.whole,
            again=self._again,
        )
        facts = {
            "running": running,
            "inline": setup.profile.fold.apply == "inline",
            "forced": forced,
        }
        first = decide(setup.profile.trigger, marks, pressure, **facts)
        if first.act == "continue":
            return first
        more = self._rewritten and self._rewritten + int(GAIN * marks.room)
        if first.act == "start" and pressure.tokens < more:
            # The provider's cache was given up a moment ago: not twice in a row for one cause.
            return Decision("continue", (*first.why, Why("rewritten", self._rewritten)))
        values = fold_values(setup)
        where = boundary(sheet, values.keep)  # looked for only when there is a reason to
        sent = where.tokens - view.omitted(where.spans, setup.budget)
        real = pressure._replace(gain=sent - values.max_tokens, foldable=where.messages)
        return decide(setup.profile.trigger, marks, real, **facts)

    def rewritten(self, tokens: int) -> None:
        """A request of so many tokens changed what had been sent, to make room."""
        self._rewritten = tokens

    def go_on(self, *, failed: bool) -> None:
        """After a failure, fixed limits apply until a fold is made."""
        following = self._following
        self._rewritten = self._rewritten if failed else 0
        self._again = self._later() if failed else 0
        self._held_at = following.whole
        following.view.profile = following.profile(limits=failed)

    def hold(self) -> None:
        """Do not make the same fold again at once."""
        self._again = self._later()
        self._held_at = self._following.whole

    def _later(self) -> int:
        """The tokens of the whole session at which there is more to gain than now."""
        return self._following.whole + int(GAIN * self._size())

    def _size(self) -> int:
        """The tokens of the next request's messages, with what fixed limits leave out."""
        following, view = self._following, self._following.view
        if self._again and following.setup.profile.window.limits:
            view = View(view.sheet, following.profile())
        return view.size(following.setup.budget)


def fold_values(setup: Setup) -> Fold:
    """What a fold keeps and shows, for this model."""
    limit = effective_limit(setup.profile, setup.budget)
    return sized(setup.profile.fold, limit - setup.budget.floor)
