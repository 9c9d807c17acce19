"""Four relations between a point and the log that mark the point, with the entry that disagrees.

A number that the log gives to another name, or another unit; a value that has changed since; and
what was planned or ordered, but never reported as done. Nothing is rewritten: a mark is shown
beside the point.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from refold.fold.ground.disguise import folded
from refold.fold.ground.evidence import Evidence, Sentence, split
from refold.fold.ground.names import GROUPS, content, named, spellings, stem
from refold.log import PartRef
from refold.log.text import words

_CLAUSE: Final = re.compile(
    r"\s+[—–-]{1,3}\s+|\s*[→⇒;]\s*|,\s+|\s+(?:and|but|because|since|while|after|before)\s+"  # noqa: RUF001 - dashes
)
_NUMBER: Final = re.compile(r"(?<![\w.])\d+(?:[.,:]\d+)*(?:\s?%)?(?!\w*\d)")
_UNIT: Final = re.compile(
    r"(?<=\d)\s?(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|weeks?"
    r"|months?|years?|kb|mb|gb|tb|kib|mib|gib|bytes?|eur|euros?|usd|dollars?|pln|gbp|chf|cents?"
    r"|km|kg|percent|requests?|rows?|users?|retries|times)\b"
    r"(?:\s*(?:/|per|a|an|every)\s*(second|minute|hour|day|week|month|year|request|user)s?\b)?"
)
_UNITS: Final = {
    "ms": "millisecond", "s": "second", "sec": "second", "m": "minute", "min": "minute",
    "h": "hour", "hr": "hour", "d": "day", "euro": "eur", "dollar": "usd",
}  # fmt: skip
_PLANNED: Final = re.compile(
    r"\b(?:will|would|shall|should|must|to|let(?:'s| us| me)|going to|plans?|planned|next|please"
    r"|need(?:s|ed)?|want(?:s|ed)?|can you|could you|todo|i'll|we'll|remaining"
    r"|if|once|before|until)\b"
)
_MEANT: Final = re.compile(
    r"\b(?:will|would|shall|should|must|plan(?:s|ned)?|next|needs?|wants?|ask(?:s|ed|ing)|todo"
    r"|to be)\b"
)
_DONE: Final = re.compile(
    r"\b(?:was|were|is|are|been|being|has|have|had|got|now|already|successfully)\b"
)
_IRREGULAR: Final = {
    "built": "build", "sent": "send", "made": "make", "wrote": "write", "written": "write",
    "ran": "run", "took": "take", "put": "put", "set": "set", "cut": "cut", "paid": "pay",
    "sold": "sell", "bought": "buy", "rebuilt": "rebuild", "reset": "reset", "done": "do",
    "began": "begin", "left": "leave", "held": "hold",
}  # fmt: skip
_MAX_SENTENCES = 60
_LINK: Final = re.compile(r"[\s\"'`]*(?:[=:→]|to|is|was|are|were|at|of|now|set to|is now)[\s\"'`]*")
_APART = 3  # words


class Mark(NamedTuple):
    """What in the log speaks against a point."""

    why: str
    ref: PartRef


class Bound(NamedTuple):
    """A number, and the name that it stands next to."""

    number: str
    unit: tuple[str, str]
    keys: tuple[str, ...]
    """The words of the name."""
    about: frozenset[str]
    """What stands between them: a name has many values, and this tells which one it is."""

    @property
    def told(self) -> str:
        return f"{self.number} {' per '.join(filter(None, self.unit))}".strip()


def disagreement(evidence: Evidence, text: str) -> Mark | None:
    """The first relation in which the log disagrees with a point, if one does."""
    for bound in bindings(text):
        if mark := _other_value(evidence, bound, _names(text)):
            return mark
    return _only_planned(evidence, text)


def clauses(text: str) -> list[str]:
    """The clauses of a text, in which something else may be said."""
    return [one for sentence in split(text) for one in _CLAUSE.split(sentence) if one.strip()]


def bindings(text: str, keys: Sequence[str] = ()) -> Iterator[Bound]:
    """The numbers of a text that stand next to a name, or next to these words."""
    for clause in clauses(text):
        plain = GROUPS.sub("", clause)
        if keys:
            pattern = r"[\W_]+".join(map(re.escape, keys))
            spans = [match.span() for match in re.finditer(pattern, plain)]
            names = [(start, end, tuple(keys)) for start, end in spans]
        else:
            found = [one for one in named(plain) if one.sort not in ("number", "quote")]
            names = [(one.start, one.end, tuple(words(folded(one.text)))) for one in found]
        for match in _NUMBER.finditer(plain):
            if any(start <= match.start() < end for start, end, _ in names):
                continue
            near = [one for one in names if _next_to(plain, match, one[0], one[1])]
            if near:
                nearest = min(
                    near,
                    key=lambda one: min(abs(one[1] - match.start()), abs(one[0] - match.end())),
                )
                number, unit = match.group().rstrip("% "), _unit(folded(plain), match.end())
                between = _between(plain, match, nearest[0], nearest[1])
                yield Bound(number, unit, nearest[2], _about(between))


def _next_to(text: str, number: re.Match[str], start: int, end: int) -> bool:
    """Whether at most three words, and no other number, stand between a number and a name."""
    between = _between(text, number, start, end)
    return len(words(between)) <= _APART and not any(map(str.isdecimal, between))


def _between(text: str, number: re.Match[str], start: int, end: int) -> str:
    return text[end : number.start()] if end <= number.start() else text[number.end() : start]


def _about(between: str) -> frozenset[str]:
    """The words between a name and its number; or that nothing but a link is there."""
    return frozenset({"="} if _LINK.fullmatch(folded(between)) else content(between))


def _unit(text: str, at: int) -> tuple[str, str]:
    match = _UNIT.match(text, at)
    return (_singular(match.group(1)), match.group(2) or "") if match else ("", "")


def _singular(unit: str) -> str:
    unit = unit.removesuffix("s") if len(unit) > len("ms") else unit
    return _UNITS.get(unit, unit)


def _other_value(evidence: Evidence, bound: Bound, names: frozenset[str]) -> Mark | None:
    """Another number where the log speaks of the same; the newest counts.

    A sentence that names other things speaks of something else, though a name is in both.
    """
    same: list[Sentence] = []
    other: list[tuple[Sentence, str]] = []
    forms = {*spellings(bound.number), GROUPS.sub("", bound.number)}
    for sentence in _some(evidence.sentences(bound.keys)):
        there = list(bindings(sentence.text, bound.keys))
        if any(one.number in forms and fits(bound.unit, one.unit) for one in there):
            same.append(sentence)
        elif told := [one for one in there if _comparable(bound, one, forms)]:
            others = _names(sentence.text)
            if others <= names or names <= others:
                other.append((sentence, told[0].told))
        elif any(form in sentence.text for form in forms):
            same.append(sentence)
    if not other:
        return None
    newest, value = max(other, key=lambda one: one[0].piece.ref)
    if not same:
        return Mark(f"the log has {value}", newest.piece.ref)
    last = max(one.piece.ref for one in same)
    return Mark(f"{value} since", newest.piece.ref) if newest.piece.ref > last else None


def _comparable(said: Bound, there: Bound, forms: Collection[str]) -> bool:
    """Whether two numbers of one name are values of the same thing."""
    if there.number not in forms and there.unit != said.unit:
        return False
    # A number without a unit may be an id, a port, a line: only the same words make it a value.
    if not any(said.unit):
        return bool(said.about) and said.about == there.about
    return said.about == there.about or bool(said.about & there.about)


def newer_value(evidence: Evidence, quote: str, ref: PartRef) -> Mark | None:
    """What the log has, after a quote, for a value that the quote gives."""
    marks = (_other_value(evidence, bound, _names(quote)) for bound in bindings(quote))
    return next((mark for mark in marks if mark and mark.ref > ref), None)


def _names(text: str) -> frozenset[str]:
    found = (one for one in named(folded(text)) if one.sort not in ("number", "quote"))
    return frozenset(one.text for one in found)


def _some(sentences: Iterator[Sentence]) -> Iterator[Sentence]:
    for _, one in zip(range(_MAX_SENTENCES), sentences, strict=False):
        yield one


def fits(said: tuple[str, str], there: tuple[str, str]) -> bool:
    """Whether two units can be one: a unit that is not given fits any."""
    return all(not one or not other or one == other for one, other in zip(said, there, strict=True))


def _only_planned(evidence: Evidence, text: str) -> Mark | None:
    """What is reported as done, where the log only has it as a plan or an order."""
    for clause in clauses(text):
        names = [one for one in named(clause) if one.sort not in ("number", "quote")]
        if _MEANT.search(folded(clause)):
            continue
        for word in words(folded(clause)):
            verb = _IRREGULAR.get(word) or (stem(word) if word.endswith("ed") else "")
            if not verb or not names:
                continue
            mark = _never_done(evidence, verb, words(folded(names[0].text)))
            if mark:
                return mark
    return None


def _never_done(evidence: Evidence, verb: str, name: Sequence[str]) -> Mark | None:
    planned: list[Sentence] = []
    for sentence in _some(evidence.sentences(name)):
        there = [
            word
            for word in words(sentence.text)
            if verb in (stem(word), _IRREGULAR.get(word, ""), word)
        ]
        if not there:
            continue
        past = any(word.endswith(("ed", "ing")) or word in _IRREGULAR for word in there)
        if past and not re.search(r"\b(?:be|get) \w+(?:ed|en|t)\b", sentence.text):
            return None
        if _DONE.search(sentence.text) and not _PLANNED.search(sentence.text):
            return None
        if sentence.piece.speaker == "assistant" and re.search(rf"\bi {verb}", sentence.text):
            return None
        planned.append(sentence)
    if not planned:
        return None
    # A tool that speaks of it since may be how it was done, in words of its own.
    first = min(one.piece.ref for one in planned)
    pieces = (evidence.pieces[at] for at in evidence.holding(name))
    if any(one.speaker == "tool" and one.ref > first and not one.names_only for one in pieces):
        return None
    newest = max(planned, key=lambda one: one.piece.ref)
    return Mark("the log only has it as planned or ordered", newest.piece.ref)
