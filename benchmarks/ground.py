"""What a fold shows of a model's points, true ones and false ones, and what finding that out costs.

The points are those of the tests: two files written by hand, of which nothing was fitted to the
second, and generated conversations, more of them here. The two summaries that a model wrote of a
recorded session are not part of the project: REFOLD_DATA names their folder.

A table of what becomes of each kind of point, with 95 % Wilson intervals, goes to stderr.
"""

import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from math import sqrt
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from benchmarks.figures import Figure
from refold.fold.ground import GONE, ground
from refold.fold.ground.permissions import permits
from refold.fold.material import Material, Passage
from refold.fold.summary import Claim
from refold.fold.write.draft import Draft, DraftClaim
from refold.log.text import words

TESTS = Path(__file__).parents[1] / "tests"
WITH_A_SOURCE = 0.03
REMOVED_OR_CHANGED = 0.02
CARRIED = 0.7
REMOVED_OF_RECORDED = 0.05  # points of another prompt, without quotes
KINDS, WORLDS, FALSE, TRUE = 20, 6, 400, 300
MIN_CLAIMS = 3  # of a kind with a row of its own
CHARACTERS = 8_000_000  # two million tokens
CLAIMS = 200
Z = 1.96


class Case(NamedTuple):
    """A point of the tests, the conversation that it is about, and what is shown of it."""

    point: Any
    material: Material
    claim: Claim | None

    @property
    def quoted(self) -> bool:
        return bool(self.claim and self.claim.quote)

    @property
    def in_account(self) -> bool:
        return bool(self.claim and self.claim.text)

    @property
    def removed(self) -> bool:
        return self.claim is None

    @property
    def changed(self) -> bool:
        """Whether other words are shown than the model wrote: a name in it was masked."""
        return self.in_account and words(self.text) != words(self.point.text)

    @property
    def marked(self) -> bool:
        return bool(self.claim and (self.claim.against or self.claim.outdated))

    @property
    def rewritten(self) -> bool:
        """Whether it is not even the model's words in their order, as an order made of a report."""
        rest = iter(words(self.point.text))
        return not all(word in rest for word in words(self.text.replace(GONE, " ")))

    @property
    def text(self) -> str:
        return self.claim.text if self.claim else ""


FATES = ("quoted", "in_account", "removed", "changed", "marked")


def figures(*, quick: bool) -> list[Figure]:
    sys.path[:0] = [str(TESTS), str(TESTS / "fold")]
    claimed, attacks, worlds = map(import_module, ("claimed", "ground_attacks", "ground_worlds"))
    sets: dict[str, list[Case]] = {}
    for label, name in (("development", "development"), ("held out", "held_out")):
        sets[label] = [
            _case(claimed, point, material)
            for material, points in claimed.worlds(name).values()
            for point in points
        ]
    made = list(worlds.worlds(8 if quick else 60, 10_000))
    sets["generated"] = [_case(claimed, p, place.material) for place in made for p in place.points]
    for label, cases in sets.items():
        _print_kinds(label, cases)
    return [
        *_amounts(sets),
        *(figure for label, cases in sets.items() for figure in _shares(label, cases)),
        *_shown(attacks, claimed, sets),
        *_permissions(attacks),
        *_generations(attacks, sets, folds=5, worlds=1 if quick else 12),
        *_recorded(claimed),
        *_growth(made, CHARACTERS // 8 if quick else CHARACTERS),
    ]


def _case(claimed: ModuleType, point: Any, material: Material) -> Case:  # noqa: ANN401 - of the tests
    return Case(point, material, claimed.judge(point, material).claim)


def _print_kinds(label: str, cases: Sequence[Case]) -> None:
    """One row for each kind: the share of its points with each fate, and its interval."""
    kinds: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for case in cases:
        kinds["true" if case.point.true else "false", case.point.kind].append(case)
    small = [key for key, same in kinds.items() if len(same) < MIN_CLAIMS]
    for truth, kind in small:
        kinds[truth, "(rarer kinds)"] += kinds.pop((truth, kind))
    columns = "".join(f"{name.replace('_', ' '):>18}" for name in FATES)
    print(f"\n{label:44}   n{columns}", file=sys.stderr)
    for (truth, kind), same in sorted(kinds.items()):
        shares = "".join(f"{_share(same, fate):>18}" for fate in FATES)
        print(f"  {truth:6}{kind[:36]:36}{len(same):4}{shares}", file=sys.stderr)


def _share(cases: Sequence[Case], fate: str) -> str:
    count = sum(getattr(case, fate) for case in cases)
    low, high = wilson(count, len(cases))
    return f"{count / len(cases):.0%} [{low:.0%}, {high:.0%}]"


def wilson(count: int, total: int) -> tuple[float, float]:
    """The 95 % interval of a share."""
    if not total:
        return 0.0, 1.0
    share, z2 = count / total, Z * Z / total
    middle, half = share + z2 / 2, Z * sqrt(share * (1 - share) / total + z2 / total / 4)
    return max(0.0, (middle - half) / (1 + z2)), min(1.0, (middle + half) / (1 + z2))


def _amounts(sets: dict[str, list[Case]]) -> Iterator[Figure]:
    points = [case.point for cases in sets.values() for case in cases]
    yield Figure("worlds", len({point.world for point in points}), WORLDS)
    yield Figure("kinds", len({(point.true, point.kind) for point in points}), KINDS)
    yield Figure("false claims", sum(not point.true for point in points), FALSE)
    yield Figure("true claims", sum(point.true for point in points), TRUE)


def _shares(label: str, cases: Sequence[Case]) -> Iterator[Figure]:
    true = [case for case in cases if case.point.true]
    false = [case for case in cases if not case.point.true]
    lost = sum(case.removed or case.changed for case in true)
    carried = sum(case.quoted for case in true)
    bars = ((lost, "removed or changed", REMOVED_OR_CHANGED), (carried, "with a quote", CARRIED))
    for (count, what, bar), reaches in zip(bars, ("at most", "at least"), strict=True):
        low, high = wilson(count, len(true))
        name = f"{label}: true claims {what} (of {len(true)}: {low:.1%} to {high:.1%})"
        yield Figure(name, count / len(true), bar, reaches)
    yield Figure(f"{label}: true claims marked", sum(c.marked for c in true) / len(true))
    for fate in ("removed", "changed", "marked"):
        share = sum(getattr(case, fate) for case in false) / len(false)
        yield Figure(f"{label}: false claims {fate}", share)
    rewritten = sum(case.rewritten for case in cases)
    yield Figure(f"{label}: claims in words that are not the model's", rewritten, 0, "at most")


def _shown(
    attacks: ModuleType, claimed: ModuleType, sets: dict[str, list[Case]]
) -> Iterator[Figure]:
    """What whole folds show: each false claim with its own quote, and with an adversary's."""
    for label, cases in sets.items():
        with_source = unsaid = names = granted = total = 0
        for same in _by_world(cases):
            material = same[0].material
            points = [case.point for case in same]
            worst = [claimed.best_quote(one, material) for one in points if not one.true]
            for said in (points, worst):
                found = ground(Draft("", tuple(one.claim for one in said)), material)
                fold = attacks.rendered(found)
                told = [line for line in fold.account if line.startswith("- ")]
                total += sum(not one.true for one in said)
                with_source += sum(" — no source" not in line for line in told)
                unsaid += sum(not attacks.stands(quote, material) for quote in fold.quotes)
                names += _invented(fold.text)
                granted += sum(q.speaker != "user" and permits(q.text) for q in fold.quotes)
                granted += sum(map(permits, told))
        share = with_source / total
        yield Figure(f"{label}: false claims beside a source", share, WITH_A_SOURCE, "at most")
        yield Figure(f"{label}: quotes that nobody said", unsaid, 0, "at most")
        yield Figure(f"{label}: permissions not in the user's words", granted, 0, "at most")
        if label == "generated":
            yield Figure(f"{label}: invented names that are shown", names, 0, "at most")


def _by_world(cases: Iterable[Case]) -> list[list[Case]]:
    found: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        found[case.point.world].append(case)
    return list(found.values())


def _invented(text: str) -> int:
    return sum(name in text.lower() for name in ("zanzibar", "quux"))


def _permissions(attacks: ModuleType) -> Iterator[Figure]:
    """Permissions in phrasings that the filter does not know, of a thing that nobody spoke of."""
    tests: ModuleType = import_module("test_ground")
    said = [text.replace("{thing}", "the zeppelin purge") for text in tests.PHRASINGS]
    points = tuple(DraftClaim("goal", text, (1,), text) for text in said)
    found = ground(Draft("", points), Material(tests.TALK))
    fold = attacks.rendered(found)
    yield Figure("phrasings of a permission", len(said))
    yield Figure("phrasings of a permission: left out", found.report.count("left out") / len(said))
    outside = fold.rest.lower().count("zeppelin")
    yield Figure("phrasings of a permission: outside the account", outside, 0, "at most")


def _generations(
    attacks: ModuleType, sets: dict[str, list[Case]], *, folds: int, worlds: int
) -> Iterator[Figure]:
    """Chains of folds, by summarizers that repeat, launder, restate and drop earlier claims."""
    for label, cases in sets.items():
        gained = unmarked = unsourced = missing = names = marks = 0
        for same in _by_world(cases)[:worlds]:
            first = Draft("", tuple(case.point.claim for case in same))
            for write in attacks.WRITERS:
                found = attacks.chain(first, same[0].material, write, folds)
                lost = attacks.losses(found)
                gained, unmarked = gained + len(lost.gained), unmarked + len(lost.unmarked)
                unsourced, missing = unsourced + len(lost.unsourced), missing + len(lost.missing)
                names += _invented(attacks.rendered(found[-1]).text)
                marks += found[0].report.count("marked")
        label = f"{label}: {folds} folds"  # noqa: PLW2901 - as it is shown
        yield Figure(f"{label}: marks", marks)
        yield Figure(f"{label}: marks lost", unmarked, 0, "at most")
        yield Figure(f"{label}: sources gained", gained, 0, "at most")
        yield Figure(f"{label}: sources lost", unsourced, 0, "at most")
        yield Figure(f"{label}: claims lost", missing, 0, "at most")
        yield Figure(f"{label}: masked names that came back", names, 0, "at most")


def _recorded(claimed: ModuleType) -> Iterator[Figure]:
    if not claimed.RECORDED.exists():
        print("No recordings: name their folder in REFOLD_DATA.", file=sys.stderr)
        return
    reports = [ground(draft, material).report for draft, material in claimed.recorded()]
    total = sum(report.checked for report in reports)
    removed = sum(report.count("left out", "masked") for report in reports) / total
    yield Figure("recorded summaries: claims", total)
    yield Figure("recorded summaries: removed or masked", removed, REMOVED_OF_RECORDED, "at most")


def _growth(made: Sequence[Any], characters: int) -> Iterator[Figure]:
    """How the time grows with the material; in processor time, for machines are shared."""
    half, whole = (_seconds(made, size) for size in (characters // 2, characters))
    yield Figure(f"{characters / 4e6:g} M tokens, {CLAIMS} claims: seconds", whole)
    yield Figure("twice the material: times the time", whole / half, 3, "at most")


def _seconds(made: Sequence[Any], characters: int) -> float:
    passages: list[Passage] = []
    size = 0
    while size < characters:
        place = made[len(passages) % len(made)]
        text = "\n".join(place.texts)[:200]
        for passage in place.material.passages:
            filler = "\n".join(f"{len(passages)}.{nth} {text}" for nth in range(20))
            shapes = tuple(
                shape._replace(text=f"{shape.text}\n{filler}") if shape.kind == "return" else shape
                for shape in passage.shapes
            )
            size += sum(len(shape.text) for shape in shapes)
            passages.append(passage._replace(seq=len(passages) + 1, shapes=shapes))
    said = [point.claim for place in made for point in place.points][:CLAIMS]
    start = time.process_time()
    ground(Draft("", tuple(said)), Material(tuple(passages)))
    return time.process_time() - start
