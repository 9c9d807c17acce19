"""Whether a model's summary is used: checked against the log, completed from it, and compared.

A draft is used only where it is better than the extractive summary of the same messages.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from refold.errors import FoldNotMade
from refold.fold.facts import CHANGED, EARLIER, OPEN, RESULTS
from refold.fold.ground import Grounded, ground
from refold.fold.identifiers import names
from refold.fold.material import Material
from refold.fold.replace import render_summary
from refold.fold.secrets import redact
from refold.fold.summary import Name, Report, Section, Summary, shown_tokens
from refold.fold.write.draft import EMPTY, HEADINGS, Draft, Subject
from refold.view import Counter, Fold
from refold.view.budget import PER_MESSAGE

LONGER: Final = "it is longer than what it stands for"
UNTRUE: Final = "most of what it says is not in the log"
THIN: Final = "it leaves out too much of what matters"

_EXTRACTED = (EARLIER, CHANGED, OPEN, RESULTS)
"""Sections from the log beside a model's words: short, and quoted or counted by code."""
_MAX_FINDINGS = 100
_MAX_WORDS = 60_000  # characters; far more than a fold shows
_MAX_NAMES = 100  # the weightiest ones are compared
_MAX_UNTRUE = 0.5  # of the claims
_KEEP_LAST = 3  # claims of each section that are dropped only when nothing else is left
_DROP_ORDER: tuple[Subject, ...] = (
    "notes",
    "files",
    "questions",
    "errors",
    "decisions",
    "next",
    "state",
    "goal",
)


def accept_draft(  # noqa: PLR0913 - all that it depends on
    draft: Draft, material: Material, own: Summary, values: Fold, *, by: str, counter: Counter
) -> Summary:
    """Turn a draft into the summary of a fold.

    `own` is the extractive summary; it fills in what the model left out. Raises FoldNotMade where
    `own` is the better summary.
    """
    grounded = ground(draft, material)
    if values.ground == "report":
        summary = replace(
            own,
            title=draft.title or own.title,
            words=redact(draft.text[:_MAX_WORDS]).strip(),
            sections=_extracted(own),
            report=replace(grounded.report, only=True),
        )
    else:
        summary = _with_account(grounded, own, counter, values)
    summary = replace(summary, by=by)
    shown, own_shown = (render_summary(one, values, counter) for one in (summary, own))
    objection = _objection(shown, own_shown, material, counter, values)
    if objection is not None:
        raise FoldNotMade(f"The summary was rejected: {objection}.")
    report = summary.report or Report()
    claims = (claim.text for section in summary.sections for claim in section.claims)
    said = {*names("\n".join((summary.words, *claims)))}
    return replace(
        summary,
        report=replace(
            report,
            findings=report.findings[:_MAX_FINDINGS],
            coverage=_coverage(shown, own_shown),
            added=len({*names(shown.text)} - said),
        ),
    )


def _extracted(own: Summary) -> tuple[Section, ...]:
    return tuple(section for section in own.sections if section.heading in _EXTRACTED)


def _with_account(grounded: Grounded, own: Summary, counter: Counter, values: Fold) -> Summary:
    """The facts from the log, and the model's account within its share of the fold."""
    fitting, crowded = _fit(grounded.sections, counter, values.max_tokens // 3)
    return replace(
        own,
        title=grounded.title or own.title,
        sections=(*own.sections, *fitting),
        report=replace(grounded.report, crowded=crowded),
    )


def _fit(sections: Sequence[Section], counter: Counter, room: int) -> tuple[list[Section], int]:
    """The sections within so many tokens, and how many claims were dropped for that.

    Only whole claims are dropped: half a claim may say the opposite.
    """
    costs = {
        (section.heading, index): counter.text(
            f"- {claim.text} {claim.against} {claim.quote} {claim.outdated}\n"
        )
        for section in sections
        for index, claim in enumerate(section.claims)
    }
    excess = sum(costs.values()) - room
    dropped: set[tuple[str, int]] = set()
    for key in _drop_order(sections):
        if excess <= 0:
            break
        dropped.add(key)
        excess -= costs[key]
    fitting = (
        Section(
            section.heading,
            tuple(c for i, c in enumerate(section.claims) if (section.heading, i) not in dropped),
        )
        for section in sections
    )
    return [section for section in fitting if section.claims], len(dropped)


def _drop_order(sections: Sequence[Section]) -> Iterator[tuple[str, int]]:
    """First points without a source, then the older ones of all sections, then their last ones."""
    counts = {section.heading: len(section.claims) for section in sections}
    order = [HEADINGS[subject] for subject in _DROP_ORDER if HEADINGS[subject] in counts]
    claims = {section.heading: section.claims for section in sections}

    def rank(key: tuple[str, int]) -> tuple[bool, bool, int, int]:
        heading, index = key
        last = index >= counts[heading] - _KEEP_LAST
        return bool(claims[heading][index].quote), last, order.index(heading), index

    yield from sorted(
        ((heading, index) for heading in order for index in range(counts[heading])), key=rank
    )


def _objection(
    summary: Summary, own: Summary, material: Material, counter: Counter, values: Fold
) -> str | None:
    """Why the model's summary is not used; both summaries are rendered alike."""
    if not summary.words.strip() and not summary.sections:
        return EMPTY
    if shown_tokens(summary, counter) >= _replaced_tokens(material, counter):
        return LONGER
    if values.ground == "report":
        return None
    report = summary.report or Report()
    if report.count("left out") > _MAX_UNTRUE * report.checked:
        return UNTRUE
    return THIN if _coverage(summary, own) < values.coverage else None


def _coverage(summary: Summary, own: Summary) -> float:
    """How much of the weight of the names in the extractive summary this one shows."""
    best = _weight_in(own.ledger, own.text)
    return round(_weight_in(own.ledger, summary.text) / best, 3) if best else 1.0


def _weight_in(ledger: Iterable[Name], text: str) -> float:
    present = {*names(text)}
    weightiest = sorted(ledger, key=lambda name: -name.weight)[:_MAX_NAMES]
    return sum(name.weight for name in weightiest if name.name in present)


def _replaced_tokens(material: Material, counter: Counter) -> int:
    """Tokens that the fold replaces: the messages, and the summaries of earlier folds."""
    parts = (counter.part(shape) for passage in material.passages for shape in passage.shapes)
    earlier = sum(shown_tokens(fold.summary, counter) for fold in material.earlier)
    return sum(parts) + PER_MESSAGE * len(material.passages) + earlier
