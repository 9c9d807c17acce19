"""OpenAI response items, as the Responses API takes them: each message here is one item.

A response of the model is several of them in a row: what it thinks, says and calls. The provider
refuses reasoning without the item that it led to, and an item of its own without its reasoning, so
they stay together. The parts of an item:

- A message has one part for string content, else one for each item of its content; that of the
  system or a developer is one part.
- Calls and their outputs are one part each. Those of functions go by their call id alone; the
  others have their sort before it, since the provider tells them apart.
- Reasoning is one sealed part. So are the provider's own tools, its compactions, references to
  what it keeps, and all that is not known here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import ClassVar, Final

from pydantic import JsonValue

from refold.errors import InvalidMessage
from refold.wire.editing import (
    Path,
    Place,
    Tree,
    Turn,
    as_arguments,
    as_item,
    as_list,
    as_object,
    as_string,
    edited,
    unpaired,
)
from refold.wire.part import Change, Described, Insert, Kind, Problem, Replace, Role, Shape
from refold.wire.splice import (
    Cut,
    Object,
    compact_json,
    encoded,
    json_text,
    objects,
    parsed,
    plain_text,
    str_or_none,
)

CALLS: Final[dict[str, tuple[str, ...]]] = {
    "function_call": ("call_id",),
    "custom_tool_call": ("call_id",),
    "computer_call": ("call_id",),
    "local_shell_call": ("call_id",),
    "shell_call": ("call_id",),
    "apply_patch_call": ("call_id",),
    "tool_search_call": ("call_id",),
    "mcp_approval_request": ("id",),
}
"""The calls that the client answers, and where each has its id."""
OUTPUTS: Final[dict[str, tuple[str, ...]]] = {
    "function_call_output": ("function_call", "call_id"),
    "custom_tool_call_output": ("custom_tool_call", "call_id"),
    "computer_call_output": ("computer_call", "call_id"),
    "local_shell_call_output": ("local_shell_call", "call_id", "id"),
    "shell_call_output": ("shell_call", "call_id"),
    "apply_patch_call_output": ("apply_patch_call", "call_id"),
    "tool_search_output": ("tool_search_call", "call_id"),
    "mcp_approval_response": ("mcp_approval_request", "approval_request_id"),
}
"""What answers them: the call, and where its id is."""
_PLAIN: Final = frozenset({"function_call", "local_shell_call"})
"""A local shell is answered as functions are, too."""
_EDITABLE: Final = frozenset({"function_call", "custom_tool_call"})
_ARGUMENT_FIELDS: Final = ("arguments", "input", "action", "actions", "operation")
_STREAMS: Final = ("stdout", "stderr")
_BLOBS: Final = ("encrypted_content", "result")
_SETTINGS: Final = frozenset(
    {"additional_tools", "compaction", "compaction_trigger", "configuration_update"}
)
"""They hold for all that comes after them."""
_ROLES: Final[dict[str, Role]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}
_MEDIA: Final = {"input_image": "image", "input_file": "file", "input_audio": "audio"}


class OpenAIResponses:
    """The wire of OpenAI's response items."""

    name: ClassVar[str] = "openai-responses"
    version: ClassVar[int] = 1
    unique_calls: ClassVar[bool] = False
    itemized: ClassVar[bool] = True
    systems_last: ClassVar[bool] = False

    def describe(self, payload: bytes) -> Described:
        item = parsed(payload)
        shapes = tuple(place.shape for place in places(item))
        return Described(role(item), shapes)

    def edit(self, payload: bytes, changes: Mapping[int, Change]) -> bytes | None:
        """The item with these parts changed."""
        return edited(payload, places(parsed(payload)), changes)

    def make(self, inserts: Sequence[Insert]) -> list[bytes]:
        """The inserts as items, one each; nothing for a return that words cannot be."""
        return [encoded(item) for insert in inserts if (item := _insert_item(insert))]

    def join(self, returns: Sequence[Insert], payload: bytes) -> bytes | None:  # noqa: ARG002
        """Never: a return is an item of its own."""
        return None

    def problems(self, messages: Sequence[bytes]) -> list[Problem]:
        """Calls without their return, returns without their call, reasoning that led nowhere."""
        described = [self.describe(payload) for payload in messages]
        return [*_lone_reasoning(described), *unpaired(_turns(described))]


def _turns(described: Sequence[Described]) -> Iterator[Turn]:
    """The model's items in a row are one response: their calls are answered after the last."""
    indexed = enumerate(described)
    for answers, run in groupby(indexed, key=lambda pair: pair[1].role == "assistant"):
        items = list(run)
        if answers:
            shapes = tuple(shape for _, item in items for shape in item.shapes)
            yield Turn(items[0][0], calls=True, shapes=shapes)
        else:
            yield from (Turn(index, calls=False, shapes=item.shapes) for index, item in items)


def _lone_reasoning(described: Sequence[Described]) -> Iterator[Problem]:
    for index, item in enumerate(described):
        after = described[index + 1 : index + 2]
        thinks = any(shape.kind == "thought" for shape in item.shapes)
        if thinks and not (after and after[0].role == "assistant"):
            yield Problem(index, "Reasoning comes without the item that it led to.")


def _insert_item(insert: Insert) -> Object | None:
    if insert.kind != "return":
        return {"role": "user" if insert.kind == "prompt" else "assistant", "content": insert.text}
    name = insert.call or ""
    sort, _, call = name.partition(":")
    if sort not in CALLS:
        return {"type": "function_call_output", "call_id": name, "output": insert.text}
    fields = _answer_fields(sort, insert.text)
    if fields is None:
        return None
    sort, key = next((other, keys[1]) for other, keys in OUTPUTS.items() if keys[0] == sort)
    return {"type": sort, key: call, **fields}


def _answer_fields(sort: str, text: str) -> Object | None:
    match sort:
        case "computer_call":
            return None  # it wants a picture
        case "shell_call":
            outcome: Object = {"type": "exit", "exit_code": 1}
            return {"output": [{"stdout": "", "stderr": text, "outcome": outcome}]}
        case "apply_patch_call":
            return {"status": "failed", "output": text}
        case "tool_search_call":
            return {"execution": "client", "tools": []}
        case "mcp_approval_request":
            return {"approve": False, "reason": text}
        case _:
            return {"output": text}


def role(item: Object) -> Role:
    """Who an item speaks for; what nobody knows is taken for the model's."""
    sort = _sort(item)
    if sort in _SETTINGS:
        return "system"
    if sort in OUTPUTS:
        return "tool" if _call_id(item, *OUTPUTS[sort]) else "assistant"
    return _ROLES.get(str(item.get("role")), "user" if sort == "message" else "assistant")


def places(item: Object) -> list[Place]:
    """The parts of an item; each has one at least."""
    sort = _sort(item)
    if sort == "message":
        return list(_message(item))
    if sort == "reasoning":
        return [_item_part(_thought(item))]
    if sort in CALLS and (call := _call_id(item, sort, *CALLS[sort])):
        return [_call_part(item, sort, call)]
    if sort in OUTPUTS and (call := _call_id(item, *OUTPUTS[sort])):
        return [_return_part(item, sort, call)]
    return [_item_part(_provider_item(item, sort))]


def _sort(item: Object) -> str:
    """The type of an item; messages and references may leave it out."""
    match item.get("type"):
        case str() as sort:
            return sort
        case None if "role" in item:
            return "message"
        case None if isinstance(item.get("id"), str) and "content" not in item:
            return "item_reference"
        case other:
            raise InvalidMessage(f"A response item has a type or a role, not {other!r}.")


def _call_id(item: Object, sort: str, *keys: str) -> str | None:
    call = next(filter(None, (str_or_none(item.get(key)) for key in keys)), None)
    return call if call is None or sort in _PLAIN else f"{sort}:{call}"


def _message(item: Object) -> Iterator[Place]:
    match item.get("role"):
        case "system" | "developer":
            _listed(item.get("content"))
            text, media, editable = _content(item.get("content"))
            shape = Shape("system", text, fixed=True, sealed=not editable, media=media)
            yield _single_part(item, "content", shape)
        case "user":
            yield from _content_parts(item, "prompt")
        case "assistant":
            yield from _content_parts(item, "text")
        case str():
            yield _item_part(Shape("other", json_text(item), sealed=True))
        case other:
            raise InvalidMessage(f"A message item has a role, not {other!r}.")


def _content_parts(item: Object, kind: Kind) -> Iterator[Place]:
    content = item.get("content")
    listed = _listed(content)
    if not listed:
        text = content if isinstance(content, str) else ""
        yield Place(Shape(kind, text), ("content",), ("content",), as_string)
    make = _output_text if kind == "text" else _input_text
    for nth, piece in enumerate(listed):
        shape, home = _piece(piece, kind), ("content", nth)
        if shape.media:
            yield Place(shape, home, home, as_item(make))
        else:
            key = "refusal" if piece.get("type") == "refusal" else "text"
            yield Place(shape, home, (*home, key), as_string)


def _listed(content: JsonValue) -> list[Object]:
    """The items of content that is a list; none for content that is text."""
    if isinstance(content, str):
        return []
    if not isinstance(content, list) or len(objects(content)) != len(content):
        raise InvalidMessage("A message item has text or a list of items.")
    return objects(content)


def _piece(piece: Object, kind: Kind) -> Shape:
    match piece:
        case {"type": "input_text" | "output_text" | "text", "text": str() as text}:
            return Shape(kind, text)
        case {"type": "refusal", "refusal": str() as text}:
            return Shape(kind, text)
        case {"type": str() as sort} if sort in _MEDIA:
            return Shape(kind, "", media=(_MEDIA[sort],))
        case _:
            return Shape("other", json_text(piece), sealed=True)


def _content(content: JsonValue) -> tuple[str, tuple[str, ...], bool]:
    """The text of content that is one part, the media in it, and whether all of it is known."""
    if content is None:
        return "", (), True
    if isinstance(content, str):
        return content, (), True
    shapes = [_piece(piece, "prompt") for piece in _listed(content)]
    media = tuple(medium for shape in shapes for medium in shape.media)
    text = "\n".join(shape.text for shape in shapes if not shape.media)
    return text, media, all(shape.kind == "prompt" for shape in shapes)


def _single_part(item: Object, key: str, shape: Shape) -> Place:
    content = item.get(key)
    if not isinstance(content, list):
        return Place(shape, (key,), (key,), as_string)
    texts: dict[int, Path] = {
        nth: ("refusal" if piece.get("type") == "refusal" else "text",)
        for nth, piece in enumerate(objects(content))
        if piece.get("type") not in _MEDIA
    }
    return Place(shape, (key,), (key,), as_list(texts, _input_text))


def _thought(item: Object) -> Shape:
    """Its text where it is open, else what its summary says."""
    lists = (objects(item.get(key)) for key in ("content", "summary"))
    texts = [
        [text for piece in pieces if (text := str_or_none(piece.get("text")))] for pieces in lists
    ]
    sealed = len(str_or_none(item.get("encrypted_content")) or "")
    return Shape("thought", "\n".join(texts[0] or texts[1]), sealed=True, opaque=sealed)


def _call_part(item: Object, sort: str, call: str) -> Place:
    tool = str_or_none(item.get("name")) or sort.removesuffix("_call")
    key = next((key for key in _ARGUMENT_FIELDS if item.get(key) is not None), _ARGUMENT_FIELDS[0])
    arguments = item.get(key)
    text = plain_text(arguments)
    if sort not in _EDITABLE:
        return _item_part(Shape("call", text, tool, call, sealed=True))
    key = "input" if sort == "custom_tool_call" else "arguments"
    retell = as_object if isinstance(arguments, dict) else as_arguments
    return Place(Shape("call", text, tool, call), ("type",), (key,), retell)


def _return_part(item: Object, sort: str, call: str) -> Place:
    tool = str_or_none(item.get("name"))
    output = item.get("output")
    if sort == "shell_call_output":
        return _shell_output(objects(output), call)
    if sort in {"computer_call_output", "tool_search_output", "mcp_approval_response"}:
        fixed = sort == "tool_search_output"  # it says which tools there are
        media = ("image",) if sort == "computer_call_output" else ()
        text = json_text(item.get("tools")) if fixed else str_or_none(item.get("reason")) or ""
        return _item_part(Shape("return", text, tool, call, sealed=True, fixed=fixed, media=media))
    if output is not None and not isinstance(output, str | list):
        return _item_part(Shape("return", json_text(output), tool, call, sealed=True))
    text, media, editable = _content(output)
    return _single_part(
        item, "output", Shape("return", text, tool, call, sealed=not editable, media=media)
    )


def _shell_output(chunks: Sequence[Object], call: str) -> Place:
    """What a shell printed: another text is one chunk with the outcome of the last."""
    texts = [text for chunk in chunks for key in _STREAMS if (text := str_or_none(chunk.get(key)))]
    outcome = chunks[-1].get("outcome") if chunks else None
    shape = Shape("return", "\n".join(texts), "shell", call)
    return Place(shape, ("output",), ("output",), _as_chunk(outcome or {"type": "timeout"}))


def _as_chunk(outcome: JsonValue) -> Callable[[Tree, Path, Replace, str], list[Cut]]:
    def retold(tree: Tree, path: Path, change: Replace, text: str) -> list[Cut]:
        new = compact_json(change.applied(text))
        rest = b',"stderr":"","outcome":' + encoded(outcome)
        return [tree.put(path, b'[{"stdout":' + new + rest + b"}]")]

    return retold


def _provider_item(item: Object, sort: str) -> Shape:
    blob = next((key for key in _BLOBS if isinstance(item.get(key), str)), "")
    readable: Object = {key: value for key, value in item.items() if key != blob}
    pictured = sort == "image_generation_call" and bool(blob)
    return Shape(
        "other",
        json_text(readable),
        str_or_none(item.get("name")) or sort.removesuffix("_call"),
        sealed=True,
        fixed=sort in _SETTINGS or sort == "tool_search_output",
        media=("image",) if pictured else (),
        opaque=len(str(item[blob])) if blob and not pictured else 0,
    )


def _item_part(shape: Shape) -> Place:
    return Place(shape, ("type",))


def _input_text(new: bytes) -> bytes:
    return b'{"type":"input_text","text":' + new + b"}"


def _output_text(new: bytes) -> bytes:
    return b'{"type":"output_text","text":' + new + b"}"
