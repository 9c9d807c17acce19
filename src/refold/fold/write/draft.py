"""What a model wrote of a span, before anything of it is believed."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from pydantic import BaseModel, Field

from refold.fold.material import Earlier
from refold.fold.summary import one_line
from refold.fold.write.answer_parser import parse_answer
from refold.fold.write.phrases import HEADINGS, Subject, cited, words_of

__all__ = [
    "HEADINGS",
    "Draft",
    "DraftClaim",
    "Form",
    "Point",
    "Subject",
    "from_form",
    "from_text",
    "known_from",
    "merged",
]

_TITLE = 60
_LATEST: tuple[Subject, ...] = ("state", "next", "questions")
"""What only the newest chunk that says anything on it can tell."""


@dataclass(frozen=True, slots=True)
class DraftClaim:
    """One claim of a model, and the entries that it says it rests on."""

    subject: Subject
    text: str
    cites: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """A summary as a model wrote it."""

    title: str = ""
    claims: tuple[DraftClaim, ...] = ()
    obsolete: tuple[int, ...] = ()
    """Which of the earlier claims that it was shown, by their number, do not hold any more."""
    text: str = ""
    """Its words as they came."""


class Point(BaseModel):
    """One point of a summary."""

    text: str = Field(description="One line that can be understood alone.")
    entries: list[int] = Field(
        default_factory=list[int], description="The numbers of the entries that it rests on."
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
        default_factory=list[int],
        description="The numbers of earlier points that hold no longer.",
    )


def from_form(form: Form) -> Draft:
    """The summary that a model wrote into the form."""
    said: list[DraftClaim] = []
    for subject in HEADINGS:
        points: list[Point] = getattr(form, subject, [])
        for point in points:
            text, cites = cited(point.text)
            if text:
                said.append(DraftClaim(subject, text, _once((*point.entries, *cites))))
    title = one_line(form.title, len(form.title))
    return Draft(title, tuple(said), _once(form.obsolete), form.model_dump_json())


def _once(numbers: Iterable[int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(one for one in numbers if one > 0))


def from_text(text: str) -> Draft:
    """The summary in a text that a model wrote, in whatever form: no line of it is lost.

    What is not part of a summary is left out: thinking, a greeting, an offer.
    """
    found = parse_answer(text)
    said = tuple(DraftClaim(subject, words, cites) for subject, words, cites in found.claims)
    return Draft(found.title, said, _once(found.obsolete), text)


def known_from(earlier: Sequence[Earlier]) -> list[DraftClaim]:
    """What models said of what was folded before, for a slot of its own in the prompt."""
    subjects: dict[str, Subject] = {heading: subject for subject, heading in HEADINGS.items()}
    return [
        DraftClaim(subjects[section.heading], claim.text, _once(ref.seq for ref in claim.sources))
        for one in earlier
        for section in one.summary.sections
        if section.heading in subjects
        for claim in section.claims
    ]


def merged(written: Sequence[Draft], earlier: Sequence[DraftClaim]) -> Draft:
    """One summary of the summaries of chunks, in their order, over what earlier folds said.

    What was said earlier stays, unless it is named obsolete or said anew.
    """
    obsolete = dict.fromkeys(_once(number for one in written for number in one.obsolete))
    kept = [one for number, one in enumerate(earlier, 1) if number not in obsolete]
    runs = [kept, *(one.claims for one in written)]
    last = {
        subject: max((at for at, run in enumerate(runs) if _any_on(subject, run)), default=0)
        for subject in _LATEST
    }
    standing = (
        one for at, run in enumerate(runs) for one in run if last.get(one.subject, at) == at
    )
    titles = [one_line(one.title, _TITLE) for one in written]
    return Draft(
        next((title for title in reversed(titles) if title), ""),
        tuple(_each_once(standing)),
        tuple(number for number in obsolete if number <= len(earlier)),
        "\n\n".join(one.text for one in written if one.text.strip()),
    )


def _any_on(subject: Subject, said: Iterable[DraftClaim]) -> bool:
    return any(one.subject == subject for one in said)


def _each_once(said: Iterable[DraftClaim]) -> Iterator[DraftClaim]:
    """By subject; the same words once, where and as they were said last, with all they cite."""
    found: dict[tuple[bool, str], DraftClaim] = {}
    for one in said:
        key = (one.subject == "goal", words_of(one.text) or one.text.strip())
        before = found.pop(key, None)
        cites = (*before.cites, *one.cites) if before else one.cites
        found[key] = replace(one, cites=_once(cites))
    order = list(HEADINGS)
    return iter(sorted(found.values(), key=lambda one: order.index(one.subject)))
