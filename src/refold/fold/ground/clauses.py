"""Sentences of a claim, and the clauses in which something else may be said."""

import re
from typing import NamedTuple

_SENTENCE = re.compile(
    r"(?<=[.!?…])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)(?<!\betc\.)[\"'”»)*`]*\s+|(?<=[。！？；])|;\s+|\s[|·•]\s"  # noqa: RUF001
)
_BREAK = re.compile(
    r"\s+[—–-]{1,3}\s+|[—]|\s*[→⇒]\s*|,\s+(?:and|but|so|while|then|which|und|aber|et|mais|y|pero|e|ma|en|maar|и|но)\s+"  # noqa: RUF001
    r"|,\s+|，|\s+(?:and|but|because|since|after|before|as|und|weil|et|car|y|porque)\s+"  # noqa: RUF001
)
_ASIDE = re.compile(r"\s*[(（\[]([^()（）\[\]]{4,})[)）\]]")  # noqa: RUF001


class Clause(NamedTuple):
    """A run of a sentence, and what stands before it."""

    before: str
    text: str


def sentences(text: str) -> list[str]:
    """The sentences of a line, each with what ends it."""
    found: list[str] = []
    at = 0
    for gap in _SENTENCE.finditer(text):
        found.append(text[at : gap.end()])
        at = gap.end()
    return [one for one in (*found, text[at:]) if one.strip()]


def clauses(sentence: str) -> list[Clause]:
    """The clauses of a sentence."""
    found: list[Clause] = []
    at, before = 0, ""
    for gap in _BREAK.finditer(sentence):
        found.append(Clause(before, sentence[at : gap.start()]))
        at, before = gap.end(), gap.group()
    return [*found, Clause(before, sentence[at:])]


def asides(sentence: str) -> list[re.Match[str]]:
    """What stands in brackets."""
    return list(_ASIDE.finditer(sentence))
