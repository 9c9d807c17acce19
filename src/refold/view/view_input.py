"""What a view is planned over: the messages on the session's line, described once.

A view's input grows with the log. Describing and counting a message is done when it is added, so a
request costs what is new since the last one.
"""

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Final, Literal, NamedTuple

from pydantic import JsonValue
from pydantic_core import from_json

from refold.errors import InvalidInput, InvalidMessage
from refold.log import (
    CODEC,
    MAIN_SCOPE,
    Cleared,
    Entry,
    Findings,
    FoldCompleted,
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
from refold.view.plan import Omission, Reason
from refold.view.tokens import Counter
from refold.wire import Part, Role, Shape, Wire
from refold.wire.splice import json_text

MOVING: Final = frozenset(
    kind.KIND for kind in (Cleared, FoldCompleted, FoldUndone, Pinned, Rewound, Unpinned)
)
"""The kinds of entries that change what a view is made of."""
_seq: Final = attrgetter("seq")


class Folding(NamedTuple):
    """A fold in the view: its entry, the spans it stands for, and what it shows."""

    seq: int
    spans: tuple[Span, ...]
    shown: tuple[tuple[str, str], ...] = ()
    """The kind and text of each message in its place."""
    merged: bool = False
    """Whether its text comes in front of the next prompt instead."""
    tokens: int = 0
    """What the folded messages would cost in a request."""
    state: tuple[str, ...] = ()
    """Messages in the session's format, with what the framework noted among them."""


def foldings(visible: Visible, scope: str = MAIN_SCOPE) -> Iterable[Folding]:
    """The folds of a session that are in effect, oldest first, as this reader sees them."""
    entries = {entry.seq: entry for entry in visible.entries}
    delegated = scope != MAIN_SCOPE
    for fold in visible.outline.folds:
        if fold.seq in entries:
            match CODEC.decode(entries[fold.seq]):
                case FoldCompleted(summary={"for_delegates": dict(own), **rest}) if delegated:
                    yield _folding(fold.seq, fold.spans, {**rest, "shown": [], **own})
                case FoldCompleted(summary=summary):
                    yield _folding(fold.seq, fold.spans, summary)
                case _:
                    yield Folding(fold.seq, fold.spans)


def _folding(seq: int, spans: tuple[Span, ...], summary: JsonValue) -> Folding:
    match summary:
        case {"shown": list(shown)}:
            messages = tuple(filter(None, map(_shown_message, shown)))
            merged = summary.get("placement") == "merge"
            tokens = summary.get("tokens", 0)
            size = tokens if isinstance(tokens, int) else 0
            notes = summary.get("state")
            state = (x for x in (notes if isinstance(notes, list) else ()) if isinstance(x, str))
            return Folding(seq, spans, messages, merged, size, tuple(state))
        case str(text) | {"text": str(text)}:
            count = sum(len(span) for span in spans)
            marked = f"[Summary of {count} earlier messages]\n{text}"
            return Folding(seq, spans, (("prompt", marked),))
        case _:
            return Folding(seq, spans)


def _shown_message(shown: JsonValue) -> tuple[str, str] | None:
    match shown:
        case {"kind": "prompt" | "reply" as kind, "text": str(text)}:
            return kind, text
        case _:
            return None


def render_tool_result(tool: str, input: JsonValue, output: JsonValue) -> str:  # noqa: A002 - as people call it
    """A tool's call and result as Markdown, with both as JSON indented by two."""
    given, result = (json.dumps(each, indent=2, ensure_ascii=False) for each in (input, output))
    return f"## Tool: {tool}\n\n**Input:**\n{given}\n\n**Output:**\n{result}"


Visibility = Literal["native", "text", "none"]


class Quote(NamedTuple):
    """A text that is inserted at an entry: delegated work, or a pinned part that is folded."""

    seq: int
    text: str
    sources: tuple[PartRef, ...]


def visibility(scope: str, reader: str) -> Visibility:
    """How a reader sees an entry of a scope.

    Its own work and that of its callers as it is; what it delegated as text; the work of unrelated
    delegations not at all.
    """
    if scope == reader or _above(scope, reader):
        return "native"
    return "text" if _above(reader, scope) else "none"


def _above(scope: str, other: str) -> bool:
    return other.startswith(scope if scope.endswith("/") else f"{scope}/")


class Delegation:
    """Quotes the messages of delegations as text; calls wait for their result."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._calls: dict[tuple[str, str | None], tuple[Shape, PartRef]] = {}

    def quotes(self, seq: int, scope: str, payload: bytes) -> Iterator[Quote]:
        for nth, shape in enumerate(self._wire.describe(payload).shapes):
            ref = PartRef(seq, nth)
            match shape.kind:
                case "call":
                    self._calls[scope, shape.call] = shape, ref
                case "return":
                    call, source = self._calls.pop((scope, shape.call), (None, None))
                    tool = shape.tool or (call.tool if call else None) or ""
                    arguments = _json(call.text if call else "")
                    text = render_tool_result(
                        tool and tool_name(tool), arguments, _json(shape.text)
                    )
                    sources = (source, ref) if source else (ref,)
                    yield Quote(seq, f"[{on_one_line(scope)}]\n{plain(text)}", sources)
                case "prompt" | "text" if shape.text:
                    yield Quote(seq, f"[{on_one_line(scope)}]\n{plain(shape.text)}", (ref,))
                case _:
                    pass


def _json(text: str) -> JsonValue:
    """The JSON value of a text; a word or number that would be written otherwise stays a text."""
    try:
        value: JsonValue = from_json(text)
    except ValueError:
        return text
    return value if isinstance(value, dict | list) or json_text(value) == text else text


class Row(NamedTuple):
    """One message of the session, described as parts and counted."""

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
        """Whether one of its parts is of this kind."""
        return any(part.kind == kind for part in self.parts)


def weight(row: Row) -> int:
    return row.tokens + PER_MESSAGE if row.parts else 0


def describe_row(seq: int, payload: bytes, wire: Wire, counter: Counter) -> Row:
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
            shape.apart,
        )
        for nth, shape in enumerate(shapes)
    )
    tokens = sum(part.tokens for part in parts)
    instruction_tokens = counter.text(instructions) if instructions else 0
    return Row(seq, payload, role, parts, tokens, instruction_tokens)


class ViewInput:
    """The messages of a session that one reader may see, in order, and where turns begin.

    `scope` is the reader's: the main agent's, or the path of a delegation. An `isolated` reader
    sees nothing of other scopes.
    """

    def __init__(
        self, wire: Wire, counter: Counter, scope: str = MAIN_SCOPE, *, isolated: bool = False
    ) -> None:
        self.wire = wire
        self.counter = counter
        self.scope = scope
        self.isolated = isolated
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
        self.findings: dict[str, Folding] = {}
        """The newest findings of this reader and of its callers, by scope."""
        self.quotes: list[Quote] = []
        """Delegated work, as text."""
        self.pinned: list[Quote] = []
        """Pinned parts that are folded."""
        self.replaced: dict[tuple[int, int, int, str, int], int] = {}
        """What parts cost once replaced, so that they are counted once."""
        self._markdown: dict[PartRef, str | None] = {}
        """Results as Markdown, so that each is rendered once."""
        self._delegation = Delegation(wire)
        self._described: dict[int, Row] = {}
        self.unanswered: dict[str | None, int] = {}
        """Calls that were closed without their return, and the row that closed them."""
        self.fixed: list[int] = []
        """Rows with parts that stay in every view and hold their step; system content does not."""
        self.calls: dict[str | None, int] = {}
        """Where each call id was first used."""
        self.tools: dict[str | None, str | None] = {}
        """The tool that each call named last."""
        self._open: set[str | None] = set()
        self._in_calls = False
        self._answered = True
        self._gaps: tuple[Span, ...] = ()
        self._gap, self._last_scope = False, scope

    @classmethod
    def of(  # noqa: PLR0913 - two are choices
        cls,
        visible: Visible,
        wire: Wire,
        counter: Counter,
        scope: str = MAIN_SCOPE,
        *,
        isolated: bool = False,
        earlier: "ViewInput | None" = None,
    ) -> "ViewInput":
        """The input of a session's view; rows of an `earlier` input are not described again."""
        inputs = cls(wire, counter, scope, isolated=isolated)
        if earlier is not None and earlier.wire is wire and earlier.counter is counter:
            inputs._described = {row.seq: row for row in earlier.rows}
        inputs.outline = visible.outline
        inputs.head = visible.info.entries
        folded = union(span for fold in visible.outline.folds for span in fold.spans)
        lost = union((*folded, *subtract(up_to(inputs.head), visible.outline.on_line(inputs.head))))
        if not isolated or scope == MAIN_SCOPE:  # what folds show is for the main agent
            inputs.foldings = tuple(foldings(visible, scope))
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
                    "Read the session with `visible` and make a new ViewInput.",
                )
            self._add(entry)
            self.head = max(self.head, entry.seq)

    def text(self, part: Part) -> str:
        row = self.rows[self.at(part.seq)]
        return self.wire.describe(row.payload).shapes[part.nth].text

    def markdown(self, result: Part, call: Part | None) -> str | None:
        """A tool result as Markdown with the call's input; None if it holds more than text."""
        if result.ref not in self._markdown:
            shapes = self.wire.describe(self.rows[self.at(result.seq)].payload).shapes
            shape, text = shapes[result.nth], None
            if not (shape.media or shape.opaque):
                given = self.text(call) if call is not None else ""
                tool = result.tool or (call.tool if call else None)
                text = render_tool_result(tool_name(tool), _json(given), _json(shape.text))
            self._markdown[result.ref] = text
        return self._markdown[result.ref]

    def at(self, seq: int) -> int:
        """The index of an entry's row, or of the next one."""
        return bisect_left(self.rows, seq, key=_seq)

    def step(self, start: int) -> range:
        end = start + 1
        while end < len(self.rows) and self.steps[end] == start:
            end += 1
        return range(start, end)

    def after_response(self, seq: int) -> int:
        """The first position from this entry on that is not within a response."""
        start = end = self.at(seq)
        while end < len(self.rows) and self.rows[end].goes_on:
            end += 1
        return self.rows[end - 1].seq + 1 if end > start else seq

    def turn(self) -> int:
        return self.turns[-1] if self.turns else len(self.rows)

    @property
    def system_tokens(self) -> int:
        parts = (part for row in self.rows for part in row.parts)
        return sum(part.tokens for part in parts if part.kind == "system")

    def absent(self) -> tuple[Omission, ...]:
        """The entries that are no rows, and why."""
        on_line = self.outline.on_line(self.head)
        reasons: list[tuple[Reason, tuple[Span, ...]]] = [
            ("off the line", subtract(up_to(self.head), on_line))
        ]
        folded = union(span for fold in self.outline.folds for span in fold.spans)
        reasons.append(("folded", intersect(folded, on_line)))
        reasons.append(("not read", self.unread))
        for reason in sorted(set(self.hidden.values())):
            hidden = (seq for seq, why in self.hidden.items() if why == reason)
            reasons.append((reason, spans_of(hidden)))
        return tuple(Omission(span, reason) for reason, spans in reasons for span in spans)

    def _add(self, entry: Entry) -> None:
        if entry.kind == Findings.KIND and self._visibility(entry) == "native":
            self._add_findings(entry)
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
        try:
            match self._visibility(entry):
                case "native":
                    self._place(self._row(entry.seq, payload), entry.scope)
                case "text":
                    self.hidden[entry.seq] = "delegated"
                    self.quotes += self._delegation.quotes(entry.seq, entry.scope, payload)
                case "none":
                    self.hidden[entry.seq] = "scope"
        except InvalidMessage:  # one unreadable message must not cost the session
            self.hidden[entry.seq] = "unreadable"
            self._gap = True

    def _add_findings(self, entry: Entry) -> None:
        match CODEC.decode(entry):
            case Findings(spans, summary) if spans:
                self.findings[entry.scope] = _folding(entry.seq, spans, summary)
            case _:  # forgotten along with its results
                pass

    def _visibility(self, entry: Entry) -> Visibility:
        if self.isolated and entry.scope != self.scope:
            return "none"
        return visibility(entry.scope, self.scope)

    def _pin(self, entry: Entry) -> None:
        pins = [pin for pin in self.outline.pins if pin.seq == entry.seq]
        match CODEC.decode(entry):
            case Message(payload) if pins and self._visibility(entry) == "native":
                pass
            case _:
                return
        try:
            shapes = self.wire.describe(payload).shapes
        except InvalidMessage:
            return
        pinned = ((pin, shapes[pin.index]) for pin in pins if pin.index < len(shapes))
        self.pinned += [Quote(pin.seq, _labeled(x), (pin,)) for pin, x in pinned if x.text]

    def _row(self, seq: int, payload: bytes) -> Row:
        known = self._described.get(seq)
        return known or describe_row(seq, payload, self.wire, self.counter)

    def _place(self, row: Row, scope: str) -> None:
        index = len(self.rows)
        if self.wire.itemized:
            row = row._replace(goes_on=scope == self._last_scope and self._goes_on(row))
        self._last_scope, self._gap = scope, False
        if self._in_calls and not row.goes_on and self._astray(row):
            self._in_calls = False
        self._answer(index, row)
        within = row.goes_on or (row.role != "assistant" and self._in_calls)
        self.steps.append(self.steps[-1] if within else index)
        self.rows.append(row)
        if any(part.fixed and not part.apart and part.kind != "system" for part in row.parts):
            self.fixed.append(index)
        if row.instructions:
            self.instructions = row.instructions
        if row.has("prompt"):
            self.prompt = index
            if self._answered:
                self.turns.append(index)
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

    def _answer(self, index: int, row: Row) -> None:
        if row.role != "assistant" and row.has("return"):
            self._open -= {part.call for part in row.parts if part.kind == "return"}
            return
        if not row.goes_on:
            for call in self._open:
                self.unanswered.setdefault(call, index)
            self._open = set()
        calls = {part.call: part.tool for part in row.parts if part.kind == "call"}
        for call in calls:
            self.calls.setdefault(call, index)
        self.tools.update(calls)
        self._open |= calls.keys()
        self._in_calls = row.role == "assistant" and bool(self._open)


def _labeled(shape: Shape) -> str:
    """The text of a part; where it stands in the user's place and is not the user's, it says so."""
    whose = {"call": "A call of", "return": "A result of"}.get(shape.kind)
    # It is a message of its own, to whose end all is the tool's: its lines need no mark each.
    text = plain(shape.text)
    return f"[{whose} {tool_name(shape.tool)}]\n{text}" if whose else text


def responses(inputs: ViewInput, start: int = 0) -> Iterator[range]:
    """The rows of each response, from row `start` on, which begins a step."""
    rows, first = inputs.rows, start
    for index in range(start, len(rows) + 1):
        if index == len(rows) or not rows[index].goes_on:
            if first < index and rows[first].role == "assistant":
                yield range(first, index)
            first = index


def groups(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """The rows of one response that go together; each alone before the first reasoning.

    Reasoning and what it led to, up to the next reasoning, are sent together or not at all: a
    provider refuses the one without the other.
    """
    group: list[Row] = []
    for row in rows:
        thinks = row.has("thought")
        if group and (not group[0].has("thought") or (thinks and not group[-1].has("thought"))):
            yield group
            group = []
        group.append(row)
    if group:
        yield group


def group_of(inputs: ViewInput, index: int) -> list[Row]:
    """The rows that go together with a row, with the answers to its calls, if it has some."""
    step = [inputs.rows[each] for each in inputs.step(inputs.steps[index])]
    response = [row for row in step if row.role == "assistant"]
    group = next(group for group in groups(response) if inputs.rows[index] in group)
    return step if len(group) > 1 and any(row.has("call") for row in group) else group
