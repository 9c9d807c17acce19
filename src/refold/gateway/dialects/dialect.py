"""What the gateway must know of each API that it speaks."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from pydantic import JsonValue

from refold.errors import InvalidInput, InvalidMessage
from refold.gateway.dialects.bounded_json import (
    MAX_OBJECTS,
    TooMuch,
    endless,
    surface,
    value_of,
    written,
)
from refold.gateway.dialects.events import Event
from refold.gateway.dialects.fingerprint import FingerprintCache
from refold.models.catalog import Usage
from refold.wire.fingerprint import Fingerprint
from refold.wire.splice import Object, array, encoded, parsed

# What a model answered, as its provider told it: whole, or in a stream of events.


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


# A request as the client sent it.


class Unreadable(Exception):
    """The body is no JSON object: it is passed on as it came."""


@dataclass(frozen=True, slots=True)
class ParsedRequest:
    """One request: the conversation in it, and what stands beside the conversation."""

    raw: bytes
    """The body as it came."""
    body: Mapping[str, JsonValue]
    """What it says. Of a key that occurs twice, the last counts."""
    model: str
    """Empty if none is named."""
    messages: tuple[bytes, ...]
    """The conversation: each message as compact JSON, with the values that came."""
    lead: int
    """How many system messages stood in front of the conversation: they are instructions."""
    instructions: str
    """The words of the instructions, to count them."""
    tools: tuple[str, ...]
    """Each tool's definition as JSON."""
    beside: Mapping[str, bytes]
    """What is not the conversation, as JSON: `instructions` and `tools` if there are any, and
    `settings`, which is all the rest."""
    stream: bool
    identity: tuple[str, ...]
    """Whom the client says it speaks for: every identifier, without the empty ones at the end."""
    unmanaged: str
    """Why it cannot be managed; empty if it can."""
    over_bounds: bool = False
    """Whether that is because it holds more than is managed."""


# Reads requests, and writes them with other messages: what is alike in all dialects.


class Bounds(NamedTuple):
    """How much a managed request may hold. One that holds more is passed on as it came."""

    items: int = 20_000
    """Messages, or tools, or items in the messages' content."""
    objects: int = MAX_OBJECTS
    """JSON objects and arrays."""


BOUNDS: Final = Bounds()


class Form(NamedTuple):
    """Where a dialect has what."""

    conversation: str
    """The field of the messages."""
    instructions: str | None
    """The field of the instructions; None: they are the first messages."""
    tools: tuple[str, ...]
    """The fields that define tools."""
    elsewhere: Callable[[Object], str]
    """Why a request cannot be managed, apart from its messages; empty if it can."""
    identifiers: Callable[[Object], tuple[JsonValue, ...]]
    """Whom the client says it speaks for, each in its place, None where it does not."""
    seen: FingerprintCache
    lone_text: bool = False
    """Whether a text may stand for the messages."""


def asked_of(raw: bytes, form: Form, bounds: Bounds = BOUNDS) -> ParsedRequest:
    """The request. Raises Unreadable when the body is no JSON object."""
    try:
        body = value_of(raw, bounds.objects)
    except TooMuch as error:
        return _unread(raw, str(error))
    except ValueError as error:
        raise Unreadable(str(error)) from error
    if not isinstance(body, dict):
        raise Unreadable("A request is a JSON object.")
    listed = _listed(body, form)
    if why := form.elsewhere(body) or _unidentified(body, form):
        return _bare(raw, body, why)
    if why := _crowded(body, form, listed, bounds.items):
        return _bare(raw, body, why, over_bounds=True)
    return _parsed_request(raw, body, form, listed)


def body_of(parsed_request: ParsedRequest, form: Form, messages: Sequence[bytes]) -> bytes:
    """The request with these messages, and all else as it was."""
    if tuple(messages) == parsed_request.messages:
        return parsed_request.raw
    if parsed_request.unmanaged:
        raise InvalidInput(
            f"The request cannot be changed: {parsed_request.unmanaged}.", "Pass it on as it came."
        )
    lead = _many(parsed_request.body.get(form.conversation))[: parsed_request.lead]
    conversation = array([*map(written, lead), *messages])
    fields = (
        written(key) + b":" + (conversation if key == form.conversation else written(value))
        for key, value in parsed_request.body.items()
    )
    return b"{" + b",".join(fields) + b"}"


def _parsed_request(raw: bytes, body: Object, form: Form, listed: list[JsonValue]) -> ParsedRequest:
    lead = _lead(listed) if form.instructions is None else 0
    messages = tuple(written(one) for one in listed[lead:])
    beside, instructions = _beside(body, form, listed[:lead])
    return ParsedRequest(
        raw,
        body,
        model=_str(body.get("model")),
        messages=messages,
        lead=lead,
        instructions=_words(instructions),
        tools=tuple(
            written(one).decode() for field in form.tools for one in _many(body.get(field))
        ),
        beside=beside,
        stream=body.get("stream") is True,
        identity=_identity(form.identifiers(body)),
        unmanaged=_fault(messages, form.seen) or _unwritable((*messages, *beside.values())),
    )


def _beside(body: Object, form: Form, lead: list[JsonValue]) -> tuple[dict[str, bytes], JsonValue]:
    """What is not the conversation, and the instructions in it."""
    instructions: JsonValue = lead or None
    if form.instructions is not None:
        instructions = body.get(form.instructions)
    tools = form.tools[0]
    apart = {form.conversation, form.instructions, tools}
    settings = {key: value for key, value in body.items() if key not in apart}
    beside = {"settings": written(settings)}
    if instructions is not None:
        beside["instructions"] = written(instructions)
    if body.get(tools) is not None:
        beside["tools"] = written(body[tools])
    return beside, instructions


def _listed(body: Object, form: Form) -> list[JsonValue]:
    """The messages; where a lone text may stand for them, it is the user's."""
    conversation = body.get(form.conversation)
    if isinstance(conversation, str) and form.lone_text:
        return [{"role": "user", "content": conversation}]
    return _many(conversation)


def _lead(listed: list[JsonValue]) -> int:
    for at, one in enumerate(listed):
        if not isinstance(one, dict) or one.get("role") not in ("system", "developer"):
            return at
    return len(listed)


def _crowded(body: Object, form: Form, listed: list[JsonValue], max_items: int) -> str:
    tools = sum(len(_many(body.get(field))) for field in form.tools)
    if max(len(listed), tools) > max_items:
        return f"it has more than {max_items:,} messages or tools"
    items = 0
    for one in listed:
        items += _held(one, max_items)
        if items > max_items + len(listed):
            return f"its messages have more than {max_items:,} items"
    return ""


def _held(message: JsonValue, max_items: int) -> int:
    """How many items a message has, and those in them."""
    if not isinstance(message, dict):
        return 0
    lists = [one for one in message.values() if isinstance(one, list)]
    count = sum(map(len, lists))
    if count > max_items:
        return count
    inner = (one.get("content") for items in lists for one in items if isinstance(one, dict))
    return count + sum(len(one) for one in inner if isinstance(one, list))


def _fault(messages: Sequence[bytes], seen: FingerprintCache) -> str:
    if not messages:
        return "it has no messages"
    for at, message in enumerate(messages):
        if fault := seen(message).fault:
            return f"message {at} is of no known form: {fault.rstrip('.')}"
    return ""


def _unwritable(pieces: Iterable[bytes]) -> str:
    too_large = any(map(endless, pieces))
    return "a number in it is larger than any that can be held" if too_large else ""


def _unread(raw: bytes, why: str) -> ParsedRequest:
    if not raw.lstrip().startswith(b"{"):
        raise Unreadable("A request is a JSON object.")
    return _bare(raw, surface(raw), why, over_bounds=True)


def _bare(raw: bytes, body: Object, why: str, *, over_bounds: bool = False) -> ParsedRequest:
    """A request that is passed on as it came, and not looked into."""
    model, stream = _str(body.get("model")), body.get("stream") is True
    return ParsedRequest(raw, body, model, (), 0, "", (), {}, stream, (), why, over_bounds)


def _unidentified(body: Object, form: Form) -> str:
    """An identifier that is no text identifies nobody: it must not count as none."""
    odd = any(one is not None and not isinstance(one, str) for one in form.identifiers(body))
    return "an identifier of its user is no text" if odd else ""


def _identity(identifiers: tuple[JsonValue, ...]) -> tuple[str, ...]:
    texts = [*map(_str, identifiers)]
    while texts and not texts[-1]:
        texts.pop()
    return tuple(texts)


def _words(value: JsonValue) -> str:
    """The words of instructions, in whichever form they come."""
    match value:
        case str():
            return value
        case list():
            return "\n".join(filter(None, map(_words, value)))
        case {"text": str() as text}:
            return text
        case {"content": content}:
            return _words(content)
        case _:
            return ""


def _many(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _str(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""


@dataclass(frozen=True, eq=False)
class Dialect:
    """One API: how its requests are read and changed, and its answers understood."""

    name: str
    """The name of its wire."""
    path: str
    """Where clients send their requests."""
    form: Form
    """Where its requests have what."""
    answer: Callable[[bytes], Answer | None]
    """The answer in a whole response; None if there is none."""
    assembling: Callable[[], Assembling]
    """Makes what makes the answer of a stream's events."""
    refusal: Callable[[int, str, str], bytes]
    """An error of the gateway's, as clients of this API read errors: status, code, words."""

    def read(self, raw: bytes, bounds: Bounds = BOUNDS) -> ParsedRequest:
        """The request. Raises Unreadable when the body is no JSON object."""
        return asked_of(raw, self.form, bounds)

    def likeness(self, payload: bytes) -> bytes:
        """What identifies the message, however a client writes it; empty if nothing does."""
        return self.form.seen(payload).likeness

    def known_by(self, payload: bytes) -> Fingerprint:
        """By what the message is known when a client has rewritten it."""
        return self.form.seen(payload).known_by

    def blank(self, payload: bytes) -> bool:
        """Whether clients may leave the message out when they send it back."""
        return self.form.seen(payload).blank

    def answers(self, payload: bytes) -> bool:
        """Whether the model said it."""
        return self.form.seen(payload).answers

    def body(self, parsed_request: ParsedRequest, messages: Sequence[bytes]) -> bytes:
        """The request with these messages, and all else as it was."""
        return body_of(parsed_request, self.form, messages)


# What the gateway itself refuses, said as the provider would say it.
#
# Clients know their provider's errors: by these shapes they tell what to retry and what not.

_OPENAI: Final = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_exceeded"}
_ANTHROPIC: Final = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_OURS: Final = 500
"""From here on, it is not the client's fault."""


def openai_refusal(status: int, code: str, words: str) -> bytes:
    """An error as OpenAI's APIs and servers like them tell it."""
    otherwise = "server_error" if status >= _OURS else "invalid_request_error"
    kind = _OPENAI.get(status, otherwise)
    told: dict[str, JsonValue] = {"message": words, "type": kind, "param": None, "code": code}
    return encoded({"error": told})


def anthropic_refusal(status: int, code: str, words: str) -> bytes:  # noqa: ARG001 - it has none
    """An error as Anthropic's API tells it."""
    otherwise = "api_error" if status >= _OURS else "invalid_request_error"
    kind = _ANTHROPIC.get(status, otherwise)
    return encoded({"type": "error", "error": {"type": kind, "message": words}})
