"""What a view is planned over: the messages on the session's line, described once.

A sheet grows with the log. Describing and counting a message is done when it is added, so a request
costs what is new since the last one.
"""

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Literal, NamedTuple

from pydantic import JsonValue
from pydantic_core import from_json

from refold.errors import InvalidInput, InvalidMessage
from refold.log import (
    CODEC,
    MAIN_SCOPE,
    Cleared,
    Entry,
    FoldCompleted,
    Folded,
    FoldUndone,
    Message,
    Outline,
    PartRef,
    Pinned,
    Rewound,
    Unpinned,
    Visible,
)
from refold.log.entry import Span, intersect, spans_of, subtract, union, up_to
from refold.view.budget import PER_MESSAGE
from refold.view.framing import on_one_line, plain, tool_name
from refold.view.plan import Gone, Reason
from refold.view.tokens import Counter
from refold.wire import Part, Role, Shape, Wire
from refold.wire.splice import json_text

# The folds that stand on a sheet, as their summaries have them shown.


class Folding(NamedTuple):
    """A fold that stands on the sheet: its entry, what it stands for, and what it shows."""

    seq: int
    spans: tuple[Span, ...]
    shown: tuple[tuple[str, str], ...] = ()
    """The kind and text of each message in its place."""
    merged: bool = False
    """Whether its text stands in front of the next prompt instead."""
    tokens: int = 0
    """What it stands for would cost in a request."""


def foldings(visible: Visible) -> Iterable[Folding]:
    """The folds that stand in a session, oldest first."""
    entries = {entry.seq: entry for entry in visible.entries}
    for fold in visible.outline.folds:
        if fold.seq in entries:
            match CODEC.decode(entries[fold.seq]):
                case FoldCompleted(summary=summary):
                    yield _folding(fold, summary)
                case _:
                    yield Folding(fold.seq, fold.spans)


def _folding(fold: Folded, summary: JsonValue) -> Folding:
    match summary:
        case {"shown": list(shown)}:
            told = (_told(one) for one in shown)
            merged = summary.get("placement") == "merge"
            tokens = summary.get("tokens", 0)
            size = tokens if isinstance(tokens, int) else 0
            return Folding(fold.seq, fold.spans, tuple(filter(None, told)), merged, size)
        case str(text) | {"text": str(text)}:
            count = sum(len(span) for span in fold.spans)
            marked = f"[Summary of {count} earlier messages]\n{text}"
            return Folding(fold.seq, fold.spans, (("prompt", marked),))
        case _:
            return Folding(fold.seq, fold.spans)


def _told(shown: JsonValue) -> tuple[str, str] | None:
    match shown:
        case {"kind": "prompt" | "reply" as kind, "text": str(text)}:
            return kind, text
        case _:
            return None


# Tool results as Markdown, for those who read them as text.


def render_tool_result(tool: str, input: JsonValue, output: JsonValue) -> str:  # noqa: A002 - as people call it
    """A tool's call and result as Markdown, with both as JSON indented by two."""
    return f"## Tool: {tool}\n\n**Input:**\n{_indented(input)}\n\n**Output:**\n{_indented(output)}"


def _indented(value: JsonValue) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


# Whose work a reader sees: its own, its callers' and, as text, that of those it called.

Sight = Literal["native", "text", "none"]


class Quote(NamedTuple):
    """Delegated work as the delegating reader sees it: a text, told where it happened."""

    seq: int
    text: str
    sources: tuple[PartRef, ...]


def seen(scope: str, reader: str) -> Sight:
    """How a reader sees an entry of a scope.

    Its own work and what stands above it as it is; what it delegated as text; the rest, which is
    the work of unrelated delegations, not at all.
    """
    if scope == reader or _above(scope, reader):
        return "native"
    return "text" if _above(reader, scope) else "none"


def _above(scope: str, other: str) -> bool:
    return other.startswith(scope if scope.endswith("/") else f"{scope}/")


class Delegation:
    """Tells the messages of delegations as text; calls wait for their result."""

    def __init__(self, wire: Wire, reader: str) -> None:
        self._wire = wire
        self._reader = reader
        self._calls: dict[tuple[str, str | None], tuple[Shape, PartRef]] = {}

    def quotes(self, seq: int, scope: str, payload: bytes) -> Iterator[Quote]:
        """What one message of a delegation adds."""
        for nth, shape in enumerate(self._wire.describe(payload).shapes):
            ref = PartRef(seq, nth)
            match shape.kind:
                case "call":
                    self._calls[scope, shape.call] = shape, ref
                case "return":
                    call, source = self._calls.pop((scope, shape.call), (None, None))
                    tool = shape.tool or (call.tool if call else None) or ""
                    given = _json(call.text if call else "")
                    text = render_tool_result(tool and tool_name(tool), given, _json(shape.text))
                    sources = (source, ref) if source else (ref,)
                    yield Quote(seq, f"[{on_one_line(scope)}]\n{plain(text)}", sources)
                case "prompt" | "text" if shape.text:
                    yield Quote(seq, f"[{on_one_line(scope)}]\n{plain(shape.text)}", (ref,))
                case _:
                    pass


def _json(text: str) -> JsonValue:
    """The value that a text is written of; a word or number that would read otherwise is a text."""
    try:
        value: JsonValue = from_json(text)
    except ValueError:
        return text
    return value if isinstance(value, dict | list) or json_text(value) == text else text


# One message of a sheet: described as parts, and counted.


class Row(NamedTuple):
    """One message of a sheet."""

    seq: int
    payload: bytes
    role: Role
    parts: tuple[Part, ...]
    tokens: int
    """Of its parts; each message costs a few more."""
    instructions: int = 0
    """Tokens of the instructions that came with it."""
    goes_on: bool = False
    """Whether it belongs to the same response as the row before it."""

    def has(self, kind: str) -> bool:
        """Whether a part of it is of this kind."""
        return any(part.kind == kind for part in self.parts)


def weight(row: Row) -> int:
    """The tokens of a message that is sent whole."""
    return row.tokens + PER_MESSAGE if row.parts else 0


def described(seq: int, payload: bytes, wire: Wire, counter: Counter) -> Row:
    """The row of a message. Raises InvalidMessage when the wire cannot read it."""
    role, shapes, instructions = wire.describe(payload)
    parts = tuple(
        Part(
            seq,
            nth,
            shape.kind,
            len(shape.text),
            counter.part(shape),
            shape.tool,
            shape.call,
            shape.sealed,
            shape.fixed,
            hash((shape.tool, shape.text, payload if shape.media else None)),
        )
        for nth, shape in enumerate(shapes)
    )
    tokens = sum(part.tokens for part in parts)
    beside = counter.text(instructions) if instructions else 0
    return Row(seq, payload, role, parts, tokens, beside)


MOVING = frozenset(
    kind.KIND for kind in (Cleared, FoldCompleted, FoldUndone, Pinned, Rewound, Unpinned)
)
"""The kinds of entries that change what a view is made of."""


_seq = attrgetter("seq")


class ViewInput:
    """The messages of a session that one reader may see, in order, and where turns begin.

    `scope` is the reader's: the main agent's, or the path of a delegation. Who works `apart` sees
    nothing of other scopes.
    """

    def __init__(
        self, wire: Wire, counter: Counter, scope: str = MAIN_SCOPE, *, apart: bool = False
    ) -> None:
        self.wire = wire
        self.counter = counter
        self.scope = scope
        self.apart = apart
        self.head = 0
        self.outline = Outline()
        self.rows: list[Row] = []
        self.steps: list[int] = []
        """For each row, the row that its step begins with: a response, then what answers it."""
        self.turns: list[int] = []
        """The rows that turns begin with."""
        self.prompt: int | None = None
        """The row of the latest prompt."""
        self.instructions = 0
        self.foldings: tuple[Folding, ...] = ()
        self.unread: tuple[Span, ...] = ()
        """What was not read at all, because the profile reads only so much."""
        self.hidden: dict[int, Reason] = {}
        """The messages on the line that are no rows, and why."""
        self.quotes: list[Quote] = []
        """Delegated work, told as text."""
        self.pinned: list[Quote] = []
        """Pinned parts whose place is folded."""
        self.replaced: dict[tuple[int, int, int, str, int], int] = {}
        """What parts cost once replaced, so that it is counted once."""
        self._delegation = Delegation(wire, scope)
        self._described: dict[int, Row] = {}
        self.unanswered: dict[str | None, int] = {}
        """Calls that were closed without their return, and the row that closed them."""
        self.fixed: list[int] = []
        """Rows with parts that stay in every view, beside system content."""
        self.calls: dict[str | None, int] = {}
        """Where each call id was first used."""
        self.tools: dict[str | None, str | None] = {}
        """The tool that each call named last."""
        self._open: set[str | None] = set()
        self._asking = False
        self._answered = True
        self._gaps: tuple[Span, ...] = ()
        self._gap, self._whose = False, scope

    @classmethod
    def of(  # noqa: PLR0913 - two are choices
        cls,
        visible: Visible,
        wire: Wire,
        counter: Counter,
        scope: str = MAIN_SCOPE,
        *,
        apart: bool = False,
        known: "ViewInput | None" = None,
    ) -> "ViewInput":
        """The sheet of what a session's view is made of; `known` spares describing it again."""
        inputs = cls(wire, counter, scope, apart=apart)
        if known is not None and known.wire is wire and known.counter is counter:
            inputs._described = {row.seq: row for row in known.rows}
        inputs.outline = visible.outline
        inputs.head = visible.info.entries
        folded = union(span for fold in visible.outline.folds for span in fold.spans)
        lost = union((*folded, *subtract(up_to(inputs.head), visible.outline.on_line(inputs.head))))
        if not apart or scope == MAIN_SCOPE:  # what folds tell is the main agent's
            inputs.foldings = tuple(foldings(visible))
        read = spans_of(entry.seq for entry in visible.entries)
        inputs.unread = subtract(up_to(inputs.head), (*lost, *read))
        inputs._gaps = union((*lost, *inputs.unread))
        for entry in visible.entries:
            if not any(entry.seq in span for span in lost):
                inputs._add(entry)
            elif any(entry.seq in span for span in folded):
                inputs._pin(entry)
        inputs._described = {}
        return inputs

    def extend(self, entries: Iterable[Entry]) -> None:
        """Add the entries after the head; none of them may change the outline."""
        for entry in entries:
            if entry.kind in MOVING:
                raise InvalidInput(
                    f"Entry {entry.seq} changes what the view is made of.",
                    "Read the session with `visible` and make a new sheet.",
                )
            self._add(entry)
            self.head = max(self.head, entry.seq)

    def text(self, part: Part) -> str:
        """The text of a part."""
        row = self.rows[self.at(part.seq)]
        return self.wire.describe(row.payload).shapes[part.nth].text

    def at(self, seq: int) -> int:
        """The row of an entry."""
        return bisect_left(self.rows, seq, key=_seq)

    def step(self, start: int) -> range:
        """The rows of the step that begins with this row."""
        end = start + 1
        while end < len(self.rows) and self.steps[end] == start:
            end += 1
        return range(start, end)

    def after_response(self, seq: int) -> int:
        """The first place from this entry on that is not within a response."""
        at = end = self.at(seq)
        while end < len(self.rows) and self.rows[end].goes_on:
            end += 1
        return self.rows[end - 1].seq + 1 if end > at else seq

    def turn(self) -> int:
        """The row that the current turn begins with."""
        return self.turns[-1] if self.turns else len(self.rows)

    def absent(self) -> tuple[Gone, ...]:
        """What is not on the sheet, and why."""
        on_line = self.outline.on_line(self.head)
        reasons: list[tuple[Reason, tuple[Span, ...]]] = [
            ("off the line", subtract(up_to(self.head), on_line))
        ]
        folded = union(span for fold in self.outline.folds for span in fold.spans)
        reasons.append(("folded", intersect(folded, on_line)))
        reasons.append(("not read", self.unread))
        for reason in sorted(set(self.hidden.values())):
            found = (seq for seq, why in self.hidden.items() if why == reason)
            reasons.append((reason, spans_of(found)))
        return tuple(Gone(span, reason) for reason, spans in reasons for span in spans)

    def _add(self, entry: Entry) -> None:
        if entry.kind != Message.KIND:
            return
        if entry.forgotten:
            self.hidden[entry.seq] = "forgotten"
            self._gap = True
            return
        match CODEC.decode(entry):
            case Message(payload):
                pass
            case _:
                return
        sight = self._sight(entry)
        try:
            if sight == "native":
                self._place(self._row(entry.seq, payload), entry.scope)
            elif sight == "text":
                self.hidden[entry.seq] = "delegated"
                self.quotes += self._delegation.quotes(entry.seq, entry.scope, payload)
            else:
                self.hidden[entry.seq] = "scope"
        except InvalidMessage:  # one message that nobody can read must not cost the session
            self.hidden[entry.seq] = "unreadable"
            self._gap = True

    def _sight(self, entry: Entry) -> Sight:
        if self.apart and entry.scope != self.scope:
            return "none"
        return seen(entry.scope, self.scope)

    def _pin(self, entry: Entry) -> None:
        wanted = [pin for pin in self.outline.pins if pin.seq == entry.seq]
        match CODEC.decode(entry):
            case Message(payload) if wanted and self._sight(entry) == "native":
                self.pinned += self._quoted(payload, wanted)
            case _:
                pass

    def _quoted(self, payload: bytes, pins: list[PartRef]) -> list[Quote]:
        try:
            shapes = self.wire.describe(payload).shapes
        except InvalidMessage:
            return []
        wanted = ((pin, shapes[pin.index]) for pin in pins if pin.index < len(shapes))
        return [Quote(pin.seq, _labelled(shape), (pin,)) for pin, shape in wanted if shape.text]

    def _row(self, seq: int, payload: bytes) -> Row:
        known = self._described.get(seq)
        return known or described(seq, payload, self.wire, self.counter)

    def _place(self, row: Row, scope: str) -> None:
        at = len(self.rows)
        if self.wire.itemized:
            row = row._replace(goes_on=scope == self._whose and self._goes_on(row))
        self._whose, self._gap = scope, False
        if self._asking and not row.goes_on and self._astray(row):
            self._asking = False
        self._answer(at, row)
        within = row.goes_on or (row.role != "assistant" and self._asking)
        self.steps.append(self.steps[-1] if within else at)
        self.rows.append(row)
        if any(part.fixed and part.kind != "system" for part in row.parts):
            self.fixed.append(at)
        if row.instructions:
            self.instructions = row.instructions
        if row.has("prompt"):
            self.prompt = at
            if self._answered:
                self.turns.append(at)
            self._answered = False
        if row.role == "assistant":
            self._answered = True

    def _goes_on(self, row: Row) -> bool:
        """Whether the row before it is of the same response, with nothing lost between the two."""
        if row.role != "assistant" or not self.rows:
            return False
        before = self.rows[-1]
        between = Span(before.seq + 1, row.seq - 1) if row.seq > before.seq + 1 else None
        lost = self._gap or (between and intersect(self._gaps, (between,)))
        return before.role == "assistant" and not lost

    def _astray(self, row: Row) -> bool:
        """Whether it answers nothing of the step before it, and a fold lies between the two."""
        if any(part.call in self._open for part in row.parts if part.kind == "return"):
            return False
        spans = (span for fold in self.outline.folds for span in fold.spans)
        return any(self.rows[-1].seq < span.first <= span.last < row.seq for span in spans)

    def _answer(self, at: int, row: Row) -> None:
        if row.role != "assistant" and row.has("return"):
            self._open -= {part.call for part in row.parts if part.kind == "return"}
            return
        if not row.goes_on:
            for call in self._open:
                self.unanswered.setdefault(call, at)
            self._open = set()
        calls = {part.call: part.tool for part in row.parts if part.kind == "call"}
        for call in calls:
            self.calls.setdefault(call, at)
        self.tools.update(calls)
        self._open |= calls.keys()
        self._asking = row.role == "assistant" and bool(self._open)


def _labelled(shape: Shape) -> str:
    """The text of a part; where it stands in the user's place and is not the user's, it says so."""
    whose = {"call": "A call of", "return": "A result of"}.get(shape.kind)
    # It is a message of its own, to whose end all is the tool's: its lines need no mark each.
    text = plain(shape.text)
    return f"[{whose} {tool_name(shape.tool)}]\n{text}" if whose else text


# Responses that are several messages: which rows are one, and which of them go together.
#
# Reasoning and what it led to, up to the next reasoning, are sent together or not at all: a
# provider
# refuses the one without the other.


def responses(inputs: ViewInput, start: int = 0) -> Iterator[range]:
    """The rows of each response, from row `start` on, which begins a step."""
    rows, first = inputs.rows, start
    for at in range(start, len(rows) + 1):
        if at == len(rows) or not rows[at].goes_on:
            if first < at and rows[first].role == "assistant":
                yield range(first, at)
            first = at


def groups(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """The rows of one response that go together; each alone before the first reasoning."""
    group: list[Row] = []
    for row in rows:
        thinks = row.has("thought")
        if group and (not group[0].has("thought") or (thinks and not group[-1].has("thought"))):
            yield group
            group = []
        group.append(row)
    if group:
        yield group


def with_row(inputs: ViewInput, at: int) -> list[Row]:
    """What goes together with a row; with the answers to its calls, where it has some."""
    step = [inputs.rows[one] for one in inputs.step(inputs.steps[at])]
    response = [row for row in step if row.role == "assistant"]
    group = next(one for one in groups(response) if inputs.rows[at] in one)
    return step if len(group) > 1 and any(row.has("call") for row in group) else group
