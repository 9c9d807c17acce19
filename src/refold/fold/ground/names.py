"""What a claim names that can be looked up: quotations, code, paths, names, codes, numbers."""

import re
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from typing import Final, Literal, NamedTuple

from refold.fold.ground.disguise import mixed
from refold.log.text import words

_LISTS: Final = {
    name: tuple(listed.replace(",", " ").split())
    for name, listed in tomllib.loads(
        files("refold.fold.ground").joinpath("words.toml").read_text(encoding="utf-8")
    ).items()
}
STOP: Final = frozenset(_LISTS["small"])
NUMBER_WORDS: Final = _LISTS["number_words"]
_PREFIXES, _SUFFIXES = frozenset(_LISTS["hyphen_prefixes"]), frozenset(_LISTS["hyphen_suffixes"])
_WELL_KNOWN: Final = frozenset(_LISTS["well_known"])

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
_MEASURED = re.compile(r"\d[\d.,]*(?:-[a-z]{2,})+")  # 30-day
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
    bare = re.sub(r"['’]s$", "", bare)  # noqa: RUF001 - an apostrophe
    while bare and (bare[-1] in _EDGE or bare[-1] in ".%€$£"):
        if bare.endswith("()"):
            return start, bare
        bare = bare[:-1]
    return start, bare


def _sort(token: str) -> Sort | None:  # noqa: PLR0911 - one line a kind
    bare = token.removesuffix("()")
    if not re.search(r"\w", bare) or bare.lower().rstrip(".") in _SHORT or bare in _WELL_KNOWN:
        return None
    amount = bare.lstrip("$€£+-")
    if _NUMBER.fullmatch(amount) or _UNIT.fullmatch(amount):
        return "number"
    if mixed(bare):
        return "name"
    if _MEASURED.fullmatch(bare):
        return "number"
    if "/" in bare.strip("/") or "\\" in bare or bare.startswith(("/", "./", "~/")):
        return "path"
    if _INNER.search(bare) or _CAMEL.search(bare) or token.endswith("()"):
        return "name"
    if any(map(str.isdecimal, bare)) and any(map(str.isalpha, bare)):
        return "name"
    if _KEBAB.fullmatch(bare):
        first, second, *others = bare.lower().split("-")
        prefixed = not others and (first in _PREFIXES or first in NUMBER_WORDS)
        return None if prefixed or second in _SUFFIXES else "name"
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
