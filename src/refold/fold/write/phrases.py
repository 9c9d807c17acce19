"""The phrases of models' summaries: headings, citations, and courtesies around them."""

# ruff: noqa: RUF001 - apostrophes, colons and dashes as they are written

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Final, Literal, NamedTuple

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
_OTHER_SLOTS = ("title", "obsolete", "summary")
_UNSPACED = 0x2E80  # from here on, scripts without spaces
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
    words = words_of(heading)
    parts = words.split() if words.count(" ") < _MAX_HEADING_WORDS else []
    shorter = [_ASIDE.sub(" ", heading), re.split("[:：]", heading)[0]]
    # Its first or last words may be a heading too.
    for count in range(len(parts) - 1, 0, -1):
        shorter += [" ".join(parts[:count]), " ".join(parts[-count:])]
    for index, phrase in enumerate((words, *map(words_of, shorter))):
        slot = _phrases().get(phrase)
        if slot in HEADINGS or (slot in _OTHER_SLOTS and index <= len(("aside", "label"))):
            return HeadingMatch(slot, exact=index == 0)
    return None


@cache
def _phrases() -> dict[str, str]:
    """What each known phrase stands for."""
    text = (files("refold.fold.write") / "prompts" / "headings.toml").read_text("utf-8")
    table = tomllib.loads(text)
    return {
        words_of(phrase): slot
        for slot, languages in table.items()
        for phrases in languages.values()
        for phrase in phrases
    }


# Citations: the entries that a claim cites, in the many spellings that models use.

MAX_RANGE: Final = 50
"""Of a longer range of entries, only both ends are cited."""

_WORD_CITATIONS = (
    r"(?:entr(?:y|ies|ée|ées|ada|adas)|eintr(?:ag|äge)|seqs?|messages?|msgs?|sources?|parts?|refs?"
    r"|voc[ei]|записи|запись|条目|條目|エントリー?|항목)"
)
_NUMBER = r"[#№e]?\d{1,9}(?:\.\d{1,3})?"
_WHOLE = r"[#№e]?\d{1,9}(?!\.\d)"
_AND = r"\s{0,2}(?:,|;|、|&|\band\b|\bund\b|\bet\b|\by\b)\s{0,2}"


def _list(number: str) -> str:
    span = rf"{number}(?:\s{{0,2}}[-–—]\s{{0,2}}{number})?"
    return rf"{span}(?:{_AND}(?:{_WORD_CITATIONS}\s{{0,2}})?{span})*"


_LIST = _list(_NUMBER)
_BARE = rf"(?:{_list(_WHOLE)}|{_NUMBER})"
"""Numbers without a word before them: 12.0 is a part of an entry, but [1.0, 1.7] is a range."""
_NAMED = rf"{_WORD_CITATIONS}[\s.:#]{{0,3}}{_LIST}"
_BRACKETED = re.compile(
    rf"[ \t]?(?<![A-Za-z0-9_\]])(?<!not in)(?<!not in )"
    rf"\^?(?:\[\^?\s{{0,2}}(?:{_NAMED}|{_BARE})\s{{0,2}}\](?!\()"
    rf"|【\s{{0,2}}(?:{_NAMED}|{_BARE})\s{{0,2}}】"
    rf"|[(（]\s{{0,2}}(?:see\s|cf\.?\s)?{_NAMED}\s{{0,2}}[)）])"
    rf"(?:\[\s{{0,2}}{_BARE}\s{{0,2}}\](?!\())*",
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


# Quotes: `text [12] "quote"`, as the prompt asks for them.

MIN_QUOTE: Final = 4  # words
_OPENING, _CLOSING = '"“„«', '"”“»'
_AFTER_CITATION = re.compile(r"\][ \t:—–-]{0,3}(?=[\"“„«])")
_LAST_CITATION = re.compile(r"\[[\d\s,#–-]{1,60}\][\s.]{0,3}$")
_COMPLETE = ".;!?)]—–-"


def split_quote(text: str) -> tuple[str, str]:
    """A point, and the quote that it ends with.

    Where the quote is part of the sentence, the point keeps it.
    """
    last = _LAST_CITATION.search(text)
    bare = text[: last.start() if last else len(text)].rstrip(" \t.)")
    if len(bare) < len('""') or bare[-1] not in _CLOSING:
        return text, ""
    citation = _AFTER_CITATION.search(bare)
    start = citation.end() if citation else max(bare.rfind(one, 0, -1) for one in _OPENING)
    quote = bare[start + 1 : -1].strip()
    if start < 0 or len(words_of(quote).split()) < MIN_QUOTE:
        return text, ""
    before = bare[:start].rstrip(" \t(:")
    if not before or before[-1] not in _COMPLETE:
        return text, quote
    before = before.rstrip(" \t—–-")
    return f"{before} {last.group()}" if last else before, quote


# Courtesies around a summary: a greeting, an offer, "none".

_MAX_COURTESY = 300  # characters; a longer line says more than that


def without_courtesies(lines: list[str]) -> list[str]:
    """The lines without a greeting before them and an offer after them."""
    filled = [index for index, line in enumerate(lines) if line.strip()]
    if filled and _begins(lines[filled[-1]], "offer"):
        lines = lines[: filled.pop()]
    if (
        filled
        and _begins(lines[filled[0]], "greeting")
        and lines[filled[0]].rstrip()[-1] in ":：.!。"
    ):
        lines = lines[filled[0] + 1 :]
    return lines


def says_nothing(text: str) -> bool:
    """Whether a text is just "none", "n/a" or the like."""
    return len(text) <= _MAX_HEADING and _phrases().get(words_of(text)) == "nothing"


def _begins(line: str, courtesy: str) -> bool:
    text = f"{words_of(line[:_MAX_COURTESY])} "
    known = (phrase for phrase, slot in _phrases().items() if slot == courtesy)
    spaced = (phrase if ord(phrase[-1]) > _UNSPACED else f"{phrase} " for phrase in known)
    return len(line) <= _MAX_COURTESY and text.startswith(tuple(spaced)) and not cited(line)[1]
