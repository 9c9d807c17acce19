"""What profiles cost and keep, on recorded sessions: one request for each assistant message.

The recordings are not part of the project: REFOLD_DATA names their folder.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.figures import Figure
from refold.lab import (
    Measure,
    Recording,
    Report,
    Row,
    baselines,
    compare,
    profiled,
    read_openai_chat,
    read_pi,
)
from refold.models import counter_for
from refold.view.budget import Budget
from refold.view.profiles import PROFILES

DATA = Path(os.environ.get("REFOLD_DATA", Path(__file__).parents[2] / "shared" / "data"))
PI = ("before-compaction", "large-session")
WINDOW, THRESHOLD = 200_000, 100_000
TAU_WINDOW = 8_000
COST = {"before-compaction": 0.65, "large-session": 0.83}
TOP = {"none": baselines()["none"]}


def figures(*, quick: bool) -> list[Figure]:
    if not DATA.is_dir():
        print(f"No recordings in {DATA}: name their folder in REFOLD_DATA.", file=sys.stderr)
        return []
    names = PI[1:] if quick else PI
    recordings = [read_pi(DATA / f"pi_{name}.jsonl") for name in names]
    found = _at_threshold(recordings, names)
    for report, label, window in _all(recordings, quick=quick):
        found += _legal(report, label, window)
    return found


def _at_threshold(recordings: Sequence[Recording], names: Sequence[str]) -> list[Figure]:
    """The default profile without a summarizer, with the threshold of the comparison table."""
    balanced = PROFILES["balanced"]
    rewrite = balanced.rewrite.model_copy(update={"target": 1.0, "target_tokens": THRESHOLD})
    tuned = balanced.model_copy(update={"rewrite": rewrite})
    policies = TOP | profiled([tuned], Budget(window=WINDOW), counter_for("openai:gpt-4o"))
    report = compare(recordings, policies)
    print(report.table(), file=sys.stderr)
    found: list[Figure] = []
    for name, none, ours in zip(names, *_by_policy(report, "none", "balanced"), strict=False):
        found += [
            Figure(f"balanced, {name}: CHR", ours.cache_hits, 0.97),
            Figure(
                f"balanced, {name}: COST x cached", ours.cost / none.cost, COST[name], "at most"
            ),
        ]
    kept = _by_policy(report, "balanced")[0][-1].retained
    return [*found, Figure("balanced: LR-UIR pooled", kept.rate, 0.93)]


def _by_policy(report: Report, *policies: str) -> list[list[Row]]:
    return [[row for row in report.rows if row.policy == policy] for policy in policies]


def _all(recordings: Sequence[Recording], *, quick: bool) -> Iterator[tuple[Report, str, int]]:
    counter = counter_for("openai:gpt-4o")
    every = profiled(PROFILES.values(), Budget(window=WINDOW), counter)
    if quick:
        every = {name: every[name] for name in ("balanced", "copilot")}
    yield compare(recordings, TOP | every), "pi", WINDOW
    tau = read_openai_chat(DATA / "tau_gpt-4o-airline.json")
    small = profiled(PROFILES.values(), Budget(window=TAU_WINDOW), counter)
    measure = Measure(limit=TAU_WINDOW, gap=1_500)
    yield compare(tau[: 20 if quick else None], TOP | small, measure=measure), "tau", TAU_WINDOW


def _legal(report: Report, label: str, window: int) -> list[Figure]:
    found: list[Figure] = []
    for policy in dict.fromkeys(row.policy for row in report.rows):
        rows = _by_policy(report, policy)[0]
        peak = max(row.peak for row in rows) / window
        broken = max(row.orphaned + row.unanswered for row in rows)
        hits = sum(row.cached for row in rows) / sum(row.sent for row in rows)
        found.append(Figure(f"{label}, {policy}: CHR", hits))
        if policy != "none":
            found += [
                Figure(f"{label}, {policy}: ORPH", broken, 0, "at most"),
                Figure(f"{label}, {policy}: PEAK of the limit", peak, 1, "at most"),
            ]
    return found
