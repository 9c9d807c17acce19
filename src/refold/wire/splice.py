"""Changing values inside raw JSON, and not one byte around them.

A message that is parsed and written again is no longer the same: numbers, escapes, spaces and the
order of duplicate keys may differ, and with them a signature or a provider's cache. So edits are
made in the bytes themselves.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple, cast

from pydantic import JsonValue
from pydantic_core import from_json, to_json

from refold.errors import InvalidMessage

# A string ends with its quote or with the text: no text, JSON or not, is read more than once.
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
_TOKEN = re.compile(_STRING + rb'|[{}\[\],:]|[^\s{}\[\],:"]++', re.DOTALL)
_TO_BRACKET = re.compile(rb'(?:[^"{}\[\]]++|' + _STRING + rb")*+[{}\[\]]?", re.DOTALL)
_OPEN, _CLOSE = (b"{", b"["), (b"}", b"]")
_DEEPEST = 200
"""No message nests deeper; beyond, parsers give up in ways of their own."""


class Value(NamedTuple):
    """Where a value lies in the raw JSON."""

    start: int
    end: int


class Member(NamedTuple):
    """A key of an object and its value; `where` is both together."""

    key: str
    where: Value
    value: Value


class Cut(NamedTuple):
    """These bytes make way for others."""

    where: Value
    data: bytes


Object = dict[str, JsonValue]


def parsed(raw: bytes) -> Object:
    """The message as an object."""
    try:
        value = _value(raw)
    except ValueError as error:
        raise InvalidMessage(f"The message is not JSON: {error}.") from error
    if not isinstance(value, dict):
        raise InvalidMessage(f"A message is a JSON object, not {_shown(raw)}.")
    return value


def objects(value: JsonValue) -> list[Object]:
    """The objects among the values of an array; nothing for what is no array."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def is_object(text: str) -> bool:
    """Whether the text is a JSON object."""
    try:
        return isinstance(_value(text.encode()), dict)
    except ValueError:
        return False


def written(value: JsonValue) -> str:
    """A value as compact JSON, as models get to see it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def encoded(value: JsonValue) -> bytes:
    """A value as the bytes of compact JSON; a lone surrogate, which is no text, is escaped."""
    try:
        return written(value).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def string(text: str) -> bytes:
    """The text as a JSON string."""
    try:
        return to_json(text)
    except ValueError:
        return encoded(text)


def root(raw: bytes) -> Value:
    """The whole document, without the spaces around it."""
    start = len(raw) - len(raw.lstrip())
    return Value(start, len(raw.rstrip()))


def pairs(raw: bytes, where: Value) -> list[Member]:
    """The keys and values of an object, in order, with keys that occur twice."""
    pieces = _children(raw, where)
    return [
        Member(_key(raw, key), Value(key.start, value.end), value)
        for key, value in zip(pieces[::2], pieces[1::2], strict=True)
    ]


def items(raw: bytes, where: Value) -> list[Value]:
    """The values of an array."""
    return _children(raw, where)


def spliced(raw: bytes, cuts: Iterable[Cut]) -> bytes:
    """The document with the cuts made; they must not overlap."""
    pieces: list[bytes] = []
    done = 0
    for where, data in sorted(cuts):
        pieces += [raw[done : where.start], data]
        done = where.end
    return b"".join([*pieces, raw[done:]])


def removed(listed: Sequence[Value], gone: Collection[int]) -> list[Cut]:
    """The cuts that take items of an array, or members of an object, out with their commas."""
    cuts: list[Cut] = []
    leading = True
    for at, one in enumerate(listed):
        if at not in gone:
            leading = False
        elif not leading:
            cuts.append(Cut(Value(listed[at - 1].end, one.end), b""))
        elif at + 1 < len(listed):
            cuts.append(Cut(Value(one.start, listed[at + 1].start), b""))
        else:
            cuts.append(Cut(one, b""))
    return cuts


def array(kept: Iterable[bytes]) -> bytes:
    """An array of values that are raw JSON already."""
    return b"[" + b",".join(kept) + b"]"


def _value(raw: bytes) -> JsonValue:
    try:
        return from_json(raw)
    except ValueError:  # it refuses lone surrogates and very long numbers, which are legal JSON
        # It stops where it gets too deep: what comes after may be long.
        if any(depth > _DEEPEST for depth, _ in _brackets(raw, 0)):
            raise
        return json.loads(raw.decode(), parse_int=_whole)


def _whole(digits: str) -> int | float:
    try:
        return int(digits)
    except ValueError:
        return float(digits)


def _brackets(raw: bytes, start: int) -> Iterator[tuple[int, int]]:
    """How deep it is after each bracket, and where that is."""
    depth = 0
    for step in _TO_BRACKET.finditer(raw, start):
        last = step[0][-1:]
        depth += (last in _OPEN) - (last in _CLOSE)
        yield depth, step.end()


def _key(raw: bytes, where: Value) -> str:
    return cast("str", _value(raw[where.start : where.end]))


def _shown(raw: bytes) -> str:
    return repr(raw[:40].decode(errors="replace"))


def _children(raw: bytes, where: Value) -> list[Value]:
    """The values one level below; for an object, keys and values in turn."""
    found: list[Value] = []
    at = where.start + 1
    while token := _TOKEN.search(raw, at, where.end):
        start, at = token.span()
        if raw[start] in b"{[":
            at = _closing(raw, start)
        if raw[start] not in b",:]}":
            found.append(Value(start, at))
    return found


def _closing(raw: bytes, start: int) -> int:
    """The end of the array or object that begins here."""
    return next(end for depth, end in _brackets(raw, start) if depth == 0)
