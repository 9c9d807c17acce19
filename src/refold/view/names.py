"""The names that a text mentions: what a model needs to know that it has seen something."""

import re
from collections import Counter

_RUN = re.compile(r"[\w./~-]++")
_TELLING = re.compile(r"\w[/._]\w|[a-z][A-Z]|\d{4}")
_SHORTEST, _LONGEST = 4, 80


def names(text: str, room: int) -> str:
    """The names a text mentions, the most frequent first, as far as there is room."""
    if not room:
        return ""
    chosen: list[str] = []
    for name, _ in Counter(_RUN.findall(text)).most_common():
        if not _telling(name):
            continue
        room -= len(name) + 2
        if room < 0:
            break
        chosen.append(name)
    return ", ".join(chosen)


def mentioning(text: str, room: int) -> str:
    """The names as the end of a sentence; nothing when there are none."""
    known = names(text, room)
    return f"; mentions {known}" if known else ""


def _telling(word: str) -> bool:
    """Whether a word is a path, an identifier or a number, rather than prose."""
    return _SHORTEST <= len(word) <= _LONGEST and _TELLING.search(word) is not None
