"""A view that stays open between requests, so that each costs only what is new.

`View` plans and renders requests; `assemble` makes messages of a plan.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain, groupby, islice
from operator import is_
from typing import NamedTuple, overload

from refold.log import Entry, PartRef, Span
from refold.view.budget import Budget
from refold.view.plan import Layout, Plan
from refold.view.profiles import Profile
from refold.view.project import continuation, project, unrewritten, weigh
from refold.view.view_input import Row, ViewInput, weight
from refold.wire import Change, Drop, Insert, Kind, Wire


class Messages(Sequence[bytes]):
    """The messages of one request. They never change, though later requests share them."""

    __slots__ = ("_closed", "_count", "_open")

    def __init__(self, closed: list[bytes], count: int, still_open: tuple[bytes, ...]) -> None:
        self._closed = closed
        self._count = count
        self._open = still_open

    def __len__(self) -> int:
        return self._count + len(self._open)

    def __iter__(self) -> Iterator[bytes]:
        return chain(islice(self._closed, self._count), self._open)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if isinstance(index, slice):
            return list(self)[index]
        index = range(len(self))[index]
        return self._closed[index] if index < self._count else self._open[index - self._count]


@dataclass(frozen=True, slots=True)
class Request:
    """One request: its plan, its messages, and the digest of their JSON."""

    plan: Plan
    messages: Messages
    digest: str
    wire: Wire

    @property
    def body(self) -> bytes:
        """The messages as one JSON array: what the digest is taken of."""
        return b"[" + b",".join(self.messages) + b"]"


class View:
    """Keeps what was described, planned and rendered of one session."""

    def __init__(self, inputs: ViewInput, profile: Profile, before: Plan | None = None) -> None:
        self.inputs = inputs
        self.profile = profile
        self.plan = before
        self._rendered = _Rendered()
        self._continuation: _Continuation | None = None

    def extend(self, entries: Iterable[Entry]) -> None:
        """Take in what was appended; `reset` where an entry changed the outline."""
        self.inputs.extend(entries)

    def reset(self, inputs: ViewInput) -> None:
        """Continue with another input of the session: after a fold, a rewind, a pin."""
        self.inputs = inputs

    def size(self, budget: Budget, *, prompt_follows: bool = False) -> int:
        """The tokens of the next request's messages if nothing were rewritten to make room."""
        follows = prompt_follows
        continued = self._continue(budget, prompt_follows=follows)
        if continued is not None:
            return continued.tokens
        return unrewritten(self.inputs, self.profile, budget, self.plan, prompt_follows=follows)

    def size_without_limits(self, budget: Budget) -> int:
        """The same, with what the profile's fixed limits leave out."""
        before = self.plan if self.profile.rewrite.sticky else None
        return unrewritten(self.inputs, self.profile, budget, before, limits=False)

    def omitted(self, spans: Sequence[Span], budget: Budget) -> int:
        """Tokens of the messages in these spans that the next request would not send anyway."""
        builder = weigh(self.inputs, self.profile, budget, self.plan)
        rows = (row for row in self.inputs.rows if any(row.seq in span for span in spans))
        return sum(weight(row) - builder.weight(row) for row in rows)

    def request(self, budget: Budget, *, prompt_follows: bool = False) -> Request:
        """The next request; with `prompt_follows`, as far as it is known before the next prompt."""
        plan = project(
            self.inputs,
            self.profile,
            budget,
            self.plan,
            prompt_follows=prompt_follows,
            continued=self._continue(budget, prompt_follows=prompt_follows),
        )
        old, new = self.plan and self.plan.closed, plan.closed
        if old is None or new is None or old.series is not new.series:
            # Not a continuation: render afresh, except messages that are edited as before.
            edited = {ref.seq for ref in plan.layout.changes}
            edits = {seq: edit for seq, edit in self._rendered.edits.items() if seq in edited}
            self._rendered = _Rendered(edits)
        self.plan = plan
        return self._rendered.request(self.inputs, plan)

    def _continue(self, budget: Budget, *, prompt_follows: bool) -> Plan | None:
        """See `continuation`; a request is measured before it is made, and planned once."""
        facts = (self.inputs.head, budget, prompt_follows)
        bases = (self.inputs, self.profile, self.plan)
        cached = self._continuation
        if cached is None or cached.facts != facts or not all(map(is_, cached.bases, bases)):
            inputs, profile, before = bases
            plan = continuation(inputs, profile, budget, before, prompt_follows=prompt_follows)
            cached = self._continuation = _Continuation(facts, bases, plan)
        return cached.plan


class _Continuation(NamedTuple):
    facts: tuple[int, Budget, bool]
    bases: tuple[ViewInput, Profile, Plan | None]
    plan: Plan | None


class _Rendered:
    def __init__(self, edits: "Edits | None" = None) -> None:
        self.edits: Edits = {} if edits is None else edits
        self.rows = 0
        self.inserts = 0
        self.omissions = 0
        self.messages: list[bytes] = []
        self.digest = sha256(b"[")

    def request(self, inputs: ViewInput, plan: Plan) -> Request:
        closed = plan.closed
        if closed is not None and closed.rows > self.rows:
            rows = inputs.rows[self.rows : closed.rows]
            new = assemble(inputs.wire, rows, self._rest(closed.layout), self.edits)
            if new:
                self.digest.update(b",".join([b"", *new] if self.messages else new))
            self.messages += new
            self.rows = closed.rows
            self.inserts = len(closed.layout.inserts)
            self.omissions = len(closed.layout.omissions)
        rows = inputs.rows[self.rows :]
        tail = assemble(inputs.wire, rows, self._rest(plan.layout), self.edits)
        digest = self.digest.copy()
        digest.update(b",".join(tail if not self.messages else [b"", *tail]) + b"]")
        messages = Messages(self.messages, len(self.messages), tuple(tail))
        return Request(plan, messages, digest.hexdigest(), inputs.wire)

    def _rest(self, layout: Layout) -> Layout:
        """The layout without what concerns the rows that are rendered already."""
        omissions, inserts = layout.omissions[self.omissions :], layout.inserts[self.inserts :]
        return Layout(omissions, layout.changes, inserts)


class Edited(NamedTuple):
    payload: bytes
    changes: dict[int, Change]
    message: bytes | None


Edits = dict[int, Edited]
"""Edited messages by the seq of their entry."""


def assemble(
    wire: Wire, rows: Iterable[Row], layout: Layout, edits: Edits | None = None
) -> list[bytes]:
    """The messages of these rows, edited, with the inserts in their places.

    Placeholders for returns come right after the response they answer; other inserts wait until the
    response and its results are complete, because nothing may come between. What systems say waits
    for the next response where the format wants it. `edits` caches the edited messages, so that a
    later call need not edit them again.
    """
    assembly = _Assembly(wire, layout.changes, {} if edits is None else edits)
    spans = sorted(omission.span for omission in layout.omissions)
    inserts = deque(layout.inserts)
    index = 0
    for row in rows:
        while inserts and inserts[0].before <= row.seq:
            assembly.insert(inserts.popleft())
        while index < len(spans) and spans[index].last < row.seq:
            index += 1
        omitted = index < len(spans) and row.seq in spans[index]
        if row.parts and not omitted:
            assembly.add(row)
    for insert in inserts:
        assembly.insert(insert)
    assembly.end()
    return assembly.messages


class _Assembly:
    def __init__(self, wire: Wire, changes: Mapping[PartRef, Change], edits: Edits) -> None:
        self.messages: list[bytes] = []
        self._wire = wire
        self._changes = changes
        self._edits = edits
        self._returns: list[Insert] = []
        self._waiting: list[Insert] = []
        self._systems: list[bytes] = []
        self._in_calls = False

    def insert(self, insert: Insert) -> None:
        (self._returns if insert.kind == "return" else self._waiting).append(insert)

    def add(self, row: Row) -> None:
        changes: dict[int, Change] = {}
        if self._changes:
            decided = ((part.nth, self._changes.get(part.ref)) for part in row.parts)
            changes = {nth: change for nth, change in decided if change is not None}
        payload = self._edit(row, changes) if changes else row.payload
        if payload is None:
            return
        if row.role == "system" and self._wire.systems_last:
            self._systems.append(payload)
            return
        speaks = row.role == "assistant"
        answers = not speaks and _shows(row, "return", changes)
        if answers and self._in_calls:
            self._append([payload])
        else:
            self._flush(payload, speaks=speaks)
        if speaks:
            continues = self._in_calls and self._wire.itemized  # the calls of one response
            self._in_calls = continues or _shows(row, "call", changes)
        elif not answers:
            self._in_calls = False

    def end(self) -> None:
        self._flush(None, speaks=True)

    def _flush(self, payload: bytes | None, *, speaks: bool) -> None:
        messages: list[bytes] = []
        for kind, group in groupby(self._waiting, key=lambda insert: insert.kind):
            messages += self._take_systems() if kind == "reply" else ()
            messages += self._wire.make(list(group))
        messages += self._take_systems() if speaks else ()
        if payload is not None:
            messages.append(payload)
        self._waiting = []
        self._append(messages)

    def _take_systems(self) -> list[bytes]:
        """What systems have said since the last response, in one message."""
        systems, self._systems = self._systems, []
        if len(systems) < 2:  # noqa: PLR2004 - then it is one already
            return systems
        texts = (shape.text for x in systems for shape in self._wire.describe(x).shapes)
        return self._wire.make([Insert(0, "system", "\n\n".join(texts), "")])

    def _append(self, messages: list[bytes]) -> None:
        """Append messages after the placeholders, which may join the first one."""
        if self._returns:
            joined = self._wire.join(self._returns, messages[0]) if messages else None
            if joined is None:
                self.messages += self._wire.make(self._returns)
            else:
                messages[0] = joined
            self._returns = []
        self.messages += messages

    def _edit(self, row: Row, changes: dict[int, Change]) -> bytes | None:
        cached = self._edits.get(row.seq)
        if cached is None or cached[:2] != (row.payload, changes):
            message = self._wire.edit(row.payload, changes)
            cached = self._edits[row.seq] = Edited(row.payload, changes, message)
        return cached.message


def _shows(row: Row, kind: Kind, changes: Mapping[int, Change]) -> bool:
    return any(
        part.kind == kind and not isinstance(changes.get(part.nth), Drop) for part in row.parts
    )
