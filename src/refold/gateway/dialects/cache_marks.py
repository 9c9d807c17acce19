"""Cache marks: with them a client says up to where its provider should cache a prompt.

An edited view has lost some of them, or shows a message with the marks it had when it was logged.
They are placed again where the client has them now. A mark whose block is gone moves to the block
right before it, so that the provider caches the same prefix as far as it is still there.

Marks are on the blocks of a message's content, and on those inside a tool's result. A mark on the
message itself, on instructions or on tools is not touched.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import inf
from typing import Final, NamedTuple

from pydantic import JsonValue

from refold.wire import fingerprint
from refold.wire.editing import Path, Tree
from refold.wire.fingerprint import MARK, canonical, digest, may_have_marks
from refold.wire.splice import Cut, Object, compact_json, parsed, removed, spliced, str_or_empty

_UNMARKABLE: Final = frozenset({"thinking", "redacted_thinking", "reasoning"})
_MARKABLE: Final = frozenset(
    {"text", "image", "document", "search_result", "tool_use", "tool_result"}
)

Spot = tuple[int, ...]
"""A block: its index in the content; for one inside a tool's result, that and its index there."""
Marks = dict[int, dict[Spot, bytes]]
"""The marks of messages, by the message's index and the block."""


class CacheMark(NamedTuple):
    """A mark of a message."""

    spot: Spot
    """The block that carries it."""
    mark: bytes
    """What it says, as JSON."""


def marks_of(payload: bytes) -> tuple[CacheMark, ...]:
    """The cache marks of a message, in order."""
    return tuple(_marks(_message_blocks(payload))) if may_have_marks(payload) else ()


def without_marks(payload: bytes) -> bytes:
    """The message without its cache marks."""
    return with_marks(payload, {})


def restore_marks(client: Sequence[bytes], sent: Sequence[tuple[int | None, bytes]]) -> list[bytes]:
    """The messages to be sent, with the client's marks where it had them.

    Each message comes with the index of the client's message that it is, None if it is inserted.
    """
    marks = [(index, mark) for index, payload in enumerate(client) for mark in marks_of(payload)]
    placed = _MarkPlacer(client, sent).place(marks) if marks else {}
    return [with_marks(payload, placed.get(nth, {})) for nth, (_, payload) in enumerate(sent)]


def move_mark_to_end(messages: Sequence[bytes], index: int) -> list[bytes]:
    """The messages with the last mark of one of them at the end of the last one instead."""
    moved = [*messages]
    marks = marks_of(messages[index])
    ends = [block for block in _message_blocks(messages[-1]) if block.markable]
    if marks and ends and isinstance(parsed(messages[-1]).get("content"), list):
        *others, last = marks
        moved[index] = with_marks(messages[index], {mark.spot: mark.mark for mark in others})
        own = {mark.spot: mark.mark for mark in marks_of(messages[-1])}
        moved[-1] = with_marks(messages[-1], {**own, ends[-1].spot: last.mark})
    return moved


class _Block(NamedTuple):
    """A block that can carry a mark."""

    spot: Spot
    identity: bytes
    """What tells it from the other blocks of its message."""
    markable: bool
    """Whether a mark that was elsewhere may move here."""
    mark: JsonValue
    inner: tuple["_Block", ...] = ()


def _message_blocks(payload: bytes) -> tuple[_Block, ...]:
    """The blocks of a message; a text without a list around it is one block."""
    content = parsed(payload).get("content")
    if isinstance(content, str):
        text: Object = {"type": "text", "text": content}
        return tuple(_blocks([text], ())) if content else ()
    return tuple(_blocks(content, ()))


def _blocks(content: JsonValue, above: Spot) -> Iterator[_Block]:
    for nth, block in enumerate(_items(content)):
        kind = str_or_empty(block.get("type")) if isinstance(block, dict) else ""
        if not isinstance(block, dict) or kind in _UNMARKABLE:
            continue
        inner = () if above else tuple(_blocks(block.get("content"), (nth,)))
        markable = kind in _MARKABLE and (kind != "text" or bool(block.get("text")))
        yield _Block((*above, nth), _identity(block, kind), markable, block.get(MARK), inner)


def _identity(block: Object, kind: str) -> bytes:
    """A call or a result is the same while its id is, whatever becomes of its words."""
    for key in ("id", "tool_use_id"):
        if isinstance(name := block.get(key), str):
            return digest(kind, key, name)
    return digest(kind, canonical(fingerprint.without_marks(block)))


def _marks(blocks: Sequence[_Block]) -> Iterator[CacheMark]:
    for block in blocks:
        yield from _marks(block.inner)
        if block.mark is not None:
            yield CacheMark(block.spot, compact_json(block.mark))


def with_marks(payload: bytes, marks: Mapping[Spot, bytes]) -> bytes:
    """The message with these marks and no others."""
    if not marks and not may_have_marks(payload):
        return payload
    content = parsed(payload).get("content")
    tree = Tree(payload)
    if isinstance(content, str):
        if (0,) not in marks:
            return payload
        where = tree.at(("content",))
        text = payload[where.start : where.end]
        block = b'[{"type":"text","text":' + text + b',"cache_control":' + marks[0,] + b"}]"
        return spliced(payload, [Cut(where, block)])
    cuts: list[Cut] = []
    for nth, block in enumerate(_items(content)):
        if isinstance(block, dict):
            cuts += _mark_cuts(tree, ("content", nth), marks.get((nth,)))
            for inner, inner_block in enumerate(_items(block.get("content"))):
                if isinstance(inner_block, dict):
                    path = ("content", nth, "content", inner)
                    cuts += _mark_cuts(tree, path, marks.get((nth, inner)))
    return spliced(payload, cuts)


def _mark_cuts(tree: Tree, path: Path, mark: bytes | None) -> list[Cut]:
    """The cuts that leave a block with this mark, or with none."""
    pairs = tree.pairs(path)
    present = [nth for nth, pair in enumerate(pairs) if pair.key == MARK]
    if mark is None:
        return removed([pair.where for pair in pairs], present)
    if not present:
        return [tree.put((*path, MARK), mark)]
    *others, last = present
    return [*removed([pair.where for pair in pairs], others), Cut(pairs[last].value, mark)]


def _items(content: JsonValue) -> list[JsonValue]:
    return content if isinstance(content, list) else []


class _Destination(NamedTuple):
    """A block of a message that is sent."""

    nth: int
    spot: Spot

    @property
    def order(self) -> tuple[int, int, float]:
        """Its position among all spots: a block comes after its contents."""
        block, *inner = self.spot
        return self.nth, block, inner[0] if inner else inf


class _Pair(NamedTuple):
    """A message of the client's and the one that is sent for it."""

    nth: int
    theirs: tuple[_Block, ...]
    ours: tuple[_Block, ...]
    matches: dict[int, int]
    """Of the client's blocks, those that are there, in order."""

    def destination(self, spot: Spot) -> tuple[_Destination | None, bool]:
        """Where a mark goes, and whether it is where it was; None if that is not here."""
        index = bisect_left(self.theirs, spot[:1], key=_spot)
        theirs = self.theirs[index]
        ours = self.ours[self.matches[index]] if index in self.matches else None
        # What is unchanged keeps its mark, whatever it is.
        if ours is None or not (ours.markable or ours.identity == theirs.identity):
            return self._before(index), False
        if len(spot) > 1:
            inner = bisect_left(theirs.inner, spot, key=_spot)
            nth = _matches(theirs.inner, ours.inner).get(inner)
            if nth is None:
                return _Destination(self.nth, ours.spot), False
            return _Destination(self.nth, ours.inner[nth].spot), True
        return _Destination(self.nth, ours.spot), True

    def _before(self, index: int) -> _Destination | None:
        present = list(self.matches)
        first = bisect_left(present, index)
        last = self.matches[present[first - 1]] if first else -1
        for nth in range(last, -1, -1):
            if self.ours[nth].markable:
                return _Destination(self.nth, self.ours[nth].spot)
        return None


class _MarkPlacer:
    def __init__(self, client: Sequence[bytes], sent: Sequence[tuple[int | None, bytes]]) -> None:
        self._client = client
        self._sent = [payload for _, payload in sent]
        self._sent_at = {index: nth for nth, (index, _) in enumerate(sent) if index is not None}
        self._indexes = sorted(self._sent_at)
        self._pairs: dict[int, _Pair] = {}
        self._last: dict[int, _Destination | None] = {-1: None}

    def place(self, marks: Sequence[tuple[int, CacheMark]]) -> Marks:
        """Where each mark goes. Marks that stay are placed first, so no moved mark replaces one.

        A mark that would move ahead of an earlier one is dropped: the earlier one covers the same.
        """
        placed: Marks = {}
        moving: list[tuple[_Destination, bytes]] = []
        last = (-1, -1, 0.0)
        for index, (spot, mark) in marks:
            destination, stays = self._destination(index, spot)
            if destination is None or destination.order < last:
                continue
            last = destination.order
            if stays:
                placed.setdefault(destination.nth, {})[destination.spot] = mark
            else:
                moving.append((destination, mark))
        for destination, mark in moving:
            placed.setdefault(destination.nth, {}).setdefault(destination.spot, mark)
        return placed

    def _destination(self, index: int, spot: Spot) -> tuple[_Destination | None, bool]:
        if index not in self._sent_at:
            later = bisect_left(self._indexes, index)
            end = len(self._sent)
            if later < len(self._indexes):
                end = self._sent_at[self._indexes[later]]
            return self._last_block(end - 1), False
        nth = self._sent_at[index]
        if index not in self._pairs:
            theirs, ours = _message_blocks(self._client[index]), _message_blocks(self._sent[nth])
            self._pairs[index] = _Pair(nth, theirs, ours, _matches(theirs, ours))
        destination, stays = self._pairs[index].destination(spot)
        if destination is None:
            return self._last_block(nth - 1), False
        return destination, stays

    def _last_block(self, nth: int) -> _Destination | None:
        """The last block that takes a mark in this message, or in those before it."""
        passed: list[int] = []
        while nth not in self._last:
            markable = [block for block in _message_blocks(self._sent[nth]) if block.markable]
            if markable:
                self._last[nth] = _Destination(nth, markable[-1].spot)
            else:
                passed.append(nth)
                nth -= 1
        self._last.update(dict.fromkeys(passed, self._last[nth]))
        return self._last[nth]


def _spot(block: _Block) -> Spot:
    return block.spot


def _matches(theirs: Sequence[_Block], ours: Sequence[_Block]) -> dict[int, int]:
    """Which blocks are the same ones, in order.

    Where as many blocks lie between two matches here as there, these match too, changed.
    """
    indexes: dict[bytes, list[int]] = {}
    for nth, block in enumerate(ours):
        indexes.setdefault(block.identity, []).append(nth)
    same = [(-1, -1)]
    for nth, block in enumerate(theirs):
        candidates = indexes.get(block.identity, [])
        later = bisect_right(candidates, same[-1][1])
        if later < len(candidates):
            same.append((nth, candidates[later]))
    same.append((len(theirs), len(ours)))
    between = [
        (their + step, our + step)
        for (their, our), (their_next, our_next) in pairwise(same)
        if their_next - their == our_next - our
        for step in range(1, their_next - their)
    ]
    return dict(sorted([*same[1:-1], *between]))
