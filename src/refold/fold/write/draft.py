"""A summary as a model wrote it, before it is checked, and the form that a model can fill in."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pydantic import BaseModel, Field

from refold.fold.material import Earlier
from refold.fold.summary import one_line
from refold.fold.write.answer_parser import DraftClaim, parse_answer
from refold.fold.write.phrases import HEADINGS, Subject, cited, words_of

__all__ = [
    "EMPTY",
    "HEADINGS",
    "Draft",
    "DraftClaim",
    "Form",
    "Point",
    "Subject",
    "earlier_claims",
    "from_form",
    "from_text",
    "merged",
]

EMPTY: Final = "it says nothing"
"""Why a draft without claims is not used."""
_TITLE = 60
_LATEST: tuple[Subject, ...] = ("state", "next", "questions")
"""Subjects of which only the newest chunk with claims on them counts."""


@dataclass(frozen=True, slots=True)
class Draft:
    title: str = ""
    claims: tuple[DraftClaim, ...] = ()
    obsolete: tuple[int, ...] = ()
    """The numbers of earlier claims in the prompt that no longer hold."""
    text: str = ""
    """The answer verbatim."""


class Point(BaseModel):
    """One point of a summary."""

    text: str = Field(description="One line that can be understood alone.")
    entry: int = Field(default=0, description="The number of the entry that it rests on.")
    quote: str = Field(
        default="",
        description="The words of that entry that say it, copied exactly: at least four words, "
        "with every name and number of the text.",
    )


class Form(BaseModel):
    """A summary of the record."""

    title: str = Field(default="", description="At most eight words on what this is about.")
    goal: list[Point] = Field(
        default_factory=list[Point],
        description="What the user wants, in the user's own words, with limits and preferences.",
    )
    decisions: list[Point] = Field(
        default_factory=list[Point],
        description="What was decided or done, why, and what came of it.",
    )
    files: list[Point] = Field(
        default_factory=list[Point],
        description="Files, functions, commands, tools, ids and other names, exactly as written.",
    )
    errors: list[Point] = Field(
        default_factory=list[Point],
        description="What went wrong, and how it was solved or that it was not.",
    )
    state: list[Point] = Field(default_factory=list[Point], description="Where things stand.")
    next: list[Point] = Field(
        default_factory=list[Point], description="What was about to be done; a plan stays a plan."
    )
    questions: list[Point] = Field(
        default_factory=list[Point], description="What is open, unanswered or pending."
    )
    obsolete: list[int] = Field(
        default_factory=list[int], description="The numbers of earlier points that hold no longer."
    )


def from_form(form: Form) -> Draft:
    claims: list[DraftClaim] = []
    for subject in HEADINGS:
        points: list[Point] = getattr(form, subject, [])
        for point in points:
            quote = point.quote.strip()
            text, cites = cited(point.text if point.text.strip() else quote)
            if text:
                claims.append(DraftClaim(subject, text, _once((point.entry, *cites)), quote))
    title = one_line(form.title, len(form.title))
    return Draft(title, tuple(claims), _once(form.obsolete), form.model_dump_json())


def from_text(text: str) -> Draft:
    """Read a free-form answer: no line is lost, but thinking, greetings and offers are left out."""
    parsed = parse_answer(text)
    return Draft(parsed.title, tuple(parsed.claims), _once(parsed.obsolete), text)


def earlier_claims(earlier: Sequence[Earlier]) -> list[DraftClaim]:
    """The claims of earlier summaries by models, for the prompt."""
    subjects: dict[str, Subject] = {heading: subject for subject, heading in HEADINGS.items()}
    checked = [
        DraftClaim(
            subjects[section.heading],
            claim.text or claim.quote,
            _once(ref.seq for ref in claim.sources),
            claim.quote,
        )
        for fold in earlier
        for section in fold.summary.sections
        if section.heading in subjects
        for claim in section.claims
    ]
    return [*checked, *(c for fold in earlier for c in from_text(fold.summary.words).claims)]


def merged(drafts: Sequence[Draft], earlier: Sequence[DraftClaim]) -> Draft:
    """Merge the drafts of consecutive chunks with the claims before them.

    Earlier claims stay, unless they are named obsolete. One that is made again keeps its source.
    """
    obsolete = _once(number for draft in drafts for number in draft.obsolete)
    again = {_key(claim) for draft in drafts for claim in draft.claims}
    kept = [
        claim
        for number, claim in enumerate(earlier, 1)
        if number not in obsolete or _key(claim) in again
    ]
    runs = [kept, *(draft.claims for draft in drafts)]
    last = {claim.subject: index for index, run in enumerate(runs) for claim in run}
    titles = [one_line(draft.title, _TITLE) for draft in drafts]
    return Draft(
        next((title for title in reversed(titles) if title), ""),
        _unique(
            claim
            for index, run in enumerate(runs)
            for claim in run
            if claim.subject not in _LATEST or last[claim.subject] == index
        ),
        tuple(number for number in obsolete if number <= len(earlier)),
        "\n\n".join(draft.text for draft in drafts if draft.text.strip()),
    )


def _unique(claims: Iterable[DraftClaim]) -> tuple[DraftClaim, ...]:
    """By subject; the same words once, as and where they came last, with their first quote.

    The first quote may have been found in the log already, when more of it was at hand.
    """
    found: dict[tuple[bool, str], DraftClaim] = {}
    for claim in claims:
        before = found.pop(_key(claim), None)
        found[_key(claim)] = (
            replace(claim, cites=before.cites, quote=before.quote)
            if before and before.quote
            else claim
        )
    order = list(HEADINGS)
    return tuple(sorted(found.values(), key=lambda claim: order.index(claim.subject)))


def _key(claim: DraftClaim) -> tuple[bool, str]:
    """What makes two claims one: their words, whatever the subject; but a goal is the user's."""
    return claim.subject == "goal", words_of(claim.text) or claim.text.strip()


def _once(numbers: Iterable[int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(number for number in numbers if number > 0))
