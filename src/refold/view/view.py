"""A view that stays open between requests, so that each costs what is new and no more."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain, islice
from operator import is_
from typing import NamedTuple, overload

from refold.log import Entry, Span
from refold.view.assemble import Edits, assemble
from refold.view.budget import Budget
from refold.view.plan import Layout, Plan
from refold.view.profiles import Profile
from refold.view.project import continuation, project, unrewritten, weigh
from refold.view.row import weight
from refold.view.sheet import Sheet
from refold.wire import Wire


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

    def __init__(self, sheet: Sheet, profile: Profile, before: Plan | None = None) -> None:
        self.sheet = sheet
        self.profile = profile
        self.plan = before
        self._rendered = _Rendered()
        self._next: _Continued | None = None

    def extend(self, entries: Iterable[Entry]) -> None:
        """Take in what was appended; `reset` where an entry changed the outline."""
        self.sheet.extend(entries)

    def reset(self, sheet: Sheet) -> None:
        """Go on with another sheet of the session: after a fold, a rewind, a pin."""
        self.sheet = sheet

    def size(self, budget: Budget, *, prompt_follows: bool = False) -> int:
        """The tokens of the next request's messages if nothing were rewritten to make room."""
        follows = prompt_follows
        continued = self._continued(budget, prompt_follows=follows)
        if continued is not None:
            return continued.tokens
        return unrewritten(self.sheet, self.profile, budget, self.plan, prompt_follows=follows)

    def omitted(self, spans: Sequence[Span], budget: Budget) -> int:
        """Tokens of the messages in these spans that the next request would not send anyway."""
        desk = weigh(self.sheet, self.profile, budget, self.plan)
        rows = (row for row in self.sheet.rows if any(row.seq in span for span in spans))
        return sum(weight(row) - desk.weight(row) for row in rows)

    def request(self, budget: Budget, *, prompt_follows: bool = False) -> Request:
        """The next request; with `prompt_follows`, as far as it is known before the next prompt."""
        plan = project(
            self.sheet,
            self.profile,
            budget,
            self.plan,
            prompt_follows=prompt_follows,
            continued=self._continued(budget, prompt_follows=prompt_follows),
        )
        if self.plan is None or not _adds(self.plan, plan):
            self._rendered = _Rendered(_still(self._rendered.edits, plan))
        self.plan = plan
        return self._rendered.request(self.sheet, plan)

    def _continued(self, budget: Budget, *, prompt_follows: bool) -> Plan | None:
        """See `continuation`; a request is measured before it is made, and planned once."""
        facts = (self.sheet.head, budget, prompt_follows)
        bases = (self.sheet, self.profile, self.plan)
        known = self._next
        if known is None or known.facts != facts or not all(map(is_, known.bases, bases)):
            sheet, profile, before = bases
            plan = continuation(sheet, profile, budget, before, prompt_follows=prompt_follows)
            known = self._next = _Continued(facts, bases, plan)
        return known.plan


class _Continued(NamedTuple):
    """A plan that continues the one before, and what it was made of."""

    facts: tuple[int, Budget, bool]
    bases: tuple[Sheet, Profile, Plan | None]
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

    def request(self, sheet: Sheet, plan: Plan) -> Request:
        closed = plan.closed
        if closed is not None and closed.rows > self.rows:
            done = closed.layout
            self._close(sheet, self._since(done), closed.rows)
            self.inserts = len(done.inserts)
            self.gone = len(done.gone)
        tail = assemble(sheet.wire, sheet.rows[self.rows :], self._since(plan.layout), self.edits)
        digest = self.digest.copy()
        digest.update(b",".join(tail if not self.messages else [b"", *tail]) + b"]")
        messages = Messages(self.messages, len(self.messages), tuple(tail))
        return Request(plan, messages, digest.hexdigest(), sheet.wire)

    def _since(self, layout: Layout) -> Layout:
        """The layout without what speaks of the rows that are rendered already."""
        later = layout.gone[self.gone :], layout.changes, layout.inserts[self.inserts :]
        return Layout(*later)

    def _close(self, sheet: Sheet, layout: Layout, rows: int) -> None:
        new = assemble(sheet.wire, sheet.rows[self.rows : rows], layout, self.edits)
        if new:
            self.digest.update(b",".join([b"", *new] if self.messages else new))
        self.messages += new
        self.rows = rows
