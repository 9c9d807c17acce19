"""How something came out: what a claim says of it, and what the material says near its names."""

import re
from collections.abc import Sequence
from typing import Literal

from refold.fold.ground.disguise import folded

Outcome = Literal["good", "bad"]

_NOT = (
    r"(?:not|no|never|without|\w+n't|cannot|can't|0|zero|nicht|kein\w*|ne|pas|sans|sin|nao|sem|non"
    r"|geen"
    r"|niet)"
)
_GOOD = re.compile(
    r"\b(?:pass(?:ed|es|ing)?|succe(?:ed|eds|eded|eding|ss|sses|ssful|ssfully)|fixed|fixes"
    r"|works?|worked|working"
    r"|green|resolved|solved|completed|compiles?|compiled|exists?|existed|found|available"
    r"|healthy|ok|okay"
    r"|exit(?:ed)? (?:with )?(?:code|status) 0|0 (?:errors?|failures?|failed)|no (?:errors?"
    r"|failures?)"
    r"|applied|merged|deployed|installed|builds|built|works?|repaired|recovered|bestanden"
    r"|erfolgreich|behoben)\b"
    r"|✅|✓|✔"
)
_BAD = re.compile(
    r"\b(?:fail(?:s|ed|ing|ures?)?|errors?|exception|traceback|fatal|panic(?:ked)?|crash(?:ed"
    r"|es)?|broken|breaks"
    r"|broke|missing|not found|no such file|does(?:n't| not) exist|do(?:n't| not) exist"
    r"|did(?:n't| not) (?:work|pass)"
    r"|exit(?:ed)? (?:with )?(?:code|status) [1-9]\d*|command not found|permission denied|denied"
    r"|refused|timed out"
    r"|timeout|red|rejected|unresolved|unavailable|unhealthy|aborted|undefined|cannot|could not"
    r"|couldn't|unable"
    r"|fehlgeschlagen|fehler|gescheitert)\b|\w+(?:error|exception)\b|❌|✗|✘"
)
_PRESENT = re.compile(
    r"\b(?:still|now|currently|again|remains?|at present|no longer|noch|immer noch|toujours"
    r"|todavia|aun"
    r"|ainda|ancora|nog)\b"
)
_NOT_BEFORE = re.compile(rf"\b{_NOT}\s+(?:\w+\s+){{0,2}}$")
_HARMLESS = re.compile(
    r"\b(?:0|no|zero|without(?: any)?)\s+(?:\w+\s+)?(?:errors?|failures?|failed|failing|issues)\b"
    r"|\berror (?:handling|message|code|type|class|path|case|log)s?\b|\bif\b[^.]*\bfails?\b"
)


def outcomes(text: str) -> frozenset[Outcome]:
    """The ways in which a text says that something came out."""
    text = folded(text).replace("’", "'")  # noqa: RUF001 - an apostrophe
    harmless = bool(_HARMLESS.search(text))
    text = _HARMLESS.sub(" ", text)
    bad = [(match, "bad") for match in _BAD.finditer(text)]
    taken = [match.span() for match, _ in bad]
    good = [
        (match, "good")
        for match in _GOOD.finditer(text)
        if not any(start < match.end() and match.start() < end for start, end in taken)
    ]
    found: set[Outcome] = {"good"} if harmless else set()
    for match, sort in (*bad, *good):
        turned = bool(_NOT_BEFORE.search(text[max(0, match.start() - 40) : match.start()]))
        found.add("good" if (sort == "good") != turned else "bad")
    return frozenset(found)


def refuted(claim: str, material: Sequence[str]) -> bool:
    """Whether a claim says one thing, and all that the material says of it is the other.

    Of what a claim says of the present, only the newest counts. The material is oldest first.
    """
    said = outcomes(claim)
    told = [one for one in map(outcomes, material) if one]
    if _PRESENT.search(folded(claim)):
        told = told[-1:]
    every = frozenset[Outcome]().union(*told)
    return len(said) == 1 and len(every) == 1 and every != said


def unheard(claim: str, material: Sequence[str]) -> bool:
    """Whether a claim says that something went wrong, and the material nowhere near says so."""
    return outcomes(claim) == frozenset[Outcome]({"bad"}) and not any(
        "bad" in outcomes(one) for one in material
    )
