"""What a claim names that can be looked up: quotations, code, paths, names, codes, numbers."""

import re
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from typing import Final, Literal, NamedTuple

from pydantic import TypeAdapter

from refold.fold.ground.disguise import mixed
from refold.log.text import words

# Sentences of a claim, and the clauses in which something else may be said.

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
    return list(_ASIDE.finditer(sentence))


# The words by which a directive is known, and what kind of word others are: lists from files.

_TABLES = TypeAdapter(dict[str, dict[str, str]])
_UNSPACED = "unspaced"


def _read() -> dict[str, dict[str, tuple[str, ...]]]:
    folder = files("refold.fold.ground")
    listed = ("directive_words.toml", "word_kinds.toml")
    text = "\n".join(folder.joinpath(one).read_text(encoding="utf-8") for one in listed)
    return {
        name: {language: _listed(words) for language, words in table.items()}
        for name, table in _TABLES.validate_python(tomllib.loads(text)).items()
    }


def _listed(text: str) -> tuple[str, ...]:
    return tuple(" ".join(one.split()) for one in text.split(",") if one.strip())


_WORDS = _read()


def _spaced(name: str) -> tuple[str, ...]:
    lists = (words for language, words in _WORDS[name].items() if language != _UNSPACED)
    return tuple(dict.fromkeys(word for words in lists for word in words))


def _unspaced(name: str) -> tuple[str, ...]:
    return _WORDS[name].get(_UNSPACED, ())


HUMANS: Final = _spaced("humans")
PEOPLE: Final = _spaced("people")
PEOPLE_UNSPACED: Final = _unspaced("people")
SAYING: Final = _spaced("saying")
GRANT: Final = _spaced("grant")
GRANT_UNSPACED: Final = _unspaced("grant")
REPORT: Final = _spaced("report")
REPORT_UNSPACED: Final = _unspaced("report")
OBLIGE: Final = _spaced("oblige")
OBLIGE_UNSPACED: Final = _unspaced("oblige")
ADDRESS: Final = _spaced("address")
VERBS: Final = frozenset(_spaced("verbs"))
VERBS_UNSPACED: Final = _unspaced("verbs")
AMBIGUOUS: Final = frozenset(_spaced("ambiguous"))
AFTER_NOUN: Final = frozenset(_spaced("after_noun"))
DETERMINERS: Final = frozenset(_spaced("determiners"))
NO_VERBS: Final = frozenset(_spaced("no_verbs"))
LANGUAGES: Final = {name: frozenset(words) for name, words in _WORDS["small"].items()}
STOP: Final = frozenset(_spaced("small"))
HYPHEN_PREFIXES: Final = frozenset(_spaced("hyphen_prefixes"))
HYPHEN_SUFFIXES: Final = frozenset(_spaced("hyphen_suffixes"))
WELL_KNOWN: Final = frozenset(_spaced("well_known"))
NUMBER_WORDS: Final = _spaced("number_words")
NEUTRAL: Final = frozenset(_spaced("neutral"))


Sort = Literal["quote", "code", "link", "path", "name", "number", "caps"]


class Named(NamedTuple):
    """Something named in a claim, and where it stands there."""

    start: int
    end: int
    text: str
    sort: Sort


_QUOTED = re.compile(
    r"`+([^`]{1,400})`+"
    r"|[“„]([^“”„]{1,400})[”“]|«\s?([^«»]{1,400}?)\s?»|「([^「」]{1,400})」|『([^『』]{1,400})』"
    r"|(?<!\w)\"([^\"]{1,400})\"(?!\w)"
    r"|(?<![\w'’])['‘]([^'‘’\n]{2,400})['’](?![\w'])"  # noqa: RUF001 - quotation marks
)
_LINK = re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://[^\s<>\"'`)\]]+|\bwww\.[^\s<>\"'`)\]]+")
_MAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_LISTED = r"\{(?!\d*, ?\d*\})[\w./*-]*(?:, ?[\w./*-]*)+\}"
_BRACES = re.compile(
    rf"(?<![\w./~@*+}}-])(?:[\w./~@*+-]|{_LISTED})*{_LISTED}(?:[\w./~@*+-]|{_LISTED})*"
)
_NUMBER = re.compile(
    r"(?<![^\W_])[+-]?"
    r"(?:\d{1,3}(?:[,.' \u00a0\u202f_]\d{3})+(?:[.,]\d+)?|\d+(?:[.,:]\d+)*)(?![^\W_])"
)
_WHOLE = r"\d{1,3}(?:[,.' \u00a0\u202f_]\d{3})+"
_UNIT = re.compile(
    r"(?i)(\d[\d.,]*)(?:ms|s|secs?|m|mins?|h|hrs?|d|k|kb|mb|gb|tb|kib|mib|gib|b|px|x|st|nd|rd|th"
    r"|eur|usd|km|kg|°c|pp|pt|em|rem|fps|w|v|hz|khz|mhz|ghz|€|%|\$)"
)
_TOKEN = re.compile(
    r"(?:[^\s()\[\]{}<>,;|\"“”„«»…、。，；（）]"  # noqa: RUF001 - punctuation
    r"|(?<=\d),(?=\d)|(?<=\d)[\u00a0\u202f](?=\d{3}))+(?:\(\))?"
)
_EDGE = "\"'“”„‘’«»`*_,;:!?()[]{}<>…|→=~≈+、。，；：！？（）「」『』【】《》"  # noqa: RUF001
_CAMEL = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2,}[a-z]{2,}[A-Z]|^[A-Z][a-z]+[A-Z]")
_INNER = re.compile(r"\w[.@:\\]+\w|\w_+\w|^_+\w|\w::\w|^[.~]?/\w|\w/\w|^--?\w[\w-]+|^[$#@]\w|^\.\w")
_KEBAB = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)+")
_CAPS = re.compile(r"[A-Z]{4,}")
_SHORT = frozenset({"e.g", "i.e", "etc", "a.k.a", "p.s", "a.m", "p.m", "z.b", "d.h", "u.a", "p.ej"})


def named(text: str) -> list[Named]:
    """Everything in a claim that must be found in the log, in order."""
    found: list[Named] = []
    for one in (*_quotations(text), *_links(text), *_braces(text), *_tokens(text)):
        if not any(one.start < other.end and other.start < one.end for other in found):
            found.append(one)
    return sorted(found)


def _quotations(text: str) -> Iterator[Named]:
    for match in _QUOTED.finditer(text):
        inner = next(group for group in match.groups() if group is not None).strip()
        if re.search(r"\w", inner):
            code = match.group().startswith("`")
            yield Named(match.start(), match.end(), inner, "code" if code else "quote")


def _links(text: str) -> Iterator[Named]:
    for pattern in (_LINK, _MAIL):
        for match in pattern.finditer(text):
            bare = match.group().rstrip(".,;:!?*_…")
            yield Named(match.start(), match.start() + len(bare), bare, "link")


def _braces(text: str) -> Iterator[Named]:
    """Paths that are written as one, such as src/{a,b}.ts: what is between the braces counts."""
    for match in _BRACES.finditer(text) if "{" in text else ():
        bare = match.group().rstrip(".*_")
        if re.search(r"[/.]", re.sub(_LISTED, "", bare)):
            yield Named(match.start(), match.start() + len(bare), bare, "path")


def _tokens(text: str) -> Iterator[Named]:
    for match in _TOKEN.finditer(text):
        start, token = _trimmed(match.start(), match.group())
        sort = _sort(token)
        if sort == "number" or (sort is None and any(map(str.isdecimal, token))):
            yield from _numbers(start, token)
        elif sort:
            yield Named(start, start + len(token), token, sort)


def _trimmed(start: int, token: str) -> tuple[int, str]:
    """The token without punctuation and decoration around it; its own brackets stay."""
    bare = token.lstrip(_EDGE)
    if re.match(r"[_$]+\w|~/\w", token):
        bare = token
    start += len(token) - len(bare)
    while bare and (bare[-1] in _EDGE or bare[-1] in ".%€$£"):
        if bare.endswith("()"):
            return start, bare
        bare = bare[:-1]
    return start, bare


def _sort(token: str) -> Sort | None:  # noqa: PLR0911 - one line a kind
    bare = token.removesuffix("()")
    if not re.search(r"\w", bare) or bare.lower().rstrip(".") in _SHORT or bare in WELL_KNOWN:
        return None
    amount = bare.lstrip("$€£+-")
    if _NUMBER.fullmatch(amount) or _UNIT.fullmatch(amount):
        return "number"
    if mixed(bare):
        return "name"
    if "/" in bare.strip("/") or "\\" in bare or bare.startswith(("/", "./", "~/")):
        return "path"
    if _INNER.search(bare) or _CAMEL.search(bare) or token.endswith("()"):
        return "name"
    if any(map(str.isdecimal, bare)) and any(map(str.isalpha, bare)):
        return "name"
    if _KEBAB.fullmatch(bare):
        parts = bare.lower().split("-")
        ordinary = len(parts) == 2 and (parts[0] in HYPHEN_PREFIXES or parts[1] in HYPHEN_SUFFIXES)  # noqa: PLR2004
        return None if ordinary or parts[1] in HYPHEN_SUFFIXES else "name"
    return "caps" if _CAPS.fullmatch(bare) else None


def _numbers(start: int, token: str) -> Iterator[Named]:
    """The number that a token is, without its sign; or those in it."""
    amount = token.lstrip("$€£+-")
    if _UNIT.fullmatch(amount) or _NUMBER.fullmatch(amount):
        yield Named(start + len(token) - len(amount), start + len(token), amount, "number")
        return
    for match in re.finditer(r"\d[\d.,:]*\d|\d", token):
        yield Named(start + match.start(), start + match.end(), match.group(), "number")


def spellings(number: str) -> list[str]:
    """The ways to write the same number."""
    unit = _UNIT.fullmatch(number)
    digits = unit.group(1) if unit else number
    found = [number, digits]
    grouped = re.fullmatch(rf"({_WHOLE})(?:[.,](\d+))?", digits)
    plain = re.fullmatch(r"(\d{1,30})(?:[.,](\d+))?", digits)
    for match in filter(None, (grouped, plain)):
        left, right = re.sub(r"\D", "", match.group(1)), match.group(2) or ""
        lefts = [left, *(f"{int(left):,}".replace(",", mark) for mark in ",.' _\u00a0\u202f")]
        rights = [right, f"{right}0", right.rstrip("0")] if right else [""]
        found += [
            f"{one}{mark}{end}".rstrip(".,") for one in lefts for mark in ".," for end in rights
        ]
    return [one for one in dict.fromkeys(found) if one]


# Words as they are compared: without their endings, numbers without their groups.

GROUPS = re.compile(r"(?<=\d)[,'_\u00a0\u202f](?=\d{3}(?!\d))")
"""What stands between the digits of a number: 12,000 is 12000."""
_SMALL = frozenset(map(str, range(len(NUMBER_WORDS))))
_ENDINGS = ("ations", "ation", "ments", "ment", "ings", "ing", "ies", "ed", "es", "s", "ly", "e")
_SHORTEST_STEM = 3


def stem(word: str) -> str:
    """The word without its ending, so that forms of one word meet; a number has no forms."""
    if word.isdecimal():
        return word
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            word = word[: -len(ending)]
            break
    if len(word) > _SHORTEST_STEM and word[-1] == word[-2]:
        word = word[:-1]
    return word.removesuffix("i") if len(word) > _SHORTEST_STEM else word


def content(text: str) -> list[str]:
    """The stems of the words that carry meaning, each once."""
    there = words(GROUPS.sub("", text))
    return list(dict.fromkeys(f"~{stem(one)}" for one in there if one not in STOP))


def in_other_ways(claim: str) -> Iterator[str]:
    """The words of a claim's numbers as others may have written them."""
    for one in re.findall(r"\d[\d.,'_\u00a0\u202f]*\w*", claim):
        for spelling in spellings(one.rstrip(".,'_")):
            yield from words(spelling)
        if one in _SMALL:
            yield NUMBER_WORDS[int(one)]
