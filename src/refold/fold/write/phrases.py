"""The phrases of models' summaries: headings, citations, and courtesies around them."""

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Final, Literal, NamedTuple, cast, get_args

Subject = Literal["goal", "decisions", "files", "errors", "state", "next", "questions", "notes"]

HEADINGS: Final[dict[Subject, str]] = {
    "goal": "Goal",
    "decisions": "Decisions and their outcomes",
    "files": "Files and names",
    "errors": "Errors and how they were solved",
    "state": "Where it stands",
    "next": "Next",
    "questions": "Open questions",
    "notes": "Notes",
}
"""The subjects of claims, in the order of the sections, with the heading of each."""

Slot = Subject | Literal["title", "obsolete", "summary"]
"""What follows a heading: claims, the title, numbers of obsolete claims, or the whole summary."""

_MAX_HEADING = 120  # characters; more is a sentence
_MAX_HEADING_WORDS = 7
_WORD = re.compile(r"[^\W_]+")
_ASIDE = re.compile(r"\([^()]*\)|（[^（）]*）")


class HeadingMatch(NamedTuple):
    slot: Slot
    exact: bool
    """Whether the heading says no more than the slot."""


def words_of(text: str) -> str:
    """The words of a text, without case, punctuation and spacing."""
    return " ".join(_WORD.findall(text.casefold()))


def match_heading(heading: str) -> HeadingMatch | None:
    """The slot of a heading, if it is one that models use."""
    if len(heading) > _MAX_HEADING:
        return None
    phrases = _phrases()
    words = words_of(heading)
    if slot := phrases.get(words):
        return HeadingMatch(slot, exact=True)
    for shorter in (words_of(_ASIDE.sub(" ", heading)), words_of(re.split("[:：]", heading)[0])):
        if slot := phrases.get(shorter):
            return HeadingMatch(slot, exact=False)
    parts = words.split()
    if len(parts) <= _MAX_HEADING_WORDS:  # its first or last words may be a heading
        for count in range(len(parts) - 1, 0, -1):
            for part in (parts[:count], parts[-count:]):
                slot = phrases.get(" ".join(part))
                if slot and slot in get_args(Subject):
                    return HeadingMatch(slot, exact=False)
    return None


@cache
def _phrases() -> dict[str, Slot]:
    text = (files("refold.fold.write") / "prompts" / "headings.toml").read_text("utf-8")
    table = tomllib.loads(text)
    found: dict[str, Slot] = {}
    for slot, languages in table.items():
        for phrases in languages.values():
            found |= {words_of(one): cast("Slot", slot) for one in phrases}
    return found


# Citations: the entries that a claim cites, in the many spellings that models use.

MAX_RANGE: Final = 50
"""Of a longer range of entries, only both ends are cited."""

_WORD_CITATIONS = (
    r"(?:entr(?:y|ies|ée|ées|ada|adas)|eintr(?:ag|äge)|seqs?|messages?|msgs?|sources?|parts?|refs?"
    r"|voc[ei]|записи|запись|条目|條目|エントリー?|항목)"
)
_NUMBER = r"[#№e]?\d{1,9}(?:\.\d{1,3})?"
_RANGE = rf"{_NUMBER}(?:\s{{0,2}}[-–—]\s{{0,2}}{_NUMBER})?"
_AND = r"\s{0,2}(?:,|;|、|&|\band\b|\bund\b|\bet\b|\by\b)\s{0,2}"
_LIST = rf"{_RANGE}(?:{_AND}(?:{_WORD_CITATIONS}\s{{0,2}})?{_RANGE})*"
_NAMED = rf"{_WORD_CITATIONS}[\s.:#]{{0,3}}{_LIST}"
_BRACKETED = re.compile(
    rf"[ \t]?(?<![A-Za-z0-9_\]])\^?(?:\[\^?\s{{0,2}}(?:{_NAMED}|{_LIST})\s{{0,2}}\](?!\()"
    rf"|【\s{{0,2}}(?:{_NAMED}|{_LIST})\s{{0,2}}】"
    rf"|[(（]\s{{0,2}}(?:see\s|cf\.?\s)?{_NAMED}\s{{0,2}}[)）])"
    rf"(?:\[\s{{0,2}}{_LIST}\s{{0,2}}\](?!\())*",
    re.IGNORECASE,
)
_MENTIONED = re.compile(rf"\(\s{{0,2}}#{_LIST}\s{{0,2}}\)|\b{_NAMED}", re.IGNORECASE)
_ENDS = re.compile(r"(\d+)(?:\.\d+)?(?:\s{0,2}[-–—]\s{0,2}[#№e]?(\d+))?")
_SPACE = re.compile(r"[ \t]+(?=[.,;:!?](?:\s|$))")


def cited(text: str) -> tuple[str, tuple[int, ...]]:
    """The text without its bracketed citations, and the entries that it cites.

    Ambiguous citations such as `(#12)` count, but stay in the text.
    """
    if not any(char.isdigit() for char in text):
        return text.strip(), ()
    rest = _BRACKETED.sub("", text)
    matches = (*_BRACKETED.finditer(text), *_MENTIONED.finditer(rest))
    cites = dict.fromkeys(number for match in matches for number in numbers(match.group()))
    if len(rest) != len(text):
        rest = _SPACE.sub("", rest)
    return rest.strip(), tuple(cites)


def numbers(text: str) -> tuple[int, ...]:
    """The numbers in a list of numbers and ranges."""
    found: dict[int, None] = {}
    for match in _ENDS.finditer(text):
        first = int(match[1])
        last = int(match[2] or first)
        inside = range(first, last + 1) if 0 <= last - first < MAX_RANGE else (first, last)
        found.update(dict.fromkeys(inside))
    return tuple(number for number in found if number > 0)


# Courtesies around a summary: a greeting, an offer, "none".
# ruff: noqa: RUF001 - apostrophes and colons as they are written

_PREAMBLE = re.compile(
    r"^\W{0,3}(?:sure|certainly|of course|okay|ok|absolutely|here(?:['’]s| is| are)"
    r"|below (?:is|are)|this is (?:a|the) summary|the following (?:is|are)"
    r"|i(?:['’]ll| will| have|['’]ve) (?:now )?(?:summari[sz]e|provide|create|write|read)"
    r"|hier ist|voici|aquí está|aqui está|ecco|以下是|以下は|다음은)",
    re.IGNORECASE,
)
_CHATTER = re.compile(
    r"^\W{0,3}(?:(?:please )?let me know|feel free|if you(?:['’]d| need| want| would| have)"
    r"|i hope (?:this|that)|would you like|do you want me|shall i|should i|is there anything"
    r"|happy to help|hope this helps|lass(?:en sie)? (?:es )?mich|n['’]hésitez"
    r"|si (?:necesitas|desea|quieres)|如果您|如有|必要であれば)",
    re.IGNORECASE,
)
_MAX_COURTESY = 300  # characters; a longer line says more than that
_NOTHING: Final = frozenset(
    {"none", "n a", "nothing", "none so far", "none yet", "not applicable", "keine", "keiner"}
    | {"nichts", "aucun", "aucune", "rien", "ninguno", "ninguna", "nada", "无", "無", "なし"}
    | {"нет", "없음"}
)
_SHORT = 40


def without_courtesies(lines: list[str]) -> list[str]:
    """The lines without a greeting before them and an offer after them."""
    filled = [index for index, line in enumerate(lines) if line.strip()]
    if not filled:
        return lines
    first, last = filled[0], filled[-1]
    if _is_courtesy(_CHATTER, lines[last]):
        lines = lines[:last]
    greeted = first < len(lines) and _is_courtesy(_PREAMBLE, lines[first])
    if greeted and lines[first].rstrip()[-1] in ":：.!。":
        lines = lines[first + 1 :]
    return lines


def says_nothing(text: str) -> bool:
    """Whether a text is just "none", "n/a" or the like."""
    return len(text) <= _SHORT and words_of(text) in _NOTHING


def _is_courtesy(pattern: re.Pattern[str], line: str) -> bool:
    return len(line) <= _MAX_COURTESY and bool(pattern.match(line)) and not cited(line)[1]
