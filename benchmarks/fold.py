"""What folding without a model costs and keeps, on recorded sessions, and how it grows.

Each replay is a whole session: the log, the view, the engine, the folds. The recordings are not
part of the project: REFOLD_DATA names their folder. Without them only growth is measured.

Some values of the default profile were chosen with these recordings. So each is also cut in half:
a setting is chosen on the first halves and measured on the second.
"""

import asyncio
import itertools
import sys
from collections.abc import Sequence
from dataclasses import replace

from benchmarks.figures import Figure
from benchmarks.growth import growth
from benchmarks.replay import DATA, PI, TAU_WINDOW, TOP, WINDOW
from refold.lab import (
    Measure,
    Reader,
    Recording,
    Report,
    Row,
    compare,
    needles_kept,
    o200k,
    plant,
    play,
    read_openai_chat,
    read_pi,
)
from refold.lab.session_policy import SessionPolicy
from refold.models import counter_for
from refold.models.experience import Setup
from refold.recall import search
from refold.view import PROFILES, Budget, Profile

COST = {"before-compaction": 0.38, "large-session": 0.73}
HALF_THRESHOLD = 40_000  # a half of the smaller recording never reaches 100,000
TAILS, LEDGERS = (8_000, 15_000, 25_000), (2_500, 4_500, 6_500)


def figures(*, quick: bool) -> list[Figure]:
    found = growth(quick=quick)
    if not DATA.is_dir():
        print(f"No recordings in {DATA}: name their folder in REFOLD_DATA.", file=sys.stderr)
        return found
    names = PI[1:] if quick else PI
    recordings = [read_pi(DATA / f"pi_{name}.jsonl") for name in names]
    found += _whole(recordings, names)
    found += _needles(recordings)
    found += _tau(quick=quick)
    return found if quick else [*found, *_halves(recordings)]


def _setup(profile: Profile, window: int = WINDOW) -> Setup:
    return Setup("openai:gpt-4o", counter_for("openai:gpt-4o"), Budget(window=window), profile)


class _Made:
    """Makes policies and remembers them, to ask for their folds afterwards."""

    def __init__(self, profile: Profile, window: int = WINDOW) -> None:
        self.setup = _setup(profile, window)
        self.policies: list[SessionPolicy] = []

    def __call__(self, _: Reader) -> SessionPolicy:
        self.policies.append(SessionPolicy(self.setup))
        return self.policies[-1]


def _whole(recordings: Sequence[Recording], names: Sequence[str]) -> list[Figure]:
    made = _Made(PROFILES["balanced"])
    report = compare(recordings, {**TOP, "balanced": made})
    print(report.table(), file=sys.stderr)
    found: list[Figure] = []
    for name, none, ours in zip(names, *_by_policy(report, "none", "balanced"), strict=False):
        found += [
            Figure(f"{name}: COST x cached", ours.cost / none.cost, COST[name], "at most"),
            Figure(f"{name}: LR-UIR", ours.retained.rate, 0.95),
            Figure(f"{name}: ORPH", ours.orphaned + ours.unanswered, 0, "at most"),
            Figure(f"{name}: CHR", ours.cache_hits),
        ]
    kept = _by_policy(report, "balanced")[0][-1].retained
    low, high = kept.interval
    found += [
        Figure("LR-UIR pooled", kept.rate, 0.95),
        Figure("LR-UIR pooled, interval from", low),
        Figure("LR-UIR pooled, interval to", high),
    ]
    as_json = compare(recordings, {"balanced": made}, measure=Measure(as_json=True))
    found.append(Figure("LR-UIR pooled, names in the JSON", as_json.rows[-1].retained.rate))
    count = o200k()
    texts = [count(event.summary) for policy in made.policies for event in policy.folds]
    fold = PROFILES["balanced"].fold
    allowed = fold.max_tokens + fold.region_tokens
    return [*found, Figure("largest text of a fold, tokens", max(texts), allowed, "at most")]


def _needles(recordings: Sequence[Recording]) -> list[Figure]:
    reader = Reader(o200k())
    found: list[Figure] = []
    for recording in recordings:
        planted = plant(recording, reader)
        policy = SessionPolicy(_setup(PROFILES["balanced"]))
        kept = needles_kept(planted, play(planted.recording, policy, reader), reader)
        every = [needle for needles in planted.needles.values() for needle in needles]
        recalled = asyncio.run(_recalled(policy, every))
        label = recording.name.removeprefix("pi_")
        found += [
            Figure(f"{label}: user needles in the view, of 20", kept["user"].found, 18),
            Figure(f"{label}: needles found by recall, of 60", recalled, 60),
        ]
    return found


async def _recalled(policy: SessionPolicy, needles: Sequence[str]) -> int:
    log = policy.store.log()
    hits = [await search(log, needle, session="replay", limit=1) for needle in needles]
    return sum(
        any(needle in one.excerpt for one in found)
        for needle, found in zip(needles, hits, strict=True)
    )


def _tau(*, quick: bool) -> list[Figure]:
    tau = read_openai_chat(DATA / "tau_gpt-4o-airline.json")
    made = _Made(PROFILES["balanced"], TAU_WINDOW)
    measure = Measure(limit=TAU_WINDOW, gap=1_500)
    report = compare(tau[: 40 if quick else None], {**TOP, "balanced": made}, measure=measure)
    none, ours = (rows[-1] for rows in _by_policy(report, "none", "balanced"))
    return [
        Figure("tau: COST x cached", ours.cost / none.cost, 1.05, "at most"),
        Figure("tau: LR-UIR", ours.retained.rate),
        Figure("tau: ORPH", ours.orphaned + ours.unanswered, 0, "at most"),
        Figure("tau: PEAK of the limit", ours.peak / TAU_WINDOW, 1, "at most"),
        Figure("tau: sessions that folded", sum(bool(one.folds) for one in made.policies)),
    ]


def _halves(recordings: Sequence[Recording]) -> list[Figure]:
    first, second = zip(*map(_halved, recordings), strict=True)
    chosen = _chosen(first)
    found = [
        Figure("chosen on the first halves: tail, tokens", chosen.fold.keep.amount),
        Figure("chosen on the first halves: ledger, tokens", chosen.fold.ledger_tokens),
    ]
    for label, profile in (("chosen", chosen), ("default", _at(HALF_THRESHOLD))):
        report = compare(second, {**TOP, label: _Made(profile)})
        none, ours = (rows[-1] for rows in _by_policy(report, "none", label))
        found += [
            Figure(f"second halves, {label}: COST x cached", ours.cost / none.cost),
            Figure(f"second halves, {label}: LR-UIR", ours.retained.rate, 0.95),
        ]
    return found


def _halved(recording: Recording) -> tuple[Recording, Recording]:
    """Both begin with something the user said."""
    reader = Reader(o200k())
    payloads = recording.payloads
    middle = next(
        at
        for at in range(len(payloads) // 2, len(payloads))
        if reader.read(payloads[at]).speaker == "user"
    )
    messages = recording.messages
    return (
        replace(recording, name=f"{recording.name}, first half", messages=messages[:middle]),
        replace(recording, name=f"{recording.name}, second half", messages=messages[middle:]),
    )


def _chosen(recordings: Sequence[Recording]) -> Profile:
    """The cheapest setting that surely keeps 95 % (its interval says so), or what keeps most."""
    tried: list[tuple[bool, float, float, Profile]] = []
    for tail, ledger in itertools.product(TAILS, LEDGERS):
        profile = _at(HALF_THRESHOLD, tail=tail, ledger=ledger)
        report = compare(recordings, {**TOP, "tried": _Made(profile)})
        none, ours = (rows[-1] for rows in _by_policy(report, "none", "tried"))
        kept = ours.retained.rate
        surely = ours.retained.interval[0] >= 0.95
        tried.append((not surely, ours.cost / none.cost, kept, profile))
    enough = [one for one in tried if not one[0]]
    best = min(enough, key=lambda one: one[1]) if enough else max(tried, key=lambda one: one[2])
    return best[3]


def _at(threshold: int, *, tail: int | None = None, ledger: int | None = None) -> Profile:
    balanced = PROFILES["balanced"]
    fold = balanced.fold
    if tail is not None:
        keep = fold.keep.model_copy(update={"amount": tail})
        fold = fold.model_copy(update={"keep": keep, "ledger_tokens": ledger})
    trigger = balanced.trigger.model_copy(update={"tokens": threshold})
    return balanced.model_copy(update={"fold": fold, "trigger": trigger})


def _by_policy(report: Report, *policies: str) -> list[list[Row]]:
    return [[row for row in report.rows if row.policy == policy] for policy in policies]
