"""Whether a provider refused a request for its length, and what it said of its limit.

No two providers say it alike, most say it in a sentence, and some of these sentences are close to
those about rates, credits and the length of an answer. What is known of them stands in
`refold.models.overflow_sentences`.

Nothing here reads more than a bounded part of a body, and nothing raises.
"""

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final, NamedTuple, cast

from refold.models.overflow_sentences import (
    CODES,
    FIELDS,
    OTHER_CODES,
    OTHER_SENTENCES,
    OTHER_STATUSES,
    SENTENCES,
    TOO_LARGE,
    Sentence,
)

__all__ = ["Overflow", "overflow_of", "refused_otherwise"]

_Object = dict[object, object]

_SAID: Final = (
    "message",
    "error",
    "errors",
    "detail",
    "details",
    "msg",
    "errorMessage",
    "error_msg",
    "metadata",
    "raw",
    "base_resp",
    "status_msg",
    "response",
)
"""Where a body says what happened. Elsewhere it may quote the request, which gives no reason."""

_OPENED: Final = 50
"""Of a body's objects, lists and texts, how many are read."""

_READ: Final = 4_000
"""Of a text, how many characters."""

_PARSED: Final = 2_000_000
"""Of a text that is JSON, how many characters at most."""

_NUMBER: Final = r"(\d{1,3}(?:[,_'\u00a0\u202f]\d{3})+|\d{1,12})(?:\.0)?(?!\d)"
"""A number, also with marks between its thousands."""

_QUOTES: Final = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")


class Overflow(NamedTuple):
    """A request was refused for its length. What the provider did not say is None."""

    limit: int | None = None
    """How many tokens it takes: of input, or of input and output together."""
    asked: int | None = None
    """How many tokens of input it counted."""
    output: int | None = None
    """How many tokens of output were asked for, where they count towards the limit."""


def overflow_of(status: int | None, body: object, text: str = "") -> Overflow | None:
    """What a refusal says of the request's length; None where that was not the reason.

    Args:
        status: The HTTP status, where there was one.
        body: The body, as JSON was read from it or as it came.
        text: What else was said, where there is no body.
    """
    told = _told(body, text)
    if _otherwise(status, told):
        return None
    worded = next(filter(None, map(_worded, told.texts)), None)
    if worded is None and not told.codes & CODES and status != TOO_LARGE:
        return None
    return (worded or Overflow())._replace(**told.numbers)


def refused_otherwise(status: int | None, body: object, text: str = "") -> bool:
    """Whether a refusal gives a reason that sounds like its length and is not: a rate, a credit."""
    return _otherwise(status, _told(body, text))


class _Told(NamedTuple):
    """What is read of a body."""

    texts: list[str]
    codes: set[str]
    numbers: dict[str, int]


def _told(body: object, text: str) -> _Told:
    told = _Told([], set(), {})
    for found in _opened(body if text == "" else [body, text]):
        if isinstance(found, str):
            told.texts.append(_plain(found))
            continue
        codes = (found.get("code"), found.get("type"))
        told.codes.update(code.lower() for code in codes if isinstance(code, str))
        for field, name in FIELDS.items():
            number = found.get(field)
            if type(number) is int and number > 0:
                told.numbers[name] = number
    return told


def _otherwise(status: int | None, told: _Told) -> bool:
    if status in OTHER_STATUSES or told.codes & OTHER_CODES:
        return True
    return any(_pattern(other).search(text) for text in told.texts for other in OTHER_SENTENCES)


def _opened(body: object) -> Iterator[_Object | str]:
    """The objects and texts of a body, outer ones first, also of JSON within texts."""
    waiting = deque[object]([body])
    for _ in range(_OPENED):
        if not waiting:
            return
        found = waiting.popleft()
        if isinstance(found, bytes | bytearray):
            found = bytes(found[:_PARSED]).decode(errors="replace")
        if isinstance(found, str):
            inner = _parsed(found)
            if inner is None:
                yield found
            else:
                waiting.append(inner)
        elif isinstance(found, dict):
            opened = cast("_Object", found)
            yield opened
            waiting.extend(opened[key] for key in _SAID if key in opened)
        elif isinstance(found, list | tuple):
            waiting.extend(cast("list[object]", found)[:_OPENED])


def _parsed(text: str) -> object:
    """What JSON the text is, if it is an object or a list."""
    if len(text) > _PARSED or not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _plain(text: str) -> str:
    return " ".join(text[:_READ].translate(_QUOTES).lower().split())


def _worded(text: str) -> Overflow | None:
    """What the text says, if it has one of the sentences."""
    said = next((one for one in SENTENCES if _pattern(one.mark).search(text)), None)
    return None if said is None else _numbers(said, text)


def _numbers(said: Sentence, text: str) -> Overflow:
    limit, output = _number(said.limit, text), _number(said.output, text)
    total, over = _number(said.total, text), _number(said.over, text)
    asked = _number(said.asked, text)
    if asked is None and total is not None:
        asked = total - (output or 0)
    if asked is None and limit is not None and over is not None:
        asked = limit + over
    return Overflow(limit, asked, output)


def _number(places: Iterable[str], text: str) -> int | None:
    """The number in the first of these places that the text has."""
    for place in places:
        found = _pattern(place).search(text)
        if found:
            return int(re.sub(r"\D", "", found[1])) or None
    return None


@cache
def _pattern(words: str) -> re.Pattern[str]:
    return re.compile(words.replace("#", _NUMBER))
