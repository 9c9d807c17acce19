"""The watchdog: what was read before a fold and is read again after it.

It is noticed from the log alone: a fold remembers what was read (`refold.fold.watchdog`), and what
came since is compared with that. The same call with the same result is kept through the next fold,
in so much room as the profile gives; another piece of a file is only counted. A file that changed
between is read anew, not again.
"""

import json
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import ClassVar, NamedTuple

from pydantic import JsonValue, TypeAdapter, ValidationError

from refold.fold.material import Material, Passage
from refold.fold.summary import ANY_CHANGE, NO_CHANGE, Read, one_line
from refold.log import PartRef
from refold.wire import Shape

# What a model has read, so that reading it again is noticed.
#
# A read is a call that changes nothing, with its result. Reads are kept as numbers alone, digests
# of
# what was asked and returned: a fold can remember hundreds, and no one's words are in them.

MOST = 300
"""How many reads a fold remembers: the newest."""
CHANGING = re.compile(
    r"write|edit|creat|patch|replace|insert|delet|remov|renam|move|append", re.IGNORECASE
)
"""The names of tools that change something."""
PATH_ARGUMENTS = ("path", "file_path", "file", "filename", "filepath", "target")
"""Arguments that name a file."""
SUBJECT_ARGUMENTS = ("command", "query", "pattern", "url")
"""Arguments that say what is looked for or done."""
RECALLING = "recall_"
_OBJECT = TypeAdapter(dict[str, JsonValue])


class ReadCall(NamedTuple):
    """A call that reads."""

    tool: str
    told: str
    """What it reads, for people."""
    what: int
    how: int
    file: int
    part: PartRef


class ReadResult(NamedTuple):
    """A result that came, and the call it answers."""

    asked: ReadCall
    content: int
    part: PartRef


class FileChange(NamedTuple):
    """A call that changes something: which files, and the folders they are in."""

    files: frozenset[int]


class LatestReads:
    """The newest result of each read, as long as nothing changed what it reads."""

    def __init__(self, reads: Iterable[Read] = ()) -> None:
        self._reads = {one.how: one for one in sorted(reads, key=lambda one: one.part)}

    def __iter__(self) -> Iterator[Read]:
        """The reads, the oldest first."""
        return iter(self._reads.values())

    def get(self, how: int) -> Read | None:
        """The newest result of the very same call."""
        return self._reads.get(how)

    def put(self, now: ReadResult) -> None:
        """A result that came; other words for the same call make all that was read of it old."""
        before = self._reads.pop(now.asked.how, None)
        if before is not None and before.content != now.content:
            self._drop(lambda one: one.what == now.asked.what)
        asked, times = now.asked, before.times if before else 0
        self._reads[asked.how] = Read(
            asked.what, asked.how, asked.file, now.content, asked.part, now.part, times + 1
        )

    def change(self, changed: FileChange) -> None:
        """Files changed: what was read of them, and searches, which may find something else."""
        self._drop(lambda one: one.file == ANY_CHANGE or one.file in changed.files)

    def _drop(self, old: Callable[[Read], bool]) -> None:
        self._reads = {how: one for how, one in self._reads.items() if not old(one)}


class ReadTracker:
    """Finds reads and changes, message by message; a call may be answered much later."""

    def __init__(self) -> None:
        self._open: dict[str | None, ReadCall] = {}

    def of(self, passages: Iterable[Passage]) -> Iterator[ReadResult | FileChange]:
        """What was read and changed in these messages."""
        for passage in passages:
            for nth, shape in enumerate(passage.shapes):
                if shape.kind == "call":
                    found = _called(shape, passage.ref(nth))
                    if isinstance(found, ReadCall):
                        self._open[shape.call] = found
                    else:
                        yield found
                elif shape.kind == "return" and shape.call in self._open:
                    asked = self._open.pop(shape.call)
                    yield ReadResult(asked, digest(shape.text), passage.ref(nth))


def reads_of(material: Material) -> tuple[Read, ...]:
    """What a fold of the material remembers: what was read and has not changed since."""
    shelf = LatestReads(
        read._replace(folds=read.folds + 1)
        for one in material.earlier
        for read in one.summary.reads
    )
    for found in ReadTracker().of(one for one in material.passages if not one.delegated):
        if isinstance(found, FileChange):
            shelf.change(found)
        else:
            shelf.put(found)
    return tuple(shelf)[-MOST:]


def first_argument(arguments: str, keys: Sequence[str]) -> str | None:
    """The first of these arguments that a call was given as a text."""
    return _first(_object(arguments) or {}, keys)


def digest(*texts: str) -> int:
    """A number for texts; the same ones have the same number, in every process."""
    joined = json.dumps(texts).encode()
    return 1 + int.from_bytes(blake2b(joined, digest_size=5).digest(), "big")


def _called(shape: Shape, part: PartRef) -> ReadCall | FileChange:
    tool = shape.tool or ""
    arguments = _object(shape.text)
    path = _first(arguments or {}, PATH_ARGUMENTS)
    if CHANGING.search(tool):
        return FileChange(frozenset(map(digest, _upwards(path))) if path else frozenset())
    how = shape.text if arguments is None else json.dumps(arguments, sort_keys=True)
    asked = _first(arguments or {}, SUBJECT_ARGUMENTS)
    if tool.startswith(RECALLING):  # what was said does not change
        return ReadCall(tool, asked or how, digest(tool, how), digest(tool, how), NO_CHANGE, part)
    if path and not asked:
        clean = _clean(path)
        return ReadCall(tool, path, digest(tool, clean), digest(tool, how), digest(clean), part)
    return ReadCall(tool, asked or how, digest(tool, how), digest(tool, how), ANY_CHANGE, part)


def _object(arguments: str) -> dict[str, JsonValue] | None:
    try:
        return _OBJECT.validate_json(arguments)
    except ValidationError:
        return None


def _first(arguments: dict[str, JsonValue], keys: Sequence[str]) -> str | None:
    found = (arguments.get(key) for key in keys)
    return next((one for one in found if isinstance(one, str) and one), None)


def _clean(path: str) -> str:
    return posixpath.normpath(path.replace("\\", "/"))


def _upwards(path: str) -> Iterator[str]:
    """The path, and the folders above it: a list of their files changes too."""
    here = _clean(path)
    yield here
    while (above := posixpath.dirname(here)) != here:
        here = above
        yield here or "."


_LINE = 160

LARGEST = 0.25
"""Of the room for pins, the share that one may take: a large result costs more in every request
than to read it again."""
LASTS = 1
"""Through how many folds a result is kept, unless it is read again."""
KEPT = "The result stays in the view through the next fold."
OTHER = "It is another piece of what was read before. Nothing is kept in the view for that."
TOO_LARGE = (
    "The result is too large to stay in the view. Read less of it at once, or raise `watch.share`."
)
COUNTED = "Set `watch.share` to keep what is read again in the view."


class Reread(NamedTuple):
    """Something that is read again, though a fold stands for what it returned before."""

    tool: str
    what: str
    """What is read, in a line."""
    old: PartRef
    """The newest result before this one."""
    read: Read
    """The new one."""
    times: int
    """How often it was read by now."""
    same: bool
    """Whether the very same call was made before; else another piece of the file was read."""


@dataclass(frozen=True, slots=True)
class ReadAgain:
    """The same was read again after a fold, and what came of that."""

    NAME: ClassVar[str] = "session.reread"
    TELEMETRY: ClassVar[str] = "session_reread"

    tool: str
    what: str
    times: int
    tokens: int
    """What the result costs."""
    pinned: bool
    remedy: str

    def as_json(self) -> dict[str, JsonValue]:
        """The event as it is sent."""
        return {
            "type": self.NAME,
            "tool": self.tool,
            "what": self.what,
            "times": self.times,
            "tokens": self.tokens,
            "pinned": self.pinned,
            "remedy": self.remedy,
        }

    def telemetry(self) -> dict[str, JsonValue]:
        """The telemetry record: figures, and no one's words."""
        return {
            "type": self.TELEMETRY,
            "times": self.times,
            "tokens": self.tokens,
            "pinned": self.pinned,
        }


class Watchdog:
    """Compares what is read with what folds remember; it takes in each message once."""

    def __init__(self, folded: Iterable[Read] = ()) -> None:
        self._shelf = LatestReads(folded)
        self._folded = {one.what for one in self._shelf}
        self._reading = ReadTracker()

    @property
    def reads(self) -> tuple[Read, ...]:
        """The newest result of everything that was read and has not changed since."""
        return tuple(self._shelf)

    def take(self, passages: Iterable[Passage]) -> list[Reread]:
        """What is read again in the messages that come next."""
        found: list[Reread] = []
        for one in self._reading.of(passages):
            if isinstance(one, FileChange):
                self._shelf.change(one)
            else:
                found += self._took(one)
        return found

    def _took(self, now: ReadResult) -> list[Reread]:
        asked = now.asked
        same = self._shelf.get(asked.how)
        before = [one for one in self._shelf if one.what == asked.what]
        self._shelf.put(now)
        recalled = asked.file == NO_CHANGE  # what is recalled is folded by itself
        if not before or (same is not None and same.content != now.content):
            self._folded.discard(asked.what)  # never read, or changed since
            return []
        if not recalled and asked.what not in self._folded:
            return []
        read = self._shelf.get(asked.how)
        assert read is not None  # noqa: S101 - it was put there
        old = same or max(before, key=lambda one: one.part)
        times = 1 + sum(one.times for one in before)
        told = one_line(asked.told, _LINE)
        return [Reread(asked.tool, told, old.part, read, times, same is not None)]


def rereads(folded: Iterable[Read], passages: Iterable[Passage]) -> list[Reread]:
    """What is read again in the messages after a fold that remembers these reads."""
    return Watchdog(folded).take(passages)


class Pins(NamedTuple):
    """What is to be pinned from now on, and no longer."""

    pin: tuple[PartRef, ...] = ()
    unpin: tuple[PartRef, ...] = ()


def pins(
    watched: Iterable[PartRef],
    reads: Sequence[Read],
    wanted: Iterable[Read],
    cost: Callable[[Iterable[PartRef]], int],
    room: int,
) -> Pins:
    """Which results stay pinned, each with its call: the newest that were read again.

    Args:
        watched: What the watchdog pinned so far.
        reads: What was read and has not changed since; pins of anything else go.
        wanted: What was read again just now.
        cost: The tokens that such pins keep in the view.
        room: The most that they may cost together.
    """
    before = {*watched}
    kept = [one for one in reads if one.part in before and one.folds < LASTS]
    for one in wanted:
        kept = [*(other for other in kept if other.how != one.how), one]
        if cost(_parts([one])) > LARGEST * room:
            kept.remove(one)
    while kept and cost(_parts(kept)) > room:
        del kept[0]
    after = {*_parts(kept)}
    return Pins(tuple(sorted(after - before)), tuple(sorted(before - after)))


def _parts(reads: Iterable[Read]) -> list[PartRef]:
    return [part for one in reads for part in (one.call, one.part)]
