"""What the gateway knows of each API that it speaks: its requests, its answers, its errors."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, Protocol

from pydantic import JsonValue

from refold.errors import InvalidInput, InvalidMessage
from refold.gateway.dialects.events import Event
from refold.models.catalog import Usage
from refold.wire.fingerprint import FingerprintCache
from refold.wire.splice import (
    MAX_OBJECTS,
    JsonTooLarge,
    Object,
    array,
    bounded_json,
    compact_json,
    encoded,
    has_infinity,
    parsed,
    scalar_fields,
    str_or_empty,
)

_MAX_COUNT: Final = 2**53
_COMPACTION: Final = b"compaction"
"""In every message that holds a compaction of the provider's."""
_SERVER_ERROR: Final = 500
"""From this status on, it is not the client's fault."""
_OPENAI_ERRORS: Final = {
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_exceeded",
}
_ANTHROPIC_ERRORS: Final = {
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


class Unreadable(Exception):
    """The body is not a JSON object: it is passed on as it came."""


class Bounds(NamedTuple):
    """How much a managed request may hold. A larger one is passed on as it came."""

    items: int = 20_000
    """Messages, or tools, or items in the messages' content."""
    objects: int = MAX_OBJECTS
    """JSON objects and arrays."""


BOUNDS: Final = Bounds()
MAX_ID: Final = 1_000
"""Characters of an id under which a provider keeps something; those of LiteLLM have some 240."""
COMPACTS: Final = "it has the provider shorten the conversation"
"""Why a request is not managed that is no turn, but asks the provider for a compaction."""


class Reference(NamedTuple):
    """What a request continues from that its provider keeps, instead of sending it."""

    field: str
    """Of the request."""
    id: str
    shared: bool = False
    """Whether others may change what has that id: a conversation, not one answer."""

    def __str__(self) -> str:
        return f"{self.field} {self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderState:
    """What an API's provider keeps of a conversation, and edits in it by itself."""

    reference: Callable[[Object], Reference | None] = lambda _body: None
    """What a request continues from, if it names that by an id."""
    names: Callable[[Object], Iterable[str]] = lambda _body: ()
    """Every id by which it names what the provider keeps, anywhere; empty for one that is odd."""
    keeps: Callable[[Object], bool] = lambda _body: False
    """Whether a later request may refer to the answer by its id."""
    edits: Callable[[Object], tuple[str, ...]] = lambda _body: ()
    """How the provider is to shorten the context by itself; empty if it is not."""
    compactions: Callable[[Object], tuple[str, ...]] = lambda _message: ()
    """What identifies the provider's own compactions in a message."""
    detached: Callable[[Object], Object] = lambda body: body
    """The request's fields without the reference."""
    portable: Callable[[bytes], bytes | None] = lambda message: message
    """A message for a provider that does not have it (any more); None if it cannot be sent."""
    unedited: Callable[[Object], Object] = lambda body: body
    """The request's fields, so that the provider shortens nothing."""


NO_STATE: Final = ProviderState()


@dataclass(frozen=True, slots=True)
class ParsedRequest:
    """A client's request: the conversation in it, and what comes with the conversation."""

    raw: bytes
    """The body as it came."""
    body: Mapping[str, JsonValue]
    """Its fields. Of a key that occurs twice, the last counts."""
    model: str
    """Empty if none is named."""
    stream: bool
    unmanaged: str
    """Why it cannot be managed; empty if it can."""
    over_bounds: bool = False
    """Whether that is because it exceeds the bounds."""
    messages: tuple[bytes, ...] = ()
    """The conversation: each message as compact JSON, with the values that came."""
    lead: int = 0
    """How many system messages stood in front of the conversation: they are instructions."""
    instructions: str = ""
    """The text of the instructions, to count it."""
    tools: tuple[str, ...] = ()
    """Each tool's definition as JSON."""
    extras: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """What is not the conversation, as JSON: `instructions` and `tools` if there are any, and
    `settings`, which is all the rest."""
    identity: tuple[str, ...] = ()
    """Whom the client says it speaks for: every identifier, without the empty ones at the end."""
    reference: Reference | None = None
    """What it continues from that the provider keeps."""
    held: int = 0
    """How many of the messages, from the first on, did not come but are behind the reference."""
    edits: tuple[str, ...] = ()
    """How the provider shortens the context by itself, or has done so."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer, or what came of it."""

    payloads: tuple[bytes, ...]
    """Messages of the format, as a client sends them back."""
    usage: Usage | None
    finish: str
    """The provider's reason for ending; empty if unknown."""
    complete: bool
    """False: it was cut off, and the payloads hold only what is whole."""
    id: str = ""
    """The provider's name of the answer, where it may keep it."""
    edits: tuple[str, ...] = ()
    """What the provider says it has cleared from the context by itself."""


class AnswerAssembler(Protocol):
    """Makes an answer of a stream's events."""

    failed: bool
    """An error came as an event."""

    def take(self, event: Event) -> bool:
        """Whether to hold back this event and all after it until the answer is logged."""
        ...

    def answer(self) -> Answer:
        """The answer so far, or all of it."""
        ...


@dataclass(frozen=True, eq=False, kw_only=True)
class Dialect:
    """One API: how its requests are read and changed, and its answers understood."""

    name: str
    """The name of its wire."""
    path: str
    """Where clients send their requests."""
    conversation: str
    """The field of the messages."""
    instructions: str | None
    """The field of the instructions; None: they are the first messages."""
    tools: tuple[str, ...]
    """The fields that define tools."""
    accepts_text: bool = False
    """Whether the conversation may be a string, which is one user message."""
    unsupported: Callable[[Object], str] = lambda _body: ""
    """Why a request cannot be managed, apart from its messages; empty if it can."""
    identifiers: Callable[[Object], tuple[JsonValue, ...]]
    """Whom the client says it speaks for, each in its place, None where it does not."""
    fingerprint: FingerprintCache
    """What identifies a message of this format."""
    answer: Callable[[bytes], Answer | None]
    """The answer in a whole response; None if there is none."""
    assembler: Callable[[], AnswerAssembler]
    refusal: Callable[[int, str, str], bytes]
    """An error of the gateway's, as clients of this API read errors: status, code, text."""
    state: ProviderState = NO_STATE
    """What its provider keeps and edits."""

    def read(self, raw: bytes, bounds: Bounds = BOUNDS) -> ParsedRequest:
        """Parse a request. Raises Unreadable when the body is not a JSON object."""
        try:
            body = bounded_json(raw, bounds.objects)
        except JsonTooLarge as error:
            if not raw.lstrip().startswith(b"{"):
                raise Unreadable("A request is a JSON object.") from error
            return _unmanaged(raw, scalar_fields(raw), str(error), over_bounds=True)
        except ValueError as error:
            raise Unreadable(str(error)) from error
        if not isinstance(body, dict):
            raise Unreadable("A request is a JSON object.")
        identifiers = self.identifiers(body)
        # An identifier that is not text identifies nobody: it must not count as none.
        odd = any(value is not None and not isinstance(value, str) for value in identifiers)
        if why := self.unsupported(body) or ("an identifier of its user is no text" if odd else ""):
            return _unmanaged(raw, body, why)
        conversation = body.get(self.conversation)
        items: list[JsonValue] = _items(conversation)
        if isinstance(conversation, str) and self.accepts_text:
            items = [{"role": "user", "content": conversation}]
        if why := self._excess(body, items, bounds.items):
            return _unmanaged(raw, body, why, over_bounds=True)
        return self._parsed(raw, body, items)

    def body(self, parsed_request: ParsedRequest, messages: Sequence[bytes]) -> bytes:
        """The request with these messages, and all else as it was."""
        if tuple(messages) == parsed_request.messages:
            return parsed_request.raw
        if parsed_request.unmanaged:
            raise InvalidInput(
                f"The request cannot be changed: {parsed_request.unmanaged}.",
                "Pass it on as it came.",
            )
        fields = dict(parsed_request.body)
        if parsed_request.reference is not None:  # its messages are among these
            fields = self.state.detached(fields)
        return self._written(fields, parsed_request, messages)

    def continuing(self, parsed_request: ParsedRequest, history: Sequence[bytes]) -> ParsedRequest:
        """The request with the messages that are behind its reference; its body stays as it is."""
        messages = (*history, *parsed_request.messages)
        edits = self._edits(dict(parsed_request.body), messages)
        return replace(parsed_request, messages=messages, held=len(history), edits=edits)

    def detached(self, parsed_request: ParsedRequest, *, lost: bool = False) -> ParsedRequest:
        """The request with the whole conversation in it instead of the reference.

        If the provider has `lost` what was behind that, nothing in it may name what is kept there.
        """
        body, messages = self.state.detached(dict(parsed_request.body)), parsed_request.messages
        if lost:
            messages = tuple(filter(None, map(self.state.portable, messages)))
        raw = self._written(body, parsed_request, messages)
        return replace(
            parsed_request, raw=raw, body=body, messages=messages, reference=None, held=0
        )

    def unedited(self, parsed_request: ParsedRequest) -> ParsedRequest:
        """The request, so that its provider shortens nothing by itself."""
        body = self.state.unedited(dict(parsed_request.body))
        raw = parsed_request.raw
        if body != parsed_request.body:
            own = parsed_request.messages[parsed_request.held :]  # the others stay where they are
            raw = self._written(body, parsed_request, own)
        return replace(parsed_request, raw=raw, body=body, edits=())

    def _written(
        self, body: Object, parsed_request: ParsedRequest, messages: Sequence[bytes]
    ) -> bytes:
        lead = _items(parsed_request.body.get(self.conversation))[: parsed_request.lead]
        conversation = array([*map(compact_json, lead), *messages])
        fields = (
            compact_json(key)
            + b":"
            + (conversation if key == self.conversation else compact_json(value))
            for key, value in body.items()
        )
        return b"{" + b",".join(fields) + b"}"

    def identity(self, body: Object) -> tuple[str, ...]:
        """Whom the client says it speaks for: every identifier, without empty ones at the end."""
        identity = [*map(str_or_empty, self.identifiers(body))]
        while identity and not identity[-1]:
            identity.pop()
        return tuple(identity)

    def _excess(self, body: Object, items: list[JsonValue], max_items: int) -> str:
        tools = sum(len(_items(body.get(field))) for field in self.tools)
        if max(len(items), tools) > max_items:
            return f"it has more than {max_items:,} messages or tools"
        count = 0
        for item in items:
            count += _count_items(item, max_items)
            if count > max_items + len(items):
                return f"its messages have more than {max_items:,} items"
        return ""

    def _parsed(self, raw: bytes, body: Object, items: list[JsonValue]) -> ParsedRequest:
        lead = 0
        if self.instructions is None:
            roles = (item.get("role") if isinstance(item, dict) else None for item in items)
            others = (
                index for index, role in enumerate(roles) if role not in ("system", "developer")
            )
            lead = next(others, len(items))
            instructions: JsonValue = items[:lead] or None
        else:
            instructions = body.get(self.instructions)
        messages = tuple(map(compact_json, items[lead:]))
        tools = self.tools[0]
        named = {self.conversation, self.instructions, tools}
        settings = {key: value for key, value in body.items() if key not in named}
        extras = {"settings": compact_json(settings)}
        if instructions is not None:
            extras["instructions"] = compact_json(instructions)
        if body.get(tools) is not None:
            extras["tools"] = compact_json(body[tools])
        too_large = any(map(has_infinity, (*messages, *extras.values())))
        return ParsedRequest(
            raw,
            body,
            model=str_or_empty(body.get("model")),
            stream=body.get("stream") is True,
            unmanaged=self._fault(messages)
            or ("a number in it is larger than any that can be held" if too_large else ""),
            messages=messages,
            lead=lead,
            instructions=_text_of(instructions),
            tools=tuple(
                compact_json(tool).decode()
                for field in self.tools
                for tool in _items(body.get(field))
            ),
            extras=extras,
            identity=self.identity(body),
            reference=self.state.reference(body),
            edits=self._edits(body, messages),
        )

    def _edits(self, body: Object, messages: Sequence[bytes]) -> tuple[str, ...]:
        compacted = any(
            _COMPACTION in message and self.state.compactions(parsed(message))
            for message in messages
        )
        return (*self.state.edits(body), *(["its own compaction"] if compacted else []))

    def _fault(self, messages: Sequence[bytes]) -> str:
        if not messages:
            return "it has no messages"
        for index, message in enumerate(messages):
            if fault := self.fingerprint(message).fault:
                return f"message {index} is of no known form: {fault.rstrip('.')}"
        return ""


def _unmanaged(raw: bytes, body: Object, why: str, *, over_bounds: bool = False) -> ParsedRequest:
    model, stream = str_or_empty(body.get("model")), body.get("stream") is True
    return ParsedRequest(raw, body, model, stream, why, over_bounds)


def _count_items(message: JsonValue, max_items: int) -> int:
    """How many items a message has, and those in them."""
    if not isinstance(message, dict):
        return 0
    lists = [value for value in message.values() if isinstance(value, list)]
    count = sum(map(len, lists))
    if count > max_items:
        return count
    inner = (item.get("content") for items in lists for item in items if isinstance(item, dict))
    return count + sum(len(content) for content in inner if isinstance(content, list))


def _text_of(instructions: JsonValue) -> str:
    match instructions:
        case str():
            return instructions
        case list():
            return "\n".join(filter(None, map(_text_of, instructions)))
        case {"text": str() as text}:
            return text
        case {"content": content}:
            return _text_of(content)
        case _:
            return ""


def _items(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


# What all dialects need to read answers and to write errors.


def read_object(data: bytes) -> Object | None:
    """The data as a JSON object; None if it is not one."""
    try:
        return parsed(data)
    except InvalidMessage:
        return None


def join_text(pieces: Iterable[str]) -> str:
    """The pieces as one text; a character whose halves came apart is one again."""
    text = "".join(pieces)
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return text


def without_nulls(fields: Object) -> Object:
    """The fields that are not null: answers have nulls that requests may not have."""
    return {key: value for key, value in fields.items() if value is not None}


def openai_usage(counts: JsonValue) -> Usage | None:
    """The tokens as OpenAI's APIs and servers like them count them: cached ones are input too."""
    if not isinstance(counts, dict):
        return None
    sent = _count(counts, "prompt_tokens", "input_tokens")
    output = _count(counts, "completion_tokens", "output_tokens")
    if sent is None and output is None:
        return None
    details = counts.get("prompt_tokens_details") or counts.get("input_tokens_details")
    counts = {**counts, **details} if isinstance(details, dict) else counts
    read = _count(counts, "cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens")
    write = _count(counts, "cache_write_tokens", "cache_creation_input_tokens")
    return Usage(sent or 0, output or 0, read or 0, write or 0)


def anthropic_usage(counts: Object) -> Usage | None:
    """The tokens as Anthropic counts them: cached ones are not among its input."""
    sent, output = _count(counts, "input_tokens"), _count(counts, "output_tokens")
    if sent is None and output is None:
        return None
    read = _count(counts, "cache_read_input_tokens") or 0
    write = _count(counts, "cache_creation_input_tokens") or 0
    return Usage((sent or 0) + read + write, output or 0, read, write)


def _count(counts: Object, *keys: str) -> int | None:
    for key in keys:
        value = counts.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if 0 <= value < _MAX_COUNT:
            return int(value)
    return None


def openai_refusal(status: int, code: str, text: str) -> bytes:
    """An error in the shape of OpenAI's: by it clients decide what to retry."""
    otherwise = "server_error" if status >= _SERVER_ERROR else "invalid_request_error"
    kind = _OPENAI_ERRORS.get(status, otherwise)
    return encoded({"error": {"message": text, "type": kind, "param": None, "code": code}})


def anthropic_refusal(status: int, code: str, text: str) -> bytes:  # noqa: ARG001 - it has none
    """An error in the shape of Anthropic's."""
    otherwise = "api_error" if status >= _SERVER_ERROR else "invalid_request_error"
    kind = _ANTHROPIC_ERRORS.get(status, otherwise)
    return encoded({"type": "error", "error": {"type": kind, "message": text}})
