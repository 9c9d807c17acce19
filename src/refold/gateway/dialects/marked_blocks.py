"""The blocks of a message's content that can carry a cache mark, and where they are in its JSON."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from pydantic import JsonValue

from refold.gateway.dialects.likeness import MARK, alike, kind_of, whole
from refold.wire.editing import Path, Tree
from refold.wire.splice import Cut, Object, parsed, removed, spliced

Spot = tuple[int, ...]
"""A block: its index in the content; for one inside a tool's result, that and its index there."""

_NEVER: Final = frozenset({"thinking", "redacted_thinking", "reasoning"})
_MOVABLE: Final = frozenset(
    {"text", "image", "document", "search_result", "tool_use", "tool_result"}
)
_ESCAPED: Final = b"\\u00"


class Block(NamedTuple):
    """A block that can carry a mark."""

    spot: Spot
    same: bytes
    """What tells it from the other blocks of its message."""
    movable: bool
    """Whether a mark that had its place elsewhere may come here."""
    mark: JsonValue
    inner: tuple["Block", ...] = ()


def may_have_marks(payload: bytes) -> bool:
    """Whether a look is worth it. A key may be written with escapes."""
    return MARK.encode() in payload or _ESCAPED in payload


def blocks_of(payload: bytes) -> tuple[Block, ...]:
    """The blocks of a message; a text without a list around it is one block."""
    content = parsed(payload).get("content")
    if isinstance(content, str):
        lone: Object = {"type": "text", "text": content}
        return tuple(_blocks([lone], ())) if content else ()
    return tuple(_blocks(content, ()))


def with_marks(payload: bytes, marks: Mapping[Spot, bytes]) -> bytes:
    """The message with these marks and no others."""
    if not marks and not may_have_marks(payload):
        return payload
    content = parsed(payload).get("content")
    tree = Tree(payload)
    if isinstance(content, str):
        return _as_list(tree, marks[(0,)]) if (0,) in marks else payload
    cuts: list[Cut] = []
    for nth, block in enumerate(_listed(content)):
        if isinstance(block, dict):
            cuts += _cuts(tree, ("content", nth), marks.get((nth,)))
            for inner, one in enumerate(_listed(block.get("content"))):
                if isinstance(one, dict):
                    path = ("content", nth, "content", inner)
                    cuts += _cuts(tree, path, marks.get((nth, inner)))
    return spliced(payload, cuts)


def _blocks(content: JsonValue, above: Spot) -> Iterator[Block]:
    for nth, block in enumerate(_listed(content)):
        if not isinstance(block, dict) or kind_of(block) in _NEVER:
            continue
        inner = () if above else tuple(_blocks(block.get("content"), (nth,)))
        yield Block((*above, nth), _same(block), _movable(block), block.get(MARK), inner)


def _movable(block: Object) -> bool:
    kind = kind_of(block)
    return kind in _MOVABLE and (kind != "text" or bool(block.get("text")))


def _same(block: Object) -> bytes:
    """A call or a result is the same while its id is, whatever becomes of its words."""
    kind = kind_of(block)
    for key in ("id", "tool_use_id"):
        if isinstance(name := block.get(key), str):
            return alike((kind, key, name))
    return alike((kind, whole(block)))


def _as_list(tree: Tree, mark: bytes) -> bytes:
    where = tree.at(("content",))
    text = tree.raw[where.start : where.end]
    block = b'[{"type":"text","text":' + text + b',"cache_control":' + mark + b"}]"
    return spliced(tree.raw, [Cut(where, block)])


def _cuts(tree: Tree, path: Path, mark: bytes | None) -> list[Cut]:
    """The cuts that leave a block with this mark, or with none."""
    pairs = tree.pairs(path)
    there = [nth for nth, pair in enumerate(pairs) if pair.key == MARK]
    if mark is None:
        return removed([pair.where for pair in pairs], there)
    if not there:
        return [tree.put((*path, MARK), mark)]
    *others, last = there
    return [*removed([pair.where for pair in pairs], others), Cut(pairs[last].value, mark)]


def _listed(content: JsonValue) -> list[JsonValue]:
    return content if isinstance(content, list) else []
