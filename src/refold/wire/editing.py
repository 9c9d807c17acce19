"""Where the parts of a message are, and how a change is made there.

A wire says of each part where it lives and how a new text is written in that place. The editing
itself is then the same for every format.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from refold.errors import InvalidInput
from refold.wire.part import Change, Drop, Problem, Replace, Shape
from refold.wire.splice import (
    Cut,
    Member,
    Value,
    compact_json,
    is_object,
    items,
    pairs,
    removed,
    root,
    spliced,
)

Path = tuple[str | int, ...]
"""From the message to a value in it: keys of objects and indexes of arrays."""


class Tree:
    """A raw message, and where its values are; each is looked for once."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self._values: dict[Path, Value | None] = {(): root(raw)}
        self._items: dict[Path, list[Value]] = {}
        self._pairs: dict[Path, list[Member]] = {}

    def at(self, path: Path) -> Value:
        """Where the value at a path is. The path is one that the message has."""
        value = self.find(path)
        if value is None:
            raise LookupError(path)
        return value

    def find(self, path: Path) -> Value | None:
        """Where the value at a path is, if its last key is there; of two equal keys the last."""
        if path not in self._values:
            *start, last = path
            above = tuple(start)
            if isinstance(last, int):
                self._values[path] = self.items(above)[last]
            else:
                values = [pair.value for pair in self.pairs(above) if pair.key == last]
                self._values[path] = values[-1] if values else None
        return self._values[path]

    def items(self, path: Path) -> list[Value]:
        """The values of the array at a path."""
        if path not in self._items:
            self._items[path] = items(self.raw, self.at(path))
        return self._items[path]

    def pairs(self, path: Path) -> list[Member]:
        """The keys and values of the object at a path."""
        if path not in self._pairs:
            self._pairs[path] = pairs(self.raw, self.at(path))
        return self._pairs[path]

    def put(self, path: Path, data: bytes) -> Cut:
        """The cut that gives a key a value, whether or not it had one."""
        value = self.find(path)
        if value is not None:
            return Cut(value, data)
        end = self.at(path[:-1]).end - 1
        comma = b"," if self.pairs(path[:-1]) else b""
        return Cut(Value(end, end), comma + compact_json(str(path[-1])) + b":" + data)


Retell = Callable[[Tree, Path, Replace, str], list[Cut]]
"""Makes the cuts for a new text, given the tree, where the text is, the change and the old text."""


class Place(NamedTuple):
    """A part: what it is, what goes when it is dropped, and how its text is replaced."""

    shape: Shape
    home: Path
    text: Path = ()
    retell: Retell | None = None
    also: tuple[Path, ...] = ()
    """What else goes with it."""


def as_string(tree: Tree, path: Path, change: Replace, text: str) -> list[Cut]:
    """The text is a JSON string, or becomes one."""
    return [tree.put(path, compact_json(change.applied(text)))]


def as_arguments(tree: Tree, path: Path, change: Replace, text: str) -> list[Cut]:  # noqa: ARG001
    """The arguments of a call, as a string."""
    return [tree.put(path, compact_json(change.text))]


def as_object(tree: Tree, path: Path, change: Replace, text: str) -> list[Cut]:  # noqa: ARG001
    """The arguments of a call, as an object."""
    if not is_object(change.text):
        raise InvalidInput(f"The arguments of a call are a JSON object, not {change.text[:40]!r}.")
    return [tree.put(path, change.text.encode())]


def as_item(make: Callable[[bytes], bytes]) -> Retell:
    """An item without text, such as a picture, becomes one with text."""

    def retell(tree: Tree, path: Path, change: Replace, text: str) -> list[Cut]:
        return [tree.put(path, make(compact_json(change.applied(text))))]

    return retell


def as_list(texts: Mapping[int, Path], make: Callable[[bytes], bytes]) -> Retell:
    """A list of content gets another text.

    Where the change keeps some of the text, what came with it stays too: the first item with text
    gets the new one and the other texts go. Otherwise the content becomes the new text alone.
    `texts` has the items with text, and the path in each of them that is replaced.
    """

    def retell(tree: Tree, path: Path, change: Replace, text: str) -> list[Cut]:
        new = compact_json(change.applied(text))
        listed = tree.items(path)
        if not (change.head or change.tail) or not listed:
            return [tree.put(path, new)]
        if not texts:
            start = listed[0].start
            return [Cut(Value(start, start), make(new) + b",")]
        first, *rest = sorted(texts)
        inner = texts[first]
        data = new if inner else make(new)
        return [Cut(tree.at((*path, first, *inner)), data), *removed(listed, rest)]

    return retell


def edited(
    raw: bytes,
    places: Sequence[Place],
    changes: Mapping[int, Change],
    emptied: Mapping[str, bytes] | None = None,
) -> bytes | None:
    """The message with its parts changed, or None when nothing of it is left.

    A key whose array loses all its items goes, unless `emptied` has another value for it.
    """
    for nth, change in changes.items():
        if not 0 <= nth < len(places):
            raise InvalidInput(f"The message has no part {nth}, only {len(places)}.")
        sealed = places[nth].shape.sealed or places[nth].retell is None
        if isinstance(change, Replace) and sealed:
            raise InvalidInput(f"Part {nth} is sealed: it stays as it is or goes.")
    dropped = [places[nth] for nth, change in changes.items() if isinstance(change, Drop)]
    if places and len(dropped) == len(places):
        return None
    tree = Tree(raw)
    cuts: list[Cut] = []
    for nth, change in changes.items():
        shape, _, path, retell, _ = places[nth]
        if isinstance(change, Replace) and retell is not None:
            cuts += retell(tree, path, change, shape.text)
    paths = {path for place in dropped for path in (place.home, *place.also)}
    return spliced(raw, [*cuts, *_drop(tree, paths, emptied or {})])


def _drop(tree: Tree, paths: Collection[Path], emptied: Mapping[str, bytes]) -> list[Cut]:
    """Items go from their arrays; keys, and arrays that lose everything, from the message."""
    cuts: list[Cut] = []
    keys = {str(path[0]) for path in paths if len(path) == 1}
    for key in {str(path[0]) for path in paths if len(path) > 1}:
        listed = tree.items((key,))
        lost = {path[1] for path in paths if path[0] == key}
        if len(lost) < len(listed):
            cuts += removed(listed, [nth for nth in range(len(listed)) if nth in lost])
        else:
            keys.add(key)
    cuts += [Cut(tree.at((key,)), emptied[key]) for key in keys & emptied.keys()]
    keys -= emptied.keys()
    pairs = tree.pairs(()) if keys else []
    lost_pairs = [nth for nth, pair in enumerate(pairs) if pair.key in keys]
    return [*cuts, *removed([pair.where for pair in pairs], lost_pairs)]


# Which calls have their return, as the strictest provider wants it.
#
# After a message with calls come the messages that answer them, and nothing else comes between.
# Each call is answered once, and each return answers a call.


class Turn(NamedTuple):
    """One message, as pairing sees it."""

    at: int
    calls: bool
    """It is the model's, so its calls want answers."""
    shapes: tuple[Shape, ...]
    patient: bool = False
    """Answers may still come after it: the format puts it together with the next message."""


def unpaired(turns: Iterable[Turn]) -> Iterator[Problem]:
    """Calls without their return, and returns without their call."""
    waiting: dict[str | None, int] = {}
    for turn in turns:
        returns = [shape for shape in turn.shapes if shape.kind == "return"]
        if waiting and (turn.calls or not (returns or turn.patient)):
            yield from _unanswered(waiting)
            waiting = {}
        for shape in returns:
            if waiting.pop(shape.call, None) is None:
                yield Problem(turn.at, f"A return for {shape.call!r} has no call before it.")
        if turn.calls:
            for shape in turn.shapes:
                if shape.kind == "call":
                    if shape.call in waiting:
                        yield Problem(turn.at, f"Two calls have the id {shape.call!r}.")
                    waiting[shape.call] = turn.at
    yield from _unanswered(waiting)


def repeated(turns: Iterable[Turn]) -> Iterator[Problem]:
    """Calls with the id of an earlier message's call, which only some providers take."""
    seen: dict[str | None, int] = {}
    for turn in turns:
        calls = [shape.call for shape in turn.shapes if turn.calls and shape.kind == "call"]
        for call in calls:
            if seen.setdefault(call, turn.at) != turn.at:
                yield Problem(turn.at, f"An earlier call has the id {call!r} already.")


def _unanswered(waiting: dict[str | None, int]) -> Iterator[Problem]:
    for call, index in waiting.items():
        yield Problem(index, f"The call {call!r} has no return after it.")
