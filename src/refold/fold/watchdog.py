"""The watchdog: what was read before a fold and is read again after it.

It is noticed from the log alone: a fold remembers what was read (`refold.fold.reads`), and what
came since is compared with that. The same call with the same result is kept through the next fold,
in so much room as the profile gives; another piece of a file is only counted. A file that changed
between is read anew, not again.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from pydantic import JsonValue

from refold.fold.material import Passage
from refold.fold.quoting import one_line
from refold.fold.reads import Changed, Now, Reading, Shelf
from refold.fold.summary import NO_CHANGE, Read
from refold.log import PartRef

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
        self._shelf = Shelf(folded)
        self._folded = {one.what for one in self._shelf}
        self._reading = Reading()

    @property
    def reads(self) -> tuple[Read, ...]:
        """The newest result of everything that was read and has not changed since."""
        return tuple(self._shelf)

    def take(self, passages: Iterable[Passage]) -> list[Reread]:
        """What is read again in the messages that come next."""
        found: list[Reread] = []
        for one in self._reading.of(passages):
            if isinstance(one, Changed):
                self._shelf.change(one)
            else:
                found += self._took(one)
        return found

    def _took(self, now: Now) -> list[Reread]:
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
