"""The watchdog: notices what was read before a fold and is read again after it.

It works from the log alone: a fold stores what was read as digests, and later reads are compared
with these. The same call with the same result stays in the view through the next fold, within the
room that the profile gives; another piece of a file is only counted. Reading a file that has
changed is not a reread.
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
from refold.view.framing import is_recall_tool
from refold.wire import Shape

MAX_READS = 300
"""How many reads a fold stores: the newest."""
CHANGING = re.compile(
    r"write|edit|creat|patch|replace|insert|delet|remov|renam|move|append", re.IGNORECASE
)
"""The names of tools that change something."""
PATH_ARGUMENTS = ("path", "file_path", "file", "filename", "filepath", "filePath", "target")
SUBJECT_ARGUMENTS = ("command", "query", "pattern", "url")
"""Arguments that say what a call does or looks for."""

MAX_PIN_SHARE = 0.25
"""The share of the room for pins that one may take: a large result costs more in every request than
reading it again."""
PIN_FOLDS = 1
"""For how many folds a result stays pinned, unless it is read again."""
KEPT_IN_VIEW = "The result stays in the view through the next fold."
OTHER = "It is another piece of what was read before. Nothing is kept in the view for that."
TOO_LARGE = (
    "The result is too large to stay in the view. Read less of it at once, or raise `watch.share`."
)
COUNTED = "Set `watch.share` to keep what is read again in the view."

_MAX_LINE = 160
_OBJECT = TypeAdapter(dict[str, JsonValue])


@dataclass(frozen=True, slots=True)
class ReadAgain:
    """The agent read again what a fold had compacted."""

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


class Reread(NamedTuple):
    """A read whose earlier result is folded."""

    tool: str
    what: str
    """What is read, on one line."""
    old: PartRef
    """The newest result before this one."""
    read: Read
    """The new one."""
    times: int
    """How often it has been read by now."""
    same: bool
    """Whether the very same call was made before, and not for another piece of the file."""


class Watchdog:
    """Compares reads with those that folds store; it takes in each message once."""

    def __init__(self, folded: Iterable[Read] = ()) -> None:
        self._latest = _LatestReads(folded)
        self._folded = {read.what for read in self._latest}
        self._tracker = _ReadTracker()

    @property
    def reads(self) -> tuple[Read, ...]:
        """The newest result of everything that was read and has not changed since."""
        return tuple(self._latest)

    def take(self, passages: Iterable[Passage]) -> list[Reread]:
        """The rereads in the next messages."""
        rereads: list[Reread] = []
        for event in self._tracker.events(passages):
            if isinstance(event, _FileChange):
                self._latest.change(event)
            else:
                rereads += self._take(event)
        return rereads

    def _take(self, result: "_ReadResult") -> list[Reread]:
        call = result.call
        same = self._latest.get(call.how)
        before = [read for read in self._latest if read.what == call.what]
        read = self._latest.put(result)
        if not before or (same is not None and same.content != result.content):
            self._folded.discard(call.what)  # never read, or changed since
            return []
        # What is recalled is always folded.
        if call.file != NO_CHANGE and call.what not in self._folded:
            return []
        old = same or max(before, key=lambda read: read.part)
        times = 1 + sum(read.times for read in before)
        what = one_line(call.subject, _MAX_LINE)
        return [Reread(call.tool, what, old.part, read, times, same is not None)]


def rereads(folded: Iterable[Read], passages: Iterable[Passage]) -> list[Reread]:
    """The rereads in the messages after a fold that stores these reads."""
    return Watchdog(folded).take(passages)


def reads_of(material: Material) -> tuple[Read, ...]:
    """The reads that a fold of the material stores: those whose files have not changed since."""
    latest = _LatestReads(
        read._replace(folds=read.folds + 1)
        for fold in material.earlier
        for read in fold.summary.reads
    )
    own = (passage for passage in material.passages if not passage.delegated)
    for event in _ReadTracker().events(own):
        if isinstance(event, _FileChange):
            latest.change(event)
        else:
            latest.put(event)
    return tuple(latest)[-MAX_READS:]


class Pins(NamedTuple):
    """What to pin from now on, and what to unpin."""

    pin: tuple[PartRef, ...] = ()
    unpin: tuple[PartRef, ...] = ()


def pins(
    watched: Iterable[PartRef],
    reads: Sequence[Read],
    reread: Iterable[Read],
    cost: Callable[[Iterable[PartRef]], int],
    room: int,
) -> Pins:
    """Which results stay pinned, each with its call: the newest that were read again.

    Args:
        watched: What the watchdog has pinned so far.
        reads: What was read and has not changed since; pins of anything else go.
        reread: What was read again just now.
        cost: The tokens that such pins keep in the view.
        room: The most that they may cost together.
    """
    before = {*watched}
    kept = [read for read in reads if read.part in before and read.folds < PIN_FOLDS]
    for read in reread:
        kept = [other for other in kept if other.how != read.how]
        if cost((read.call, read.part)) <= MAX_PIN_SHARE * room:
            kept.append(read)
    while kept and cost(_parts(kept)) > room:
        del kept[0]
    after = {*_parts(kept)}
    return Pins(tuple(sorted(after - before)), tuple(sorted(before - after)))


def _parts(reads: Iterable[Read]) -> list[PartRef]:
    return [part for read in reads for part in (read.call, read.part)]


class _ReadCall(NamedTuple):
    """A call that changes nothing."""

    tool: str
    subject: str
    """What it reads, for people."""
    what: int
    how: int
    file: int
    part: PartRef


class _ReadResult(NamedTuple):
    call: _ReadCall
    content: int
    part: PartRef


class _FileChange(NamedTuple):
    """A call that changes files; their folders change too."""

    files: frozenset[int]


class _LatestReads:
    """The newest result of each read, as long as nothing has changed what it reads."""

    def __init__(self, reads: Iterable[Read] = ()) -> None:
        self._reads = {read.how: read for read in sorted(reads, key=lambda read: read.part)}

    def __iter__(self) -> Iterator[Read]:
        return iter(self._reads.values())

    def get(self, how: int) -> Read | None:
        return self._reads.get(how)

    def put(self, result: _ReadResult) -> Read:
        """Add a result; if it differs from the last one, everything read of that is outdated."""
        call = result.call
        before = self._reads.pop(call.how, None)
        if before is not None and before.content != result.content:
            self._drop(lambda read: read.what == call.what)
        times = before.times + 1 if before else 1
        read = Read(call.what, call.how, call.file, result.content, call.part, result.part, times)
        self._reads[call.how] = read
        return read

    def change(self, change: _FileChange) -> None:
        """Drop the reads of changed files, and searches, which may now find something else."""
        self._drop(lambda read: read.file == ANY_CHANGE or read.file in change.files)

    def _drop(self, outdated: Callable[[Read], bool]) -> None:
        self._reads = {how: read for how, read in self._reads.items() if not outdated(read)}


class _ReadTracker:
    """Finds reads and changes, message by message; a call may be answered much later."""

    def __init__(self) -> None:
        self._open: dict[str | None, _ReadCall] = {}

    def events(self, passages: Iterable[Passage]) -> Iterator[_ReadResult | _FileChange]:
        for passage in passages:
            for index, shape in enumerate(passage.shapes):
                if shape.kind == "call":
                    call = _parse_call(shape, passage.ref(index))
                    if isinstance(call, _ReadCall):
                        self._open[shape.call] = call
                    else:
                        yield call
                elif shape.kind == "return" and shape.call in self._open:
                    call = self._open.pop(shape.call)
                    yield _ReadResult(call, _digest(shape.text), passage.ref(index))


def first_argument(arguments: str, keys: Sequence[str]) -> str | None:
    """The first of these arguments that a call has as a text."""
    return _first(_object(arguments) or {}, keys)


def _parse_call(shape: Shape, part: PartRef) -> _ReadCall | _FileChange:
    tool = shape.tool or ""
    arguments = _object(shape.text)
    path = _first(arguments or {}, PATH_ARGUMENTS)
    if CHANGING.search(tool):
        return _FileChange(frozenset(map(_digest, _with_parents(path))) if path else frozenset())
    text = shape.text if arguments is None else json.dumps(arguments, sort_keys=True)
    subject = _first(arguments or {}, SUBJECT_ARGUMENTS)
    how = _digest(tool, text)
    if is_recall_tool(tool):  # the past does not change
        return _ReadCall(tool, subject or text, how, how, NO_CHANGE, part)
    if path and not subject:
        clean = _clean(path)
        return _ReadCall(tool, path, _digest(tool, clean), how, _digest(clean), part)
    return _ReadCall(tool, subject or text, how, how, ANY_CHANGE, part)


def _digest(*texts: str) -> int:
    data = json.dumps(texts).encode()
    return 1 + int.from_bytes(blake2b(data, digest_size=5).digest(), "big")


def _object(arguments: str) -> dict[str, JsonValue] | None:
    try:
        return _OBJECT.validate_json(arguments)
    except ValidationError:
        return None


def _first(arguments: dict[str, JsonValue], keys: Sequence[str]) -> str | None:
    values = (arguments.get(key) for key in keys)
    return next((value for value in values if isinstance(value, str) and value), None)


def _clean(path: str) -> str:
    return posixpath.normpath(path.replace("\\", "/"))


def _with_parents(path: str) -> Iterator[str]:
    """The path and the folders above it, whose listings change too."""
    current = _clean(path)
    yield current
    while (parent := posixpath.dirname(current)) != current:
        current = parent
        yield current or "."
