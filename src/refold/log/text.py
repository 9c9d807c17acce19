"""The text of entries, and what it means to find something in it.

Every store answers a search alike, because the words are made here and not in the store: lower
case, without accents, split at everything that is neither a letter nor a digit. Scripts that are
written without spaces are split into their characters. A query finds an entry when each of its
terms is there; a term of several words (`max_history_messages`, `src/app.py`) must be there as a
run of them.
"""

import json
import re
import unicodedata
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from pydantic import JsonValue

from refold.log.entry import Draft, Entry
from refold.log.kinds import KINDS

Run = tuple[str, ...]
"""Words that follow each other."""
Term = tuple[Run, ...]
"""Something to look for: any of these runs."""
P = TypeVar("P", bound=Hashable)

WORDS_VERSION = 1
"""Raised when the same entry yields other words: stores then index anew."""

UNICODE = int("".join(f"{int(part):03}" for part in unicodedata.unidata_version.split(".")))
"""Python's table of characters, which also decides what the words are."""

_UNSEARCHED_KINDS = frozenset(kind.KIND for kind in KINDS if not kind.SEARCHED)
_STRUCTURE = frozenset(
    {"role", "kind", "part_kind", "type", "id", "timestamp", "format", "profile"}
)
_BINARY = re.compile(r"[A-Za-z0-9+/_=-]{256,}")
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")
_LONGEST = 64
# The blocks of marks that are put on letters; those that are part of one, as in Hindi, stay.
_ACCENTS = re.compile("[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]")


def text_of(entry: Entry | Draft) -> str:
    """What people may look for in an entry: the strings of its body, one on a line."""
    if entry.kind in _UNSEARCHED_KINDS or entry.forgotten:
        return ""
    try:
        body = json.loads(entry.body, parse_int=_no_number, parse_float=_no_number)
    except (ValueError, RecursionError):  # not JSON, or deeper than we can read: no words
        return ""
    return "\n".join(_strings(body))


def words(text: str) -> list[str]:
    """The words of a text, as they are indexed and looked for."""
    if not text.isascii():
        bare = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
        text = unicodedata.normalize("NFKC", bare).casefold()
    return [word[:_LONGEST] for word in _WORD.findall(text.lower())]


def placed_words(text: str) -> Iterator[tuple[int, str]]:
    """The words of a text, each with the character at which it begins."""
    for match in _WORD.finditer(text):
        for word in words(match.group()):
            yield match.start(), word


def terms(query: str) -> list[list[str]]:
    """A query as runs of words, each of which must be found; none when nothing can be."""
    return [run for run in map(words, query.split()) if run]


def found(query: list[list[str]], text: str) -> bool:
    """Whether each term of the query is in the text."""
    if not query:
        return False
    line = f" {' '.join(words(text))} "
    return all(f" {' '.join(run)} " in line for run in query)


class Searched(NamedTuple):
    """The words of a text, in the forms in which terms are looked for."""

    line: str
    words: frozenset[str]
    length: int

    @classmethod
    def of(cls, text: str) -> "Searched":
        """The words of this text."""
        there = words(text)
        return cls(f" {' '.join(there)} ", frozenset(there), len(there))

    def holds(self, term: Term) -> bool:
        """Whether any of the term's runs is there."""
        return any(
            run[0] in self.words if len(run) == 1 else f" {' '.join(run)} " in self.line
            for run in term
            if run
        )


def gather(places: Sequence[Sequence[P]], most: int) -> dict[P, tuple[int, ...]]:
    """Which terms each place holds, given the places of each term, the newest first.

    No more than `most` places are taken: those of the rarest terms, and of equals the newest. A
    common term then still counts where a rare one is.
    """
    taken: dict[P, list[int]] = {}
    for nth in sorted(range(len(places)), key=lambda nth: len(places[nth])):
        for place in places[nth]:
            if place in taken:
                taken[place].append(nth)
            elif len(taken) < most:
                taken[place] = [nth]
    return {place: tuple(sorted(held)) for place, held in taken.items()}


def excerpt(text: str, query: str, width: int = 160) -> str:
    """About `width` characters of the text around the first term of the query, on one line."""
    flat = " ".join(text.split())
    parts = query.split()
    at = max(flat.lower().find(parts[0].lower()), 0) if parts else 0
    start = max(0, min(at - width // 3, len(flat) - width))
    piece = flat[start : start + width]
    return f"{'…' if start else ''}{piece}{'…' if start + width < len(flat) else ''}"


def _no_number(_: str) -> None:
    """A number is no word, and may be longer than Python reads."""


def _strings(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        if not _BINARY.fullmatch(value):
            yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key not in _STRUCTURE and not key.endswith("_id"):
                yield from _strings(item)
