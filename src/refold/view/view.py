"""A view that stays open between requests, so that each costs what is new and no more."""

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

# From a plan to the messages that are sent.


class Edited(NamedTuple):
    """A message, the changes that were made to it, and what it became."""

    payload: bytes
    changes: dict[int, Change]
    message: bytes | None


Edits = dict[int, Edited]
"""Edited messages by the seq of their entry."""


def assemble(
    wire: Wire, rows: Iterable[Row], layout: Layout, edits: Edits | None = None
) -> list[bytes]:
    """The messages of these rows, edited, with the inserts in their places.

    Stand-ins for returns come right after the response they answer; other inserts wait until the
    response and its results are complete, because nothing may come between. What systems say waits
    for the next response where the format wants it. `edits` keeps the messages that were edited, so
    that a later call need not edit them again.
    """
    page = _Page(wire, layout.changes, {} if edits is None else edits)
    gone = _Spans(layout)
    inserts = iter(layout.inserts)
    live = next(inserts, None)
    for row in rows:
        while live is not None and live.before <= row.seq:
            page.insert(live)
            live = next(inserts, None)
        if row.parts and row.seq not in gone:
            page.add(row)
    while live is not None:
        page.insert(live)
        live = next(inserts, None)
    page.end()
    return page.messages


class _Spans:
    """The runs of entries that are gone, asked for in ascending order."""

    def __init__(self, layout: Layout) -> None:
        self._spans = sorted(gone.span for gone in layout.gone)
        self._at = 0

    def __contains__(self, seq: int) -> bool:
        while self._at < len(self._spans) and self._spans[self._at].last < seq:
            self._at += 1
        return self._at < len(self._spans) and seq in self._spans[self._at]


class _Page:
    """The messages so far, and the inserts that wait for their place."""

    def __init__(self, wire: Wire, changes: Mapping[PartRef, Change], edits: Edits) -> None:
        self.messages: list[bytes] = []
        self._wire = wire
        self._changes = changes
        self._edits = edits
        self._returns: list[Insert] = []
        self._waiting: list[Insert] = []
        self._systems: list[bytes] = []
        self._asking = False

    def insert(self, insert: Insert) -> None:
        (self._returns if insert.kind == "return" else self._waiting).append(insert)

    def add(self, row: Row) -> None:
        changes = self._changed(row)
        payload = self._edited(row, changes) if changes else row.payload
        if payload is None:
            return
        if row.role == "system" and self._wire.systems_last:
            self._systems.append(payload)
            return
        speaks = row.role == "assistant"
        answers = not speaks and _shows(row, "return", changes)
        if answers and self._asking:
            self._answer(payload)
        else:
            self._flush(payload, speaks=speaks)
        if speaks:
            still = self._asking and self._wire.itemized  # the calls of one response go on
            self._asking = still or _shows(row, "call", changes)
        elif not answers:
            self._asking = False

    def end(self) -> None:
        """Put down all that waits: the model speaks next."""
        self._flush(None, speaks=True)

    def _flush(self, payload: bytes | None, *, speaks: bool) -> None:
        """Put down what waits, and then the message."""
        live: list[bytes] = []
        for kind, group in groupby(self._waiting, key=lambda one: one.kind):
            live += self._said_by_systems() if kind == "reply" else ()
            live += self._wire.make(list(group))
        live += self._said_by_systems() if speaks else ()
        if payload is not None:
            live.append(payload)
        self._waiting = []
        self._join(live)
        self.messages += live

    def _said_by_systems(self) -> list[bytes]:
        """What systems have said since the last response, in one message."""
        said, self._systems = self._systems, []
        if len(said) < 2:  # noqa: PLR2004 - then it is one already
            return said
        texts = (shape.text for one in said for shape in self._wire.describe(one).shapes)
        return self._wire.make([Insert(0, "system", "\n\n".join(texts), "")])

    def _answer(self, payload: bytes) -> None:
        live = [payload]
        self._join(live)
        self.messages += live

    def _join(self, live: list[bytes]) -> None:
        """The stand-ins before what follows, in messages of their own or within the first."""
        if not self._returns:
            return
        joined = self._wire.join(self._returns, live[0]) if live else None
        if joined is None:
            self.messages += self._wire.make(self._returns)
        else:
            live[0] = joined
        self._returns = []

    def _changed(self, row: Row) -> dict[int, Change]:
        if not self._changes:
            return {}
        return {
            part.nth: change
            for part in row.parts
            if (change := self._changes.get(part.ref)) is not None
        }

    def _edited(self, row: Row, changes: dict[int, Change]) -> bytes | None:
        known = self._edits.get(row.seq)
        if known is None or known[:2] != (row.payload, changes):
            message = self._wire.edit(row.payload, changes)
            known = self._edits[row.seq] = Edited(row.payload, changes, message)
        return known.message


def _shows(row: Row, kind: Kind, changes: Mapping[int, Change]) -> bool:
    return any(
        part.kind == kind and not isinstance(changes.get(part.nth), Drop) for part in row.parts
    )


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
        at = range(len(self))[index]
        return self._closed[at] if at < self._count else self._open[at - self._count]


@dataclass(frozen=True, slots=True)
class Request:
    """What one request is: its plan, its messages, and the digest of their JSON."""

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
        self._next: _Continued | None = None

    def extend(self, entries: Iterable[Entry]) -> None:
        """Take in what was appended; `reset` where an entry changed the outline."""
        self.inputs.extend(entries)

    def reset(self, inputs: ViewInput) -> None:
        """Go on with another sheet of the session: after a fold, a rewind, a pin."""
        self.inputs = inputs

    def size(self, budget: Budget, *, prompt_follows: bool = False) -> int:
        """The tokens of the next request's messages if nothing were rewritten to make room."""
        follows = prompt_follows
        continued = self._continued(budget, prompt_follows=follows)
        if continued is not None:
            return continued.tokens
        return unrewritten(self.inputs, self.profile, budget, self.plan, prompt_follows=follows)

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
            continued=self._continued(budget, prompt_follows=prompt_follows),
        )
        if self.plan is None or not _adds(self.plan, plan):
            self._rendered = _Rendered(_still(self._rendered.edits, plan))
        self.plan = plan
        return self._rendered.request(self.inputs, plan)

    def _continued(self, budget: Budget, *, prompt_follows: bool) -> Plan | None:
        """See `continuation`; a request is measured before it is made, and planned once."""
        facts = (self.inputs.head, budget, prompt_follows)
        bases = (self.inputs, self.profile, self.plan)
        known = self._next
        if known is None or known.facts != facts or not all(map(is_, known.bases, bases)):
            inputs, profile, before = bases
            plan = continuation(inputs, profile, budget, before, prompt_follows=prompt_follows)
            known = self._next = _Continued(facts, bases, plan)
        return known.plan


class _Continued(NamedTuple):
    """A plan that continues the one before, and what it was made of."""

    facts: tuple[int, Budget, bool]
    bases: tuple[ViewInput, Profile, Plan | None]
    plan: Plan | None


def _adds(before: Plan, plan: Plan) -> bool:
    """Whether the plan only adds to the plan before, so that what was rendered stands."""
    old, new = before.closed, plan.closed
    return old is not None and new is not None and old.series is new.series


def _still(edits: Edits, plan: Plan) -> Edits:
    """The edits of messages that the plan edits too; what is left out is not kept."""
    edited = {ref.seq for ref in plan.layout.changes}
    return {seq: one for seq, one in edits.items() if seq in edited}


class _Rendered:
    """The messages of the closed rows, and the digest so far."""

    def __init__(self, edits: Edits | None = None) -> None:
        self.edits: Edits = {} if edits is None else edits
        self.rows = 0
        self.inserts = 0
        self.gone = 0
        self.messages: list[bytes] = []
        self.digest = sha256(b"[")

    def request(self, inputs: ViewInput, plan: Plan) -> Request:
        closed = plan.closed
        if closed is not None and closed.rows > self.rows:
            done = closed.layout
            self._close(inputs, self._since(done), closed.rows)
            self.inserts = len(done.inserts)
            self.gone = len(done.gone)
        tail = assemble(inputs.wire, inputs.rows[self.rows :], self._since(plan.layout), self.edits)
        digest = self.digest.copy()
        digest.update(b",".join(tail if not self.messages else [b"", *tail]) + b"]")
        messages = Messages(self.messages, len(self.messages), tuple(tail))
        return Request(plan, messages, digest.hexdigest(), inputs.wire)

    def _since(self, layout: Layout) -> Layout:
        """The layout without what speaks of the rows that are rendered already."""
        later = layout.gone[self.gone :], layout.changes, layout.inserts[self.inserts :]
        return Layout(*later)

    def _close(self, inputs: ViewInput, layout: Layout, rows: int) -> None:
        new = assemble(inputs.wire, inputs.rows[self.rows : rows], layout, self.edits)
        if new:
            self.digest.update(b",".join([b"", *new] if self.messages else new))
        self.messages += new
        self.rows = rows
