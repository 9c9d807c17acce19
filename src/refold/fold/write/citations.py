"""Citations: which entries a claim says it rests on, in the many spellings that models use."""

import re
from typing import Final

MOST_OF_A_RANGE: Final = 50
"""Entries of a range that are all cited; of a longer one, its two ends are."""

_WORD = (
    r"(?:entr(?:y|ies|ée|ées|ada|adas)|eintr(?:ag|äge)|seqs?|messages?|msgs?|sources?|parts?|refs?"
    r"|voc[ei]|записи|запись|条目|條目|エントリー?|항목)"
)
_NUMBER = r"[#№e]?\d{1,9}(?:\.\d{1,3})?"
_RANGE = rf"{_NUMBER}(?:\s{{0,2}}[-–—]\s{{0,2}}{_NUMBER})?"  # noqa: RUF001 - dashes of typography
_AND = r"\s{0,2}(?:,|;|、|&|\band\b|\bund\b|\bet\b|\by\b)\s{0,2}"
_LIST = rf"{_RANGE}(?:{_AND}(?:{_WORD}\s{{0,2}})?{_RANGE})*"
_NAMED = rf"{_WORD}[\s.:#]{{0,3}}{_LIST}"
_BRACKETED = re.compile(
    rf"[ \t]?(?<![A-Za-z0-9_\]])\^?(?:\[\^?\s{{0,2}}(?:{_NAMED}|{_LIST})\s{{0,2}}\](?!\()"
    rf"|【\s{{0,2}}(?:{_NAMED}|{_LIST})\s{{0,2}}】"
    rf"|[(（]\s{{0,2}}(?:see\s|cf\.?\s)?{_NAMED}\s{{0,2}}[)）])"  # noqa: RUF001 - of Chinese text
    rf"(?:\[\s{{0,2}}{_LIST}\s{{0,2}}\](?!\())*",
    re.IGNORECASE,
)
_MENTIONED = re.compile(rf"\(\s{{0,2}}#{_LIST}\s{{0,2}}\)|\b{_NAMED}", re.IGNORECASE)
_ENDS = re.compile(r"(\d+)(?:\.\d+)?(?:\s{0,2}[-–—]\s{0,2}[#№e]?(\d+))?")  # noqa: RUF001
_SPACE = re.compile(r"[ \t]+(?=[.,;:!?](?:\s|$))")


def cited(text: str) -> tuple[str, tuple[int, ...]]:
    """The text without its bracketed citations, and the entries that it cites.

    What may be something else too, such as `(#12)`, counts and stays in the text.
    """
    if not any(char.isdigit() for char in text):
        return text.strip(), ()
    found: dict[int, None] = {}

    def noted(match: re.Match[str]) -> str:
        found.update(dict.fromkeys(numbers(match.group())))
        return ""

    rest = _BRACKETED.sub(noted, text)
    for match in _MENTIONED.finditer(rest):
        found.update(dict.fromkeys(numbers(match.group())))
    if len(rest) != len(text):
        rest = _SPACE.sub("", rest)
    return rest.strip(), tuple(found)


def numbers(text: str) -> tuple[int, ...]:
    """The numbers in a list of them, with those between the ends of each short range."""
    found: dict[int, None] = {}
    for match in _ENDS.finditer(text):
        first = int(match[1])
        last = int(match[2] or first)
        inside = range(first, last + 1) if 0 <= last - first < MOST_OF_A_RANGE else (first, last)
        found.update(dict.fromkeys(inside))
    return tuple(one for one in found if one > 0)
