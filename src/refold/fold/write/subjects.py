"""What the claims of a summary are about, and the headings that models write for it."""

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Final, Literal, NamedTuple, cast, get_args

Subject = Literal["goal", "decisions", "files", "errors", "state", "next", "questions", "notes"]
"""What a claim is about."""

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
"""The sections of a summary that a model writes, in their order, with the heading of each."""

Slot = Subject | Literal["title", "obsolete", "summary"]
"""What a heading may stand over: claims, the title, numbers of obsolete claims, or it all."""

_LONGEST = 120  # characters of a heading; more is a sentence
_WORD = re.compile(r"[^\W_]+")
_ASIDE = re.compile(r"\([^()]*\)|（[^（）]*）")  # noqa: RUF001 - the brackets of Chinese text


class Known(NamedTuple):
    """A heading that was understood."""

    slot: Slot
    exact: bool
    """Whether it says no more than that."""


def words_of(text: str) -> str:
    """The words of a text: case, punctuation and spacing aside."""
    return " ".join(_WORD.findall(text.casefold()))


def known(heading: str) -> Known | None:
    """What a heading stands over, if it is one that models use."""
    if len(heading) > _LONGEST:
        return None
    phrases = _phrases()
    words = words_of(heading)
    if slot := phrases.get(words):
        return Known(slot, exact=True)
    for shorter in (words_of(_ASIDE.sub(" ", heading)), words_of(re.split("[:：]", heading)[0])):  # noqa: RUF001
        if slot := phrases.get(shorter):
            return Known(slot, exact=False)
    return _beginning(words.split(), phrases)


def _beginning(words: list[str], phrases: dict[str, Slot]) -> Known | None:
    """A heading of a few words whose first or last ones are a known heading."""
    if not 1 < len(words) <= _MOST_WORDS:
        return None
    for count in range(len(words) - 1, 0, -1):
        for part in (words[:count], words[-count:]):
            slot = phrases.get(" ".join(part))
            if slot and slot in get_args(Subject):
                return Known(slot, exact=False)
    return None


_MOST_WORDS = 7


@cache
def _phrases() -> dict[str, Slot]:
    text = (files("refold.fold.write") / "prompts" / "headings.toml").read_text("utf-8")
    table = tomllib.loads(text)
    found: dict[str, Slot] = {}
    for slot, languages in table.items():
        for phrases in languages.values():
            found |= {words_of(one): cast("Slot", slot) for one in phrases}
    return found
