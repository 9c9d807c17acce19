"""Raw JSON: read it within bounds, and change values in it without touching a byte around them.

A message that is parsed and written again is no longer the same: numbers, escapes, spaces and the
order of duplicate keys may differ, and with them a signature or a provider's cache. So edits are
made in the bytes themselves.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple, cast

from pydantic import JsonValue
from pydantic_core import from_json, to_json

from refold.errors import InvalidMessage

MAX_DEPTH: Final = 200
"""No message nests deeper; beyond, parsers give up in ways of their own."""
MAX_OBJECTS: Final = 1_000_000
"""Objects and arrays. Each costs memory many times its size. Brackets in texts count too: that is
quick."""
_MAX_BRACKETS: Final = 100_000
"""How many brackets of a document that is not parsed are looked at."""
# A string ends with its quote or with the text: no text, JSON or not, is read more than once.
_STRING: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
_TOKEN: Final = re.compile(_STRING + rb'|[{}\[\],:]|[^\s{}\[\],:"]++', re.DOTALL)
# The bracket is optional: a search that fails at the end would be repeated from every byte.
_TO_BRACKET: Final = re.compile(rb'(?:[^"{}\[\]]++|' + _STRING + rb")*+[{}\[\]]?", re.DOTALL)
_TOO_DEEP: Final = f"it nests deeper than {MAX_DEPTH} levels"
_BARE_INFINITY: Final = (b":Infinity", b",Infinity", b"[Infinity", b"-Infinity")
_INFINITY: Final = re.compile(_STRING + rb"|Infinity", re.DOTALL)

Object = dict[str, JsonValue]


class Value(NamedTuple):
    """Where a value lies in the raw JSON."""

    start: int
    end: int


class Member(NamedTuple):
    """A key of an object and its value; `where` spans both."""

    key: str
    where: Value
    value: Value


class Cut(NamedTuple):
    """Bytes to replace, and what replaces them."""

    where: Value
    data: bytes


def parsed(raw: bytes) -> Object:
    """The message as an object. Raises InvalidMessage if it is not one."""
    try:
        value = json_value(raw)
    except ValueError as error:
        raise InvalidMessage(f"The message is not JSON: {error}.") from error
    if not isinstance(value, dict):
        shown = repr(raw[:40].decode(errors="replace"))
        raise InvalidMessage(f"A message is a JSON object, not {shown}.")
    return value


def json_value(raw: bytes) -> JsonValue:
    """The value. Raises ValueError when it is not JSON, or nests too deep."""
    try:
        return from_json(raw)
    except ValueError:  # it refuses lone surrogates and very long numbers, which are legal JSON
        # It stops where it gets too deep: what comes after may be long.
        if any(depth > MAX_DEPTH for depth, _ in _brackets(raw)):
            raise
        return json.loads(raw.decode(), parse_int=_int_or_float)


def is_object(text: str) -> bool:
    """Whether the text is a JSON object."""
    try:
        return isinstance(json_value(text.encode()), dict)
    except ValueError:
        return False


def objects(value: JsonValue) -> list[Object]:
    """The objects in an array; nothing for a value that is not an array."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def str_or_none(value: JsonValue) -> str | None:
    return value if isinstance(value, str) else None


def str_or_empty(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""


def json_text(value: JsonValue) -> str:
    """A value as compact JSON, as models get to see it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def plain_text(value: JsonValue) -> str:
    """A string as it is, nothing for null, any other value as JSON."""
    return value if isinstance(value, str) else "" if value is None else json_text(value)


def encoded(value: JsonValue) -> bytes:
    """A value as the bytes of compact JSON; a lone surrogate, which is not text, is escaped."""
    try:
        return json_text(value).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def compact_json(value: JsonValue) -> bytes:
    """Like `encoded`, only faster and with shorter numbers (`1e22`)."""
    try:
        return to_json(value)
    except ValueError:  # a lone surrogate
        return json.dumps(value, separators=(",", ":")).encode()


def array(values: Iterable[bytes]) -> bytes:
    """An array of values that are raw JSON already."""
    return b"[" + b",".join(values) + b"]"


# Documents from clients, which may be hostile.


class JsonTooLarge(ValueError):
    """The document may be JSON, but exceeds a limit; the message says which."""


def bounded_json(raw: bytes, max_objects: int = MAX_OBJECTS) -> JsonValue:
    """The value of a client's document. Raises ValueError when it is not JSON, and JsonTooLarge."""
    if raw.count(b"[") + raw.count(b"{") > max_objects:
        raise JsonTooLarge(f"it has more than {max_objects:,} objects and arrays")
    try:
        return from_json(raw, allow_inf_nan=False)
    except ValueError:  # not JSON, or too deep, or JSON that only the slower parser takes
        pass
    # How deep the parser goes differs from one Python to the next.
    if any(depth > MAX_DEPTH for depth, _ in islice(_brackets(raw), _MAX_BRACKETS)):
        raise JsonTooLarge(_TOO_DEEP)
    try:
        value: JsonValue = json.loads(
            raw.decode(), parse_int=_int_or_float, parse_constant=_refuse_constant
        )
    except RecursionError as error:
        raise JsonTooLarge(_TOO_DEEP) from error
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [inner for outer in level for inner in _values(outer)]
        if not level:
            return value
    raise JsonTooLarge(_TOO_DEEP)


def has_infinity(data: bytes) -> bool:
    """Whether `compact_json` wrote a number that was larger than any float."""
    # Most that contain the word have it in a text, and telling strings apart takes long.
    if b"Infinity" not in data:
        return False
    bare = data.startswith(b"Infinity") or any(start in data for start in _BARE_INFINITY)
    return bare and b"Infinity" in _INFINITY.findall(data)


def scalar_fields(raw: bytes) -> Object:
    """The plain values of an object that is too large to parse, with null for all others.

    Empty when a bounded look does not find its end.
    """
    try:
        value = bounded_json(b"".join(_with_nulls(raw)))
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _with_nulls(raw: bytes) -> Iterator[bytes]:
    """The document with null for each array or object in the outermost one."""
    depth = copied = 0
    for after, end in islice(_brackets(raw), _MAX_BRACKETS):
        opened, depth = after > depth, after
        if opened and depth == 2:  # noqa: PLR2004 - one below the outermost
            yield raw[copied : end - 1] + b"null"
        elif not opened and depth == 1:
            copied = end
        elif not opened and depth == 0:
            yield raw[copied:]
            return


def _values(value: JsonValue) -> list[JsonValue]:
    match value:
        case dict():
            return list(value.values())
        case list():
            return value
        case _:
            return []


def _int_or_float(digits: str) -> int | float:
    try:
        return int(digits)
    except ValueError:
        return float(digits)


def _refuse_constant(name: str) -> JsonValue:
    raise ValueError(f"{name} is not JSON.")


# Where values are, and how they are replaced.


def root(raw: bytes) -> Value:
    """The whole document, without the spaces around it."""
    start = len(raw) - len(raw.lstrip())
    return Value(start, len(raw.rstrip()))


def pairs(raw: bytes, where: Value) -> list[Member]:
    """The keys and values of an object, in order, with keys that occur twice."""
    pieces = items(raw, where)
    return [
        Member(
            cast("str", json_value(raw[key.start : key.end])), Value(key.start, value.end), value
        )
        for key, value in zip(pieces[::2], pieces[1::2], strict=True)
    ]


def items(raw: bytes, where: Value) -> list[Value]:
    """The values of an array; for an object, keys and values in turn."""
    values: list[Value] = []
    end = where.start + 1
    while token := _TOKEN.search(raw, end, where.end):
        start, end = token.span()
        if raw[start] in b"{[":
            end = next(end for depth, end in _brackets(raw, start) if depth == 0)
        if raw[start] not in b",:]}":
            values.append(Value(start, end))
    return values


def spliced(raw: bytes, cuts: Iterable[Cut]) -> bytes:
    """The document with the cuts made; they must not overlap."""
    pieces: list[bytes] = []
    copied = 0
    for where, data in sorted(cuts):
        pieces += [raw[copied : where.start], data]
        copied = where.end
    return b"".join([*pieces, raw[copied:]])


def removed(listed: Sequence[Value], indexes: Collection[int]) -> list[Cut]:
    """The cuts that take items of an array, or members of an object, out with their commas."""
    cuts: list[Cut] = []
    leading = True
    for index, value in enumerate(listed):
        if index not in indexes:
            leading = False
        elif not leading:
            cuts.append(Cut(Value(listed[index - 1].end, value.end), b""))
        elif index + 1 < len(listed):
            cuts.append(Cut(Value(value.start, listed[index + 1].start), b""))
        else:
            cuts.append(Cut(value, b""))
    return cuts


def _brackets(raw: bytes, start: int = 0) -> Iterator[tuple[int, int]]:
    """The depth after each bracket, and where that is."""
    depth = 0
    for step in _TO_BRACKET.finditer(raw, start):
        start, end = step.span()
        last = raw[max(start, end - 1) : end]
        depth += (last in {b"{", b"["}) - (last in {b"}", b"]"})
        yield depth, end
