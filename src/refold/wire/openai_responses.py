"""OpenAI response items, as the Responses API takes them: each message here is one item.

A response of the model is several of them in a row: what it thinks, says and calls. The provider
refuses reasoning without the item that it led to, and an item of its own without its reasoning, so
they stay together. What each item is made of, `openai_responses_items` says.
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
from refold.wire.splice import Cut, Object, encoded, objects, parsed, string, written

# The parts of one response item.
#
# - A message has one part for string content, else one for each item of its content; that of the
#   system or a developer is one part.
# - Calls and their outputs are one part each. Those of functions go by their call id alone; the
#   others have their sort before it, since the provider tells them apart.
# - Reasoning is one sealed part. So are the provider's own tools, its compactions, references to
#   what it keeps, and all that is not known here.


def role(item: Object) -> Role:
    """Who an item speaks for; what nobody knows is taken for the model's."""
    sort = _sort(item)
    if sort in _SETTINGS:
        return "system"
    if sort in OUTPUTS:
        return "tool" if _call(item, *OUTPUTS[sort]) else "assistant"
    return _ROLES.get(str(item.get("role")), "user" if sort == "message" else "assistant")


def places(item: Object) -> list[Place]:
    """The parts of an item; each has one at least."""
    sort = _sort(item)
    if sort == "message":
        return list(_message(item))
    if sort == "reasoning":
        return [_whole(_thought(item))]
    if sort in CALLS and (call := _call(item, sort, *CALLS[sort])):
        return [_called(item, sort, call)]
    if sort in OUTPUTS and (call := _call(item, *OUTPUTS[sort])):
        return [_returned_openai_responses_items(item, sort, call)]
    return [_whole(_owned(item, sort))]


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


def _call(item: Object, sort: str, *keys: str) -> str | None:
    """The id that a call and its output share."""
    found = next((one for key in keys if isinstance(one := item.get(key), str) and one), None)
    return found if found is None or sort in _PLAIN else f"{sort}:{found}"


def _message(item: Object) -> Iterator[Place]:
    match item.get("role"):
        case "system" | "developer":
            _listed(item.get("content"))
            text, media, known = _content(item.get("content"))
            shape = Shape("system", text, fixed=True, sealed=not known, media=media)
            yield _told(item, "content", shape)
        case "user":
            yield from _said(item, "prompt")
        case "assistant":
            yield from _said(item, "text")
        case str():
            yield _whole(Shape("other", written(item), sealed=True))
        case other:
            raise InvalidMessage(f"A message item has a role, not {other!r}.")


def _said(item: Object, kind: Kind) -> Iterator[Place]:
    content = item.get("content")
    listed = _listed(content)
    if not listed:
        text = content if isinstance(content, str) else ""
        yield Place(Shape(kind, text), ("content",), ("content",), as_string)
    make = _output_text if kind == "text" else _input_text
    for nth, one in enumerate(listed):
        shape, home = _piece(one, kind), ("content", nth)
        if shape.media:
            yield Place(shape, home, home, as_item(make))
        else:
            key = "refusal" if one.get("type") == "refusal" else "text"
            yield Place(shape, home, (*home, key), as_string)


def _listed(content: JsonValue) -> list[Object]:
    """The items of content that is a list; none for content that is text."""
    if isinstance(content, str):
        return []
    if not isinstance(content, list) or len(objects(content)) != len(content):
        raise InvalidMessage("A message item has text or a list of items.")
    return objects(content)


def _piece(one: Object, kind: Kind) -> Shape:
    """One item of a list of content."""
    match one:
        case {"type": "input_text" | "output_text" | "text", "text": str() as text}:
            return Shape(kind, text)
        case {"type": "refusal", "refusal": str() as text}:
            return Shape(kind, text)
        case {"type": str() as sort} if sort in _MEDIA:
            return Shape(kind, "", media=(_MEDIA[sort],))
        case _:
            return Shape("other", written(one), sealed=True)


def _content(content: JsonValue) -> tuple[str, tuple[str, ...], bool]:
    """The text of content that is one part, the media in it, and whether all of it is known."""
    if content is None:
        return "", (), True
    if isinstance(content, str):
        return content, (), True
    shapes = [_piece(one, "prompt") for one in _listed(content)]
    media = tuple(one for shape in shapes for one in shape.media)
    text = "\n".join(shape.text for shape in shapes if not shape.media)
    return text, media, all(shape.kind == "prompt" for shape in shapes)


def _told(item: Object, key: str, shape: Shape) -> Place:
    """All of the content under a key is one part."""
    content = item.get(key)
    if not isinstance(content, list):
        return Place(shape, (key,), (key,), as_string)
    pieces = enumerate(objects(content))
    said: dict[int, Path] = {
        nth: ("refusal" if one.get("type") == "refusal" else "text",)
        for nth, one in pieces
        if one.get("type") not in _MEDIA
    }
    return Place(shape, (key,), (key,), as_list(said, _input_text))


def _thought(item: Object) -> Shape:
    """Its text where it is open, else what its summary says."""
    lists = (objects(item.get(key)) for key in ("content", "summary"))
    texts = [[text for one in told if (text := _str(one.get("text")))] for told in lists]
    sealed = len(_str(item.get("encrypted_content")) or "")
    return Shape("thought", "\n".join(texts[0] or texts[1]), sealed=True, opaque=sealed)


def _called(item: Object, sort: str, call: str) -> Place:
    tool = _str(item.get("name")) or sort.removesuffix("_call")
    key = next((key for key in _GIVEN if item.get(key) is not None), _GIVEN[0])
    given = item.get(key)
    text = given if isinstance(given, str) else "" if given is None else written(given)
    if sort not in _EDITABLE:
        return _whole(Shape("call", text, tool, call, sealed=True))
    key = "input" if sort == "custom_tool_call" else "arguments"
    retell = as_object if isinstance(given, dict) else as_arguments
    return Place(Shape("call", text, tool, call), ("type",), (key,), retell)


def _returned_openai_responses_items(item: Object, sort: str, call: str) -> Place:
    tool = _str(item.get("name"))
    output = item.get("output")
    if sort == "shell_call_output":
        return _printed(objects(output), call)
    if sort in {"computer_call_output", "tool_search_output", "mcp_approval_response"}:
        fixed = sort == "tool_search_output"  # it says which tools there are
        media = ("image",) if sort == "computer_call_output" else ()
        text = written(item.get("tools")) if fixed else _str(item.get("reason")) or ""
        return _whole(Shape("return", text, tool, call, sealed=True, fixed=fixed, media=media))
    if output is not None and not isinstance(output, str | list):
        return _whole(Shape("return", written(output), tool, call, sealed=True))
    text, media, known = _content(output)
    return _told(item, "output", Shape("return", text, tool, call, sealed=not known, media=media))


def _printed(chunks: Sequence[Object], call: str) -> Place:
    """What a shell printed: another text is one chunk with the outcome of the last."""
    texts = [text for one in chunks for key in _STREAMS if (text := _str(one.get(key)))]
    outcome = chunks[-1].get("outcome") if chunks else None
    shape = Shape("return", "\n".join(texts), "shell", call)
    return Place(shape, ("output",), ("output",), _as_chunk(outcome or {"type": "timeout"}))


def _as_chunk(outcome: JsonValue) -> Callable[[Tree, Path, Replace, str], list[Cut]]:
    def retold(tree: Tree, path: Path, change: Replace, text: str) -> list[Cut]:
        new = string(change.applied(text))
        rest = b',"stderr":"","outcome":' + encoded(outcome)
        return [tree.put(path, b'[{"stdout":' + new + rest + b"}]")]

    return retold


def _owned(item: Object, sort: str) -> Shape:
    """What the provider wrote for itself, or nobody here knows."""
    blob = next((key for key in _BLOBS if isinstance(item.get(key), str)), "")
    told: Object = {key: value for key, value in item.items() if key != blob}
    pictured = sort == "image_generation_call" and bool(blob)
    return Shape(
        "other",
        written(told),
        _str(item.get("name")) or sort.removesuffix("_call"),
        sealed=True,
        fixed=sort in _SETTINGS or sort == "tool_search_output",
        media=("image",) if pictured else (),
        opaque=len(str(item[blob])) if blob and not pictured else 0,
    )


def _whole(shape: Shape) -> Place:
    """The item itself is the part."""
    return Place(shape, ("type",))


def _str(value: JsonValue) -> str | None:
    return value if isinstance(value, str) else None


def _input_text(new: bytes) -> bytes:
    return b'{"type":"input_text","text":' + new + b"}"


def _output_text(new: bytes) -> bytes:
    return b'{"type":"output_text","text":' + new + b"}"


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
_GIVEN: Final = ("arguments", "input", "action", "actions", "operation")
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
        """The item as parts."""
        item = parsed(payload)
        shapes = tuple(place.shape for place in places(item))
        return Described(role(item), shapes)

    def edit(self, payload: bytes, changes: Mapping[int, Change]) -> bytes | None:
        """The item with these parts changed."""
        return edited(payload, places(parsed(payload)), changes)

    def make(self, inserts: Sequence[Insert]) -> list[bytes]:
        """The inserts as items, one each; nothing for a return that words cannot be."""
        return [encoded(made) for insert in inserts if (made := _made(insert))]

    def join(self, returns: Sequence[Insert], payload: bytes) -> bytes | None:  # noqa: ARG002
        """Never: a return is an item of its own."""
        return None

    def problems(self, messages: Sequence[bytes]) -> list[Problem]:
        """Calls without their return, returns without their call, reasoning that led nowhere."""
        described = [self.describe(payload) for payload in messages]
        return [*_alone(described), *unpaired(_turns(described))]


def _turns(described: Sequence[Described]) -> Iterator[Turn]:
    """The model's items in a row are one response: their calls are answered after the last."""
    said = enumerate(described)
    for answers, run in groupby(said, key=lambda one: one[1].role == "assistant"):
        items = list(run)
        if answers:
            yield Turn(items[0][0], True, tuple(one for _, item in items for one in item.shapes))  # noqa: FBT003 - a row of a table
        else:
            yield from (Turn(at, False, item.shapes) for at, item in items)  # noqa: FBT003 - as above


def _alone(described: Sequence[Described]) -> Iterator[Problem]:
    for at, item in enumerate(described):
        after = described[at + 1 : at + 2]
        thinks = any(shape.kind == "thought" for shape in item.shapes)
        if thinks and not (after and after[0].role == "assistant"):
            yield Problem(at, "Reasoning comes without the item that it led to.")


def _made(insert: Insert) -> Object | None:
    if insert.kind != "return":
        return {"role": "user" if insert.kind == "prompt" else "assistant", "content": insert.text}
    return _returned(insert.call or "", insert.text)


def _returned(name: str, text: str) -> Object | None:
    """The item that answers a call in words; calls of computers want a picture."""
    sort, _, call = name.partition(":")
    if sort not in CALLS:
        return {"type": "function_call_output", "call_id": name, "output": text}
    made = _answer(sort, text)
    if made is None:
        return None
    sort, key = next((other, keys[1]) for other, keys in OUTPUTS.items() if keys[0] == sort)
    return {"type": sort, key: call, **made}


def _answer(sort: str, text: str) -> Object | None:
    """What the answer to such a call says."""
    match sort:
        case "computer_call":
            return None
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
