"""Cache marks: a client says with them up to where its provider should keep a prompt.

An edited view has lost some of them, or shows a message with the marks it had when it was logged.
They are placed again where the client has them now. A mark whose place is gone moves to what stands
right before it, so that the prefix it kept is kept as far as it is still there.

Marks are on the blocks of a message's content, and on those inside a tool's result. A mark on the
message itself, on instructions or on tools is not touched.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from pydantic import JsonValue

from refold.gateway.dialects.bounded_json import written
from refold.gateway.dialects.fingerprint import MARK, alike, kind_of, whole
from refold.wire.editing import Path, Tree
from refold.wire.splice import Cut, Object, parsed, removed, spliced

# The blocks of a message's content that can carry a cache mark, and where they are in its JSON.

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


class CacheMark(NamedTuple):
    """A mark of a message."""

    spot: Spot
    """The block that carries it."""
    mark: bytes
    """What it says, as JSON."""


def marks_of(payload: bytes) -> tuple[CacheMark, ...]:
    """The cache marks of a message, in order."""
    return tuple(_marks(blocks_of(payload))) if may_have_marks(payload) else ()


def without_marks(payload: bytes) -> bytes:
    """The message without its cache marks."""
    return with_marks(payload, {})


def marked_again(client: Sequence[bytes], sent: Sequence[tuple[int | None, bytes]]) -> list[bytes]:
    """The messages to be sent, with the client's marks where it had them.

    Each message comes with the index of the client's that it stands for, None if it is inserted.
    """
    had = [(at, mark) for at, payload in enumerate(client) for mark in marks_of(payload)]
    placed: dict[int, dict[Spot, bytes]] = {}
    if had:
        placed = _Placing(client, sent).placed(had)
    return [with_marks(payload, placed.get(nth, {})) for nth, (_, payload) in enumerate(sent)]


class _Home(NamedTuple):
    """A block of a message that is sent."""

    nth: int
    spot: Spot


class _Pair(NamedTuple):
    """A message of the client's and the one that is sent for it."""

    nth: int
    theirs: tuple[Block, ...]
    ours: tuple[Block, ...]
    matched: dict[int, int]
    """Of the client's blocks, those that are there, in order."""

    @classmethod
    def of(cls, nth: int, client: bytes, sent: bytes) -> "_Pair":
        theirs, ours = blocks_of(client), blocks_of(sent)
        return cls(nth, theirs, ours, _matched(theirs, ours))

    def home(self, spot: Spot) -> tuple[_Home | None, bool]:
        """Where a mark goes, and whether it is where it was; None if that is not here."""
        at = bisect_left(self.theirs, spot[:1], key=_spot)
        block = self.ours[self.matched[at]] if at in self.matched else None
        if block is None or not _takes(self.theirs[at], block):
            return self._before(at), False
        if len(spot) > 1:
            inner = self.theirs[at].inner
            nth = _matched(inner, block.inner).get(bisect_left(inner, spot, key=_spot))
            if nth is None:
                return _Home(self.nth, block.spot), False
            return _Home(self.nth, block.inner[nth].spot), True
        return _Home(self.nth, block.spot), True

    def _before(self, at: int) -> _Home | None:
        kept = list(self.matched)
        first = bisect_left(kept, at)
        last = self.matched[kept[first - 1]] if first else -1
        for nth in range(last, -1, -1):
            if self.ours[nth].movable:
                return _Home(self.nth, self.ours[nth].spot)
        return None


class _Placing:
    def __init__(self, client: Sequence[bytes], sent: Sequence[tuple[int | None, bytes]]) -> None:
        self._client = client
        self._sent = [payload for _, payload in sent]
        self._places = {at: nth for nth, (at, _) in enumerate(sent) if at is not None}
        self._indexes = sorted(self._places)
        self._pairs: dict[int, _Pair] = {}
        self._last: dict[int, _Home | None] = {-1: None}

    def placed(self, had: Sequence[tuple[int, CacheMark]]) -> dict[int, dict[Spot, bytes]]:
        """Where each mark goes. Those that stay go first: one that moves takes nobody's place."""
        placed: dict[int, dict[Spot, bytes]] = {}
        moving: list[tuple[_Home, bytes]] = []
        for at, (spot, mark) in had:
            home, stays = self._home(at, spot)
            if home is not None and stays:
                placed.setdefault(home.nth, {})[home.spot] = mark
            elif home is not None:
                moving.append((home, mark))
        for home, mark in moving:
            placed.setdefault(home.nth, {}).setdefault(home.spot, mark)
        return placed

    def _home(self, at: int, spot: Spot) -> tuple[_Home | None, bool]:
        if at not in self._places:
            later = bisect_left(self._indexes, at)
            end = len(self._sent)
            if later < len(self._indexes):
                end = self._places[self._indexes[later]]
            return self._at_last(end - 1), False
        nth = self._places[at]
        if at not in self._pairs:
            self._pairs[at] = _Pair.of(nth, self._client[at], self._sent[nth])
        home, stays = self._pairs[at].home(spot)
        return (home, stays) if home is not None else (self._at_last(nth - 1), False)

    def _at_last(self, nth: int) -> _Home | None:
        """The last block that takes a mark in this message, or in those before it."""
        passed: list[int] = []
        while nth not in self._last:
            movable = [one for one in blocks_of(self._sent[nth]) if one.movable]
            if movable:
                self._last[nth] = _Home(nth, movable[-1].spot)
            else:
                passed.append(nth)
                nth -= 1
        self._last.update(dict.fromkeys(passed, self._last[nth]))
        return self._last[nth]


def _marks(blocks: Sequence[Block]) -> Iterator[CacheMark]:
    for block in blocks:
        yield from _marks(block.inner)
        if block.mark is not None:
            yield CacheMark(block.spot, written(block.mark))


def _spot(block: Block) -> Spot:
    return block.spot


def _takes(theirs: Block, ours: Block) -> bool:
    """What is as it was keeps its mark, whatever it is."""
    return ours.movable or ours.same == theirs.same


def _matched(theirs: Sequence[Block], ours: Sequence[Block]) -> dict[int, int]:
    """Which blocks are the same ones, in order.

    Where between two that are the same lie as many here as there, these are the same too, changed.
    """
    places: dict[bytes, list[int]] = {}
    for nth, block in enumerate(ours):
        places.setdefault(block.same, []).append(nth)
    same = [(-1, -1)]
    for nth, block in enumerate(theirs):
        there = places.get(block.same, [])
        later = bisect_right(there, same[-1][1])
        if later < len(there):
            same.append((nth, there[later]))
    same.append((len(theirs), len(ours)))
    between = [
        (their + step, our + step)
        for (their, our), (their_next, our_next) in pairwise(same)
        if their_next - their == our_next - our
        for step in range(1, their_next - their)
    ]
    return dict(sorted([*same[1:-1], *between]))
