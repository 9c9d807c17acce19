"""How far from the best fold times rules are, and what they keep, on recorded sessions.

The sessions are split into a part to tune on and a part to report on, by a hash of their names; the
two recordings of pi, on which some values of `balanced` were chosen long ago, are apart. Rules of
others act at the same size with the same list of names; three of them differ only in when they
fold. See `refold.lab.economics` for what timing, all in and the bound are.

The recordings are not part of the project: REFOLD_DATA names their folder.
"""

import gzip
import sys
import tempfile
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Literal

from benchmarks.figures import Figure
from benchmarks.replay import DATA, PI, WINDOW
from refold.lab.economics import FOLD
from refold.lab.measure import EVERYTHING, Total, each_measured, jobs_for, totals
from refold.lab.metrics import DEFAULT_PRICES
from refold.lab.policies import MORE, SKI_RENTAL, TWICE
from refold.lab.report import Case, CaseOptions, case_of
from refold.lab.session_files import recordings
from refold.models.receipt import Receipt
from refold.view.profiles import PROFILES

Part = Literal["tune", "report", "pi"]
ABOUT: dict[Part, str] = {
    "report": "to report on",
    "pi": "of pi, tuned on long ago",
    "tune": "to tune on",
}
RULES = {
    EVERYTHING: "everything",
    TWICE: f"fold at {2 * FOLD:,}",
    MORE: f"fold at {5 * FOLD // 2:,}",
    SKI_RENTAL: "fold by ski rental, 1",
    "head / ledger / tail": "head, ledger, tail",
    "mask, batched": "mask, batched",
    "sliding window, pair-safe": "sliding, pair-safe",
}
FEW = (EVERYTHING, TWICE, SKI_RENTAL)
FEW_SESSIONS = 4
HEADINGS = (
    *("cost", "timing", "worst", "all in", "95 %", "worst"),
    *("names", "95 %", "other names", "edits", "long lines", "read again", "dearer", "refused"),
    *("folds", "ends above", "behind", "beyond"),
)
STRICT = PROFILES["balanced"].model_copy(update={"name": "strict", "economics": "strict"})
"""Folds are only made where they are not dearer, or from what was saved."""
# What `balanced` reaches today, on the part to report on; to be brought down by better rules.
BARS = {"timing": 1.4, "timing, worst": 1.7, "all in": 1.45, "names kept": 0.96}


def figures(*, quick: bool) -> list[Figure]:
    if not (DATA / "sessions").is_dir():
        print(f"No sessions in {DATA}: name their folder in REFOLD_DATA.", file=sys.stderr)
        return []
    parts = _parts(quick=quick)
    every = [case for cases in parts.values() for case in cases]
    profiles = [PROFILES["balanced"]] if quick else [*PROFILES.values(), STRICT]
    rules = [*(FEW if quick else RULES)]
    jobs = jobs_for(every, profiles, rules)
    outcomes = [one for _, measured in each_measured(jobs) for one in measured]
    found: list[Figure] = []
    for part, cases in parts.items():
        mine = [one for one in outcomes if every[one.session] in cases]
        results = totals(every, mine, [profile.name for profile in profiles], rules)
        label = f"{len(cases)} sessions {ABOUT[part]}"
        print(f"\n{label}\n{as_lines(results.every)}", file=sys.stderr)
        for total in results.every:
            bars = total.policy == "balanced" and part == "report" and not quick
            found += _figures(total, f"{part}, {RULES.get(total.policy, total.policy)}", bars=bars)
    return found


def part_of(name: str) -> Part:
    """The part that a session is in: by its name alone, so a new one moves none."""
    if name.startswith("pi_"):
        return "pi"
    return "tune" if sha256(name.encode()).digest()[0] % 2 else "report"


def sessions_of(part: Part, *, quick: bool) -> list[Case]:
    """The sessions of one part; a few of them if quick, and none where there is no data."""
    return _parts(quick=quick).get(part, []) if (DATA / "sessions").is_dir() else []


def _parts(*, quick: bool) -> dict[Part, list[Case]]:
    found: dict[Part, list[Case]] = {part: [] for part in ABOUT}
    with tempfile.TemporaryDirectory() as folder:
        files = [DATA / f"pi_{name}.jsonl" for name in PI]
        for packed in sorted((DATA / "sessions").glob("*.jsonl.gz")):
            files.append(Path(folder, packed.stem))
            files[-1].write_bytes(gzip.decompress(packed.read_bytes()))
        if quick:
            mine = [file for file in files if part_of(file.stem) == "report"]
            files = sorted(mine, key=lambda file: file.stat().st_size)[:FEW_SESSIONS]
        for file in recordings(files):
            case = case_of(file.recordings[0], CaseOptions(WINDOW, None, DEFAULT_PRICES))
            found[part_of(case.recording.name)].append(case)
    return {part: cases for part, cases in found.items() if cases}


def _figures(total: Total, label: str, *, bars: bool) -> Iterator[Figure]:
    row = total.row
    if row is None:
        yield Figure(f"{label}: failed, {total.error}", 1, 0, "at most")
        return
    timing = total.of_bound(lambda one: one.timing)
    all_in = total.of_bound(lambda one: one.all_in)
    for name, value in (
        ("timing", timing.pooled),
        ("timing, worst", timing.worst),
        ("all in", all_in.pooled),
        ("all in, worst", all_in.worst),
    ):
        yield Figure(f"{label}: {name} ÷ bound", value, BARS.get(name) if bars else None, "at most")
    for name, share in (("names kept", row.retained), *row.other_content.items()):
        yield Figure(f"{label}: {name}", share.rate, BARS.get(name) if bars else None)
    if total.ours:
        yield Figure(f"{label}: refused or broken", total.refused, 0, "at most")
        beyond = sum(one.broken > 0 for one in total.receipts)
        yield Figure(f"{label}: sessions with more debt than promised", beyond, 0, "at most")
        above = sum(one.debt > 0 for one in total.receipts)
        yield Figure(f"{label}: sessions that end above everything", above)


def as_lines(every: Sequence[Total]) -> str:
    lines = [("", *HEADINGS), *(_cells(total, every[0]) for total in every)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )


def _cells(total: Total, everything: Total) -> tuple[str, ...]:
    row = total.row
    label = RULES.get(total.policy, total.policy)
    if row is None:
        return (label, *["-"] * len(HEADINGS))
    timing = total.of_bound(lambda one: one.timing)
    all_in = total.of_bound(lambda one: one.all_in)
    low, high = total.interval(lambda one: one.retained)
    pairs = zip(total.rows, everything.rows, strict=True)
    return (
        label,
        f"{total.share:.1%}",
        f"{timing.pooled:.3f}",
        f"{timing.worst:.2f}",
        f"{all_in.pooled:.3f}",
        f"{all_in.interval[0]:.2f} to {all_in.interval[1]:.2f}",
        f"{all_in.worst:.2f}",
        f"{row.retained.rate:.1%} of {row.retained.of:,}",
        f"{low:.0%} to {high:.0%}",
        *(f"{share.rate:.0%} of {share.of:,}" for share in row.other_content.values()),
        str(row.account.misses),
        str(sum(one.account.all_in > 1.001 * whole.account.own for one, whole in pairs)),
        str(total.refused),
        *_behind(total.receipts, total.folds),
    )


def _behind(receipts: Sequence[Receipt], folds: int) -> tuple[str, ...]:
    """How far a profile was behind sending everything, by its own account."""
    if not receipts:
        return ("", "", "", "")
    above = [one.debt for one in receipts if one.debt > 0]
    highest = max(one.highest for one in receipts)
    promised = max(one.promised for one in receipts)
    return (
        str(folds),
        f"{len(above)}, ${sum(above):.2f}",
        f"${highest:.2f} of ${promised:.2f}",
        str(sum(one.broken > 0 for one in receipts)),
    )
