"""Each point of a model's summary, with its source or without one.

Nothing is rewritten, and nothing is judged to be true. What a point quotes is shown as it stands in
the log, with who said it; what it says beyond that is the model's account, and has no source. Where
the log disagrees, that is said. Names that occur nowhere are masked. A claim that something is
allowed is taken out whole: what the user allowed stands in the user's own words.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from refold.fold.ground.disguise import cleaned
from refold.fold.ground.evidence import Evidence
from refold.fold.ground.names import Named
from refold.fold.ground.occurrence import Occurrence
from refold.fold.ground.permissions import permits
from refold.fold.ground.relations import Mark, disagreement, newer_value
from refold.fold.ground.sources import Source, find_source, repeats
from refold.fold.material import Earlier, Material
from refold.fold.summary import Claim, Finding, Report, Section, Verdict
from refold.fold.write.draft import HEADINGS, Draft, DraftClaim, Subject
from refold.fold.write.phrases import words_of
from refold.log import PartRef

GONE: Final = "[…]"
"""What stands for a name that the log does not have."""
_MAX_TITLE = 80


@dataclass(frozen=True, slots=True)
class Grounded:
    """A model's summary with the sources of its points."""

    sections: tuple[Section, ...]
    title: str
    report: Report


def ground(draft: Draft, material: Material) -> Grounded:
    """Find the source of each point in what was said before the fold."""
    texts = [cleaned(one.text) for one in draft.claims]
    title = cleaned(draft.title).replace("\n", " ")
    grounding = _Grounding(material, [*texts, title, *(one.quote for one in draft.claims)])
    sections: dict[Subject, list[Claim]] = defaultdict(list)
    for said, text in zip(draft.claims, texts, strict=True):
        claim = grounding.point(said, text)
        if claim is not None:
            sections[said.subject].append(claim)
    return Grounded(
        tuple(
            Section(heading, _ordered(sections[subject]))
            for subject, heading in HEADINGS.items()
            if sections[subject]
        ),
        grounding.title(title),
        Report(len(draft.claims), tuple(grounding.findings)),
    )


class _Grounding:
    """Looks for the sources of points, and collects what it finds about them."""

    def __init__(self, material: Material, texts: Sequence[str]) -> None:
        self.findings: list[Finding] = []
        self._evidence = Evidence(material, texts)
        self._occurrence = Occurrence(self._evidence)
        self._before = _Before(material.earlier)

    def title(self, text: str) -> str:
        """The title, unless it has an invented name or a permission."""
        if permits(text) or self._occurrence.missing(text):
            return ""
        return text if len(text) <= _MAX_TITLE else f"{text[: _MAX_TITLE - 1].rstrip()}…"

    def point(self, said: DraftClaim, text: str) -> Claim | None:
        """One point as it is shown."""
        source = self._source(said)
        left = self._left(said, text, source)
        if source is None and not left:
            return None
        against = disagreement(self._evidence, left) if left else None
        since = newer_value(self._evidence, source.quote, source.ref) if source else None
        against, since = self._before.news(text, against, since)
        for mark in dict.fromkeys(filter(None, (against, since))):
            self._found("marked", said, mark.why, mark.ref)
        if source is None:
            self._found("no source", said, "it quotes nothing that stands in the log")
            return Claim(left, against=_entry(against))
        if left:
            self._found("no source", said, "it says more than it quotes")
            against = against or since
        ref, speaker, quote = source
        return Claim(left, (ref,), quote, speaker, _entry(against), _entry(since))

    def _source(self, said: DraftClaim) -> Source | None:
        entry = next(iter(said.cites), 0)
        source = find_source(self._evidence, said.quote, entry, self._before.quotes)
        if source and source.speaker != "user" and permits(source.quote):
            return None  # whoever wrote that, it was not the user
        return source

    def _left(self, said: DraftClaim, text: str, source: Source | None) -> str:
        """What a point says beyond its quote, with its invented names masked."""
        if source and repeats(text, source.quote):
            return ""
        if permits(text):
            self._found("left out", said, "only the user's own words say what is allowed")
            return ""
        gone = self._occurrence.missing(text)
        if gone:
            names = ", ".join(dict.fromkeys(one.text for one in gone))
            self._found("masked", said, f"the log does not have {names}")
        left = _masked(text, gone)
        if not re.search(r"\w", left.replace(GONE, "")) or (source and repeats(left, source.quote)):
            return ""
        return left

    def _found(self, verdict: Verdict, said: DraftClaim, why: str, *refs: PartRef) -> None:
        self.findings.append(Finding(verdict, said.text, why, refs))


class _Before:
    """What earlier folds found out about their claims, with entries at hand that are folded now."""

    def __init__(self, earlier: Iterable[Earlier]) -> None:
        self._unmarked: dict[str, int] = {}
        self.quotes: set[tuple[PartRef, str]] = set()
        for fold in earlier:
            for claim in (claim for section in fold.summary.sections for claim in section.claims):
                self.quotes |= {(ref, claim.quote) for ref in claim.sources}
                if not (claim.against or claim.outdated):
                    self._unmarked[words_of(claim.text or claim.quote)] = fold.last

    def news(self, text: str, *marks: Mark | None) -> Iterator[Mark | None]:
        """The marks of a claim without those that an earlier fold would have made.

        What is left at hand of the entries then may disagree only because the others are missing.
        """
        compared = self._unmarked.get(words_of(text), 0)
        for mark in marks:
            yield mark if mark and mark.ref.seq > compared else None


def _entry(mark: Mark | None) -> str:
    return f"entry {mark.ref.seq}: {mark.why}" if mark else ""


def _ordered(claims: Iterable[Claim]) -> tuple[Claim, ...]:
    """What rests on the newest last."""
    return tuple(sorted(claims, key=lambda one: max((ref.seq for ref in one.sources), default=0)))


def _masked(text: str, gone: Iterable[Named]) -> str:
    for one in sorted(gone, reverse=True):
        text = f"{text[: one.start]}{GONE}{text[one.end :]}"
    return re.sub(r"\[…\](?:[\s,/–-]*\[…\])+", GONE, text)  # noqa: RUF001 - a dash
