"""What identifies a message, however a client writes it when it sends it again.

It is who speaks, and what: texts, calls with their arguments, results, and what images and files
carry. Cache marks, thoughts, nulls and fields that nobody here knows do not count.

What was said is told as nested lists of strings, each with its length in front, and hashed: no two
conversations are alike because their words, put one after another, are.
"""

import json
import re
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

from pydantic import JsonValue

from refold.errors import InvalidMessage
from refold.gateway.dialects.bounded_json import value_of
from refold.wire import Wire
from refold.wire.fingerprint import Fingerprint, fingerprint
from refold.wire.splice import Object, parsed

Told = str | Sequence["Told"]
"""What was said, as nested lists of strings."""

Telling = Callable[[Object], Told | None]
"""Tells an item of a message's content; None if it does not identify anything."""

MARK: Final = "cache_control"
"""The field of a cache mark."""

_SIZE: Final = 32
_LARGE: Final = 1_000_000
"""What is longer is taken as it is written: to look into it would take long."""
_WHOLE_FLOAT: Final = re.compile(r"\.0(?!\d)|\de\+")
_TEXTS: Final = frozenset({"text", "input_text", "output_text"})
_THOUGHTS: Final = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_text"})
_MEDIA: Final = {
    "image": "source",
    "document": "source",
    "image_url": "image_url",
    "video_url": "video_url",
    "input_audio": "input_audio",
    "file": "file",
    "input_image": "",
    "input_file": "",
}
"""The field that holds what an item carries; the item itself if empty."""
_CARRIERS: Final = (
    *("url", "data", "content", "file_id", "id"),
    *("file_data", "file_url", "image_url"),
)


def alike(told: Told) -> bytes:
    """The likeness of what was told."""
    digest = blake2b(digest_size=_SIZE)
    _feed(told, digest.update)
    return digest.digest()


def canonical(value: JsonValue) -> str:
    """The value as JSON that is the same however it was written: 1.0 is 1, keys have no order."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    if len(text) <= _LARGE and _WHOLE_FLOAT.search(text):
        value = json.loads(text, parse_float=_number)
        text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return text


def arguments(given: JsonValue) -> Told:
    """The arguments of a call: as text, as an object, or none at all."""
    if not isinstance(given, str):
        return ("json", canonical({} if given is None else given))
    if not given.strip():
        return ("json", "{}")
    try:
        if len(given) <= _LARGE:
            return ("json", canonical(value_of(given.encode())))
    except ValueError:
        pass
    return ("text", given)


def contents(content: JsonValue, telling: Telling) -> list[Told]:
    """What a message's content says: a string is a list of one text, and an empty one is none."""
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return [("text", content)]
    if not isinstance(content, list):
        return [("other", whole(content))]
    told = (_told(item, telling) for item in content)
    return [one for one in told if one is not None]


def item(given: Object) -> Told | None:
    """A text, a refusal, an image or a file; what is not known is told whole."""
    kind = kind_of(given)
    if kind in _TEXTS and isinstance(text := given.get("text"), str):
        return ("text", text) if text else None
    if kind == "refusal" and isinstance(refusal := given.get("refusal"), str):
        return refused(refusal)
    if kind in _THOUGHTS:
        return None
    if kind in _MEDIA and (carried := _carried(given, _MEDIA[kind])):
        return (kind, carried)
    return other(given)


def kind_of(given: Object) -> str:
    """The type of an item; empty if it has none."""
    kind = given.get("type")
    return kind if isinstance(kind, str) else ""


def refused(words: JsonValue) -> Told | None:
    """A refusal, which is told in two places; None if there is none."""
    return ("refusal", words) if isinstance(words, str) and words else None


def other(given: Object) -> Told:
    """What is not known is told whole."""
    return ("other", whole(given))


def named(value: JsonValue) -> str:
    """A name or an id; empty if there is none."""
    return value if isinstance(value, str) else "" if value is None else whole(value)


def whole(value: JsonValue) -> str:
    """The value as canonical JSON, without nulls and cache marks."""
    text = canonical(value)
    if len(text) <= _LARGE and ("null" in text or MARK in text):
        text = canonical(_pruned(value))
    return text


def _pruned(value: JsonValue) -> JsonValue:
    match value:
        case dict():
            kept = {key: one for key, one in value.items() if one is not None and key != MARK}
            return {key: _pruned(one) for key, one in kept.items()}
        case list():
            return [_pruned(one) for one in value]
        case _:
            return value


def _told(one: JsonValue, telling: Telling) -> Told | None:
    if isinstance(one, dict):
        return telling(one)
    return ("text", one) if isinstance(one, str) else ("other", canonical(one))


def _carried(given: Object, field: str) -> list[Told]:
    holder = given.get(field) if field else given
    if isinstance(holder, str):
        return [("url", holder)]
    if not isinstance(holder, dict):
        return []
    return [(key, named(holder[key])) for key in _CARRIERS if holder.get(key)]


def _number(text: str) -> int | float:
    value = float(text)
    return int(value) if value.is_integer() else value


def _feed(told: Told, update: Callable[[bytes], None]) -> None:
    if isinstance(told, str):
        data = told.encode(errors="surrogatepass")
        update(b"%d:" % len(data))
        update(data)
        return
    update(b"[%d:" % len(told))
    for one in told:
        _feed(one, update)


# What is known of messages that were seen before.
#
# Clients send their whole history each time, so nearly every message was seen a moment ago.

_MOST: Final = 50_000
"""How many messages are known at least, if there were as many; twice as many at most."""


class Facts(NamedTuple):
    """What is known of one message."""

    likeness: bytes
    """What it says, to the letter; empty if it says nothing that clients always send back."""
    answers: bool
    """Whether the model said it."""
    fault: str
    """Why its wire does not take it; empty if it does."""
    known_by: Fingerprint = Fingerprint()

    @property
    def blank(self) -> bool:
        """Whether clients may leave it out: a thought, or an answer of blank text."""
        return not self.likeness or (self.answers and not self.known_by.spine)


class FingerprintCache:
    """Looks at each message once, as long as it is seen now and then.

    Threads may ask at once: at worst a message is looked at twice, or forgotten early.
    """

    def __init__(
        self, wire: Wire, look: Callable[[Object], tuple[bytes, bool]], most: int = _MOST
    ) -> None:
        self._wire = wire
        self._look = look
        self._most = most
        self._now: dict[bytes, Facts] = {}
        self._before: dict[bytes, Facts] = {}

    def __call__(self, payload: bytes) -> Facts:
        """What is known of the message, which is a JSON object."""
        key = blake2b(payload, digest_size=16).digest()
        facts = self._now.get(key)
        if facts is None:
            facts = self._before.get(key) or self._seen(payload)
            if len(self._now) >= self._most:
                self._now, self._before = {}, self._now
            self._now[key] = facts
        return facts

    def _seen(self, payload: bytes) -> Facts:
        try:
            message = parsed(payload)
            likeness, answers = self._look(message)
        except InvalidMessage as error:
            return Facts(b"", answers=False, fault=error.what)
        try:
            described = self._wire.describe(payload)
        except InvalidMessage as error:
            return Facts(likeness, answers, error.what)
        return Facts(likeness, answers, "", fingerprint(described, message))
