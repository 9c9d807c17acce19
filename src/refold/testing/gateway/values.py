"""Texts, numbers and fields of all kinds, from a source of random numbers."""

import json
from random import Random
from typing import Final

from pydantic import JsonValue

Object = dict[str, JsonValue]

_WORDS: Final = (
    *("alpha", "beta", "read the file", "Zürich", "日本語", "\U0001f600", "e\u0301"),
    *('"quoted"', "back\\slash", "line\nline", "\t", "\u2028", "\x7f", "</script>", "null", "[1]"),
)
_NUMBERS: Final[tuple[JsonValue, ...]] = (
    *(0, -1, 7, 2**53 + 1, 10**30, -(2**63)),
    *(1.0, -0.0, 0.1, 1e22, 1e-7, 5e-324, 1.7976931348623157e308),
)


def chance(random: Random, of: float) -> bool:
    """Whether it happens."""
    return random.random() < of


def text(random: Random) -> str:
    """A text that says something."""
    said = " ".join(random.choices(_WORDS, k=random.randint(1, 4)))
    return said + " \ud800" if chance(random, 0.01) else said


def name(random: Random, prefix: str) -> str:
    """An id."""
    return f"{prefix}_{random.randrange(10**9)}"


def value(random: Random, depth: int = 2) -> JsonValue:
    """Any JSON value."""
    kind = random.randrange(6 if depth else 4)
    if kind < 2:
        return text(random)
    if kind == 2:
        return random.choice(_NUMBERS)
    if kind == 3:
        return random.choice((None, True, False, "", {}, []))
    if kind == 4:
        return [value(random, depth - 1) for _ in range(random.randint(0, 3))]
    return {text(random): value(random, depth - 1) for _ in range(random.randint(0, 3))}


def arguments(random: Random) -> Object:
    """The arguments of a call."""
    return {f"{key}{random.randrange(9)}": value(random) for key in random.choices("abcd", k=2)}


def with_extras(random: Random, given: Object) -> Object:
    """The object with fields that nobody knows, now and then."""
    if chance(random, 0.2):
        given = {**given, f"x_{random.randrange(9)}": value(random)}
    return given


def with_mark(random: Random, given: Object) -> Object:
    """The block with a cache mark, now and then."""
    return {**given, "cache_control": mark(random)} if chance(random, 0.15) else given


def mark(random: Random) -> Object:
    """A cache mark."""
    return {"type": "ephemeral", **({"ttl": "1h"} if chance(random, 0.3) else {})}


def spelled(random: Random, given: JsonValue) -> str:
    """The value as JSON, in one of the ways in which clients write it."""
    style = random.randrange(3)
    if style == 0:
        return json.dumps(given)
    if style == 1:
        return json.dumps(given, separators=(",", ":"))
    return json.dumps(given, indent=2, sort_keys=True)


def as_body(random: Random, given: JsonValue) -> bytes:
    """The value as the bytes of a request."""
    if chance(random, 0.5):
        try:
            return json.dumps(given, ensure_ascii=False, separators=(",", ":")).encode()
        except UnicodeEncodeError:
            pass
    return spelled(random, given).encode()


def shuffled(random: Random, given: JsonValue) -> JsonValue:
    """The value with the keys of its objects in another order."""
    match given:
        case dict():
            keys = list(given)
            random.shuffle(keys)
            return {key: shuffled(random, given[key]) for key in keys}
        case list():
            return [shuffled(random, one) for one in given]
        case _:
            return given
