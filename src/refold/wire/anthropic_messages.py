"""Anthropic messages, as the Messages API takes them.

String content is one part; otherwise each block of the content is one, in the same order. A block
that is not known here is sealed, and so are those that the provider writes for itself: signed
thinking, the calls and results of its own tools, its own summaries.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import dropwhile, groupby
from typing import ClassVar, Final, NamedTuple

from refold.errors import InvalidMessage
from refold.wire.editing import (
    Path,
    Place,
    Tree,
    Turn,
    as_item,
    as_list,
    as_object,
    as_string,
    edited,
    repeated,
    unpaired,
)
from refold.wire.part import Change, Described, Insert, Kind, Problem, Role, Shape
from refold.wire.splice import (
    Cut,
    Object,
    Value,
    array,
    encoded,
    json_text,
    objects,
    parsed,
    spliced,
    str_or_none,
)

_ROLES: Final = {"prompt": "user", "reply": "assistant", "system": "system"}
_KINDS: Final[dict[Role, Kind]] = {"user": "prompt", "assistant": "text", "system": "system"}
_RESULT_BLOCKS: Final = frozenset({"text", "image", "document", "search_result"})
_SERVER_TOOLS: Final = ("server_tool_use", "mcp_tool_use", "_tool_result")


class AnthropicMessages:
    """The wire of Anthropic's messages."""

    name: ClassVar[str] = "anthropic-messages"
    version: ClassVar[int] = 1
    unique_calls: ClassVar[bool] = True
    itemized: ClassVar[bool] = False
    systems_last: ClassVar[bool] = True

    def describe(self, payload: bytes) -> Described:
        message = parsed(payload)
        return Described(_role(message), tuple(place.shape for place in _places(message)))

    def edit(self, payload: bytes, changes: Mapping[int, Change]) -> bytes | None:
        """The message with these parts changed."""
        return edited(payload, list(_places(parsed(payload))), changes)

    def make(self, inserts: Sequence[Insert]) -> list[bytes]:
        """The inserts as messages: one each, but returns together."""
        if inserts[0].kind == "return":
            return [encoded({"role": "user", "content": [_result(insert) for insert in inserts]})]
        role = _ROLES[inserts[0].kind]
        return [encoded({"role": role, "content": insert.text}) for insert in inserts]

    def join(self, returns: Sequence[Insert], payload: bytes) -> bytes | None:
        """The returns in front of what the user says; None where somebody else speaks."""
        if self.describe(payload).role != "user":
            return None
        content = parsed(payload)["content"]
        tree = Tree(payload)
        where = tree.at(("content",))
        new = [encoded(_result(insert)) for insert in returns]
        if isinstance(content, str):
            text = _text_block(payload[where.start : where.end])
            data = array([*new, text] if content else new)
            return spliced(payload, [Cut(where, data)])
        comma = b"," if tree.items(("content",)) else b""
        start = where.start + 1
        return spliced(payload, [Cut(Value(start, start), b",".join(new) + comma)])

    def problems(self, messages: Sequence[bytes]) -> list[Problem]:
        """Pairs that are none or are apart, who speaks when, messages and texts without words."""
        turns = [_Turn.of(index, parsed(payload)) for index, payload in enumerate(messages)]
        calls = [Turn(turn.at, turn.role == "assistant", turn.shapes) for turn in turns]
        order = *_order(turns), *_contents(turns), *_late_returns(turns)
        return [*order, *unpaired(calls), *repeated(calls)]


class _Turn(NamedTuple):
    at: int
    role: Role
    shapes: tuple[Shape, ...]
    types: tuple[str, ...]

    @classmethod
    def of(cls, at: int, message: Object) -> "_Turn":
        types = tuple(str(block.get("type")) for block in objects(message.get("content")))
        shapes = tuple(place.shape for place in _places(message))
        return cls(at, _role(message), shapes, types or ("text",) * len(shapes))


def _order(turns: Sequence[_Turn]) -> Iterator[Problem]:
    """The user begins; system messages stand between a user's and a model's."""
    if turns and turns[0].role != "user":
        yield Problem(0, "The first message is not the user's.")
    for index, turn in enumerate(turns):
        if turn.role == "system" and index:
            before, after = turns[index - 1], turns[index + 1 : index + 2]
            served = bool(before.types) and before.types[-1].endswith(_SERVER_TOOLS)
            if before.role != "user" and not served:
                yield Problem(index, "A system message comes after what the user says.")
            if after and after[0].role != "assistant":
                yield Problem(index, "After a system message, the model speaks.")


def _contents(turns: Sequence[_Turn]) -> Iterator[Problem]:
    for turn in turns:
        empty = not turn.shapes or not all(map(_has_words, turn.shapes, turn.types))
        if empty and not (turn is turns[-1] and turn.role == "assistant"):
            yield Problem(turn.at, "A message, or a text in it, is empty.")
        if turn.role != "assistant" and any(shape.kind == "call" for shape in turn.shapes):
            yield Problem(turn.at, "Only the model calls tools.")


def _late_returns(turns: Sequence[_Turn]) -> Iterator[Problem]:
    """Returns come before words; the user's messages in a row are one."""
    for role, run in groupby(turns, key=lambda turn: turn.role):
        shapes = [(turn.at, shape) for turn in run for shape in turn.shapes]
        words = dropwhile(lambda pair: pair[1].kind == "return", shapes)
        for index, shape in words:
            if role == "user" and shape.kind == "return":
                yield Problem(index, f"Words come before the return for {shape.call!r}.")


def _has_words(shape: Shape, name: str) -> bool:
    return name != "text" or bool(shape.text.strip())


def _role(message: Object) -> Role:
    match message.get("role"):
        case "user" | "assistant" | "system" as role:
            return role
        case other:
            raise InvalidMessage(f"An Anthropic message is the user's or the model's: {other!r}.")


def _places(message: Object) -> Iterator[Place]:
    role = _role(message)
    kind, fixed = _KINDS[role], role == "system"
    match message.get("content"):
        case str() as text:
            yield Place(Shape(kind, text, fixed=fixed), ("content",), ("content",), as_string)
        case list() as blocks if len(objects(blocks)) == len(blocks):
            for nth, block in enumerate(objects(blocks)):
                place = _place(block, kind, ("content", nth))
                yield place._replace(shape=place.shape._replace(fixed=True)) if fixed else place
        case _:
            raise InvalidMessage("An Anthropic message has text or a list of blocks.")


def _place(block: Object, kind: Kind, home: Path) -> Place:
    match block:
        case {"type": "text", "text": str() as text}:
            return Place(Shape(kind, text), home, (*home, "text"), as_string)
        case {"type": "thinking", "thinking": str() as text}:
            shape = Shape("thought", text, sealed=block.get("signature") is not None)
            return Place(shape, home, (*home, "thinking"), as_string)
        case {"type": "tool_use", "input": arguments}:
            shape = Shape(
                "call",
                json_text(arguments),
                str_or_none(block.get("name")),
                str_or_none(block.get("id")),
            )
            return Place(shape, home, (*home, "input"), as_object)
        case {"type": "tool_result"}:
            return _result_part(block, home)
        case {"type": "image" | "document"}:
            shape = Shape(kind, _block_text(block) or "", media=_media([block]))
            return Place(shape, home, home, as_item(_marked(block)))
        case _:
            return Place(_provider_block(block), home)


def _provider_block(block: Object) -> Shape:
    match block:
        case {"type": "redacted_thinking", "data": str() as data}:
            return Shape("thought", data, sealed=True)
        case {"type": "compaction" | "mid_conv_system"}:
            text = str_or_none(block.get("content")) or json_text(block)
            return Shape("other", text, sealed=True, fixed=True)
        case _:
            return Shape("other", json_text(block), str_or_none(block.get("name")), sealed=True)


def _result_part(block: Object, home: Path) -> Place:
    call, path = str_or_none(block.get("tool_use_id")), (*home, "content")
    content = block.get("content")
    if not isinstance(content, list):
        return Place(Shape("return", str_or_none(content) or "", call=call), home, path, as_string)
    inner = objects(content)
    texts = {nth: text for nth, item in enumerate(inner) if (text := _block_text(item)) is not None}
    paths: dict[int, Path] = {
        nth: ("text",) if inner[nth].get("type") == "text" else () for nth in texts
    }
    types = {str(item.get("type")) for item in inner}
    shape = Shape(
        "return",
        "\n".join(texts.values()),
        call=call,
        sealed=not types <= _RESULT_BLOCKS or len(inner) < len(content),
        fixed="tool_reference" in types,  # it says which tools there are
        media=_media(inner),
    )
    return Place(shape, home, path, as_list(paths, _text_block))


def _block_text(block: Object) -> str | None:
    """What a block says in words; None when it has none."""
    match block:
        case {"type": "text", "text": str() as text}:
            return text
        case {"type": "document", "source": {"type": "text", "data": str() as text}}:
            return text
        case {"type": "document", "source": {"content": content}}:
            return json_text(content)
        case {"type": "image" | "document"}:
            return None
        case _:
            return json_text(block)


def _media(blocks: Sequence[Object]) -> tuple[str, ...]:
    media: list[str] = []
    for block in blocks:
        if block.get("type") in {"image", "document"} and _block_text(block) is None:
            match block.get("source"):
                case {"media_type": str() as kind}:
                    media.append(kind)
                case _:
                    media.append(str(block["type"]))
    return tuple(media)


def _marked(block: Object) -> Callable[[bytes], bytes]:
    """Makes a text block in the place of another, with its cache mark."""
    mark = block.get("cache_control")
    return partial(_text_block, mark=None if mark is None else encoded(mark))


def _text_block(new: bytes, mark: bytes | None = None) -> bytes:
    rest = b"" if mark is None else b',"cache_control":' + mark
    return b'{"type":"text","text":' + new + rest + b"}"


def _result(insert: Insert) -> Object:
    return {"type": "tool_result", "tool_use_id": insert.call or "", "content": insert.text}
