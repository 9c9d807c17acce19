"""OpenAI chat messages, as chat completions take them, and as compatible servers extend them.

The parts of a message, in this order:

- system, developer: one part of kind system. tool, function: one return;
- user: one part for string content, else one for each item of the content;
- assistant: one thought for all fields that hold reasoning, then its content like the user's, then
  its refusal, its audio, its function_call, and its tool_calls one by one.

Messages of other roles are one sealed part. Fields that are not named here belong to no part and
stay with their message.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final

from pydantic import JsonValue

from refold.errors import InvalidMessage
from refold.wire.editing import (
    Path,
    Place,
    Turn,
    as_arguments,
    as_item,
    as_list,
    as_object,
    as_string,
    edited,
    unpaired,
)
from refold.wire.part import Change, Described, Insert, Kind, Problem, Role, Shape
from refold.wire.splice import Object, encoded, json_text, objects, parsed, plain_text, str_or_none

_LEGACY: Final = "function:"
"""Begins the ids of calls that have none of their own: a function_call is answered by name."""

_ROLES: Final[dict[str, Role]] = {
    "system": "system",
    "developer": "system",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_REASONING: Final = ("reasoning_content", "reasoning", "reasoning_details")
_OTHER_FIELDS: Final = ("refusal", "audio", "function_call", "tool_calls")
_TEXT_ITEMS: Final = frozenset({"text", "refusal"})
_MEDIA: Final = {
    "image_url": "image",
    "input_audio": "audio",
    "video_url": "video",
    "file": "file",
}


class OpenAIChat:
    """The wire of OpenAI's chat messages."""

    name: ClassVar[str] = "openai-chat"
    version: ClassVar[int] = 1
    unique_calls: ClassVar[bool] = False
    itemized: ClassVar[bool] = False
    systems_last: ClassVar[bool] = False

    def describe(self, payload: bytes) -> Described:
        message = parsed(payload)
        shapes = tuple(place.shape for place in _places(message))
        return Described(_ROLES.get(str(message["role"]), "user"), shapes)

    def edit(self, payload: bytes, changes: Mapping[int, Change]) -> bytes | None:
        """The message with these parts changed."""
        places = list(_places(parsed(payload)))
        # Without content, some servers refuse a message.
        return edited(payload, places, changes, {"content": b"null"})

    def make(self, inserts: Sequence[Insert]) -> list[bytes]:
        """The inserts as messages, one each."""
        return [encoded(_insert_message(insert)) for insert in inserts]

    def join(self, returns: Sequence[Insert], payload: bytes) -> bytes | None:  # noqa: ARG002
        """Never: a return is a message of its own."""
        return None

    def problems(self, messages: Sequence[bytes]) -> list[Problem]:
        """Calls without their return, returns without their call, assistants that say nothing."""
        turns: list[Turn] = []
        problems: list[Problem] = []
        for index, payload in enumerate(messages):
            message = parsed(payload)
            shapes = tuple(place.shape for place in _places(message))
            turns.append(Turn(index, message["role"] == "assistant", shapes))
            problems += [Problem(index, what) for what in _faults(message, shapes)]
        return [*problems, *unpaired(turns)]


def _faults(message: Object, shapes: Sequence[Shape]) -> Iterator[str]:
    spoken = any(shape.kind != "thought" for shape in shapes)
    if message["role"] == "assistant" and not spoken:
        yield "An assistant message has neither content nor calls."
    if message.get("content") == []:
        yield "The message is empty."
    if message.get("tool_calls") == []:
        yield "A list of calls has at least one."


def _places(message: Object) -> Iterator[Place]:
    match message.get("role"):
        case "system" | "developer":
            text, media = _text(_content(message))
            shape = Shape("system", text, fixed=True, sealed=not _is_editable(message), media=media)
            yield _single_part(message, shape)
        case "user":
            yield from _content_parts(_content(message), "prompt")
        case "assistant":
            yield from _assistant(message)
        case "tool" | "function":
            yield _single_part(message, _return(message))
        case str():
            yield Place(Shape("other", json_text(message), sealed=True), ("role",))
        case other:
            raise InvalidMessage(f"An OpenAI chat message has a role, not {other!r}.")


def _content(message: Object) -> JsonValue:
    content = message.get("content")
    if not isinstance(content, str | list):
        raise InvalidMessage(f"A message of the role {message['role']!r} has text or a list.")
    return content


def _single_part(message: Object, shape: Shape) -> Place:
    content = message.get("content")
    if not isinstance(content, list):
        return Place(shape, ("content",), ("content",), as_string)
    types = [item.get("type") for item in objects(content)]
    texts: dict[int, Path] = {
        nth: (str(name),) for nth, name in enumerate(types) if name in _TEXT_ITEMS
    }
    return Place(shape, ("content",), ("content",), as_list(texts, _text_item))


def _assistant(message: Object) -> Iterator[Place]:
    thoughts: list[Path] = [(key,) for key in _REASONING if message.get(key)]
    if thoughts:
        shape = Shape("thought", _reasoning(message), sealed=True)
        yield Place(shape, thoughts[0], also=tuple(thoughts[1:]))
    content = message.get("content")
    alone = not any(message.get(key) for key in (*_REASONING, *_OTHER_FIELDS))
    if content or (content == "" and alone):
        yield from _content_parts(content, "text")
    if isinstance(refusal := message.get("refusal"), str):
        yield Place(Shape("text", refusal), ("refusal",), ("refusal",), as_string)
    if message.get("audio"):
        yield Place(Shape("other", "", sealed=True, media=("audio",)), ("audio",))
    if isinstance(call := message.get("function_call"), dict):
        name = str_or_none(call.get("name"))
        yield _call(call, ("function_call",), ("function_call",), name, f"{_LEGACY}{name}")
    for nth, call in enumerate(_objects(message.get("tool_calls"), "tool_calls")):
        yield _tool_call(call, ("tool_calls", nth))


def _content_parts(content: JsonValue, kind: Kind) -> Iterator[Place]:
    if isinstance(content, str):
        yield Place(Shape(kind, content), ("content",), ("content",), as_string)
        return
    for nth, item in enumerate(_objects(content, "content")):
        shape, home = _item(item, kind), ("content", nth)
        if shape.media:
            yield Place(shape, home, home, as_item(_text_item))
        else:
            yield Place(shape, home, (*home, str(item.get("type"))), as_string)


def _item(item: Object, kind: Kind) -> Shape:
    match item:
        case {"type": "text" | "refusal" as key} if isinstance(text := item.get(key), str):
            return Shape(kind, text)
        case {"type": "thinking"}:
            return Shape("thought", json_text(item.get("thinking")), sealed=True)
        case {"type": str() as key} if key in _MEDIA:
            return Shape(kind, "", media=(_MEDIA[key],))
        case _:
            return Shape("other", json_text(item), sealed=True)


def _tool_call(call: Object, home: Path) -> Place:
    name = str_or_none(call.get("id"))
    match call:
        case {"function": dict() as function}:
            return _call(
                function, home, (*home, "function"), str_or_none(function.get("name")), name
            )
        case {"type": "custom", "custom": {"name": str() as tool, "input": str() as text}}:
            path = (*home, "custom", "input")
            return Place(Shape("call", text, tool, name), home, path, as_arguments)
        case _:
            return Place(Shape("call", json_text(call), call=name, sealed=True), home)


def _call(function: Object, home: Path, path: Path, tool: str | None, name: str | None) -> Place:
    arguments = function.get("arguments")
    text = plain_text(arguments)
    retell = as_object if isinstance(arguments, dict) else as_arguments
    return Place(Shape("call", text, tool, name), home, (*path, "arguments"), retell)


def _return(message: Object) -> Shape:
    text, media = _text(message.get("content"))
    tool, call = str_or_none(message.get("name")), str_or_none(message.get("tool_call_id"))
    if message["role"] == "function":
        call = f"{_LEGACY}{tool}"
    return Shape("return", text, tool, call, sealed=not _is_editable(message), media=media)


def _is_editable(message: Object) -> bool:
    """Whether all that a part's list of content holds is known, so that it may be edited."""
    items = objects(message.get("content"))
    return all(_item(item, "prompt").kind == "prompt" for item in items)


def _text(content: JsonValue) -> tuple[str, tuple[str, ...]]:
    """The text of a content value, and the media it carries."""
    if isinstance(content, str) or content is None:
        return content or "", ()
    shapes = [_item(item, "prompt") for item in _objects(content, "content")]
    media = tuple(medium for shape in shapes for medium in shape.media)
    return "\n".join(shape.text for shape in shapes if not shape.media), media


def _reasoning(message: Object) -> str:
    texts = [text for key in _REASONING if isinstance(text := message.get(key), str) and text]
    return texts[0] if texts else json_text([message.get(key) for key in _REASONING])


def _objects(value: JsonValue, key: str) -> list[Object]:
    if value is None:
        return []
    if not isinstance(value, list) or len(objects(value)) != len(value):
        raise InvalidMessage(f"{key!r} is a list of objects.")
    return objects(value)


def _text_item(new: bytes) -> bytes:
    return b'{"type":"text","text":' + new + b"}"


def _insert_message(insert: Insert) -> Object:
    if insert.kind != "return":
        return {"role": "user" if insert.kind == "prompt" else "assistant", "content": insert.text}
    call = insert.call or ""
    if call.startswith(_LEGACY):
        return {"role": "function", "name": call[len(_LEGACY) :], "content": insert.text}
    return {"role": "tool", "tool_call_id": call, "content": insert.text}
