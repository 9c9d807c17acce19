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
from refold.wire.splice import Object, encoded, objects, parsed, written


class PydanticAI:
    """The wire of Pydantic AI's own messages."""

    name: ClassVar[str] = "pydantic-ai"
    version: ClassVar[int] = 1
    unique_calls: ClassVar[bool] = False
    itemized: ClassVar[bool] = False
    systems_last: ClassVar[bool] = False

    def describe(self, payload: bytes) -> Described:
        """The message as parts."""
        message = parsed(payload)
        known = _known(message)
        shapes = tuple(_reader(part, known)(part)[0] for part in _parts(message))
        if known is _RESPONSE:
            return Described("assistant", shapes)
        return Described("user", shapes, _str(message.get("instructions")))

    def edit(self, payload: bytes, changes: Mapping[int, Change]) -> bytes | None:
        """The message with these parts changed."""
        message = parsed(payload)
        known = _known(message)
        places: list[Place] = []
        for nth, part in enumerate(_parts(message)):
            shape, key, retell = _reader(part, known)(part)
            places.append(Place(shape, ("parts", nth), ("parts", nth, key), retell))
        return edited(payload, places, changes)

    def make(self, inserts: Sequence[Insert]) -> list[bytes]:
        """The inserts as messages: prompts and replies one each, returns together."""
        if inserts[0].kind == "return":
            return [_message("request", *map(_made, inserts))]
        kind, part = _SPOKEN[inserts[0].kind]
        return [_message(kind, {"content": one.text, "part_kind": part}) for one in inserts]

    def join(self, returns: Sequence[Insert], payload: bytes) -> bytes | None:  # noqa: ARG002
        """Never: the framework itself puts adjacent requests together."""
        return None

    def problems(self, messages: Sequence[bytes]) -> list[Problem]:
        """Calls without their return, returns without their call, prompts before returns."""
        described = [self.describe(payload) for payload in messages]
        joined = [_joined(*two) for two in pairwise(described)]
        turns = [
            Turn(at, one.role == "assistant", one.shapes, patient)
            for at, (one, patient) in enumerate(zip(described, [*joined, False], strict=False))
        ]
        alone = [
            Problem(at, "A prompt comes before a return in the same request.")
            for at, one in enumerate(described)
            if not any(joined[max(at - 1, 0) : at + 1]) and _prompts_first(one.shapes)
        ]
        return [*alone, *unpaired(turns)]


def _joined(one: Described, two: Described) -> bool:
    """Whether the framework makes one request of these: not when their instructions differ."""
    asked = {one.instructions, two.instructions} - {None, ""}
    return (one.role, two.role) == ("user", "user") and len(asked) <= 1


def _prompts_first(shapes: Sequence[Shape]) -> bool:
    kinds = [shape.kind for shape in shapes if shape.kind in {"prompt", "return"}]
    return "return" in kinds and kinds[0] == "prompt"


_Read = tuple[Shape, str, Retell | None]
"""What a part is, the key that its text is under, and how another is put there."""
_Reader = Callable[[Object], _Read]


def _known(message: Object) -> "Mapping[str, _Reader]":
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


def _reader(part: Object, known: Mapping[str, _Reader]) -> _Reader:
    return known.get(str(part.get("part_kind")), _foreign)


def _system(part: Object) -> _Read:
    return Shape("system", _plain(part.get("content")), fixed=True), "content", as_string


def _prompt(part: Object) -> _Read:
    text, media, retell = _content(part.get("content"))
    return Shape("prompt", text, media=media), "content", retell


def _heard(part: Object) -> _Read:
    text = _plain(part.get("transcript"))
    return Shape("prompt", text, sealed=True, media=("audio",)), "", None


def _spoken_aloud(part: Object) -> _Read:
    text = _plain(part.get("transcript"))
    return Shape("text", text, sealed=True, media=("audio",)), "", None


def _returned(part: Object) -> _Read:
    content = part.get("content")
    own = part.get("tool_kind") is not None
    if isinstance(content, list) and any(map(_is_media, content)):
        text, media, retell = _content(content)
    else:
        found: list[str] = []
        text, media, retell = _plain(_shown(content, found)), tuple(found), as_string
    tool, call = _str(part.get("tool_name")), _str(part.get("tool_call_id"))
    return Shape("return", text, tool, call, own, own, media), "content", retell


def _retry(part: Object) -> _Read:
    if part.get("tool_name") is not None:
        return _returned(part)
    return Shape("other", _plain(part.get("content"))), "content", as_string


def _spoken(part: Object) -> _Read:
    shape = Shape("text", _plain(part.get("content")), sealed=_signed(part))
    return shape, "content", as_string


def _thought(part: Object) -> _Read:
    owned = part.get("id") not in {None, *_FIELDS}  # an item that the provider keeps
    shape = Shape("thought", _plain(part.get("content")), sealed=owned or _signed(part))
    return shape, "content", as_string


def _called(part: Object) -> _Read:
    own = part.get("tool_kind") is not None
    args = part.get("args")
    tool, call = _str(part.get("tool_name")), _str(part.get("tool_call_id"))
    shape = Shape("call", _plain(args), tool, call, own or _signed(part), own)
    return shape, "args", as_object if isinstance(args, dict) else as_arguments


def _state(part: Object) -> _Read:
    """What the framework or a provider keeps between requests: hidden tools, its own summary."""
    return _foreign(part)[0]._replace(fixed=True), "", None


def _foreign(part: Object) -> _Read:
    media: list[str] = []
    shown = _shown({key: value for key, value in part.items() if value is not None}, media)
    text = _str(part.get("content")) or ("" if media else _plain(shown))
    tool = _str(part.get("tool_name"))
    return Shape("other", text, tool, sealed=True, media=tuple(media)), "", None


def _signed(part: Object) -> bool:
    """Signatures of some providers hide in the details."""
    return part.get("signature") is not None or part.get("provider_details") is not None


def _str(value: JsonValue) -> str | None:
    return value if isinstance(value, str) else None


def _plain(value: JsonValue) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else written(value)


def _shown(value: JsonValue, media: list[str]) -> JsonValue:
    """A value as the model reads it: files go beside it, and their types into `media`."""
    match value:
        case dict() if _is_media(value):
            media.append(_medium(value))
            return f"See file {value.get('identifier') or value.get('file_id') or ''}.".strip()
        case dict():
            return {key: _shown(one, media) for key, one in value.items()}
        case list():
            return [_shown(one, media) for one in value]
        case _:
            return value


def _is_media(value: JsonValue) -> bool:
    return isinstance(value, dict) and value.get("kind") in _MEDIA


def _medium(value: Object) -> str:
    return _str(value.get("media_type")) or str(value["kind"])


def _content(content: JsonValue) -> tuple[str, tuple[str, ...], Retell]:
    """The text of a content value, the media types it carries, and how it is replaced."""
    if not isinstance(content, list):
        return _plain(content), (), as_string
    said: dict[int, Path] = {}
    texts: list[str] = []
    media: list[str] = []
    for nth, one in enumerate(content):
        match one:
            case {"kind": "cache-point"}:
                pass
            case {"kind": "text-content", "content": str() as text}:
                said[nth] = ("content",)
                texts.append(text)
            case {"kind": "structured-content", "content": str() as text}:
                said[nth] = ()  # another text is no longer that of its value
                texts.append(text)
            case dict() if _is_media(one):
                media.append(_medium(one))
            case _:
                said[nth] = ()
                texts.append(_plain(_shown(one, media)))
    return "\n".join(texts), tuple(media), as_list(said, _same)


def _same(new: bytes) -> bytes:
    """An item with text is the text itself."""
    return new


def _message(kind: str, *parts: Object) -> bytes:
    return encoded({"parts": list(parts), "kind": kind})


def _made(insert: Insert) -> Object:
    return {
        "tool_name": insert.tool or "",
        "content": insert.text,
        "tool_call_id": insert.call or "",
        "part_kind": "tool-return",
    }


_SPOKEN: Final = {"prompt": ("request", "user-prompt"), "reply": ("response", "text")}
_FIELDS: Final = frozenset({"content", "reasoning", "reasoning_content"})
"""Where servers put thoughts; the framework keeps the name as the thought's id."""
_MEDIA: Final = frozenset(
    {"audio-url", "binary", "document-url", "image-url", "uploaded-file", "video-url"}
)
_REQUEST: Final[dict[str, _Reader]] = {
    "system-prompt": _system,
    "user-prompt": _prompt,
    "speech": _heard,
    "tool-return": _returned,
    "retry-prompt": _retry,
    "retry-feedback": _retry,
    "compaction": _state,
    "tool-availability-delta": _state,
    "capability-load-delta": _state,
    "model-settings-delta": _state,
    "instruction-delta": _state,
    "instruction-baseline": _state,
}
_RESPONSE: Final[dict[str, _Reader]] = {
    "text": _spoken,
    "thinking": _thought,
    "tool-call": _called,
    "speech": _spoken_aloud,
    "compaction": _state,
}
