"""The text of entries, and what it means to find something in it.

Every store answers a search alike, because the words are made here and not in the store: lower
case, without accents, split at everything that is neither a letter nor a digit. Scripts that are
written without spaces are split into their characters, and so are emoji. A query finds an entry
when each of its terms is there; a term of several words (`max_history_messages`, `src/app.py`) must
be there as a run of them.
"""

import json
import re
import unicodedata
from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple, TypeVar

from pydantic import JsonValue

from refold.log.entry import Draft, Entry
from refold.log.kinds import KINDS

Run = tuple[str, ...]
"""Words that follow each other."""
Term = tuple[Run, ...]
"""Something to look for: any of these runs."""
P = TypeVar("P", bound=Hashable)

WORDS_VERSION = 2
"""Raised when the same entry yields other words: stores then rebuild their index."""

UNICODE = int("".join(f"{int(part):03}" for part in unicodedata.unidata_version.split(".")))
"""Python's table of characters, which also decides what the words are."""

_UNSEARCHED_KINDS = frozenset(kind.KIND for kind in KINDS if not kind.SEARCHED)
_STRUCTURE = frozenset(
    {"role", "kind", "part_kind", "type", "id", "timestamp", "format", "profile"}
)
"""What formats say of a message. In what a tool was given or returned, such a key is data."""
_PAYLOADS = frozenset({"args", "arguments", "input", "output", "action", "results"})
"""Where formats put what a tool was given or returned, as data of any shape."""
_BYTES = frozenset(
    {"data", "url", "image_url", "file_data", "b64_json", "result"}
    | {"signature", "encrypted_content"}
)
"""Where formats put bytes. A name that is missing here costs room in an index, and no word."""
_BINARY = re.compile(r"(?:data:[\w.+/-]{1,100}(?:;[\w.+=-]{1,100}){1,9},)?[A-Za-z0-9+/_=-]{256,}")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|[nrtbf])")
_JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_EMOJI = "\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")
_INDEX_WORD = re.compile(rf"[{_UNSPACED}{_EMOJI}]|[^\W_{_UNSPACED}{_EMOJI}]+")
_ASCII_WORD = re.compile(r"[a-z0-9]+")  # the same for most texts, and quicker
_LONGEST = 64
# The blocks of marks that are put on letters; those that are part of one, as in Hindi, stay.
_ACCENTS = re.compile("[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]")


class _Number(str):
    """A number as it is spelled in JSON; it may be longer than Python would read."""

    __slots__ = ()


def text_of(entry: Entry | Draft) -> str:
    """What people may look for in an entry: the strings of its body, one on a line.

    Of what a tool was given or returned, it is also the names and the numbers.
    """
    if entry.kind in _UNSEARCHED_KINDS or entry.forgotten:
        return ""
    try:
        body = json.loads(entry.body, parse_int=_Number, parse_float=_Number)
        return "\n".join(_strings(body))
    except (ValueError, RecursionError):  # not JSON, or deeper than Python reads
        return "\n".join(_loose_strings(entry.body.decode(errors="replace")))


def words(text: str) -> list[str]:
    """The words of a text, without emoji: what two texts have in common."""
    pattern = _ASCII_WORD if text.isascii() else _WORD
    return [word[:_LONGEST] for word in pattern.findall(_plain(text))]


def index_words(text: str) -> list[str]:
    """The words of a text, as they are indexed and looked for."""
    pattern = _ASCII_WORD if text.isascii() else _INDEX_WORD
    return [word[:_LONGEST] for word in pattern.findall(_plain(text))]


def _plain(text: str) -> str:
    """The text in lower case and without accents, each character in its plainest form."""
    if not text.isascii():
        bare = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
        text = unicodedata.normalize("NFKC", bare).casefold()
    return text.lower()


class PlacedWord(NamedTuple):
    start: int
    end: int
    word: str


def placed_words(text: str) -> Iterator[PlacedWord]:
    """The words of `index_words`, the same ones in the same order, each with its place."""
    for token in re.finditer(r"\S+", text):
        piece, offset = token.group(), token.start()
        if piece.isascii():
            for match in _ASCII_WORD.finditer(piece.lower()):
                start, end = match.span()
                yield PlacedWord(offset + start, offset + end, match.group()[:_LONGEST])
            continue
        plain, clusters = _plain_with_places(piece)
        for match in _INDEX_WORD.finditer(plain):
            start, end = clusters[match.start()][0], clusters[match.end() - 1][1]
            yield PlacedWord(offset + start, offset + end, match.group()[:_LONGEST])


def _plain_with_places(text: str) -> tuple[str, list[tuple[int, int]]]:
    """The plain text, and for each of its characters where the text has what it was made of.

    Making a text plain joins letters with the marks behind them. So it is made plain cluster by
    cluster: a character with the marks that follow it.
    """
    plain: list[str] = []
    places: list[tuple[int, int]] = []
    start = 0
    for end in range(1, len(text) + 1):
        if end < len(text) and _joins(text[end]):
            continue
        cluster = _plain(text[start:end])
        plain.append(cluster)
        places += [(start, end)] * len(cluster)
        start = end
    return "".join(plain), places


@lru_cache(maxsize=4096)
def _joins(character: str) -> bool:
    """Whether it may become one with the character before it: a mark, or the end of a syllable."""
    first = unicodedata.normalize("NFKD", character)[0]
    return unicodedata.category(first)[0] == "M" or "\u1160" <= first <= "\u11ff"


def terms(query: str) -> list[list[str]]:
    """A query as runs of words, each of which must be found; none when nothing can be."""
    return [run for run in map(index_words, query.split()) if run]


def contains_all(query: list[list[str]], text: str) -> bool:
    if not query:
        return False
    line = f" {' '.join(index_words(text))} "
    return all(f" {' '.join(run)} " in line for run in query)


class Searched(NamedTuple):
    """The words of a text, in the forms in which terms are looked for."""

    line: str
    words: frozenset[str]
    length: int

    @classmethod
    def of(cls, text: str) -> "Searched":
        found = index_words(text)
        return cls(f" {' '.join(found)} ", frozenset(found), len(found))

    def holds(self, term: Term) -> bool:
        return any(
            run[0] in self.words if len(run) == 1 else f" {' '.join(run)} " in self.line
            for run in term
            if run
        )


def gather(places: Sequence[Sequence[P]], max_places: int) -> dict[P, tuple[int, ...]]:
    """Which terms each place holds, given the places of each term, the newest first.

    No more than `max_places` are taken: those of the rarest terms, and of equals the newest. A
    common term then still counts where a rare one is.
    """
    gathered: dict[P, list[int]] = {}
    for nth in sorted(range(len(places)), key=lambda nth: len(places[nth])):
        for place in places[nth]:
            if place in gathered:
                gathered[place].append(nth)
            elif len(gathered) < max_places:
                gathered[place] = [nth]
    return {place: tuple(sorted(terms)) for place, terms in gathered.items()}


def _strings(value: JsonValue, key: str = "") -> Iterator[str]:
    """The strings that a message says; of data for tools and from them, all that is in it."""
    if isinstance(value, str):
        if not isinstance(value, _Number) and not _is_bytes(value, key):
            yield from _texts(value)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item, key)
    elif isinstance(value, dict):
        for name, item in value.items():
            if _is_payload(value, name, item):
                yield from _scalars(item, name)
            elif name not in _STRUCTURE and not name.endswith("_id"):
                yield from _strings(item, name)


def _is_payload(part: dict[str, JsonValue], key: str, value: JsonValue) -> bool:
    if key in _PAYLOADS:
        return not isinstance(value, str)
    # Messages have strings or lists of parts for their content; what a tool returned may be any.
    return key == "content" and (
        isinstance(value, dict) or str(part.get("part_kind", "")).endswith("tool-return")
    )


def _scalars(value: JsonValue, key: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from _scalars(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from _scalars(item, key)
    elif not isinstance(value, str):
        yield json.dumps(value)
    elif not _is_bytes(value, key):
        yield from _texts(value)


def _texts(text: str) -> Iterator[str]:
    """A string (its content, if it is JSON), and the text with its escapes resolved."""
    # Arguments and results of tools are often JSON in a string. As it stands there, a word after
    # the end of a line begins with the n of the escape, and u00fc is a part of Zürich.
    if "\\" not in text:
        yield text
        return
    if text.lstrip()[:1] in {"{", "["}:
        try:
            data = json.loads(text, parse_int=_Number, parse_float=_Number)
        except (ValueError, RecursionError):
            pass
        else:
            yield from _scalars(data)
            return
    yield text
    for line in text.splitlines():
        if "\\" in line:
            yield from (_unescape(token) for token in line.split() if "\\" in token)


def _unescape(token: str) -> str:
    plain = _ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else " ", token)
    if plain.isascii():
        return plain
    # What is beyond 16 bits is escaped as two halves, which are one character only together.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _is_bytes(value: str, key: str) -> bool:
    """Whether it is encoded binary data, such as a picture: nobody searches for that."""
    return key in _BYTES and _BINARY.fullmatch(value) is not None


def _loose_strings(text: str) -> Iterator[str]:
    """The strings in what is almost JSON; all of the text if there are none."""
    strings: list[str] = []
    for match in _JSON_STRING.finditer(text):
        with suppress(ValueError):
            strings.append(json.loads(match.group(), strict=False))
    yield from strings or [text]
