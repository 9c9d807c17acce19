"""A profile from one's own sessions: chosen on some of them, measured on the others.

What is cheapest on the sessions that it was chosen on is partly so by chance, so a proposal is
measured on sessions that had no part in the choice. It is only made where these show, with an
interval over sessions, that it costs less and keeps as many names. Costs are of input, all in:
requests, folds, summaries, and what the model must read again.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, NamedTuple

from refold.lab.measure import Job, Outcome, each_measured
from refold.lab.metrics import Share, bootstrapped, pooled
from refold.lab.report import Case
from refold.view.profiles import Profile

Values = Mapping[str, float]
"""Values of a profile, by their keys in settings."""

CANDIDATES: Final[Mapping[str, tuple[float, ...]]] = {
    "trigger.savings": (0.5, 1.5, 2.0),
    "trigger.tokens": (60_000, 150_000),
    "fold.keep.amount": (4_000, 16_000),
    "fold.ledger_tokens": (4_000,),
    "fold.region_tokens": (0, 8_000),
}
"""What is tried in place of each value, one at a time, and then the best ones together."""
MIN_SESSIONS: Final = 10
"""Sessions that are folded: with fewer, nothing can be told."""
_MIN_SAVED: Final = 0.02
"""Of the profile's cost: less isn't worth a setting."""
_MAX_TOGETHER: Final = 3
_MAX_LOST: Final = 0.01
"""Of the names and edits that the profile keeps, what a candidate may lose where it is chosen."""
_MAX_LOST_UNSEEN: Final = 0.02
"""The same where it is measured, at the interval's lower end."""
_ROUNDS: Final = 1_000

Progress = Callable[[int, int], None]
"""Called with the replays that were made, and how many there will be at most."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What a candidate costs on some sessions, and what it keeps."""

    values: Values
    """What it changes; nothing for the profile itself."""
    cost: float
    """Dollars."""
    names: Share
    edits: Share
    refused: int
    error: str = ""

    @property
    def text(self) -> str:
        return ", ".join(f"{key} = {value:g}" for key, value in self.values.items())


class Interval(NamedTuple):
    """A figure, and the 95 % interval around it over sessions."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """The chosen candidate beside the profile, on sessions that had no part in the choice."""

    own: Trial
    chosen: Trial
    cost: Interval
    """The candidate's cost, as a share of the profile's."""
    names: Interval
    """What it keeps more, as a share of names."""

    @property
    def doubt(self) -> str:
        """Why these sessions do not show that it is better; empty if they do."""
        low, high = 1 - self.cost.high, 1 - self.cost.low
        if self.chosen.refused > self.own.refused:
            return "it makes requests that a provider would refuse"
        if self.cost.high >= 1:
            return f"it saves between {low:.1%} and {high:.1%} there, which may be nothing"
        if 1 - self.cost.value < _MIN_SAVED:
            return f"it saves only {1 - self.cost.value:.1%} there"
        if self.names.low < -_MAX_LOST_UNSEEN:
            return f"it may keep up to {-self.names.low:.1%} fewer of the names used again"
        if self.chosen.edits.rate < self.own.edits.rate - _MAX_LOST_UNSEEN:
            lost = self.own.edits.rate - self.chosen.edits.rate
            return f"it keeps {lost:.1%} fewer of the texts that edits need"
        return ""


@dataclass(frozen=True, slots=True)
class Tuned:
    profile: str
    short: int
    """Sessions that no fold is made in."""
    chosen_on: int
    measured_on: int
    trials: tuple[Trial, ...] = ()
    """On the sessions that it was chosen on; the profile itself first."""
    comparison: Comparison | None = None
    why_not: str = ""
    """Why nothing is proposed; empty if something is."""

    @property
    def proposal(self) -> Values | None:
        """The values to set; None: keep the profile as it is."""
        return self.comparison.chosen.values if self.comparison and not self.why_not else None


def tune(
    cases: Sequence[Case], profile: Profile, progress: Progress = lambda _done, _of: None
) -> Tuned:
    """Look for values that are cheaper than the profile's and keep as much.

    Args:
        cases: The sessions, and what they are measured by.
        profile: What to begin with, and to keep if nothing is better.
        progress: Called as replays are made.
    """
    singles = [
        {key: value} for key, values in CANDIDATES.items() for value in values if _of(profile, key)
    ]
    runs = _Runs(cases, profile, progress, 2 * len(cases) + len(singles) * (len(cases) // 2))
    everywhere = range(len(cases))
    runs.play([{}], everywhere)
    long = [index for index in everywhere if _is_long(runs.outcome(index, {}), profile)]
    short = len(cases) - len(long)
    if len(long) < MIN_SESSIONS:
        why = f"{len(long)} sessions that are long enough to fold are too few to tell anything"
        return Tuned(profile.name, short, 0, 0, why_not=f"{why}; {MIN_SESSIONS} are needed")
    # Of two that cost about the same, one is on each side.
    long.sort(key=lambda index: -runs.cost(index, {}))
    learning = [index for nth, index in enumerate(long) if nth % 4 in (0, 3)]
    unseen = [index for index in long if index not in learning]
    runs.play(singles, learning)
    own = runs.trial({}, learning)
    trials = [runs.trial(values, learning) for values in singles]
    together = [*_together(own, trials)]
    runs.play(together, learning)
    trials += [runs.trial(values, learning) for values in together]
    best = min((own, *_good(own, trials)), key=lambda trial: trial.cost)
    found = Tuned(profile.name, short, len(learning), len(unseen), (own, *trials))
    if not best.values:
        return _without(found, None, "no candidate costs less and keeps as much")
    runs.play([best.values], unseen)
    comparison = runs.compare(best.values, unseen)
    return _without(found, comparison, comparison.doubt)


def changed(profile: Profile, values: Values) -> Profile:
    """The profile with these values, under a name that says so."""
    own = profile.model_dump()
    for key, value in values.items():
        *path, last = key.split(".")
        table = own
        for name in path:
            table = table[name]
        table[last] = value
    more = "".join(f" {key}={value:g}" for key, value in values.items())
    return Profile.model_validate({**own, "name": f"{profile.name}{more}"})


class _Runs:
    """Replays of sessions under candidates, each made once."""

    def __init__(
        self, cases: Sequence[Case], profile: Profile, progress: Progress, expected: int
    ) -> None:
        self._cases = cases
        self._profile = profile
        self._progress = progress
        self._expected = expected
        self._outcomes: dict[tuple[int, str], Outcome] = {}

    def play(self, candidates: Sequence[Values], sessions: Iterable[int]) -> None:
        wanted = [*sessions]
        profiles = [changed(self._profile, values) for values in candidates]
        jobs = [
            Job(index, case, (), case.adapt(profile), case.budget(profile))
            for index, case in enumerate(self._cases)
            if index in wanted
            for profile in profiles
            if (index, profile.name) not in self._outcomes
        ]
        jobs.sort(key=lambda job: -len(job.case.recording.messages))
        for _, outcomes in each_measured(jobs):
            for outcome in outcomes:
                self._outcomes[outcome.session, outcome.policy] = outcome
            self._progress(len(self._outcomes), max(self._expected, len(self._outcomes)))

    def outcome(self, session: int, values: Values) -> Outcome:
        return self._outcomes[session, changed(self._profile, values).name]

    def cost(self, session: int, values: Values) -> float:
        """Dollars of input, all in; 0 where the replay failed."""
        row = self.outcome(session, values).row
        return row.account.all_in * (self._cases[session].prices.input or 0) / 1e6 if row else 0.0

    def trial(self, values: Values, sessions: Sequence[int]) -> Trial:
        outcomes = [self.outcome(index, values) for index in sessions]
        rows = [outcome.row for outcome in outcomes if outcome.row]
        return Trial(
            values,
            sum(self.cost(index, values) for index in sessions),
            pooled(row.retained for row in rows),
            pooled(row.edits for row in rows),
            sum(outcome.refused for outcome in outcomes),
            next((outcome.error for outcome in outcomes if outcome.error), ""),
        )

    def compare(self, values: Values, sessions: Sequence[int]) -> Comparison:
        own, chosen = self.trial({}, sessions), self.trial(values, sessions)
        pairs = [(self.cost(index, values), self.cost(index, {})) for index in sessions]
        share = chosen.cost / own.cost if own.cost else 1.0
        names = [
            (theirs.row.retained, ours.row.retained)
            for index in sessions
            if (theirs := self.outcome(index, values)).row and (ours := self.outcome(index, {})).row
        ]
        more = chosen.names.rate - own.names.rate
        cost = Interval(share, *bootstrapped(pairs))
        return Comparison(own, chosen, cost, Interval(more, *_of_difference(names)))


def _of(profile: Profile, key: str) -> bool:
    """Whether the profile uses this value at all."""
    value: object = profile
    for name in key.split("."):
        value = getattr(value, name)
    return bool(value)


def _is_long(outcome: Outcome, profile: Profile) -> bool:
    if outcome.row is None:
        return False
    return bool(outcome.marks) or outcome.row.peak >= 2 * profile.trigger.at_least


def _good(own: Trial, trials: Iterable[Trial]) -> list[Trial]:
    """The candidates that cost less and keep as much, the cheapest first."""
    good = [
        trial
        for trial in trials
        if not trial.error
        and trial.cost < own.cost
        and trial.refused <= own.refused
        and trial.names.rate >= own.names.rate - _MAX_LOST
        and trial.edits.rate >= own.edits.rate - _MAX_LOST
    ]
    return sorted(good, key=lambda trial: trial.cost)


def _together(own: Trial, trials: Iterable[Trial]) -> Iterable[Values]:
    """The best value of each key, with those of the next best keys."""
    values: dict[str, float] = {}
    for trial in _good(own, trials):
        fresh = {key: value for key, value in trial.values.items() if key not in values}
        values |= fresh
        if fresh and len(values) > 1:
            yield dict(values)
        if len(values) == _MAX_TOGETHER:
            return


def _without(found: Tuned, comparison: Comparison | None, why: str) -> Tuned:
    return Tuned(
        *(found.profile, found.short, found.chosen_on, found.measured_on, found.trials),
        comparison,
        why,
    )


def _of_difference(pairs: Sequence[tuple[Share, Share]]) -> tuple[float, float]:
    """The interval of how much more is kept, by drawing sessions with replacement."""
    drawn = Random(len(pairs))  # noqa: S311 - statistics
    values: list[float] = []
    for _ in range(_ROUNDS if pairs else 0):
        chosen = drawn.choices(pairs, k=len(pairs))
        values.append(
            pooled(one for one, _ in chosen).rate - pooled(other for _, other in chosen).rate
        )
    values.sort()
    return (values[len(values) // 40], values[-1 - len(values) // 40]) if values else (-1.0, 1.0)
