"""By what a message is known when a client sends it back.

Clients rewrite what they send back: they add default arguments, strip spaces and blank texts, clear
old results, leave out thoughts, put reminders into the user's place. What they do not change is
what their provider named: a call's id and its tool. So a message has two fingerprints:

- its *spine*: the user's own words, the model's words where it calls nothing, and calls by id and
  tool. Results are no part of it (their calls are), nor are thoughts and what systems say;
- its *content*, to the letter, which the caller computes: it tells apart what the spine does not,
  such as the calls of a server that names every call `call_0`.
"""

import json
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Final, NamedTuple

from pydantic import JsonValue

from refold.wire.harness import harness_elements, users_words
from refold.wire.part import Described, Shape

_SIZE: Final = 16
_MIN_UNIQUE: Final = 8
"""Characters that an id needs, apart from words and counters, to name one call and no other."""
_MIN_KEPT: Final = 2
_OWN_NAMES: Final = ("id", "encrypted_content")
_MAX_PARSED: Final = 1_000_000


class Fingerprint(NamedTuple):
    """What a message is known by."""

    spine: tuple[bytes, ...] = ()
    """Digests of what no client changes; empty if there is nothing."""
    names: tuple[str, ...] = ()
    """What its provider named it, or it names: ids of calls, results, messages and reasoning."""
    sort: str = ""
    """What it mainly is: a kind of part. A thought is one alone, which clients may leave out."""


def fingerprint(described: Described, message: Mapping[str, JsonValue]) -> Fingerprint:
    """The fingerprint of a message that its wire described."""
    shapes = described.shapes
    calls = [shape for shape in shapes if shape.kind == "call"]
    spine = (_counted(calls) if calls else _spoken(shapes)) if described.role != "system" else ()
    names = [f"{shape.kind} {shape.call}" for shape in shapes if shape.call]
    names += [f"{key} {value}" for key in _OWN_NAMES if (value := message.get(key))]
    if not spine and described.role == "user":  # then a harness speaks, if anybody does
        tags = (tag for shape in shapes for tag in harness_elements(shape.text))
        names += [f"element {tag}" for tag in tags]
    kinds = [shape.kind for shape in shapes]
    sort = next((kind for kind in ("call", "return", "prompt", "text") if kind in kinds), "")
    return Fingerprint(tuple(spine), tuple(names), sort or (kinds[0] if kinds else ""))


def _counted(calls: Iterable[Shape]) -> list[bytes]:
    return [_digest("call", shape.tool or "", shape.call or shape.text) for shape in calls]


def _spoken(shapes: Iterable[Shape]) -> list[bytes]:
    spine: list[bytes] = []
    for shape in shapes:
        if shape.kind in {"thought", "return", "system"}:
            continue
        words = users_words(shape.text) if shape.kind == "prompt" else shape.text
        words = " ".join(words.split())
        if words or shape.media:
            spine.append(_digest(shape.kind, words, *shape.media))
    return spine


def _digest(*values: str) -> bytes:
    digest = blake2b(digest_size=_SIZE)
    for value in values:
        data = value.encode(errors="surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.digest()


def is_unique(name: str) -> bool:
    """Whether an id can name one call among all conversations.

    Some servers count (`call_0`, `functions.read:3`): such an id is shared by every conversation.
    Words and counters say nothing; what is left must be long enough to be random.
    """
    letters = [piece for piece in _pieces(name) if not piece.isalpha() and not piece.isdigit()]
    long_words = (piece for piece in _pieces(name) if piece.isalpha() and not _is_word(piece))
    numbers = (piece for piece in _pieces(name) if piece.isdigit() and len(piece) >= _MIN_UNIQUE)
    return sum(map(len, (*letters, *long_words, *numbers))) >= _MIN_UNIQUE


def _pieces(name: str) -> list[str]:
    return "".join(one if one.isalnum() else " " for one in name).split()


def _is_word(piece: str) -> bool:
    """Lower or upper case throughout, or capitalized: random letters are seldom so."""
    return piece in {piece.lower(), piece.upper(), piece.capitalize()}


def similar_arguments(one: str, other: str) -> bool:
    """Whether two calls' arguments may be one call's, rewritten by a client.

    Where ids do not tell: values that both have must agree for the most part, but for spaces and
    for what was cut off at either end.
    """
    first, second = _object(one), _object(other)
    if not first or not second:
        return " ".join(one.split()) == " ".join(other.split()) or first == second
    shared = first.keys() & second.keys()
    agreed = sum(_weight(first[key]) for key in shared if _agree(first[key], second[key]))
    differed = sum(_weight(first[key]) for key in shared if not _agree(first[key], second[key]))
    return agreed > differed


def _object(text: str) -> dict[str, JsonValue]:
    try:
        value: JsonValue = json.loads(text) if len(text) <= _MAX_PARSED else None
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _agree(one: JsonValue, other: JsonValue) -> bool:
    if not isinstance(one, str) or not isinstance(other, str):
        return one == other
    short, long = sorted((" ".join(one.split()), " ".join(other.split())), key=len)
    if short == long:
        return True
    return len(short) >= _MIN_KEPT and (long.startswith(short) or long.endswith(short))


def _weight(value: JsonValue) -> int:
    return len(value) + 1 if isinstance(value, str) else 1
