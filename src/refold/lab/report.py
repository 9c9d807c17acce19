"""Replays side by side: as a table for people, as JSON for programs.

Also what a session is measured by: the prices and the window of its model, and when rules act.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Final

from refold.fold.trigger import sized
from refold.lab import metrics
from refold.lab.content import ContentMeter
from refold.lab.economics import FOLD, Account, Step, Terms, account, bound, steps
from refold.lab.messages import Count, Reader, o200k
from refold.lab.metrics import DEFAULT_PRICES, Retention, Share, pooled, rereads_lost
from refold.lab.policies import Factory, Settings
from refold.lab.replay import NO_CONDITIONS, Conditions, Replay, play, recorded_prefix
from refold.models import ModelFacts, ModelSettings, Overrides, Prices, budget_for, facts_of
from refold.transcripts.recording import Recording
from refold.view.budget import ASSUMED_WINDOW, Budget
from refold.view.profiles import PROFILES, Profile

POOLED = "all recordings"
THRESHOLD: Final = 100_000

_FULL = 0.8  # of the window, where that is less than the threshold
_TAIL = 5  # the fraction of the threshold that a fold leaves, and that makes a name an old one
_HEADINGS = (
    "recording",
    "policy",
    "IN ratio",
    "COST ratio",
    "uncached",
    "CHR",
    "PEAK",
    "FIT",
    "ORPH",
    "LR-UIR",
    "REREAD",
    "OVH ms p50 / p95",
)


@dataclass(frozen=True, slots=True)
class Row:
    """The figures of one policy on one recording, or on all of them."""

    recording: str
    policy: str
    requests: int
    sent: int
    """IN."""
    cached: int
    peak: int
    fits: int
    """FIT@L."""
    cost: float
    """Dollars with a prompt cache."""
    cost_uncached: float
    orphaned: int
    """ORPH."""
    unanswered: int
    retained: Share
    """LR-UIR."""
    reread: Share
    """REREAD."""
    p50: float
    """OVH, in milliseconds."""
    p95: float
    other_names: Share
    """Names by a definition that no fold uses."""
    edits: Share
    """Old texts of edits."""
    lines: Share
    """Long lines."""
    account: Account
    """What it costs beside the least that is possible."""

    @property
    def cache_hits(self) -> float:
        return self.cached / self.sent if self.sent else 0.0

    @property
    def other_content(self) -> dict[str, Share]:
        """What was kept beside the names of the ledger's definition."""
        return {"other_names": self.other_names, "edits": self.edits, "lines": self.lines}


@dataclass(frozen=True, slots=True)
class Measure:
    """How replays are measured."""

    prices: Prices = DEFAULT_PRICES
    limit: int = 200_000
    """L of FIT@L."""
    gap: int = 20_000
    """G of LR-UIR."""
    as_json: bool = False
    """Look for names in the JSON of call arguments, as the figures published earlier do."""
    conditions: Conditions = NO_CONDITIONS
    fold: int = FOLD
    """Tokens of a fold in the bound."""

    @property
    def terms(self) -> Terms:
        return Terms.of(self.prices, self.conditions.fixed, self.fold)


@dataclass(frozen=True, slots=True)
class Report:
    """Rows to compare; the first policy is what the others are a ratio to."""

    rows: tuple[Row, ...]
    measure: Measure

    def table(self) -> str:
        lines = [_HEADINGS, *map(self._cells, self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(
                cell.rjust(width) if column > 1 else cell.ljust(width)
                for column, (cell, width) in enumerate(zip(line, widths, strict=True))
            )
            for line in lines
        )

    def json(self) -> str:
        """The rows as JSON, with their ratios and intervals."""
        rows = [
            asdict(row)
            | {
                "cache_hits": row.cache_hits,
                "interval": row.retained.interval,
            }
            | self._ratios(row)
            for row in self.rows
        ]
        measure = asdict(self.measure) | {"prices": self.measure.prices._asdict()}
        return json.dumps({"measure": measure, "rows": rows}, indent=1)

    def _cells(self, row: Row) -> tuple[str, ...]:
        low, high = row.retained.interval
        ratios = self._ratios(row)
        return (
            row.recording,
            row.policy,
            f"{ratios['sent_ratio']:.2f}",
            f"{ratios['cost_ratio']:.2f}",
            f"{ratios['cost_uncached_ratio']:.2f}",
            f"{row.cache_hits:.3f}",
            f"{row.peak:,}",
            f"{row.fits}/{row.requests}",
            str(row.orphaned),
            f"{row.retained.rate:.2f} [{low:.2f}, {high:.2f}] of {row.retained.of}",
            f"{row.reread.found}/{row.reread.of}",
            f"{row.p50:.2f} / {row.p95:.2f}",
        )

    def _ratios(self, row: Row) -> dict[str, float]:
        first = next(other for other in self.rows if other.recording == row.recording)
        return {
            "sent_ratio": _ratio(row.sent, first.sent),
            "cost_ratio": _ratio(row.cost, first.cost),
            "cost_uncached_ratio": _ratio(row.cost_uncached, first.cost_uncached),
        }


def compare(
    recordings: Sequence[Recording],
    policies: Mapping[str, Factory],
    *,
    measure: Measure | None = None,
    count: Count | None = None,
) -> Report:
    """Replay each recording under each policy; of several recordings, also all of them as one."""
    measure = measure or Measure()
    meter = Meter(measure, Reader(count or o200k(), as_json=measure.as_json))
    rows = [
        meter.row(
            play(
                recording, make(meter.reader), meter.reader, name=name, conditions=meter.conditions
            )
        )
        for recording in recordings
        for name, make in policies.items()
    ]
    if len(recordings) > 1:
        rows += [pooled_rows([row for row in rows if row.policy == name]) for name in policies]
    return Report(tuple(rows), measure)


class Meter:
    """Measures replays; of several of one recording, what they share is found out once."""

    def __init__(self, measure: Measure, reader: Reader) -> None:
        self.reader = reader
        self.conditions = measure.conditions
        self._measure = measure
        self._retention = Retention(reader, measure.gap)
        self._content = ContentMeter(reader, measure.gap)
        self._best: tuple[Recording, tuple[Step, ...], float] | None = None

    def row(self, played: Replay) -> Row:
        p50, p95 = metrics.overhead(played)
        content = self._content.measure(played)
        return Row(
            recording=played.recording.name,
            policy=played.policy,
            requests=len(played.requests),
            sent=metrics.sent(played),
            cached=metrics.cached(played),
            peak=metrics.peak(played),
            fits=metrics.fit(played, self._measure.limit),
            cost=metrics.cost(played, self._measure.prices),
            cost_uncached=metrics.cost(played, self._measure.prices, cached=False),
            orphaned=metrics.orphaned(played),
            unanswered=metrics.unanswered(played),
            retained=self._retention.measure(played),
            reread=rereads_lost(played, self.reader),
            p50=p50,
            p95=p95,
            other_names=content.kept["other names"],
            edits=content.kept["edits"],
            lines=content.kept["lines"],
            account=account(
                played, *self._bound(played.recording), content.missed, self._measure.terms
            ),
        )

    def _bound(self, recording: Recording) -> tuple[tuple[Step, ...], float]:
        if self._best is None or self._best[0] is not recording:
            session = steps(recording, self.reader, self.conditions)
            self._best = recording, session, bound(session, self._measure.terms)[0]
        return self._best[1:]


def pooled_rows(rows: Sequence[Row]) -> Row:
    """The rows of one policy as one; of peaks and times, the worst."""
    return Row(
        recording=POOLED,
        policy=rows[0].policy,
        requests=sum(row.requests for row in rows),
        sent=sum(row.sent for row in rows),
        cached=sum(row.cached for row in rows),
        peak=max(row.peak for row in rows),
        fits=sum(row.fits for row in rows),
        cost=sum(row.cost for row in rows),
        cost_uncached=sum(row.cost_uncached for row in rows),
        orphaned=sum(row.orphaned for row in rows),
        unanswered=sum(row.unanswered for row in rows),
        retained=pooled(row.retained for row in rows),
        reread=pooled(row.reread for row in rows),
        p50=max(row.p50 for row in rows),
        p95=max(row.p95 for row in rows),
        other_names=pooled(row.other_names for row in rows),
        edits=pooled(row.edits for row in rows),
        lines=pooled(row.lines for row in rows),
        account=Account.of(row.account for row in rows),
    )


def _ratio(figure: float, base: float) -> float:
    return figure / base if base else 1.0


@dataclass(frozen=True, slots=True)
class CaseOptions:
    """What the user sets, whatever the catalog says about the models."""

    window: int | None = None
    threshold: int | None = None
    prices: Prices | None = None
    fixed: int | None = 0
    """Tokens of instructions and tools; None: what the recorded usage says."""
    lifetime: float | None = None
    """Seconds that a cache is kept; None: for ever."""
    models: Overrides = field(default_factory=dict[str, ModelSettings])
    """Settings for models, which override what the catalog says."""


@dataclass(frozen=True, slots=True)
class Case:
    """A session, and what it is measured by."""

    recording: Recording
    model: str
    """The model of most messages; empty where it is unknown."""
    prices: Prices
    window: int
    threshold: int
    priced: bool = True
    """Whether the prices are the model's, or were given."""
    windowed: bool = True
    """Whether the window is."""
    set_by_user: bool = False
    """Whether the threshold was given."""
    conditions: Conditions = NO_CONDITIONS

    @property
    def settings(self) -> Settings:
        """The sizes of the baselines: what their folds leave is as large as in `balanced`."""
        fold = sized(PROFILES["balanced"], self.threshold)
        tail, names = max(1, int(fold.keep.amount)), max(1, fold.ledger_tokens)
        return Settings(threshold=self.threshold, tail=tail, summary=names)

    @property
    def measure(self) -> Measure:
        gap = min(Measure().gap, self.threshold // _TAIL)
        fold = min(FOLD, self.threshold // _TAIL)
        return Measure(self.prices, self.window, gap, conditions=self.conditions, fold=fold)

    def adapt(self, profile: Profile) -> Profile:
        """The profile with the user's threshold, if it acts at a number of tokens.

        What its folds keep and show shrinks with the threshold by itself.
        """
        trigger = profile.trigger
        if trigger.savings or profile.keeps_account:
            seconds = {"cache_seconds": round(self.conditions.lifetime or 0)}
            trigger = trigger.model_copy(update=seconds)
            profile = profile.model_copy(update={"trigger": trigger})
        if not (self.set_by_user and trigger.tokens):
            return profile
        at_least = min(trigger.at_least, self.threshold)
        triggering = {"tokens": self.threshold, "at_least": at_least}
        return profile.model_copy(update={"trigger": trigger.model_copy(update=triggering)})

    def budget(self, profile: Profile) -> Budget:
        models = {self.model: ModelSettings(window=self.window)}
        budget = budget_for(self.model, profile, models=models)
        return budget._replace(instructions=self.conditions.fixed)


def case_of(recording: Recording, options: CaseOptions) -> Case:
    """The session with the options, else what the catalog says of its model, else its file."""
    models = Counter(message.model for message in recording.messages if message.model)
    model = models.most_common(1)[0][0] if models else ""
    facts = facts_of(model, options.models) if options.models else _facts(model)
    recorded = recording.prices or Prices()
    prices = options.prices or _all_prices(facts.prices) or _all_prices(recorded)
    window = options.window or facts.window or recording.limit
    fixed = options.fixed
    if fixed is None:
        fixed = recorded_prefix(recording, Reader(o200k()))
    return Case(
        recording,
        model,
        prices or DEFAULT_PRICES,
        window or ASSUMED_WINDOW,
        options.threshold or min(THRESHOLD, int((window or ASSUMED_WINDOW) * _FULL)),
        priced=prices is not None,
        windowed=bool(window),
        set_by_user=options.threshold is not None,
        conditions=Conditions(fixed, options.lifetime),
    )


def prices_of(model: str) -> Prices | None:
    """The published prices, with the input's for a missing cache price; None if unknown."""
    return _all_prices(_facts(model).prices)


def _all_prices(prices: Prices) -> Prices | None:
    sent, output, read, write = prices
    if sent is None or output is None:
        return None
    return Prices(sent, output, sent if read is None else read, sent if write is None else write)


@cache
def _facts(model: str) -> ModelFacts:
    return facts_of(model) if model else ModelFacts("")
