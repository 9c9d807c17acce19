"""Which messages of a client's history are already in the log, and which are new.

A front end, a program or a coding agent sends its own copy of a conversation with each request. The
copy is never quite what the log has: clients drop timestamps, usage, thinking and instructions,
join or split texts, write arguments with other spaces, leave out the beginning. So messages are
compared by what survives the round trip:

1. by an id that both sides have, and that names one thing on each side: a tool call's, a response's
   or a front end's own;
2. else by who speaks and what: a hash of the normalized text, arguments or result.

The comparison goes from the newest message back. What the log has before the messages that were
compared is not looked at: the log is right about its own past. That is why aligning costs what is
new and a short stretch before it, however long the session is.

Nothing here reads anything. `align` takes items that the caller has; `Alignment.settled` says
whether items from further back could change the answer.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from refold.errors import InvalidMessage
from refold.wire.fingerprint import canonical, digest, media_of, single_spaced
from refold.wire.part import Shape, Wire
from refold.wire.splice import json_value, parsed

Verdict = Literal["continues", "diverges", "unknown"]
"""The history goes on from the log's end; it leaves the log's line earlier; or nothing of it is
known."""

ENOUGH: Final = 8
"""Agreeing items in a row that leave no doubt about the place."""
_MAX_COMPARED: Final = 24
"""Items that are compared to judge one place."""
_MAX_PLACES: Final = 8
"""Places in the log that are judged for one item: some clients say "continue" a thousand times."""
_REACH: Final = 6
"""Items that may be missing on either side before two lists agree again."""
_MAX_PARSED: Final = 1_000_000
"""Longer arguments are compared as they are written: parsing them would take long."""


class Item(NamedTuple):
    """What identifies one piece of a conversation: a prompt, a text, a call, a result."""

    source: int
    """Where it is: the index of a message in a history, or the seq of an entry in the log."""
    kind: str
    digest: bytes
    """Who speaks and what, normalized; empty if it identifies nothing."""
    ids: tuple[str, ...] = ()
    """Names that survive a round trip. One that occurs twice in a list is ignored."""
    gap: bool = False
    """The log may have something before it that is not in the list."""
    first: int = -1
    """Where it begins, if that is in an earlier message than where it ends."""
    part: int = 0
    """The part of that message that it begins with."""

    @property
    def begin(self) -> int:
        """The message that it begins in."""
        return self.source if self.first < 0 else self.first


class Piece(NamedTuple):
    """A message to take items from."""

    source: int
    payload: bytes
    ids: Callable[[int, bytes], tuple[str, ...]] = lambda _nth, _digest: ()
    """More ids of its parts, by index and digest."""
    gap: bool = False


@dataclass(frozen=True, slots=True)
class Alignment:
    """How a history that was brought lies on what the log has. Print it to see why."""

    incoming: Sequence[Item]
    log: Sequence[Item]
    pairs: tuple[tuple[int, int], ...]
    """Which item of the history is which item of the log, by their indexes, in order."""
    new: int
    """The history's items from here on are new."""
    fork: int | None
    """The first item of the log that the history does not have at its end; None at the log's."""
    evidence: Literal["ids", "content"] | None
    """What the place was found by."""
    settled: bool
    """Whether items from further back could no longer change this."""

    @property
    def verdict(self) -> Verdict:
        """What the history is to the log."""
        if not self.log:
            return "continues"
        if self.fork is not None:
            return "diverges"
        return "continues" if self.pairs else "unknown"

    @property
    def unknown(self) -> tuple[int, ...]:
        """Items before the new ones that the log does not have where it could be seen.

        The client wrote them differently, or put them there.
        """
        missing: list[int] = []
        bounds = [(-1, -1), *self.pairs]
        for (index, entry), (next_index, next_entry) in pairwise(bounds):
            if any(item.gap for item in self.log[entry + 1 : next_entry + 1]):
                continue  # what the log has there was not looked at
            between = range(index + 1, next_index)
            missing += (nth for nth in between if self.incoming[nth].digest)
        return tuple(missing)

    @property
    def reason(self) -> str:
        """Why the verdict is as it is."""
        by = {"ids": "by its id", "content": "by its content", None: ""}[self.evidence]
        if self.verdict == "unknown":
            return "No message of the history was found in the log."
        if not self.pairs:
            where = "before" if self.log else "in an empty log"
            what = f" entry {self.log[self.fork].begin}" if self.fork is not None else ""
            return f"The history begins {where}{what}{f', found {by}' if by else ''}."
        index, entry = self.pairs[-1]
        message, place = self.incoming[index].source, self.log[entry].source
        match = f"Message {message} of the history is entry {place} of the log, found {by}"
        if self.fork is None:
            return f"{match}; that is the log's newest."
        return f"{match}; entry {self.log[self.fork].begin} of the log follows, not the history."

    def __str__(self) -> str:
        paired = dict(self.pairs)
        unknown = set(self.unknown)
        lines = [f"{self.verdict}: {self.reason}"]
        for index, item in enumerate(self.incoming):
            place = "?"
            if index in paired:
                place = f"= entry {self.log[paired[index]].source}"
            elif index >= self.new:
                place = "new"
            elif index in unknown:
                place = "differs from the log"
            lines.append(f"  message {item.source}: {item.kind} {place}")
        return "\n".join(lines)


def items_of(wire: Wire, pieces: Iterable[Piece], *, loose: bool = False) -> list[Item]:
    """The items of messages, in order.

    Texts that follow one another are one item, in however many parts and messages they come. What
    clients leave out is none, unless `loose`: thinking, blank text, what only a provider reads.
    What systems say is none at all: each request says it anew.
    """
    items: list[Item] = []
    texts: list[tuple[Piece, int, Shape]] = []
    gap = False
    for piece in pieces:
        if piece.gap:
            _close(texts, items, gap=gap)
        gap = gap or piece.gap
        try:
            shapes = wire.describe(piece.payload).shapes
        except InvalidMessage:
            gap = True
            continue
        for nth, shape in enumerate(shapes):
            if not _identifies(shape, loose=loose):
                continue
            if shape.kind != "text":
                gap = _close(texts, items, gap=gap)
            texts.append((piece, nth, shape))
            if shape.kind != "text":
                gap = _close(texts, items, gap=gap)
    _close(texts, items, gap=gap)
    return items


def _close(parts: list[tuple[Piece, int, Shape]], items: list[Item], *, gap: bool) -> bool:
    """Make one item of these parts; whether there is a gap before the next."""
    if not parts:
        return gap
    (first, part, shape), (last, _, _) = parts[0], parts[-1]
    content = _digest_of(shape, "".join(part.text for _, _, part in parts), first.payload)
    ids = tuple(name for piece, nth, _ in parts for name in piece.ids(nth, content))
    begun = first.source if first.source != last.source else -1
    item = Item(last.source, shape.kind, content, (*_call_ids(shape), *ids), gap, begun, part)
    items.append(item)
    parts.clear()
    return False


def align(incoming: Sequence[Item], log: Sequence[Item], *, partial: bool = False) -> Alignment:
    """Lay a history on a log.

    Args:
        incoming: The items that somebody brings; the newest of them will do.
        log: The newest items on the log's line. What is missing before an item, its gap says.
        partial: Whether the history has more before `incoming`.
    """
    return _Aligner(incoming, log, partial=partial).alignment()


class _Place(NamedTuple):
    """A guess which item of the history is which item of the log."""

    score: int
    logged: int
    brought: int
    agreed: int
    """How many items agree from there back."""
    ended: bool
    """Whether one of the two was compared to its very beginning."""
    by_id: bool = False


class _Aligner:
    def __init__(self, incoming: Sequence[Item], log: Sequence[Item], *, partial: bool) -> None:
        self._all_incoming, self._all_log = incoming, log
        self._incoming = [item for item in incoming if item.digest]
        self._log = [item for item in log if item.digest]
        self._partial = partial
        self._ids = _unique_ids(self._incoming) & _unique_ids(self._log)
        self._places: dict[tuple[str, bytes], list[int]] = {}
        for entry, item in enumerate(self._log):
            self._places.setdefault((item.kind, item.digest), []).append(entry)
        self._indexes: dict[tuple[str, bytes], list[int]] = {}
        for index, item in enumerate(self._incoming):
            self._indexes.setdefault((item.kind, item.digest), []).append(index)

    def alignment(self) -> Alignment:
        place = self._by_ids()
        if place is None and (edited := self._edited()) is not None:
            index, entry = edited
            pairs = self._pairs(index - 1, entry - 1)
            return self._result(pairs, entry, "ids", settled=True)
        place = place or self._by_content()
        if place is None:
            complete = not self._partial and not any(item.gap for item in self._log)
            return self._result([], None, None, settled=complete)
        index, entry = self._forward(place.brought, place.logged)
        pairs = self._pairs(index, entry)
        fork = entry + 1 if entry + 1 < len(self._log) else None
        agreed = place.agreed + index - place.brought
        settled = place.by_id or agreed >= ENOUGH or place.ended
        if fork is not None and self._log[fork].gap:
            settled = False  # the history may leave the log within the gap
        return self._result(pairs, fork, "ids" if place.by_id else "content", settled=settled)

    def _same(self, index: int, entry: int) -> bool:
        mine, logged = self._incoming[index], self._log[entry]
        if mine.kind != logged.kind:
            return False
        if mine.digest == logged.digest:
            return True
        # A call's id is the provider's: arguments that the client wrote differently are still its.
        shared = self._ids.intersection(mine.ids, logged.ids)
        return bool(shared) and mine.kind in {"call", "return"}

    def _by_ids(self) -> _Place | None:
        """The place of the newest item that an id names, where what surrounds it agrees."""
        for index, entry in self._same_ids():
            if self._same(index, entry):
                place = self._judge(index, entry)
                if place.score > 0:
                    return place._replace(by_id=True)
        return None

    def _edited(self) -> tuple[int, int] | None:
        """Where a message has the id of one in the log, and another content."""
        for index, entry in self._same_ids():
            agrees = 0 in (index, entry) or self._judge(index - 1, entry - 1).score > 0
            if agrees and self._incoming[index].kind == self._log[entry].kind:
                return index, entry
        return None

    def _same_ids(self) -> Iterator[tuple[int, int]]:
        """The pairs with an id in common, from the newest message back."""
        entries = {name: entry for entry, item in enumerate(self._log) for name in item.ids}
        for index in reversed(range(len(self._incoming))):
            for name in self._ids.intersection(self._incoming[index].ids):
                yield index, entries[name]

    def _by_content(self) -> _Place | None:
        """The place that most agrees with; of equals, the newest in the log."""
        best: _Place | None = None
        end = len(self._log) - 1
        for index in reversed(range(len(self._incoming))):
            item = self._incoming[index]
            entries = self._places.get((item.kind, item.digest), ())
            for entry in reversed(entries[-_MAX_PLACES:]):
                place = self._judge(index, entry)
                if place.score > 0 and (best is None or place[:3] > best[:3]):
                    best = place
            if best is not None and best.logged == end:
                certain = best.agreed >= ENOUGH or best.ended
                if certain and best.score == 2 * best.agreed:
                    break
        return best

    def _judge(self, index: int, entry: int) -> _Place:
        """How well the two lists agree from there back.

        What the log has and the history does not was left out, which clients do. What only the
        history has speaks against the place.
        """
        place = (entry, index)
        agreed = missed = 0
        crossed = False
        while index >= 0 and entry >= 0 and agreed < _MAX_COMPARED:
            if self._same(index, entry):
                agreed += 1
                gap = self._log[entry].gap
                index, entry = index - 1, entry - 1
                if gap and entry >= 0:  # what the log has there cannot be compared
                    crossed = True
                    index = self._last_match(entry, index)
            elif (near := self._near(index, entry)) is not None:
                missed += index - near[0]
                index, entry = near
            elif (earlier := self._earlier(index, entry)) is not None:
                entry = earlier
            elif self._log[entry].gap:
                break
            else:
                missed += 1
                index -= 1
        complete = entry < 0 and not crossed and not self._log[0].gap
        if complete:
            missed += min(index + 1, _MAX_COMPARED)
        ended = complete or (index < 0 and not crossed and not self._partial)
        return _Place(2 * agreed - 3 * missed, *place, agreed, ended)

    def _last_match(self, entry: int, index: int) -> int:
        """The newest item of the history up to `index` that is this one of the log; -1 if none."""
        item = self._log[entry]
        indexes = self._indexes.get((item.kind, item.digest), [])
        place = bisect_left(indexes, index + 1)
        return indexes[place - 1] if place else -1

    def _near(self, index: int, entry: int) -> tuple[int, int] | None:
        """Where the two lists agree again, going back over a few items of either."""
        for steps in range(1, _REACH + 1):
            for mine in range(steps + 1):
                before = index - mine, entry - (steps - mine)
                between = self._log[max(before[1], 0) + 1 : entry + 1]
                if min(before) < 0 or any(item.gap for item in between):
                    continue
                if self._same(*before):
                    return before
        return None

    def _earlier(self, index: int, entry: int) -> int | None:
        """The newest place before this one for an item of the history."""
        item = self._incoming[index]
        entries = self._places.get((item.kind, item.digest), [])
        place = bisect_left(entries, entry)
        return entries[place - 1] if place else None

    def _forward(self, index: int, entry: int) -> tuple[int, int]:
        """How far the two go on together, over what a client rewrites within a turn."""
        while index + 1 < len(self._incoming) and entry + 1 < len(self._log):
            further = next(self._further(index, entry), None)
            if further is None:
                break
            index, entry = further
        return index, entry

    def _further(self, index: int, entry: int) -> Iterator[tuple[int, int]]:
        for steps in range(2, _REACH + 2):
            for mine in range(1, steps):
                after = index + mine, entry + steps - mine
                if after[0] >= len(self._incoming) or after[1] >= len(self._log):
                    continue
                between = (
                    *self._incoming[index + 1 : after[0]],
                    *self._log[entry + 1 : after[1]],
                )
                # Another prompt is another turn: what follows it is not the same conversation.
                if self._same(*after) and not any(item.kind == "prompt" for item in between):
                    yield after

    def _pairs(self, index: int, entry: int) -> list[tuple[int, int]]:
        """All that agrees up to there: from the end, then from the beginning, then between."""
        last: list[tuple[int, int]] = []
        while index >= 0 and entry >= 0 and self._same(index, entry):
            last.append((index, entry))
            index, entry = index - 1, entry - 1
        first: list[tuple[int, int]] = []
        low = 0
        while not self._partial and low <= min(index, entry) and self._same(low, low):
            first.append((low, low))
            low += 1
        between: list[tuple[int, int]] = []
        while entry >= low:
            if (match := self._last_match(entry, index)) >= low:
                between.append((match, entry))
                index = match - 1
            entry -= 1
        return [*first, *reversed(between), *reversed(last)]

    def _result(
        self,
        pairs: list[tuple[int, int]],
        fork: int | None,
        evidence: Literal["ids", "content"] | None,
        *,
        settled: bool,
    ) -> Alignment:
        if fork is not None:
            # An entry is kept whole or not at all.
            while fork > 0 and self._log[fork].begin <= self._log[fork - 1].source:
                fork -= 1
            pairs = [pair for pair in pairs if pair[1] < fork]
        mine = [nth for nth, item in enumerate(self._all_incoming) if item.digest]
        logged = [nth for nth, item in enumerate(self._all_log) if item.digest]
        matched = self._with_blanks([(mine[index], logged[entry]) for index, entry in pairs])
        return Alignment(
            self._all_incoming,
            self._all_log,
            tuple(matched),
            matched[-1][0] + 1 if matched else 0,
            None if fork is None else logged[fork],
            evidence,
            settled,
        )

    def _with_blanks(self, pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """With what identifies nothing, which is known by what it stands between."""
        if len(self._incoming) == len(self._all_incoming) or len(self._log) == len(self._all_log):
            return pairs
        blanks: list[tuple[int, int]] = []
        bounds = [(-1, -1), *pairs, (len(self._all_incoming), len(self._all_log))]
        for (index, entry), (next_index, next_entry) in pairwise(bounds):
            two = zip(range(index + 1, next_index), range(entry + 1, next_entry), strict=False)
            blanks += (
                (mine, logged)
                for mine, logged in two
                if not self._all_incoming[mine].digest and not self._all_log[logged].digest
            )
        return sorted([*pairs, *blanks])


def _unique_ids(items: Sequence[Item]) -> set[str]:
    """The ids that name one item. Some servers call every call `call_0`."""
    counts = Counter(name for item in items for name in set(item.ids))
    return {name for name, count in counts.items() if count == 1}


def _identifies(shape: Shape, *, loose: bool) -> bool:
    match shape.kind:
        case "call" | "return":
            return True
        case "prompt" | "text":
            return loose or bool(shape.text.strip() or shape.media)
        case "system":
            return False
        case _:
            return loose


def _call_ids(shape: Shape) -> tuple[str, ...]:
    if not shape.call:
        return ()
    return (f"{shape.kind} {shape.tool if shape.kind == 'call' else ''} {shape.call}",)


def _digest_of(shape: Shape, text: str, payload: bytes) -> bytes:
    match shape.kind:
        case "call":
            return digest("call", shape.tool or "", _canonical(shape.text) or "{}")
        case "return":
            return digest("return", _canonical(shape.text))
        case "text":
            return digest("text", single_spaced(text))
        case kind:
            media = media_of(parsed(payload)) if shape.media else ()
            return digest(kind, single_spaced(shape.text), *media)


def _canonical(text: str) -> str:
    """Objects and lists as JSON that is the same however it was written; else the words."""
    if text.lstrip()[:1] in {"{", "["} and len(text) <= _MAX_PARSED:
        try:
            return canonical(json_value(text.encode()))
        except ValueError:
            pass
    return single_spaced(text)
