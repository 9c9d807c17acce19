"""Which entries a claim rests on: those that it cites if they bear it out, or those that do."""

import re
from collections.abc import Sequence

from refold.fold.ground.directive_words import NEUTRAL
from refold.fold.ground.disguise import folded
from refold.fold.ground.evidence import VOICES, Evidence
from refold.fold.ground.named import named
from refold.fold.ground.stems import content, stem
from refold.log import PartRef
from refold.log.text import words

_ENOUGH = 0.75  # of what the best entry holds, where another is cited
_ALIKE = 0.85
_MOST = 3
_KNOWN = 0.5
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
        known = [key for key in keys if evidence.known(key)]
        if keys and len(known) < _KNOWN * len(keys):
            return "most of its words are nowhere in the log"
        strange = [one for one in _PROPER.findall(text) if not _known(one, evidence)]
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


def _known(name: str, evidence: Evidence) -> bool:
    return all(map(evidence.known, content(name)))


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
