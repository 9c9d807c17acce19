"""Replays side by side: as a table for people, as JSON for programs."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from refold.lab import metrics
from refold.lab.comparisons import Factory
from refold.lab.counting import Count, o200k
from refold.lab.metrics import Prices, Share, pooled
from refold.lab.reading import Reader
from refold.lab.recording import Recording
from refold.lab.replay import Replay, play
from refold.lab.rereads import rereads_lost
from refold.lab.retention import Retention

POOLED = "all recordings"

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

    @property
    def cache_hits(self) -> float:
        """CHR."""
        return self.cached / self.sent if self.sent else 0.0


@dataclass(frozen=True, slots=True)
class Measure:
    """How replays are measured."""

    prices: Prices = field(default_factory=Prices)
    limit: int = 200_000
    """L of FIT@L."""
    gap: int = 20_000
    """G of LR-UIR."""
    as_json: bool = False
    """Look for names in the JSON of call arguments, as the figures published earlier do."""


@dataclass(frozen=True, slots=True)
class Report:
    """Rows to compare; the first policy is what the others are a ratio to."""

    rows: tuple[Row, ...]
    measure: Measure

    def table(self) -> str:
        """The rows as plain text."""
        lines = [_HEADINGS, *(self._cells(row) for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(_aligned(line, widths) for line in lines)

    def json(self) -> str:
        """The rows as JSON, with their ratios and intervals."""
        rows = [
            asdict(row)
            | {"cache_hits": row.cache_hits, "interval": row.retained.interval}
            | self._ratios(row)
            for row in self.rows
        ]
        return json.dumps({"measure": asdict(self.measure), "rows": rows}, indent=1)

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
        first = next(one for one in self.rows if one.recording == row.recording)
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
    of = measure or Measure()
    bench = _Bench(of, Reader(count or o200k(), as_json=of.as_json))
    rows = [
        bench.row(recording, name, make)
        for recording in recordings
        for name, make in policies.items()
    ]
    if len(recordings) > 1:
        rows += [pooled_rows([row for row in rows if row.policy == name]) for name in policies]
    return Report(tuple(rows), bench.measure)


class _Bench:
    """Makes rows; what it has read of a message, it keeps."""

    def __init__(self, measure: Measure, reader: Reader) -> None:
        self.measure = measure
        self._reader = reader

    def row(self, recording: Recording, name: str, make: Factory) -> Row:
        played = play(recording, make(self._reader), self._reader, name=name)
        return row_of(played, self.measure, self._reader)


def row_of(played: Replay, measure: Measure, reader: Reader) -> Row:
    """The figures of one replay."""
    prices = measure.prices
    p50, p95 = metrics.overhead(played)
    return Row(
        recording=played.recording.name,
        policy=played.policy,
        requests=len(played.requests),
        sent=metrics.sent(played),
        cached=metrics.cached(played),
        peak=metrics.peak(played),
        fits=metrics.fit(played, measure.limit),
        cost=metrics.cost(played, prices),
        cost_uncached=metrics.cost(played, prices, cached=False),
        orphaned=metrics.orphaned(played),
        unanswered=metrics.unanswered(played),
        retained=Retention(reader, measure.gap).measure(played),
        reread=rereads_lost(played, reader),
        p50=p50,
        p95=p95,
    )


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
    )


def _ratio(one: float, other: float) -> float:
    return one / other if other else 1.0


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    names = [cell.ljust(width) for cell, width in zip(cells[:2], widths[:2], strict=True)]
    figures = [cell.rjust(width) for cell, width in zip(cells[2:], widths[2:], strict=True)]
    return "  ".join([*names, *figures])
