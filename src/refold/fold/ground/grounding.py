"""Ground: what a model wrote of the material, compared with it before it is shown.

Names and numbers that the material does not have are taken out. What reads like a directive stands
only as the user's own words, or is marked as the model's own plan. Some of what the material
refutes is left out, and some of what has no source is marked. Neither is complete: a claim without
a mark can be false, and a true one can be marked or left out. No second model is asked: the same
summary of the same material always comes to the same.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from refold.fold.ground.directives import Authority, Reading, about, directive, imperative
from refold.fold.ground.disguise import cleaned, folded, readings
from refold.fold.ground.evidence import VOICES, Evidence, refuted, unheard
from refold.fold.ground.occurrence import Occurrence
from refold.fold.ground.words import (
    AMBIGUOUS,
    DETERMINERS,
    NEUTRAL,
    Clause,
    Named,
    asides,
    clauses,
    content,
    named,
    sentences,
    stem,
)
from refold.fold.material import Material
from refold.fold.summary import Claim, Finding, Report, Section, Verdict
from refold.fold.write.draft import HEADINGS, Draft, DraftClaim, Subject
from refold.log import PartRef
from refold.log.text import words

# Which entries a claim rests on: those that it cites if they bear it out, or those that do.

_ENOUGH = 0.75  # of what the best entry holds, where another is cited
_ALIKE = 0.85
_MOST = 3
_KNOWN_ATTRIBUTION = 0.5
_TOGETHER = 0.4
_SAID = 0.65
_NEAR = 12
_RANKED = 48
_NEUTRAL = frozenset(f"~{stem(word)}" for word in NEUTRAL)
_PROPER = re.compile(r"(?<=[\w,;] )[A-Z][^\W\d_A-Z]{2,}\b")


class Attribution:
    """Finds what claims rest on."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence

    def sources(self, text: str, cites: Sequence[int]) -> tuple[tuple[PartRef, ...], bool]:
        """The parts that a claim rests on, and whether they are in the entries that it cites."""
        scores = self._scores(text)
        best = max((score for score, _ in scores.values()), default=0.0)
        own = {seq: self._score(text, seq) for seq in dict.fromkeys(cites)}
        cited = {
            seq: score for seq, score in own.items() if score and score[0] >= _ENOUGH * best > 0
        }
        if cited:
            return tuple(sorted({score[1] for score in cited.values() if score})), True
        ranked = sorted(scores.items(), key=lambda one: (-round(one[1][0], 6), -one[0]))
        alike = [ref for _, (score, ref) in ranked[:_MOST] if score >= _ALIKE * best]
        return tuple(sorted(alike)), not alike and not cites

    def doubt(self, text: str, *, named: bool) -> str:
        """Why a claim cannot be checked, if it cannot."""
        keys = content(text)
        evidence = self._evidence
        known = [key for key in keys if evidence.has_key(key)]
        if keys and len(known) < _KNOWN_ATTRIBUTION * len(keys):
            return "most of its words are nowhere in the log"
        strange = [one for one in _PROPER.findall(text) if not _occurs(one, evidence)]
        if strange:
            return f"the log does not mention {', '.join(dict.fromkeys(strange))}"
        if self._said_otherwise(text):
            return "no entry says it in these words"
        together = max(
            (evidence.share(keys, evidence.around(at, 1)) for at in self._best(keys)), default=0.0
        )
        if keys and not named and together < _TOGETHER:
            return "no entry says it"
        return ""

    def _said_otherwise(self, text: str) -> bool:
        """Whether what a claim says of its names is hardly said where they stand."""
        bare = text
        for one in reversed(named(text)):
            bare = f"{bare[: one.start]} {bare[one.end :]}"
        keys = [key for key in content(bare) if key not in _NEUTRAL]
        evidence = self._evidence
        near = frozenset[str]().union(
            *(evidence.around(at, 1) for at in self._best(content(text))[:_MOST])
        )
        return bool(keys) and evidence.share(keys, near) < _SAID

    def near(self, text: str) -> list[str]:
        """What the material says where the claim's names stand together, oldest first."""
        evidence = self._evidence
        names = named(text)
        keys = [key for one in names for key in content(one.text)] or content(text)
        best = self._best(keys)
        most = max((evidence.share(keys, evidence.held[at]) for at in best), default=0.0)
        alike = [
            at
            for at in sorted(best)
            if evidence.share(keys, evidence.held[at]) >= _ALIKE * most > _TOGETHER
        ]
        spelled = [folded(one.text) for one in names]
        whole = [at for at in alike if all(one in evidence.text(at) for one in spelled)]
        return [_lines_with(evidence.text(at), keys) for at in whole or alike]

    def _best(self, keys: Sequence[str]) -> list[int]:
        return self._evidence.best(keys, VOICES, _NEAR)

    def _scores(self, text: str) -> dict[int, tuple[float, PartRef]]:
        """How much of a claim's words each entry holds in one place."""
        evidence = self._evidence
        keys = content(text)
        scores: dict[int, tuple[float, PartRef]] = {}
        for at in evidence.best(keys, VOICES, _RANKED):
            ref, score = evidence.ref(at), evidence.sum(keys, at)
            if score >= scores.get(ref.seq, (0.0, ref))[0]:
                scores[ref.seq] = score, ref
        return scores

    def _score(self, text: str, seq: int) -> tuple[float, PartRef] | None:
        """The same of one entry."""
        evidence, keys = self._evidence, content(text)
        scored = [(evidence.sum(keys, at), at) for at in evidence.of_entry(seq)]
        if not scored:
            return None
        score, at = max(scored)
        return score, evidence.ref(at)


def _occurs(name: str, evidence: Evidence) -> bool:
    return all(map(evidence.has_key, content(name)))


def _lines_with(text: str, keys: Sequence[str]) -> str:
    """The lines of a window in which the names stand, and those next to them."""
    lines = folded(text).splitlines()
    wanted = set(keys)
    near = {
        other
        for at, line in enumerate(lines)
        if wanted & {*content(line)} or not words(line)
        for other in (at - 1, at, at + 1)
    }
    return "\n".join(line for at, line in enumerate(lines) if at in near)


GONE = "[…]"
"""What stands for a name that the material does not have."""
UNCHECKED = " (unchecked)"
MEANT = "The model meant to: "
SEEN = "As the model sees it: "
_TITLE = 80
_KNOWN = 0.5
_LEFT = 2
_DANGLING = re.compile(
    r"^(?:after|before|when|once|if|until|unless|while|as soon as|wenn|sobald|si|quand|cuando)\b"
)


@dataclass(frozen=True, slots=True)
class Grounded:
    """What is left of a model's summary, and what came of each claim."""

    sections: tuple[Section, ...]
    title: str
    report: Report


class _Unit(NamedTuple):
    """A run of a claim, and how it reads."""

    text: str
    reading: Reading | None


@dataclass(slots=True)
class _Judged:
    """What came of one claim."""

    plain: list[str] = field(default_factory=list[str])
    claims: list[Claim] = field(default_factory=list[Claim])
    verdicts: dict[Verdict, tuple[str, tuple[PartRef, ...]]] = field(
        default_factory=dict[Verdict, tuple[str, tuple[PartRef, ...]]]
    )

    def say(self, verdict: Verdict, why: str, sources: Iterable[PartRef] = ()) -> None:
        """Note one thing that was found."""
        self.verdicts.setdefault(verdict, (why, tuple(sources)))


def ground(written: Draft, material: Material) -> Grounded:
    """The summary as far as the material bears it out."""
    texts = [cleaned(one.text) for one in written.claims]
    title = cleaned(written.title).replace("\n", " ")
    checks = _Checks(Evidence(material, [*texts, title]))
    found: dict[Subject, list[Claim]] = defaultdict(list)
    findings: list[Finding] = []
    for said, text in zip(written.claims, texts, strict=True):
        judged = checks.judge(said, text)
        found[said.subject] += judged.claims
        findings += _findings(said.text, judged)
    return Grounded(
        tuple(
            Section(heading, claims)
            for subject, heading in HEADINGS.items()
            if (claims := _ordered(found[subject]))
        ),
        checks.title(title),
        Report(len(written.claims), tuple(findings)),
    )


def _findings(text: str, judged: _Judged) -> Iterator[Finding]:
    if not judged.claims:
        why, sources = judged.verdicts.get("left out", ("nothing of it is left", ()))
        yield Finding("left out", text, why, sources)
        return
    for verdict, (why, sources) in judged.verdicts.items():
        # Of a claim that stands, a part can be gone, but not the whole.
        yield Finding("masked" if verdict == "left out" else verdict, text, why, sources)


def _ordered(claims: Iterable[Claim]) -> tuple[Claim, ...]:
    """Each once, what rests on the newest last."""
    once: dict[str, Claim] = {}
    for claim in claims:
        once.setdefault(" ".join(folded(claim.text).split()), claim)
    return tuple(sorted(once.values(), key=_last_source))


def _last_source(claim: Claim) -> int:
    return max((source.seq for source in claim.sources), default=0)


class _Checks:
    """All the checks, over one material."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._occurrence = Occurrence(evidence)
        self._authority = Authority(evidence)
        self._attribution = Attribution(evidence)
        self._open = False

    def judge(self, said: DraftClaim, text: str) -> _Judged:
        """What is left of one claim."""
        judged = _Judged()
        block = "\n" in text
        follows, self._open = self._open, False
        units = _lines(text) if block else _units(text)
        for nth, unit in enumerate(units):
            self._open = False
            reading = unit.reading
            if follows and nth == 0 and reading not in ("grant", "report"):
                reading = "report"
            self._unit(said, unit.text, reading, judged)
        joined = ("\n" if block else "").join(judged.plain).strip()
        if content(joined) or re.search(r"\w", joined):
            self._stand(said, joined, "", judged)
        return judged

    def title(self, text: str) -> str:
        """The title, if nothing is wrong with it."""
        gone, _ = self._occurrence.missing(text)
        keys = content(text)
        known = [key for key in keys if self._evidence.has_key(key)]
        if gone or directive(text) or self._evidence.share(keys, known) < _KNOWN:
            return ""
        return text if len(text) <= _TITLE else f"{text[: _TITLE - 1].rstrip()}…"

    def _unit(self, said: DraftClaim, text: str, reading: Reading | None, judged: _Judged) -> None:
        if reading is None and said.subject == "goal":
            self._goal(said, text, judged)
        elif reading is None and said.subject == "next":
            self._plan(said, text, None, judged)
        elif reading is None:
            judged.plain.append(text)
        elif reading in ("grant", "report"):
            self._word(text, judged)
        else:
            self._plan(said, text, reading, judged)

    def _goal(self, said: DraftClaim, text: str, judged: _Judged) -> None:
        if not self._quote(text, judged):
            self._stand(said, text.strip(), SEEN, judged)

    def _word(self, text: str, judged: _Judged) -> None:
        """What somebody is said to want or allow: only the user's own words will do."""
        self._open = about(text) <= 1
        if not self._quote(text, judged):
            judged.say("left out", "no message of the user says so")

    def _quote(self, text: str, judged: _Judged) -> bool:
        rest = self._authority.user(text)
        if rest is None:
            return False
        judged.claims.append(Claim(f'The user (entry {rest.ref.seq}): "{rest.text}"', (rest.ref,)))
        judged.say("quoted", "the user's own words stand for it", (rest.ref,))
        return True

    def _plan(self, said: DraftClaim, text: str, reading: Reading | None, judged: _Judged) -> None:
        user, model = self._authority.user(text), self._authority.model(text, reading)
        if user and (not model or user.share >= model.share):
            self._quote(text, judged)
        elif model:
            begins = imperative(next(iter(readings(text)), ""))
            self._stand(said, text.strip(), MEANT if begins else SEEN, judged)
        else:
            judged.say("left out", "it asks for something that nobody asked for")

    def _stand(self, said: DraftClaim, text: str, prefix: str, judged: _Judged) -> None:
        """A statement stands, without the names that are not there, if the rest bears it out."""
        gone, count = self._occurrence.missing(text)
        if gone and 2 * len({one.text for one in gone}) >= count:
            judged.say("left out", f"the log does not have {_listed(gone)}")
            return
        near = self._attribution.near(text)
        if not prefix and refuted(text, near):
            judged.say("left out", "the log says that it came out otherwise")
            return
        left = _masked(text, gone)
        if len(content(left.replace(GONE, " "))) < _LEFT and gone:
            judged.say("left out", f"without {_listed(gone)} it says nothing")
            return
        sources, right = self._attribution.sources(left, said.cites)
        if gone:
            judged.say("masked", f"the log does not have {_listed(gone)}", sources)
        if prefix:
            judged.say("marked", "it is the model's own plan, not the user's word", sources)
        if not right:
            judged.say("attributed", "its sources were found by its words", sources)
        doubt = self._attribution.doubt(left, named=count > len(gone))
        if not doubt and unheard(left, near):
            doubt = "the log does not say that it failed"
        if doubt and "left out" in judged.verdicts:
            return  # what stood beside an invented directive must at least be checked
        if doubt:
            judged.say("marked", doubt, sources)
        judged.claims.append(Claim(f"{prefix}{left}{UNCHECKED if doubt else ''}", sources))


def _listed(gone: Sequence[Named]) -> str:
    return ", ".join(dict.fromkeys(one.text for one in gone))


def _masked(text: str, gone: Sequence[Named]) -> str:
    for one in sorted(gone, reverse=True):
        text = f"{text[: one.start]}{GONE}{text[one.end :]}"
    return re.sub(r"\[…\](?:[\s,/–-]*\[…\])+", GONE, text)  # noqa: RUF001 - a dash


def _lines(text: str) -> list[_Unit]:
    """The lines of a code block; prose among them is read like any other."""
    found: list[_Unit] = []
    for line in text.split("\n"):
        prose = not re.search(r"[(){}=;<>\[\]$]|^\s{2,}|[├│└]", line) and len(line.split()) > _LEFT
        found.append(_Unit(line, directive(line, code=not prose)))
    return found


def _units(text: str) -> list[_Unit]:
    return [unit for sentence in sentences(text) for unit in _sentence(sentence)]


def _sentence(sentence: str) -> Iterator[_Unit]:
    """A sentence, what is said in brackets apart where that reads like a directive."""
    for aside in reversed(asides(sentence)):
        reading = directive(aside.group(1))
        if reading:
            yield _Unit(aside.group(1), reading)
            sentence = f"{sentence[: aside.start()]}{sentence[aside.end() :]}"
    reading = directive(sentence)
    before, rest = _parted(sentence)
    if reading is None and not rest:
        yield _Unit(sentence, None)
        return
    if before:
        yield _Unit(before, None)
    yield _Unit(rest or sentence, directive(rest or sentence) or reading or "order")


def _parted(sentence: str) -> tuple[str, str]:
    """What a sentence says before it begins to read like a directive, and the rest, if any does."""
    before = ""
    for clause in clauses(sentence):
        if before and directive(clause.text) and not _noun(clause):
            plain = before.strip()
            if len(content(plain)) < _LEFT or _DANGLING.match(plain.lower()) or directive(plain):
                return "", sentence
            rest = sentence[len(before) :]
            bare = rest.removeprefix(clause.before)
            return f"{plain} ", bare if directive(bare) else rest
        before += clause.before + clause.text
    return "", ""


def _noun(clause: Clause) -> bool:
    """Whether a clause only begins like an order, as in `read and write access`."""
    weak = clause.before.strip() in (",", "and", "und", "et", "y", "as", "")
    first, second, *_ = (*readings(clause.text)[0].split(), "", "")
    if not weak or second in DETERMINERS:
        return False
    return first in AMBIGUOUS and directive(clause.text) == "order"
