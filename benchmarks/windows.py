"""What `balanced` costs and keeps in windows of all sizes, with and without a cache's discount.

The sessions are those to report on of `benchmarks.economics`, with the pauses that were recorded:
a cache of five minutes expires in them, one of an hour seldom. Without a discount, all tokens of
input cost the same, as with local models.
"""

import sys

from benchmarks.economics import STRICT, as_lines, sessions_of
from benchmarks.figures import Figure
from refold.lab.measure import EVERYTHING, each_measured, jobs_for, totals
from refold.lab.metrics import DEFAULT_PRICES
from refold.lab.report import Case, CaseOptions, case_of
from refold.models import Prices
from refold.view.profiles import BALANCED

WINDOWS = (32_000, 128_000, 200_000, 1_000_000)
FLAT = DEFAULT_PRICES._replace(cache_read=DEFAULT_PRICES.input, cache_write=DEFAULT_PRICES.input)
PLAIN = "head / ledger / tail"
RULES = (EVERYTHING, PLAIN)


def figures(*, quick: bool) -> list[Figure]:
    cases = sessions_of("report", quick=quick)
    found: list[Figure] = []
    profiles = [BALANCED] if quick else [BALANCED, STRICT]
    for window in WINDOWS[::2] if quick else WINDOWS:
        for name, prices, lifetime in _conditions():
            mine = [_under(case, window, prices, lifetime) for case in cases]
            jobs = jobs_for(mine, profiles, RULES)
            outcomes = [one for _, measured in each_measured(jobs) for one in measured]
            results = totals(mine, outcomes, [one.name for one in profiles], RULES)
            label = f"{window // 1_000:,}k, {name}"
            print(f"\n{label}\n{as_lines(results.every)}", file=sys.stderr)
            for total in results.every:
                if total.row and total.ours:
                    all_in = total.of_bound(lambda one: one.all_in)
                    start = f"{label}, {total.policy}"
                    found += [
                        Figure(f"{start}: cost", total.share),
                        Figure(f"{start}: all in ÷ bound", all_in.pooled),
                        Figure(f"{start}: names kept", total.row.retained.rate),
                        Figure(f"{start}: refused or broken", total.refused, 0, "at most"),
                        Figure(
                            f"{start}: sessions with more debt than promised",
                            sum(one.broken > 0 for one in total.receipts),
                            0,
                            "at most",
                        ),
                    ]
    return found


def _conditions() -> tuple[tuple[str, Prices, float], ...]:
    return (
        ("cache of 5 minutes", DEFAULT_PRICES, 300.0),
        ("cache of an hour", DEFAULT_PRICES, 3_600.0),
        ("no discount", FLAT, 300.0),
    )


def _under(case: Case, window: int, prices: Prices, lifetime: float) -> Case:
    return case_of(case.recording, CaseOptions(window, None, prices, lifetime=lifetime))
