"""The gate: what a model wrote is used only where it is better than what the log says by itself."""

from collections.abc import Iterable
from typing import Final

from refold.fold.extractive import identifiers
from refold.fold.material import Material
from refold.fold.summary import Name, Report, Summary
from refold.view import Counter, Fold
from refold.view.budget import PER_MESSAGE

EMPTY: Final = "it says nothing"
LONGER: Final = "it is longer than what it stands for"
UNTRUE: Final = "most of what it says is not in the log"
THIN: Final = "it leaves out too much of what matters"

_LOOKED_AT = 100  # of the weightiest names
_BELIEVED = 0.5  # of the claims


def objection(
    summary: Summary, own: Summary, material: Material, counter: Counter, values: Fold
) -> str | None:
    """Why a model's summary is not used, where one of the log's own, shown alike, could be."""
    if not summary.words.strip() and not summary.sections:
        return EMPTY
    if _tokens(summary, counter) >= _replaced(material, counter):
        return LONGER
    if values.ground == "report":
        return None
    report = summary.report or Report()
    if report.count("left out") > _BELIEVED * report.checked:
        return UNTRUE
    if coverage(summary, own) < values.coverage:
        return THIN
    return None


def coverage(summary: Summary, own: Summary) -> float:
    """The weight of the salient names that a summary shows, beside what the log's own shows."""
    best = _held(own.ledger, own.text)
    return round(_held(own.ledger, summary.text) / best, 3) if best else 1.0


def _held(names: Iterable[Name], text: str) -> float:
    there = {*identifiers(text)}
    weightiest = sorted(names, key=lambda one: -one.weight)[:_LOOKED_AT]
    return sum(one.weight for one in weightiest if one.name in there)


def _tokens(summary: Summary, counter: Counter) -> int:
    return sum(counter.text(one.text) + PER_MESSAGE for one in summary.shown)


def _replaced(material: Material, counter: Counter) -> int:
    """What stands in the view now: the messages, and the summaries of earlier folds."""
    parts = (counter.part(shape) for one in material.passages for shape in one.shapes)
    earlier = sum(_tokens(one.summary, counter) for one in material.earlier)
    return sum(parts) + PER_MESSAGE * len(material.passages) + earlier
