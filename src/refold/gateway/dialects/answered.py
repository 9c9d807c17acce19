"""What a model answered, as its provider told it: whole, or in a stream of events."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue

from refold.errors import InvalidMessage
from refold.gateway.dialects.events import Event
from refold.models.spending import Usage
from refold.wire.splice import Object, parsed


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer, or what came of it."""

    payloads: tuple[bytes, ...]
    """Messages of the format, as a client sends them back."""
    usage: Usage | None
    finish: str
    """The provider's reason for ending; empty if unknown."""
    complete: bool
    """False: it was cut off, and the payloads hold only what is whole."""


class Assembling(Protocol):
    """Makes an answer of a stream's events."""

    failed: bool
    """An error came as an event."""

    def take(self, event: Event) -> bool:
        """Whether this event and all after it are held back until the answer is logged."""
        ...

    def answer(self) -> Answer:
        """What was answered so far, or all of it."""
        ...


def read(data: bytes) -> Object | None:
    """The data as a JSON object; None if it is none."""
    try:
        return parsed(data)
    except InvalidMessage:
        return None


def joined(pieces: Iterable[str]) -> str:
    """The pieces as one text; a character whose halves came apart is one again."""
    text = "".join(pieces)
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return text


def without_nulls(fields: Object) -> Object:
    """The fields that say something: answers have nulls that requests may not have."""
    return {key: value for key, value in fields.items() if value is not None}


def openai_usage(told: JsonValue) -> Usage | None:
    """The tokens as OpenAI's APIs and servers like them count them: cached ones are input too."""
    if not isinstance(told, dict):
        return None
    sent = _first(told, "prompt_tokens", "input_tokens")
    made = _first(told, "completion_tokens", "output_tokens")
    if sent is None and made is None:
        return None
    details = told.get("prompt_tokens_details") or told.get("input_tokens_details")
    told = {**told, **details} if isinstance(details, dict) else told
    hit = _first(told, "cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens")
    written = _first(told, "cache_write_tokens", "cache_creation_input_tokens")
    return Usage(sent or 0, made or 0, hit or 0, written or 0)


def anthropic_usage(told: Object) -> Usage | None:
    """The tokens as Anthropic counts them: what its cache had is not among its input."""
    sent, made = _first(told, "input_tokens"), _first(told, "output_tokens")
    if sent is None and made is None:
        return None
    hit = _first(told, "cache_read_input_tokens") or 0
    written = _first(told, "cache_creation_input_tokens") or 0
    return Usage((sent or 0) + hit + written, made or 0, hit, written)


def _first(told: Object, *keys: str) -> int | None:
    for key in keys:
        value = told.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _MOST:
            return int(value)
    return None


_MOST = 2**53
