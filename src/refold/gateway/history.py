"""The body that goes out: as it came where nothing is to be changed, else with the view's messages.

Clients change what they send again in ways that do not matter to the conversation: they move cache
marks, leave out thoughts. What is shown of a message is the client's own form of it, not the one
that was logged when it first came.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
from typing import Final, NamedTuple

from refold.errors import InvalidMessage
from refold.gateway.dialects.cache_marks import marked_again, without_marks
from refold.gateway.dialects.dialect import Dialect, ParsedRequest
from refold.view import Request, ViewInput
from refold.view.plan import Layout
from refold.view.view import Edits, assemble
from refold.view.view_input import Row
from refold.wire import Kind, Wire
from refold.wire.fingerprint import Fingerprint, is_unique, similar_arguments

# Which message of a client's history each message of a view is.
#
# The gateway sends what its view shows in the client's own form: cache marks move, and clients
# rewrite what they send back. So each row of the view is paired with the client's message that it
# is.
# Both are known to be one conversation, and a view holds nothing that the history lacks, but for
# thoughts that the client leaves out.


class Sent(NamedTuple):
    """A message, as far as pairing has to know it."""

    content: bytes
    """What it says, to the letter; empty if clients need not send it."""
    known_by: Fingerprint = Fingerprint()
    payload: bytes = b""


def pair_shown(
    incoming: Sequence[Sent],
    shown: Sequence[Sent],
    similar: Callable[[bytes, bytes], bool] = lambda _one, _other: True,
) -> list[tuple[int, int]]:
    """Pair a history with what a view shows of it.

    Messages are the same by a name that only they have, or by their content. The two agree from
    both ends, and what is between is paired from the newest back. Then what is left is known by
    what it stands between: calls that share a name with others, and thoughts, which go with the
    message after them.

    Args:
        incoming: The client's messages.
        shown: The view's.
        similar: Whether two messages with calls of the same names may be one, rewritten.
    """
    return _Pairing(incoming, shown, similar).pairs()


class _Pairing:
    def __init__(
        self,
        incoming: Sequence[Sent],
        shown: Sequence[Sent],
        similar: Callable[[bytes, bytes], bool],
    ) -> None:
        self._incoming, self._shown, self._similar = incoming, shown, similar
        self._unique = _names_of_one(incoming) & _names_of_one(shown)
        self._indexes: dict[bytes | str, list[int]] = {}
        for index, message in enumerate(incoming):
            for key in self._keys(message):
                self._indexes.setdefault(key, []).append(index)
        self._pairs: dict[int, int] = {}
        """The index of a message by the row that it is."""

    def pairs(self) -> list[tuple[int, int]]:
        """Which message each row is, as far as that can be seen."""
        self._from_both_ends()
        for between, rows in list(self._gaps()):
            bound = between.stop
            for row in reversed(rows):
                index = self._newest(self._shown[row], bound)
                if index is not None and index >= between.start:
                    self._pairs[row] = bound = index
        self._rewritten()
        self._thoughts()
        return sorted((index, row) for row, index in self._pairs.items())

    def _keys(self, message: Sent) -> list[bytes | str]:
        """What a message is found by; thoughts are found by what they stand before."""
        if message.known_by.sort == "thought" or not message.content:
            return []
        names = self._unique.intersection(message.known_by.names)
        if message.known_by.sort in {"prompt", "text"} and message.known_by.spine:
            return [message.content, *names, b"".join(message.known_by.spine)]
        return [message.content, *names]

    def _same(self, message: Sent, row: Sent) -> bool:
        return not set(self._keys(message)).isdisjoint(self._keys(row))

    def _from_both_ends(self) -> None:
        """Pair while both agree, from the end and then from the front."""
        said = [index for index, message in enumerate(self._incoming) if self._keys(message)]
        rows = [row for row, message in enumerate(self._shown) if self._keys(message)]
        shorter, last, first = min(len(said), len(rows)), 0, 0
        while last < shorter and self._agree(said[-1 - last], rows[-1 - last]):
            last += 1
        while first < shorter - last and self._agree(said[first], rows[first]):
            first += 1

    def _agree(self, index: int, row: int) -> bool:
        if self._same(self._incoming[index], self._shown[row]):
            self._pairs[row] = index
            return True
        return False

    def _newest(self, row: Sent, bound: int) -> int | None:
        """The newest message before `bound` that is this row."""
        found = -1
        for key in self._keys(row):
            indexes = self._indexes.get(key, [])
            place = bisect_left(indexes, bound)
            found = max(found, indexes[place - 1] if place else -1)
        return found if found >= 0 else None

    def _rewritten(self) -> None:
        """Pair what a client wrote differently, and whose names others have too, by its place."""
        for between, rows in list(self._gaps()):
            left = [row for row in rows if self._shown[row].known_by.sort != "thought"]
            index = between.stop
            for row in reversed(left):
                for one in reversed(range(between.start, index)):
                    if self._may_be(self._incoming[one], self._shown[row]):
                        self._pairs[row] = index = one
                        break

    def _may_be(self, message: Sent, row: Sent) -> bool:
        """Whether a message may be what the client made of this row."""
        if not message.content or not row.content:
            thought = "thought" in {message.known_by.sort, row.known_by.sort}
            return message.content == row.content and not thought
        if message.known_by.sort != row.known_by.sort:
            return False
        if set(message.known_by.names).isdisjoint(row.known_by.names):
            return False
        return row.known_by.sort != "call" or self._similar(message.payload, row.payload)

    def _thoughts(self) -> None:
        """Pair thoughts by name or words; else with the thought before the same message."""
        taken = set(self._pairs.values())
        by_key: dict[bytes | str, int] = {}
        for index, message in enumerate(self._incoming):
            if message.known_by.sort == "thought":
                by_key |= dict.fromkeys(_thought_keys(message), index)
        for row in reversed(range(len(self._shown))):
            thought = self._shown[row]
            if thought.known_by.sort != "thought" or row in self._pairs:
                continue
            index = next((by_key[key] for key in _thought_keys(thought) if key in by_key), None)
            if index is None and (live := self._pairs.get(row + 1)):
                before = self._incoming[live - 1]
                if before.known_by.sort == "thought" and not _differ(before, thought):
                    index = live - 1
            if index is not None and index not in taken:
                self._pairs[row] = index
                taken.add(index)

    def _gaps(self) -> Iterator[tuple[range, range]]:
        """The messages and rows that no pair has, between two pairs each."""
        known = sorted((index, row) for row, index in self._pairs.items())
        bounds = [(-1, -1), *known, (len(self._incoming), len(self._shown))]
        for (index, row), (next_index, next_row) in pairwise(bounds):
            if next_index - index > 1 and next_row - row > 1:
                yield range(index + 1, next_index), range(row + 1, next_row)


def _names_of_one(messages: Sequence[Sent]) -> set[str]:
    """The names that one message of these has, and that are not shared by all conversations."""
    counted = Counter(name for one in messages for name in set(one.known_by.names))
    return {
        name for name, times in counted.items() if times == 1 and is_unique(name.partition(" ")[2])
    }


def _thought_keys(message: Sent) -> list[bytes | str]:
    return [*message.known_by.names, *([message.content] if message.content else [])]


def _differ(one: Sent, other: Sent) -> bool:
    """Whether both have a name of one kind, and another name."""
    first = dict(name.split(" ", 1) for name in one.known_by.names)
    second = dict(name.split(" ", 1) for name in other.known_by.names)
    return any(first[key] != second[key] for key in first.keys() & second.keys())


_LEFT_ALONE: Final = frozenset(
    {
        "empty",
        "late",
        "off the line",
        "opening",
        "orphan",
        "parted",
        "scope",
        "unanswered",
    }
)
"""Reasons for edits that are not made where nothing else is edited: the provider says best what it
takes, and what is off the line was never sent."""


class NotTheirs(Exception):
    """The view is not of what the client sent: others went on in the session meanwhile."""


def rendered(
    dialect: Dialect, parsed_request: ParsedRequest, inputs: ViewInput, request: Request
) -> tuple[bytes, set[int]]:
    """The body of a request, and the entries that the client sends in another form than logged.

    Raises:
        NotTheirs: What the view holds is not, or not up to its end, the client's.
    """
    layout = request.plan.layout
    theirs = aligned(dialect, parsed_request.messages, inputs)
    check_theirs(dialect, parsed_request, inputs, theirs)
    differing = _rewritten(dialect, parsed_request.messages, inputs, theirs)
    if _untouched(layout, inputs) and len(theirs) == len(parsed_request.messages):
        return parsed_request.raw, differing
    edited = {ref.seq for ref in layout.changes}
    rows = [
        _as_sent(inputs.wire, row, parsed_request.messages[theirs[row.seq]], edited)
        for row in inputs.rows
        if row.seq in theirs  # else it is a thought that the client leaves out
    ]
    edits: Edits = {}
    messages = assemble(inputs.wire, rows, layout, edits)
    sources = _sources(messages, rows, edits, theirs)
    return dialect.body(parsed_request, marked_again(parsed_request.messages, sources)), differing


def _untouched(layout: Layout, inputs: ViewInput) -> bool:
    """Whether nothing is shortened. Calls without answers and the like are the client's affair."""
    reasons = {one.reason for one in (*layout.omissions, *layout.changes.values(), *layout.inserts)}
    return not inputs.foldings and reasons <= _LEFT_ALONE


def aligned(dialect: Dialect, messages: Sequence[bytes], inputs: ViewInput) -> dict[int, int]:
    """Which of the client's messages each row is, by its seq."""
    rows = inputs.rows
    if len(rows) == len(messages) and all(
        row.payload == message for row, message in zip(rows, messages, strict=True)
    ):
        return {row.seq: index for index, row in enumerate(rows)}
    theirs = [_sent(dialect, message) for message in messages]
    shown = [_sent(dialect, row.payload) for row in rows]

    def similar(one: bytes, other: bytes) -> bool:
        return _similar_calls(inputs.wire, one, other)

    return {rows[row].seq: index for index, row in pair_shown(theirs, shown, similar)}


def _rewritten(
    dialect: Dialect, messages: Sequence[bytes], inputs: ViewInput, theirs: Mapping[int, int]
) -> set[int]:
    """The answers that the client sends back in another form than the log has."""
    return {
        row.seq
        for row in inputs.rows
        if row.role == "assistant"
        and row.seq in theirs
        and dialect.likeness(row.payload) != dialect.likeness(messages[theirs[row.seq]])
    }


def _sent(dialect: Dialect, payload: bytes) -> Sent:
    facts = dialect.form.seen(payload)
    return Sent(b"" if facts.blank else facts.likeness, facts.known_by, payload)


def _similar_calls(wire: Wire, one: bytes, other: bytes) -> bool:
    """Whether two messages with calls of the same names may be one that a client rewrote."""
    first, second = (
        [shape for shape in wire.describe(payload).shapes if shape.kind == "call"]
        for payload in (one, other)
    )
    return len(first) == len(second) and all(
        mine.tool == theirs.tool and similar_arguments(mine.text, theirs.text)
        for mine, theirs in zip(first, second, strict=True)
    )


def check_theirs(
    dialect: Dialect,
    parsed_request: ParsedRequest,
    inputs: ViewInput,
    theirs: Mapping[int, int] | None = None,
) -> None:
    """Check that the client sent all that the view holds, and that its newest message is there.

    Raises:
        NotTheirs: It is not so.
    """
    theirs = aligned(dialect, parsed_request.messages, inputs) if theirs is None else theirs
    said = (
        at
        for at in reversed(range(len(parsed_request.messages)))
        if not dialect.blank(parsed_request.messages[at])
    )
    newest = next(said, None)
    if newest is not None and newest not in theirs.values():
        raise NotTheirs
    if any(row.seq not in theirs and not dialect.blank(row.payload) for row in inputs.rows):
        raise NotTheirs


def _as_sent(wire: Wire, row: Row, payload: bytes, edited: AbstractSet[int]) -> Row:
    """The row with the client's form of its message, where edits mean the same there."""
    if row.seq in edited and _kinds(wire, payload) != [part.kind for part in row.parts]:
        return row._replace(payload=without_marks(row.payload))
    return row._replace(payload=payload)


def _kinds(wire: Wire, payload: bytes) -> list[Kind]:
    try:
        return [one.kind for one in wire.describe(payload).shapes]
    except InvalidMessage:
        return []


def _sources(
    messages: Sequence[bytes], rows: Sequence[Row], edits: Edits, theirs: dict[int, int]
) -> list[tuple[int | None, bytes]]:
    """The messages, each with the place of the client's that it stands for."""
    places: dict[int, int] = {}
    for row in rows:
        if row.seq in theirs:
            made = edits[row.seq].message if row.seq in edits else row.payload
            places[id(made)] = theirs[row.seq]
    return [(places.get(id(message)), message) for message in messages]
