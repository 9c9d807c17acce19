"""The body that goes out: as it came if nothing is to be changed, else with the view's messages.

Clients change what they send again in ways that do not matter to the conversation: they move cache
marks, leave out thoughts. The gateway sends each message of a view in the client's own form of it,
not in the one that was logged when it first came. So each row of the view is paired with the
client's message that it is. Both are known to be one conversation, and a view holds nothing that
the history lacks, but for thoughts that the client leaves out.

A record of the request keeps what the log does not have, so that the body can be made again: the
client's own forms of messages, each record as a difference to the one before it. Most clients send
an answer back in another form than it came in. Cache marks move with each request and are kept by
themselves.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple

from pydantic import JsonValue
from pydantic_core import from_json

from refold.errors import InvalidMessage, TooManySteps
from refold.gateway.dialects.cache_marks import marks_of, restore_marks, without_marks
from refold.gateway.dialects.dialect import Dialect, ParsedRequest
from refold.view import Request, ViewInput
from refold.view.view import Edits, assemble
from refold.view.view_input import Row
from refold.wire import Kind, Wire, wire_for
from refold.wire.fingerprint import Fingerprint, is_unique, may_have_marks, similar_arguments
from refold.wire.splice import array, compact_json

_HARMLESS_REASONS: Final = frozenset(
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
"""Reasons for edits that are not made where nothing else is edited: the provider knows best what it
takes, and what is off the line was never sent. A profile may say that orphans are not passed on."""
_ORPHAN: Final = frozenset({"orphan"})

KEPT_HEADERS: Final = frozenset(
    {
        "accept",
        "anthropic-beta",
        "anthropic-version",
        "content-type",
        "openai-beta",
        "originator",
        "user-agent",
        "x-app",
        "x-stainless-lang",
        "x-stainless-package-version",
        "x-stainless-runtime",
        "x-stainless-runtime-version",
    }
)
"""The headers that are kept: none of them is a credential, and none changes with each request."""
_MAX_HEADER: Final = 1_000
MAX_DEPTH: Final = 64
"""Records that are a difference to one another; then one is whole."""
_MAX_WHOLE: Final = 64 * 1024
"""Bytes of forms that a whole record may have, if the process does not know the record before."""
_MAX_INLINE: Final = 1_000
AS_LOGGED: Final = -1
NOT_LOGGED: Final = 0
"""In the place of an entry: the log does not have the message."""


class HistoryMismatch(Exception):
    """The view is not of what the client sent: others went on in the session meanwhile."""


class RenderedMessage(NamedTuple):
    """A message that is sent."""

    payload: bytes
    seq: int | None = None
    """The entry that it is of; None if the log has none."""
    client: bytes = b""
    """The client's form of it, before it was edited."""


class Rendered(NamedTuple):
    """A request's body, and what it is made of."""

    body: bytes
    rewritten: set[int]
    """The entries that the client sends in another form than logged."""
    messages: Sequence[RenderedMessage]


def render(  # noqa: PLR0913 - three are choices
    dialect: Dialect,
    parsed_request: ParsedRequest,
    inputs: ViewInput,
    request: Request,
    *,
    drop_orphans: bool = False,
    as_it_came: bool = False,
    is_journal: bool = False,
) -> Rendered:
    """The body of a request: as it came if nothing is to be changed.

    With `drop_orphans`, results without their call go even if nothing else is changed, unless
    nothing would be left to answer then. With `as_it_came`, nothing is changed: the provider
    manages the context. Else it does not, once something is folded. A journal's view (`is_journal`)
    holds whatever passed, so more than the client sent.

    Raises:
        HistoryMismatch: What the view holds is not, or not up to its end, the client's.
    """
    messages, layout = parsed_request.messages, request.plan.layout
    indexes = match_rows(dialect, messages, inputs)
    if not is_journal:
        check_history(dialect, parsed_request, inputs, indexes)
    if inputs.foldings and not as_it_came:
        parsed_request = dialect.unedited(parsed_request)
    rewritten = {
        row.seq
        for row in inputs.rows
        if row.role == "assistant" and row.seq in indexes
        if not _same_content(dialect, row.payload, messages[indexes[row.seq]])
    }
    reasons = {
        edit.reason for edit in (*layout.omissions, *layout.changes.values(), *layout.inserts)
    }
    untouched = not inputs.foldings and reasons <= _HARMLESS_REASONS
    paired = {*indexes.values()}
    untouched = untouched and all(  # the provider judges thoughts that the log lacks
        dialect.fingerprint(message).blank
        for index, message in enumerate(messages)
        if index not in paired
    )
    seqs = {index: seq for seq, index in indexes.items()}
    unchanged = [
        RenderedMessage(message, seqs.get(index), message) for index, message in enumerate(messages)
    ]
    if as_it_came or (untouched and not (drop_orphans and reasons >= _ORPHAN)):
        return Rendered(parsed_request.raw, rewritten, unchanged)
    edited = {ref.seq for ref in layout.changes}
    rows = [
        _in_clients_form(inputs.wire, row, messages[indexes[row.seq]], edited)
        for row in inputs.rows
        if row.seq in indexes  # else it is a thought that the client leaves out
    ]
    edits: Edits = {}
    assembled = [*assemble(inputs.wire, rows, layout, edits)]
    if untouched and not (assembled and inputs.wire.describe(assembled[-1]).role != "assistant"):
        return Rendered(parsed_request.raw, rewritten, unchanged)
    sources: dict[int, int] = {}
    for row in rows:
        message = edits[row.seq].message if row.seq in edits else row.payload
        sources[id(message)] = indexes[row.seq]
    sent = [(sources.get(id(message)), message) for message in assembled]
    marked = restore_marks(messages, sent)
    rendered = [
        RenderedMessage(message)
        if index is None
        else RenderedMessage(message, seqs.get(index), messages[index])
        for message, (index, _) in zip(marked, sent, strict=True)
    ]
    return Rendered(dialect.body(parsed_request, marked), rewritten, rendered)


def match_rows(dialect: Dialect, messages: Sequence[bytes], inputs: ViewInput) -> dict[int, int]:
    """The index of the client's message that each row is, by the row's seq."""
    rows = [row.payload for row in inputs.rows]
    if rows == [*messages]:
        return {row.seq: index for index, row in enumerate(inputs.rows)}
    pairs = _RowMatcher(dialect, inputs.wire, messages, rows).pairs()
    return {inputs.rows[row].seq: index for row, index in pairs.items()}


def match_payloads(
    dialect: Dialect, messages: Sequence[bytes], payloads: Sequence[bytes]
) -> dict[int, int]:
    """The index of the client's message that each payload is, by the payload's index."""
    return _RowMatcher(dialect, wire_for(dialect.name), messages, payloads).pairs()


def check_history(
    dialect: Dialect,
    parsed_request: ParsedRequest,
    inputs: ViewInput,
    indexes: Mapping[int, int] | None = None,
) -> None:
    """Check that the client sent all that the view holds, and that its newest message is there.

    Raises:
        HistoryMismatch: It is not so.
    """
    messages = parsed_request.messages
    indexes = match_rows(dialect, messages, inputs) if indexes is None else indexes
    last = next(
        (
            index
            for index in reversed(range(len(messages)))
            if not dialect.fingerprint(messages[index]).blank
        ),
        None,
    )
    if last is not None and last not in indexes.values():
        raise HistoryMismatch
    if any(
        row.seq not in indexes and not dialect.fingerprint(row.payload).blank for row in inputs.rows
    ):
        raise HistoryMismatch


def check_steps(dialect: Dialect, parsed_request: ParsedRequest, limit: int) -> None:
    """Refuse to continue a turn in which the model has used up its answers.

    The client runs the turn and sends all of it each time, so its steps can be counted.
    """
    wire, steps, answering = wire_for(dialect.name), 0, False
    for payload in reversed(parsed_request.messages):
        try:
            role, shapes, _ = wire.describe(payload)
        except InvalidMessage:
            continue
        kinds = {shape.kind for shape in shapes}
        # Some clients put reminders next to results: only text alone begins a turn.
        if role == "user" and "prompt" in kinds and "return" not in kinds:
            break
        steps += role == "assistant" and not answering
        answering = role == "assistant"
    if steps >= limit:
        raise TooManySteps(f"The turn has taken {steps} steps, and may take {limit}.")


def _same_content(dialect: Dialect, first: bytes, second: bytes) -> bool:
    return dialect.fingerprint(first).content == dialect.fingerprint(second).content


def _in_clients_form(wire: Wire, row: Row, payload: bytes, edited: AbstractSet[int]) -> Row:
    """The row with the client's form of its message, where edits mean the same there."""
    if row.seq in edited and _kinds(wire, payload) != [part.kind for part in row.parts]:
        return row._replace(payload=without_marks(row.payload))
    return row._replace(payload=payload)


def _kinds(wire: Wire, payload: bytes) -> list[Kind]:
    try:
        return [shape.kind for shape in wire.describe(payload).shapes]
    except InvalidMessage:
        return []


class _RowMatcher:
    """Pairs a client's history with the rows that a view shows of it.

    Messages are the same by a name that only they have, or by their content. The two agree from
    both ends, and what is between is paired from the newest back. Then what is left is recognized
    by its neighbors: calls that share a name with others, and thoughts, which go with the message
    after them.
    """

    def __init__(
        self, dialect: Dialect, wire: Wire, messages: Sequence[bytes], rows: Sequence[bytes]
    ) -> None:
        self._wire, self._messages, self._rows = wire, messages, rows
        self._theirs = [*map(dialect.fingerprint, messages)]
        self._ours = [*map(dialect.fingerprint, rows)]
        names = _single_names(self._theirs) & _single_names(self._ours)
        self._unique = {name for name in names if is_unique(name.partition(" ")[2])}
        self._indexes: dict[bytes | str, list[int]] = {}
        for index, message in enumerate(self._theirs):
            for key in self._keys(message):
                self._indexes.setdefault(key, []).append(index)
        self._pairs: dict[int, int] = {}
        """The index of a message by the row that it is."""

    def pairs(self) -> dict[int, int]:
        """Which message each row is, as far as that can be seen."""
        self._match_ends()
        for between, rows in list(self._gaps()):
            bound = between.stop
            for row in reversed(rows):
                index = self._last_match(self._ours[row], bound)
                if index >= between.start:
                    self._pairs[row] = bound = index
        self._match_rewritten()
        self._match_thoughts()
        return self._pairs

    def _keys(self, message: Fingerprint) -> list[bytes | str]:
        """What a message is found by; thoughts are found by the message after them."""
        if message.kind == "thought" or message.blank:
            return []
        names = self._unique.intersection(message.names)
        if message.kind in {"prompt", "text"} and message.spine:
            return [message.content, *names, b"".join(message.spine)]
        return [message.content, *names]

    def _match_ends(self) -> None:
        """Pair while both agree: the newest, which is always there; from the front; from the end.

        What a view keeps of the beginning may be said again right before what it keeps of the end.
        """
        messages = [index for index, message in enumerate(self._theirs) if self._keys(message)]
        rows = [row for row, message in enumerate(self._ours) if self._keys(message)]
        shorter, last, first = min(len(messages), len(rows)), 0, 0
        if shorter and self._match(messages[-1], rows[-1]):
            last = 1
        while first < shorter - last and self._match(messages[first], rows[first]):
            first += 1
        while last < shorter - first and self._match(messages[-1 - last], rows[-1 - last]):
            last += 1

    def _match(self, index: int, row: int) -> bool:
        if set(self._keys(self._theirs[index])).isdisjoint(self._keys(self._ours[row])):
            return False
        self._pairs[row] = index
        return True

    def _last_match(self, row: Fingerprint, bound: int) -> int:
        """The newest message before `bound` that is this row; -1 if none is."""
        last = -1
        for key in self._keys(row):
            indexes = self._indexes.get(key, [])
            before = bisect_left(indexes, bound)
            last = max(last, indexes[before - 1] if before else -1)
        return last

    def _match_rewritten(self) -> None:
        """Pair what a client wrote differently, and whose names others have too, by its place."""
        for between, rows in list(self._gaps()):
            bound = between.stop
            for row in reversed(rows):
                if self._ours[row].kind == "thought":
                    continue
                for index in reversed(range(between.start, bound)):
                    if self._may_be(index, row):
                        self._pairs[row] = bound = index
                        break

    def _may_be(self, index: int, row: int) -> bool:
        """Whether a message may be what the client made of this row."""
        theirs, ours = self._theirs[index], self._ours[row]
        if theirs.blank or ours.blank:
            return theirs.blank and ours.blank and "thought" not in {theirs.kind, ours.kind}
        if theirs.kind != ours.kind or set(theirs.names).isdisjoint(ours.names):
            return False
        if ours.kind != "call":
            return True
        first, second = (
            [shape for shape in self._wire.describe(payload).shapes if shape.kind == "call"]
            for payload in (self._messages[index], self._rows[row])
        )
        return len(first) == len(second) and all(
            mine.tool == other.tool and similar_arguments(mine.text, other.text)
            for mine, other in zip(first, second, strict=True)
        )

    def _match_thoughts(self) -> None:
        """Pair thoughts by name or content; else with the thought before the same message."""
        used = set(self._pairs.values())
        by_key: dict[bytes | str, int] = {}
        for index, message in enumerate(self._theirs):
            if message.kind == "thought":
                by_key |= dict.fromkeys(_thought_keys(message), index)
        for row in reversed(range(len(self._ours))):
            thought = self._ours[row]
            if thought.kind != "thought" or row in self._pairs:
                continue
            index = next((by_key[key] for key in _thought_keys(thought) if key in by_key), None)
            if index is None and (following := self._pairs.get(row + 1)):
                before = self._theirs[following - 1]
                if before.kind == "thought" and not _names_differ(before, thought):
                    index = following - 1
            if index is not None and index not in used:
                self._pairs[row] = index
                used.add(index)

    def _gaps(self) -> Iterator[tuple[range, range]]:
        """The messages and rows that no pair has, between two pairs each."""
        pairs = sorted((index, row) for row, index in self._pairs.items())
        bounds = [(-1, -1), *pairs, (len(self._theirs), len(self._ours))]
        for (index, row), (next_index, next_row) in pairwise(bounds):
            if next_index - index > 1 and next_row - row > 1:
                yield range(index + 1, next_index), range(row + 1, next_row)


def _single_names(messages: Sequence[Fingerprint]) -> set[str]:
    """The names that one message of these has."""
    counts = Counter(name for message in messages for name in set(message.names))
    return {name for name, count in counts.items() if count == 1}


def _thought_keys(message: Fingerprint) -> list[bytes | str]:
    return [*message.names, *([] if message.blank else [message.content])]


def _names_differ(first: Fingerprint, second: Fingerprint) -> bool:
    """Whether both have a name of one kind, and another name."""
    ours = dict(name.split(" ", 1) for name in first.names)
    theirs = dict(name.split(" ", 1) for name in second.names)
    return any(ours[key] != theirs[key] for key in ours.keys() & theirs.keys())


# What a record keeps of the body.


def extras_of(parsed: ParsedRequest, headers: Iterable[tuple[bytes, bytes]]) -> dict[str, bytes]:
    """What is kept of a request besides its messages, as JSON by name."""
    kept = {
        name: value[:_MAX_HEADER]
        for raw, raw_value in headers
        if (name := raw.decode("latin-1").lower()) in KEPT_HEADERS
        for value in (raw_value.decode("latin-1"),)
    }
    fields: list[JsonValue] = [*parsed.body]
    return {
        **parsed.extras,
        "fields": compact_json(fields),
        "headers": compact_json({name: kept[name] for name in sorted(kept)}),
    }


@dataclass(slots=True)
class SentForms:
    """What the last request of a session was made of, as this process sent it."""

    _record: int = 0
    """Its record."""
    _keys: list[int] = field(default_factory=list[int])
    """A hash of each of its messages, without cache marks."""
    _depth: int = 0
    _skipped: int = 0
    _next: tuple[list[int], int] | None = None
    """The keys and the depth of the request that is about to be recorded."""

    def forms_of(
        self,
        before: int,
        messages: Sequence[RenderedMessage],
        logged: Callable[[int], bytes],
        *,
        edited: bool,
    ) -> dict[str, str | bytes]:
        """What the record of a request keeps of the form of its messages, as JSON by name.

        A short text is for the record itself, bytes are kept beside it.

        Args:
            before: The record before it; 0 if there is none.
            messages: What is sent.
            logged: The message of an entry, as the log has it.
            edited: Whether the plan's edits were made.
        """
        keys = [hash(_unmarked(message.payload)) for message in messages]
        known = before == self._record and before > 0 and self._depth < MAX_DEPTH
        same = _common(self._keys, keys) if known else 0
        order, forms = _difference(messages[same:], logged)
        kept: dict[str, str | bytes] = {"marks": _marks(messages)}
        size = sum(map(len, forms))
        self._next = None
        if not known and size > _MAX_WHOLE and self._skipped % MAX_DEPTH:
            self._skipped += 1  # others send requests of this session, too: not all of them whole
            return kept
        self._skipped += not known
        self._next = keys, self._depth + 1 if known else 1
        about: dict[str, JsonValue] = {
            "base": before if known else 0,
            "same": same,
            "edited": edited,
            "then": order,
        }
        dumped = compact_json(about)
        inline = len(dumped) <= _MAX_INLINE
        return {**kept, "order": dumped.decode() if inline else dumped, "forms": array(forms)}

    def recorded(self, record: int) -> None:
        """Note that the request has this record now."""
        if self._next is not None:
            self._keys, self._depth = self._next
            self._record, self._next = record, None


def _common(before: Sequence[int], after: Sequence[int]) -> int:
    same = 0
    for first, second in zip(before, after, strict=False):
        if first != second:
            break
        same += 1
    return same


def _difference(
    messages: Sequence[RenderedMessage], logged: Callable[[int], bytes]
) -> tuple[list[JsonValue], list[bytes]]:
    """For each message its entry and which of the forms it has."""
    order: list[JsonValue] = []
    forms: list[bytes] = []
    for message in messages:
        seq = message.seq or NOT_LOGGED
        if seq and _unmarked(message.client) == _unmarked(logged(seq)):
            order.append([seq, AS_LOGGED])
            continue
        order.append([seq, len(forms)])
        forms.append(_unmarked(message.payload))
    return order, forms


def _marks(messages: Sequence[RenderedMessage]) -> bytes:
    """Where the messages have cache marks, and which, as JSON."""
    marks: list[JsonValue] = [
        [nth, [*mark.spot], from_json(mark.mark)]
        for nth, message in enumerate(messages)
        if may_have_marks(message.payload)
        for mark in marks_of(message.payload)
    ]
    return compact_json(marks)


def _unmarked(payload: bytes) -> bytes:
    return without_marks(payload) if may_have_marks(payload) else payload
