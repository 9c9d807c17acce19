"""Words as they are compared: without their endings, numbers without their groups."""

import re
from collections.abc import Iterator

from refold.fold.ground.directive_words import NUMBER_WORDS, STOP
from refold.fold.ground.named import spellings
from refold.log.text import words

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
