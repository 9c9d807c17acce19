"""Reads requests, and writes them with other messages: what is alike in all dialects."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from pydantic import JsonValue

from refold.errors import InvalidInput
from refold.gateway.dialects.asked import Asked, Unreadable
from refold.gateway.dialects.bounded_json import (
    MAX_OBJECTS,
    TooMuch,
    endless,
    surface,
    value_of,
    written,
)
from refold.gateway.dialects.seen_before import Seen
from refold.wire.splice import Object, array


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
    """Why a request cannot be governed, apart from its messages; empty if it can."""
    identifiers: Callable[[Object], tuple[JsonValue, ...]]
    """Whom the client says it speaks for, each in its place, None where it does not."""
    seen: Seen
    lone_text: bool = False
    """Whether a text may stand for the messages."""


def asked_of(raw: bytes, form: Form, bounds: Bounds = BOUNDS) -> Asked:
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
    return _asked(raw, body, form, listed)


def body_of(asked: Asked, form: Form, messages: Sequence[bytes]) -> bytes:
    """The request with these messages, and all else as it was."""
    if tuple(messages) == asked.messages:
        return asked.raw
    if asked.ungoverned:
        raise InvalidInput(
            f"The request cannot be changed: {asked.ungoverned}.", "Pass it on as it came."
        )
    lead = _many(asked.body.get(form.conversation))[: asked.lead]
    conversation = array([*map(written, lead), *messages])
    fields = (
        written(key) + b":" + (conversation if key == form.conversation else written(value))
        for key, value in asked.body.items()
    )
    return b"{" + b",".join(fields) + b"}"


def _asked(raw: bytes, body: Object, form: Form, listed: list[JsonValue]) -> Asked:
    lead = _lead(listed) if form.instructions is None else 0
    messages = tuple(written(one) for one in listed[lead:])
    beside, instructions = _beside(body, form, listed[:lead])
    return Asked(
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
        ungoverned=_fault(messages, form.seen) or _unwritable((*messages, *beside.values())),
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


def _fault(messages: Sequence[bytes], seen: Seen) -> str:
    if not messages:
        return "it has no messages"
    for at, message in enumerate(messages):
        if fault := seen(message).fault:
            return f"message {at} is of no known form: {fault.rstrip('.')}"
    return ""


def _unwritable(pieces: Iterable[bytes]) -> str:
    too_large = any(map(endless, pieces))
    return "a number in it is larger than any that can be held" if too_large else ""


def _unread(raw: bytes, why: str) -> Asked:
    if not raw.lstrip().startswith(b"{"):
        raise Unreadable("A request is a JSON object.")
    return _bare(raw, surface(raw), why, over_bounds=True)


def _bare(raw: bytes, body: Object, why: str, *, over_bounds: bool = False) -> Asked:
    """A request that is passed on as it came, and not looked into."""
    model, stream = _str(body.get("model")), body.get("stream") is True
    return Asked(raw, body, model, (), 0, "", (), {}, stream, (), why, over_bounds)


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
