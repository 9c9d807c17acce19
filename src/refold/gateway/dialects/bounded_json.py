"""JSON as clients send it: read within bounds, and written again with the same values."""

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from pydantic import JsonValue
from pydantic_core import from_json, to_json

from refold.wire.splice import Object

DEEPEST: Final = 200
"""No request nests deeper; beyond, parsers give up in ways of their own."""

MAX_OBJECTS: Final = 1_000_000
"""Objects and arrays. Each costs memory many times its size. Brackets in texts count too: that is
quick."""

_MOST_STEPS: Final = 100_000
"""How many brackets of a document that is not read are looked at."""

# A string ends with its quote or with the text: no text, JSON or not, is read more than once.
_STRING: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
_TO_BRACKET: Final = re.compile(rb'(?:[^"{}\[\]]++|' + _STRING + rb")*+[{}\[\]]", re.DOTALL)
_DEEP: Final = f"it nests deeper than {DEEPEST} levels"
_BARE: Final = (b":Infinity", b",Infinity", b"[Infinity", b"-Infinity")
_INFINITE: Final = re.compile(_STRING + rb"|Infinity", re.DOTALL)


class TooMuch(ValueError):
    """The document is JSON perhaps, but more than is read; it says why."""


def value_of(raw: bytes, max_objects: int = MAX_OBJECTS) -> JsonValue:
    """What the document says. Raises ValueError when it is no JSON, and TooMuch."""
    if raw.count(b"[") + raw.count(b"{") > max_objects:
        raise TooMuch(f"it has more than {max_objects:,} objects and arrays")
    try:
        return from_json(raw, allow_inf_nan=False)
    except ValueError:  # no JSON, or too deep, or JSON that only the slower parser takes
        return _slowly(raw)


def written(value: JsonValue) -> bytes:
    """The value as compact JSON."""
    try:
        return to_json(value)
    except ValueError:  # a lone surrogate, which is no text, is escaped
        return json.dumps(value, separators=(",", ":")).encode()


def endless(data: bytes) -> bool:
    """Whether a number in what was written was larger than any that can be held."""
    if b"Infinity" not in data:
        return False
    # Most that say so are texts, and telling strings apart takes long.
    bare = data.startswith(b"Infinity") or any(one in data for one in _BARE)
    return bare and b"Infinity" in _INFINITE.findall(data)


def surface(raw: bytes) -> Object:
    """The plain values of an object that is not read, with null for all others.

    Empty when a bounded look does not find its end.
    """
    try:
        value = value_of(b"".join(_outermost(raw)))
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _slowly(raw: bytes) -> JsonValue:
    """Lone surrogates and very long numbers are legal JSON too."""
    if _begins_deep(raw):  # how deep the parser goes differs from one Python to the next
        raise TooMuch(_DEEP)
    try:
        value: JsonValue = json.loads(raw.decode(), parse_int=_whole, parse_constant=_refused)
    except RecursionError as error:
        raise TooMuch(_DEEP) from error
    if _is_deep(value):
        raise TooMuch(_DEEP)
    return value


def _whole(digits: str) -> int | float:
    try:
        return int(digits)
    except ValueError:
        return float(digits)


def _refused(name: str) -> JsonValue:
    raise ValueError(f"{name} is no JSON.")


def _begins_deep(raw: bytes) -> bool:
    """Whether it nests too deep within the part that is looked at, JSON or not."""
    depth = 0
    for step in islice(_TO_BRACKET.finditer(raw), _MOST_STEPS):
        depth += 1 if raw[step.end() - 1] in b"{[" else -1
        if depth > DEEPEST:
            return True
    return False


def _is_deep(value: JsonValue) -> bool:
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [inner for one in level for inner in _inside(one)]
        if not level:
            return False
    return True


def _inside(value: JsonValue) -> list[JsonValue]:
    match value:
        case dict():
            return list(value.values())
        case list():
            return value
        case _:
            return []


def _outermost(raw: bytes) -> Iterator[bytes]:
    """The document with null for each array or object in the outermost one."""
    depth = done = 0
    for step in islice(_TO_BRACKET.finditer(raw), _MOST_STEPS):
        end = step.end()
        if raw[end - 1] in b"{[":
            depth += 1
            if depth == 2:  # noqa: PLR2004 - one below the outermost
                yield raw[done : end - 1] + b"null"
            continue
        depth -= 1
        if depth == 1:
            done = end
        elif depth == 0:
            yield raw[done:]
            return
