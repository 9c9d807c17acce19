"""Pydantic AI messages, as `ModelMessagesTypeAdapter` writes them (2.66).

A request holds what goes to the model, a response what came from it; their parts are the parts.
Requests in a row are one to the framework, and the returns in them come first, so a call may be
answered in any request before the next response. A message without parts is nothing to a provider,
and no fault.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import ClassVar, Final

from pydantic import JsonValue

from refold.errors import InvalidMessage
from refold.wire.editing import (
    Path,
    Place,
    Retell,
    Turn,
    as_arguments,
    as_list,
    as_object,
    as_string,
    edited,
    unpaired,
)
from refold.wire.part import Change, Described, Insert, Problem, Shape
from refold.wire.splice import Object, encoded, objects, parsed, plain_text, str_or_none


class PydanticAI:
    """The wire of Pydantic AI's own messages."""

    name: ClassVar[str] = "pydantic-ai"
    version: ClassVar[int] = 1
    unique_calls: ClassVar[bool] = False
    itemized: ClassVar[bool] = False
    systems_last: ClassVar[bool] = False

    def describe(self, payload: bytes) -> Described:
        message = parsed(payload)
        readers = _readers(message)
        shapes = tuple(_reader(part, readers)(part)[0] for part in _parts(message))
        if readers is _RESPONSE:
            return Described("assistant", shapes)
        return Described("user", shapes, str_or_none(message.get("instructions")))

    def edit(self, payload: bytes, changes: Mapping[int, Change]) -> bytes | None:
        """The message with these parts changed."""
        message = parsed(payload)
        readers = _readers(message)
        places: list[Place] = []
        for nth, part in enumerate(_parts(message)):
            shape, key, retell = _reader(part, readers)(part)
            places.append(Place(shape, ("parts", nth), ("parts", nth, key), retell))
        return edited(payload, places, changes)

    def make(self, inserts: Sequence[Insert]) -> list[bytes]:
        """The inserts as messages: prompts and replies one each, returns together."""
        if inserts[0].kind == "return":
            return [_message("request", *map(_return_part, inserts))]
        if inserts[0].kind == "state":
            return [insert.text.encode() for insert in inserts]
        kind, part = _INSERT_PARTS[inserts[0].kind]
        return [_message(kind, {"content": insert.text, "part_kind": part}) for insert in inserts]

    def join(self, returns: Sequence[Insert], payload: bytes) -> bytes | None:  # noqa: ARG002
        """Never: the framework itself puts adjacent requests together."""
        return None

    def problems(self, messages: Sequence[bytes]) -> list[Problem]:
        """Calls without their return, returns without their call, prompts before returns."""
        described = [self.describe(payload) for payload in messages]
        joined = [_is_one_request(*two) for two in pairwise(described)]
        turns = [
            Turn(index, message.role == "assistant", message.shapes, patient)
            for index, (message, patient) in enumerate(
                zip(described, [*joined, False], strict=False)
            )
        ]
        alone = [
            Problem(index, "A prompt comes before a return in the same request.")
            for index, message in enumerate(described)
            if not any(joined[max(index - 1, 0) : index + 1]) and _prompts_first(message.shapes)
        ]
        return [*alone, *unpaired(turns)]


def _is_one_request(first: Described, second: Described) -> bool:
    """Whether the framework makes one request of these: not when their instructions differ."""
    instructions = {first.instructions, second.instructions} - {None, ""}
    return first.role == second.role == "user" and len(instructions) <= 1


def _prompts_first(shapes: Sequence[Shape]) -> bool:
    kinds = [shape.kind for shape in shapes if shape.kind in {"prompt", "return"}]
    return "return" in kinds and kinds[0] == "prompt"


_Read = tuple[Shape, str, Retell | None]
"""What a part is, the key that its text is under, and how another is put there."""
_Reader = Callable[[Object], _Read]


def _readers(message: Object) -> "Mapping[str, _Reader]":
    match message.get("kind"):
        case "request":
            return _REQUEST
        case "response":
            return _RESPONSE
        case other:
            raise InvalidMessage(f"A Pydantic AI message is a request or a response: {other!r}.")


def _parts(message: Object) -> list[Object]:
    parts = message.get("parts")
    if not isinstance(parts, list) or len(objects(parts)) != len(parts):
        raise InvalidMessage("A Pydantic AI message has a list of parts.")
    return objects(parts)


def _reader(part: Object, readers: Mapping[str, _Reader]) -> _Reader:
    return readers.get(str(part.get("part_kind")), _unknown)


def _system(part: Object) -> _Read:
    return Shape("system", plain_text(part.get("content")), fixed=True), "content", as_string


def _prompt(part: Object) -> _Read:
    text, media, retell = _content(part.get("content"))
    return Shape("prompt", text, media=media), "content", retell


def _user_speech(part: Object) -> _Read:
    text = plain_text(part.get("transcript"))
    return Shape("prompt", text, sealed=True, media=("audio",)), "", None


def _model_speech(part: Object) -> _Read:
    text = plain_text(part.get("transcript"))
    return Shape("text", text, sealed=True, media=("audio",)), "", None


def _tool_return(part: Object) -> _Read:
    content = part.get("content")
    own = part.get("tool_kind") is not None
    if isinstance(content, list) and any(map(_is_media, content)):
        text, media, retell = _content(content)
    else:
        files: list[str] = []
        text, media, retell = plain_text(_without_files(content, files)), tuple(files), as_string
    tool, call = str_or_none(part.get("tool_name")), str_or_none(part.get("tool_call_id"))
    return Shape("return", text, tool, call, own, own, media), "content", retell


def _retry(part: Object) -> _Read:
    if part.get("tool_name") is not None:
        return _tool_return(part)
    return Shape("other", plain_text(part.get("content"))), "content", as_string


def _text(part: Object) -> _Read:
    shape = Shape("text", plain_text(part.get("content")), sealed=_signed(part))
    return shape, "content", as_string


def _thought(part: Object) -> _Read:
    owned = part.get("id") not in {None, *_FIELDS}  # an item that the provider keeps
    shape = Shape("thought", plain_text(part.get("content")), sealed=owned or _signed(part))
    return shape, "content", as_string


def _tool_call(part: Object) -> _Read:
    own = part.get("tool_kind") is not None
    args = part.get("args")
    tool, call = str_or_none(part.get("tool_name")), str_or_none(part.get("tool_call_id"))
    shape = Shape("call", plain_text(args), tool, call, own or _signed(part), own)
    return shape, "args", as_object if isinstance(args, dict) else as_arguments


def _state(part: Object) -> _Read:
    """What the framework or a provider keeps between requests: hidden tools, its own summary."""
    return _unknown(part)[0]._replace(fixed=True), "", None


def _note(part: Object) -> _Read:
    """A note of the framework's own; it does not depend on the parts next to it."""
    return _unknown(part)[0]._replace(fixed=True, apart=True), "", None


def _unknown(part: Object) -> _Read:
    media: list[str] = []
    shown = _without_files({key: value for key, value in part.items() if value is not None}, media)
    text = str_or_none(part.get("content")) or ("" if media else plain_text(shown))
    tool = str_or_none(part.get("tool_name"))
    return Shape("other", text, tool, sealed=True, media=tuple(media)), "", None


def _signed(part: Object) -> bool:
    return part.get("signature") is not None or part.get("provider_details") is not None


def _without_files(value: JsonValue, media: list[str]) -> JsonValue:
    """A value as the model reads it: files go beside it, and their types into `media`."""
    match value:
        case dict() if _is_media(value):
            media.append(_medium(value))
            return f"See file {value.get('identifier') or value.get('file_id') or ''}.".strip()
        case dict():
            return {key: _without_files(inner, media) for key, inner in value.items()}
        case list():
            return [_without_files(inner, media) for inner in value]
        case _:
            return value


def _is_media(value: JsonValue) -> bool:
    return isinstance(value, dict) and value.get("kind") in _MEDIA


def _medium(value: Object) -> str:
    return str_or_none(value.get("media_type")) or str(value["kind"])


def _content(content: JsonValue) -> tuple[str, tuple[str, ...], Retell]:
    """The text of a content value, the media types it carries, and how it is replaced."""
    if not isinstance(content, list):
        return plain_text(content), (), as_string
    paths: dict[int, Path] = {}
    texts: list[str] = []
    media: list[str] = []
    for nth, item in enumerate(content):
        match item:
            case {"kind": "cache-point"}:
                pass
            case {"kind": "text-content", "content": str() as text}:
                paths[nth] = ("content",)
                texts.append(text)
            case {"kind": "structured-content", "content": str() as text}:
                paths[nth] = ()  # another text is no longer that of its value
                texts.append(text)
            case dict() if _is_media(item):
                media.append(_medium(item))
            case _:
                paths[nth] = ()
                texts.append(plain_text(_without_files(item, media)))
    return (
        "\n".join(texts),
        tuple(media),
        as_list(paths, lambda new: new),
    )  # an item with text is the text itself


def _message(kind: str, *parts: Object) -> bytes:
    return encoded({"parts": list(parts), "kind": kind})


def _return_part(insert: Insert) -> Object:
    return {
        "tool_name": insert.tool or "",
        "content": insert.text,
        "tool_call_id": insert.call or "",
        "part_kind": "tool-return",
    }


_INSERT_PARTS: Final = {"prompt": ("request", "user-prompt"), "reply": ("response", "text")}
_FIELDS: Final = frozenset({"content", "reasoning", "reasoning_content"})
"""Where servers put thoughts; the framework keeps the name as the thought's id."""
_MEDIA: Final = frozenset(
    {"audio-url", "binary", "document-url", "image-url", "uploaded-file", "video-url"}
)
_REQUEST: Final[dict[str, _Reader]] = {
    "system-prompt": _system,
    "user-prompt": _prompt,
    "speech": _user_speech,
    "tool-return": _tool_return,
    "retry-prompt": _retry,
    "retry-feedback": _retry,
    "compaction": _state,
    "tool-availability-delta": _note,
    "capability-load-delta": _note,
    "model-settings-delta": _note,
    "instruction-delta": _note,
    "instruction-baseline": _note,
}
_RESPONSE: Final[dict[str, _Reader]] = {
    "text": _text,
    "thinking": _thought,
    "tool-call": _tool_call,
    "speech": _model_speech,
    "compaction": _state,
}
