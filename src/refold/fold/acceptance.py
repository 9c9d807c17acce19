"""From what a model wrote to what is believed of it: checked, filled up from the log, judged."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from refold.errors import FoldNotMade
from refold.fold.extractive import CHANGED, EARLIER, OPEN, RESULTS, identifiers
from refold.fold.gate import coverage, objection
from refold.fold.ground import Grounded, ground
from refold.fold.material import Earlier, Material
from refold.fold.replace import render_summary
from refold.fold.secrets import redact
from refold.fold.summary import Claim, Section, Summary
from refold.fold.write.draft import Draft, DraftClaim
from refold.fold.write.phrases import HEADINGS
from refold.view import Counter, Fold

_FROM_THE_LOG = (EARLIER, CHANGED, OPEN, RESULTS)
"""What the log tells beside a model's words: short, and quoted or counted by code."""
_MOST_FINDINGS = 100
_LONGEST_WORDS = 60_000  # characters; far more than a fold shows
_FIRST_TO_GO = ("notes", "files", "questions", "errors", "decisions", "next", "state", "goal")


def accept_draft(  # noqa: PLR0913 - all that it depends on
    written: Draft,
    material: Material,
    own: Summary,
    values: Fold,
    *,
    by: str,
    counter: Counter,
) -> Summary:
    """The summary that stands. Raises FoldNotMade where the log's own is better.

    `own` is what the log says by itself; it fills in what a model leaves out.
    """
    carried = _carried(material.earlier)
    fresh = tuple(one for one in written.claims if one.text not in carried)
    grounded = ground(replace(written, claims=fresh), material)
    if values.ground == "report":
        alone = not any(one.summary.words for one in material.earlier)
        summary = _as_written(written, grounded, own, alone=alone)
    else:
        sections = list(_together(written.claims, carried, grounded.sections))
        summary = _checked(sections, grounded, own, counter, values)
    summary = replace(summary, by=by)
    shown, beside = render_summary(summary, values, counter), render_summary(own, values, counter)
    why = objection(shown, beside, material, counter, values)
    if why is not None:
        raise FoldNotMade(f"The summary was not believed: {why}.")
    assert summary.report is not None  # noqa: S101 - both ways of making it give one
    added = {*identifiers(shown.text)} - {*identifiers(_words(summary))}
    report = replace(
        summary.report,
        findings=summary.report.findings[:_MOST_FINDINGS],
        coverage=coverage(shown, beside),
        added=len(added),
    )
    return replace(summary, report=report)


def _carried(earlier: Iterable[Earlier]) -> dict[str, Claim]:
    """The claims that earlier folds had checked, by their text."""
    headings = {*HEADINGS.values()}
    return {
        claim.text: claim
        for one in earlier
        if one.summary.report and not one.summary.report.only
        for section in one.summary.sections
        if section.heading in headings
        for claim in section.claims
    }


def _as_written(written: Draft, grounded: Grounded, own: Summary, *, alone: bool) -> Summary:
    """The model's own words, and what is wrong with them only written down.

    They stand as they came where they are alone, else with what was said before.
    """
    words = (written.text if alone else _rendered(written.claims))[:_LONGEST_WORDS]
    kept = replace(own, sections=tuple(_own_sections(own)), words=redact(words).strip())
    return replace(
        kept, title=written.title or own.title, report=replace(grounded.report, only=True)
    )


def _rendered(said: Sequence[DraftClaim]) -> str:
    """The claims as a text, under their headings."""
    blocks = (
        (heading, [f"- {one.text}" for one in said if one.subject == subject])
        for subject, heading in HEADINGS.items()
    )
    return "\n\n".join("\n".join((f"## {heading}", *lines)) for heading, lines in blocks if lines)


def _checked(
    sections: list[Section], grounded: Grounded, own: Summary, counter: Counter, values: Fold
) -> Summary:
    fitting, crowded = _fitting(sections, counter, values.max_tokens // 3)
    return replace(
        own,
        title=grounded.title or own.title,
        sections=(*fitting, *_own_sections(own)),
        report=replace(grounded.report, crowded=crowded),
    )


def _own_sections(own: Summary) -> Iterator[Section]:
    return (one for one in own.sections if one.heading in _FROM_THE_LOG)


def _together(
    said: Sequence[DraftClaim], carried: dict[str, Claim], grounded: Sequence[Section]
) -> Iterator[Section]:
    """What earlier folds had checked and still stands, then what is new."""
    new = {one.heading: one.claims for one in grounded}
    for subject, heading in HEADINGS.items():
        old = [carried[one.text] for one in said if one.subject == subject and one.text in carried]
        once = {claim.text: claim for claim in (*old, *new.get(heading, ()))}
        if once:
            yield Section(heading, tuple(once.values()))


def _fitting(sections: list[Section], counter: Counter, room: int) -> tuple[list[Section], int]:
    """The sections within so many tokens, and how many claims found no room: the oldest go first.

    Whole claims go: half a claim may say the opposite.
    """
    costs = {
        (one.heading, at): counter.text(f"- {claim.text}\n")
        for one in sections
        for at, claim in enumerate(one.claims)
    }
    over = sum(costs.values()) - room
    gone: set[tuple[str, int]] = set()
    for key in _least_first(sections):
        if over <= 0:
            break
        gone.add(key)
        over -= costs[key]
    kept = [
        Section(
            one.heading,
            tuple(c for at, c in enumerate(one.claims) if (one.heading, at) not in gone),
        )
        for one in sections
    ]
    return [one for one in kept if one.claims], len(gone)


def _least_first(sections: Iterable[Section]) -> Iterator[tuple[str, int]]:
    """The claims, those that are missed least first: older ones, of what matters less."""
    order = [HEADINGS[subject] for subject in _FIRST_TO_GO]
    there = {one.heading: one.claims for one in sections}
    for newest in (3, 0):  # of each section, first all but its newest
        for heading in order:
            claims = there.get(heading, ())
            last = max(0, len(claims) - newest)
            first = 0 if newest else max(0, len(claims) - 3)
            yield from ((heading, at) for at in range(first, last))


def _words(summary: Summary) -> str:
    told = (claim.text for one in summary.sections for claim in one.claims)
    return "\n".join((summary.words, *told))
